"""Fuzzed scans against the sequential fold, and the fuzzer's own parts against hand examples."""

from __future__ import annotations

import re
import secrets
import sys

import hypothesis
import numpy as np
import pytest
from fuzz import operators as ops
from fuzz import runner
from fuzz.backends import NUMPY, NumpyBackend
from fuzz.campaign import run_programs
from fuzz.layouts import TARGETS, Layout, Machine, linear_layouts
from fuzz.oracle import fold
from fuzz.programs import CTAS, FORMS, LOOPS, Program, Scan
from fuzz.steps import StepError
from triton.tools.ptx_sim.errors import PtxSimError

# About 30 s on one core.
PROGRAMS = 120


def test_fixed_seed() -> None:
    assert run_programs(2026, PROGRAMS) >= PROGRAMS


def test_new_seed(capsys: pytest.CaptureFixture[str]) -> None:
    seed = secrets.randbelow(1 << 31)
    with capsys.disabled():
        # stderr, because the processes of pytest-xdist have no stdout
        print(f" [fuzz seed {seed}]", end=" ", file=sys.stderr, flush=True)
    assert run_programs(seed, PROGRAMS) >= PROGRAMS


@pytest.mark.parametrize("target", ["hip:gfx942", "hip:gfx1100"])
def test_amd_compiles(target: str) -> None:
    """For AMD whole programs are compiled, down to assembly."""

    def check(program):
        assembly, _ = runner.compile_program(program, "amdgcn")
        assert f".wavefront_size: {TARGETS[target]}" in assembly

    assert run_programs(2026, 20, check=check, target=target) >= 20


@pytest.mark.parametrize("target", [name for name in TARGETS if name.startswith("hip")])
def test_amd_step_by_step(target: str) -> None:
    """There is no simulator for AMD's code: the lowering's own output is evaluated."""
    assert run_programs(2026, 60, check=runner.run_steps, target=target) >= 60


def test_step_by_step_is_for_amd_only() -> None:
    """What the evaluator does not know is an error, and not passed over."""
    with pytest.raises(StepError, match=r"unknown operation: nvvm\.shfl"):
        run_programs(2026, 20, check=runner.run_steps, max_scans=1)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("rows", [False, True])
def test_found_sixteen_warps_beside_other_lanes(rows: bool, reverse: bool) -> None:
    """The lanes that scan 16 warps' totals once forgot in which lane they are on another axis, or
    on a coarser part of the same one."""
    shape = (2, 128) if rows else (256,)
    lanes = ([1], [2], [128], [4], [0])
    warps = ([32], [64], [8], [16])

    def base(bit: list[int]) -> list[int]:
        if not rows:
            return bit
        return [1, 0] if bit == [128] else [0, *bit]

    encoding = (
        f"#ttg.linear<{{register = [], lane = {[base(b) for b in lanes]}, "
        f"warp = {[base(b) for b in warps]}, block = []}}>"
    )
    operator = ops.affine_map("i32")
    scan = Scan(Layout(shape, encoding), int(rows), reverse, operator, "none", 1, False, 0)
    runner.run(Program(Machine(32, 16, 1), (scan,)))


@pytest.mark.parametrize("reverse", [False, True])
def test_found_two_exchanges_of_two_slots(reverse: bool) -> None:
    """Two warps' totals are folded, then one warp scans sixteen warps' totals.

    What that one hands out is read after the barrier.
    """
    encoding = (
        "#ttg.linear<{register = [[1024]], lane = [[1], [4], [8], [16], [32]], "
        "warp = [[2], [64], [128], [256], [512]], block = []}>"
    )
    scan = Scan(Layout((2048,), encoding), 0, reverse, ops.affine_map("i32"), "none", 1, False, 0)
    runner.run(Program(Machine(32, 32, 1), (scan,)))


@pytest.mark.parametrize("reverse", [False, True])
def test_found_divisions_after_the_barriers_of_a_partition(reverse: bool) -> None:
    """Divisions of 64 bits make new blocks, into which the source base's LLVM moved the loads of
    totals, past barriers that were assembly to it."""
    pairs = (
        "#ttg.linear<{register = [[1, 0]], lane = [[2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], "
        "warp = [[0, 1], [64, 0]], block = []}>"
    )
    row = (
        "#ttg.linear<{register = [], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], "
        "block = []}>"
    )
    products = ops.matrix_product_modulo("i64", 251)
    scans = (
        Scan(Layout((128, 2), pairs), 1, reverse, products, "none", 1, False, 0),
        Scan(Layout((128,), row), 0, reverse, ops.affine_map("i32"), "none", 1, False, 0),
    )
    runner.run(Program(Machine(32, 4, 1), scans, workers=(4,)))


