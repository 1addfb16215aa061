"""Programs that scan along given lanes of one warp, for what random layouts seldom have."""

from __future__ import annotations

from . import operators as ops
from .layouts import TARGETS, Layout, Machine
from .programs import Program, Scan


def layout(lane_bits: tuple[int, ...], lanes: int, registers: bool) -> Layout:
    """An axis whose bits are held by those lane bits, the finest first; other lanes hold copies.

    registers: are its finest and its coarsest bit in registers?
    """
    first = 2 if registers else 1
    size = first << len(lane_bits)
    bases = [[0] for _ in range(lanes.bit_length() - 1)]
    for i, bit in enumerate(lane_bits):
        bases[bit] = [first << i]
    register = [[1], [size]] if registers else []
    shape = (2 * size,) if registers else (size,)
    encoding = f"#ttg.linear<{{register = {register}, lane = {bases}, warp = [], block = []}}>"
    return Layout(shape, encoding)


def program(target: str, runs: list[tuple[int, ...]], reverse: bool) -> Program:
    """Two scans of affine maps, which do not commute, for each run of lane bits: without and with
    registers before and behind the lanes."""
    machine = Machine(TARGETS[target], 1, 1, target)
    affine = ops.affine_map("i32")
    return Program(
        machine,
        tuple(
            Scan(layout(run, machine.lanes, inside), 0, reverse, affine, "none", 1, False, seed)
            for seed, run in enumerate(runs)
            for inside in (False, True)
        ),
    )


def neighbouring(target: str) -> list[tuple[int, ...]]:
    """Runs of neighbouring lane bits, in ascending and in descending order."""
    bits = TARGETS[target].bit_length() - 1
    runs = [tuple(range(a, b)) for a in range(bits) for b in range(a + 1, bits + 1)]
    return runs + [run[::-1] for run in runs if len(run) > 1]
