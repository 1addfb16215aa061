"""How the compiler splits a scan: compiles a kernel and reads its remark and the tensor's layout."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import triton
from triton._C.libtriton import gluon_ir, ir
from triton.backends.compiler import GPUTarget
from triton.experimental.gluon.language import BlockedLayout

REMARK = re.compile(
    r"(?P<direction>forward|reverse) scan along axis (?P<axis>\d+) of "
    r"'tensor<(?P<shape>[\dx]+)x\w+, (?P<encoding>#ttg\..*)>'; "
    r"axis bits, finest first: (?P<runs>.*); a thread executes (?P<shuffles>\d+) shuffles, "
    r"(?P<exchanges>\d+) exchanges, (?P<combines>\d+) combines"
)


@dataclass(frozen=True)
class Place:
    """Where an element is: its register, lane and warp."""

    register: int
    lane: int
    warp: int


@dataclass(frozen=True)
class Plan:
    """What the compiler reported of one scan.

    runs: (owner, bits) of the axis, finest first; places: where each position along the axis is,
    of the first row; rows: the rows that a thread has elements of.
    """

    reverse: bool
    shape: tuple[int, ...]
    axis: int
    encoding: str
    runs: tuple[tuple[str, int], ...]
    places: tuple[Place, ...]
    rows: int
    shuffles: int
    exchanges: int
    combines: int


@contextmanager
def _captured_stderr() -> Iterator[list[str]]:
    """What the process writes to file descriptor 2, as one string in the list, afterwards."""
    texts: list[str] = []
    with tempfile.TemporaryFile() as file:
        saved = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield texts
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            file.seek(0)
            texts.append(file.read().decode())


def _numbers(text: str, key: str) -> list[int]:
    return [int(n) for n in re.search(rf"{key} = \[([\d, ]*)\]", text)[1].split(",")]


def bases_of(encoding: str, shape: list[int]) -> dict[str, list[list[int]]]:
    """The bases of a #ttg.blocked (by Triton's own conversion) or #ttg.linear layout."""
    if encoding.startswith("#ttg.linear"):
        found = re.findall(r"(\w+) = \[((?:\[[\d, ]*\](?:, )?)*)\]", encoding)
        return {
            name: [[int(n) for n in basis.split(",")] for basis in re.findall(r"\[([\d, ]+)\]", b)]
            for name, b in found
        }
    if not encoding.startswith("#ttg.blocked"):
        raise ValueError(f"no drawing is known of {encoding}")
    names = ("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order")
    layout = BlockedLayout(*(_numbers(encoding, name) for name in names))
    context = ir.context()
    ir.load_dialects(context)
    builder = gluon_ir.GluonOpBuilder(context)
    linear = builder.to_linear_layout(layout._to_ir(builder), shape)
    return {
        "register": linear.reg_bases,
        "lane": linear.lane_bases,
        "warp": linear.warp_bases,
        "block": linear.block_bases,
    }


def _places(bases: dict[str, list[list[int]]], axis: int, length: int) -> tuple[Place, ...]:
    places = []
    for position in range(length):
        index = {}
        for owner in ("register", "lane", "warp"):
            index[owner] = sum(
                1 << i for i, basis in enumerate(bases[owner]) if basis[axis] & position
            )
        places.append(Place(**index))
    return tuple(places)


def plan_of(kernel, types: dict, constexprs: dict, num_warps: int) -> Plan:
    """Compile a kernel with one scan for sm_90; return what the compiler said of it."""
    signature = types | dict.fromkeys(constexprs, "constexpr")
    source = triton.compiler.ASTSource(
        kernel,
        signature=signature,
        constexprs=constexprs,
        attrs={(i,): [["tt.divisibility", 16]] for i, t in enumerate(types.values()) if "*" in t},
    )
    with triton.knobs.scan.scope(), triton.knobs.compilation.scope(), _captured_stderr() as said:
        triton.knobs.scan.native = triton.knobs.scan.remarks = True
        triton.knobs.compilation.always_compile = True
        target = GPUTarget("cuda", 90, 32)
        triton.compile(source, target=target, options={"num_warps": num_warps})
    (match,) = REMARK.finditer(said[0])
    shape, axis = [int(n) for n in match["shape"].split("x")], int(match["axis"])
    bases = bases_of(match["encoding"], shape)
    runs = tuple((owner, int(n)) for n, owner in re.findall(r"(\d+) (\w+)", match["runs"]))
    rows = sum(1 for basis in bases["register"] if not basis[axis] and any(basis))
    return Plan(
        reverse=match["direction"] == "reverse",
        shape=tuple(shape),
        axis=axis,
        encoding=match["encoding"],
        runs=runs,
        places=_places(bases, axis, shape[axis]),
        rows=1 << rows,
        shuffles=int(match["shuffles"]),
        exchanges=int(match["exchanges"]),
        combines=int(match["combines"]),
    )