@pytest.mark.parametrize("reverse", [False, True])
def test_found_functions_that_cross_ctas(reverse: bool) -> None:
    """Upstream refuses the barrier of a cluster in a function that is not inlined."""
    layout = Layout(
        (128,),
        "#ttg.linear<{register = [], lane = [[2], [4], [8], [16], [32]], warp = [[64]], "
        "block = [[1]]}>",
    )
    scan = Scan(layout, 0, reverse, ops.affine_map("i32"), "none", 1, False, 0, "call")
    # With a second one, whose function does not cross CTAs.
    flat = Layout(
        (128,),
        "#ttg.linear<{register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = [[64]], "
        "block = [[0]]}>",
    )
    other = Scan(flat, 0, reverse, ops.affine_map("i32"), "none", 1, False, 1, "call")
    runner.run(Program(Machine(32, 2, 2), (scan, other)))


def test_a_dropped_barrier_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    compile_program = runner.compile_program

    def without_barriers(program, last):
        ptx, metadata = compile_program(program, last)
        return re.sub(r"\n\s*bar\.sync[^\n]*", "", ptx), metadata

    monkeypatch.setattr(runner, "compile_program", without_barriers)
    with pytest.raises(PtxSimError, match=r"race|nobody wrote"):
        run_programs(2026, 100, shrink=False)


def test_a_wrong_result_is_shrunk_and_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """With an oracle that forgets the direction, the smallest failure is a reverse scan."""
    monkeypatch.setattr(
        runner, "fold", lambda operator, operands, axis, reverse: fold(operator, operands, axis, 0)
    )
    with pytest.raises(runner.Mismatch, match=r"scan 0 .*reverse") as failure:
        run_programs(5, 100)  # whose first failure shrinks to one scan in either base
    (note, *_) = failure.value.__notes__
    assert note.startswith("seed 5, program:\n// scan 0: ")
    assert note.count('"tt.scan"') == 1
    assert "reverse = true" in note
    # The text is complete: it compiles as it is printed.
    module = note.split("\n", 1)[1]
    assert module.count("module attributes") == 1


def test_a_wrong_copy_is_found() -> None:
    """Every thread's copy of a result is compared."""
    scan = _scan_of_one_element()
    outputs = [np.zeros((32, 1), np.int32)]
    runner.compare(0, scan, [np.zeros(1, np.int32)], outputs)
    outputs[0][17] = 1
    with pytest.raises(runner.Mismatch, match=r"copy 17, index \(0,\): got 1, want 0"):
        runner.compare(0, scan, [np.zeros(1, np.int32)], outputs)


def _scan_of_one_element():
    layout = Layout((1,), "#unused")
    return Scan(layout, 0, False, ops.keeper(("i32",), True), "none", 1, False, 0)


def _arrays(*values, kind: str = "i32") -> list[np.ndarray]:
    return [np.array(v, NUMPY[kind]) for v in values]


def _lists(arrays: list[np.ndarray]) -> list:
    return [a.tolist() for a in arrays]


def test_fold_of_affine_maps() -> None:
    """2x+1, 3x+5, 4x+7: forward 3(2x+1)+5 = 6x+8, then 4(6x+8)+7; reverse 3(4x+7)+5, ..."""
    operands = _arrays([2, 3, 4], [1, 5, 7])
    affine = ops.affine_map("i32")
    assert _lists(fold(affine, operands, 0, False)) == [[2, 6, 24], [1, 8, 39]]
    assert _lists(fold(affine, operands, 0, True)) == [[24, 12, 4], [53, 26, 7]]


def test_fold_of_matrices() -> None:
    """[[1,1],[0,1]] [[2,0],[1,1]] = [[3,1],[1,1]], and the other way [[2,2],[1,2]]."""
    operands = _arrays([1, 2], [1, 0], [0, 1], [1, 1])
    for operator in (ops.matrix_product("i32"), ops.matrix_product_modulo("i32", 251)):
        assert _lists(fold(operator, operands, 0, False)) == [[1, 3], [1, 1], [0, 1], [1, 1]]
        assert _lists(fold(operator, operands, 0, True)) == [[2, 2], [2, 0], [1, 1], [2, 1]]


@pytest.mark.parametrize("branches", [False, True])
def test_fold_of_segments(branches: bool) -> None:
    """A flag starts a segment in the direction; in reverse that is the last of its elements."""
    operator = ops.segmented(ops._simple("add", "add", "i32"), "i1", branches)
    operands = [np.array([0, 1, 0, 1, 0], bool), np.array([1, 2, 3, 4, 5], np.int32)]
    forward, reverse = (fold(operator, operands, 0, r)[1].tolist() for r in (False, True))
    assert forward == [1, 2, 5, 4, 9]
    assert reverse == [3, 2, 7, 4, 5]


@pytest.mark.parametrize("branches", [False, True])
def test_fold_of_first_maximum(branches: bool) -> None:
    operands = _arrays([3, 7, 7, 1], [0, 1, 2, 3])
    operator = ops.first_maximum("i32", "i32", branches)
    assert fold(operator, operands, 0, False)[1].tolist() == [0, 1, 1, 1]
    assert fold(operator, operands, 0, True)[1].tolist() == [2, 2, 2, 3]


def test_fold_wraps_around_and_takes_the_axis() -> None:
    operands = _arrays([[100, 100], [1, 2]], kind="i8")
    add = ops._simple("add", "add", "i8")
    assert _lists(fold(add, operands, 1, False)) == [[[100, -56], [1, 3]]]
    assert _lists(fold(add, operands, 0, True)) == [[[101, 102], [1, 2]]]


@hypothesis.settings(max_examples=300, deadline=None, database=None)
@hypothesis.given(ops.operators(), hypothesis.strategies.integers(0, 1000))
def test_operators_are_associative(operator: ops.Operator, seed: int) -> None:
    """On what the fuzzer scans; bitwise but for the sign of zero."""
    samples = operator.sample(np.random.default_rng(seed), (3, 50), 150)
    a, b, c = ([s[i] for s in samples] for i in range(3))
    backend = NumpyBackend([NUMPY[kind].type(value) for kind, value in operator.captured])
    with np.errstate(all="ignore"):
        left = operator.combine(backend, operator.combine(backend, a, b), c)
        right = operator.combine(backend, a, operator.combine(backend, b, c))
    for kind, x, y in zip(operator.kinds, left, right, strict=True):
        assert x.dtype == y.dtype == NUMPY[kind]
        np.testing.assert_array_equal(x, y)


@hypothesis.settings(max_examples=100, deadline=None, database=None)
@hypothesis.given(hypothesis.strategies.data())
def test_linear_layouts_hold_every_element(data) -> None:
    """The bases of a layout are all coordinate bits once, the viewer's have no copies."""
    machine, shape = Machine(32, 4, 2), (8, 16)
    layout = data.draw(linear_layouts(machine, shape, 9))
    text = layout.viewer or layout.encoding
    bases = [tuple(map(int, b.split(", "))) for b in re.findall(r"\[(\d[\d, ]*)\]", text)]
    own = sorted(b[-2:] for b in bases if any(b[-2:]))
    assert own == sorted([(1, 0), (2, 0), (4, 0), (0, 1), (0, 2), (0, 4), (0, 8)])
    if layout.viewer:
        copies = [b[0] for b in bases if b[0]]
        assert sorted(copies) == [1 << i for i in range(layout.copies.bit_length() - 1)]


def test_programs_vary() -> None:
    """A campaign has both directions, many warps, copies, loops, clusters and several operands."""
    seen = set()

    def note(program):
        seen.add(("warps", program.machine.warps))
        seen.add(("ctas", program.machine.ctas))
        seen.add(("workers", len(program.workers)))
        for scan in program.scans:
            seen.update([("loop", scan.loop), ("reverse", scan.reverse), ("form", scan.form)])
            seen.add(("operands", len(scan.operator.kinds)))
            seen.update(("kind", kind) for kind in scan.operator.kinds)
            seen.add(("rank", len(scan.layout.shape)))
            seen.add(("has copies", scan.layout.copies > 1))
            seen.add(scan.layout.encoding.split("<")[0])

    run_programs(3, 300, check=note)
    wanted = {("warps", w) for w in (1, 2, 4, 8, 16)} | {("ctas", c) for c in CTAS}
    wanted |= {("loop", loop) for loop in LOOPS} | {("form", form) for form in FORMS}
    wanted |= {("workers", n) for n in range(3)}
    wanted |= {("operands", n) for n in range(1, 5)} | {("rank", n) for n in range(1, 4)}
    wanted |= {("kind", kind) for kind in NUMPY}
    wanted |= {("reverse", b) for b in (False, True)} | {("has copies", b) for b in (False, True)}
    wanted |= {"#ttg.linear", "#ttg.slice", "#ttg.blocked", "#ttg.nvidia_mma"}
    assert not wanted - seen
