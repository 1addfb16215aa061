"""AMD's moves between lanes: their values, their legality, and that directions cost the same.

No AMD GPU was at hand.  The lowered TTGIR is evaluated with the semantics of fuzz/amd_lanes.py, and
LLVM's assembler has to accept the instructions.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter

import numpy as np
import pytest
from fuzz import lane_runs, runner
from fuzz import operators as ops
from fuzz.amd_lanes import IllegalMove, Wave
from fuzz.layouts import TARGETS, Layout, Machine
from fuzz.programs import Program, Scan, write_functions
from fuzz.steps import Evaluator
from triton import native_scan
from triton._C.libtriton import ir

AMD = [target for target in TARGETS if target.startswith("hip")]
MOVES = re.compile(r'rocdl\.((?:ds_|update|readlane|permlane)[\w.]*)|"llvm\.amdgcn\.([\w.]+)"')


def _lower(text: str, machine: Machine, name: str) -> str:
    module = runner.parse(text, machine)
    pipeline = ir.pass_manager(module.context)
    native_scan.add_pass(pipeline, name)
    native_scan.run_reporting(pipeline, module, "test")
    return module.str_nodebug()


def _moves(text: str) -> Counter:
    return Counter(a or b for a, b in MOVES.findall(text))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("target", AMD)
def test_neighbouring_lanes(target: str, reverse: bool) -> None:
    runner.run_steps(lane_runs.program(target, lane_runs.neighbouring(target), reverse))


@pytest.mark.parametrize("target", AMD)
def test_any_lanes_take_the_same_moves_in_both_directions(target: str) -> None:
    """Of each kind, for every choice of lane bits in ascending and in descending order."""
    bits = TARGETS[target].bit_length() - 1
    subsets = [s for n in range(1, bits + 1) for s in itertools.combinations(range(bits), n)]
    runs = subsets + [s[::-1] for s in subsets if len(s) > 1]
    counts = []
    for reverse in (False, True):
        program = lane_runs.program(target, runs, reverse)
        runner.run_steps(program)
        text = _lower(write_functions(program), program.machine, "lower_scan")
        counts.append([_moves(function) for function in text.split("tt.func ")[1:]])
    assert len(counts[0]) == 2 * len(runs)
    for number, (forward, reverse) in enumerate(zip(*counts, strict=True)):
        assert forward, runs[number // 2]
        assert forward == reverse, runs[number // 2]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("target", AMD)
def test_a_whole_wave_needs_no_lds(target: str, reverse: bool) -> None:
    """Neither ds_bpermute nor ds_swizzle, for the steps, the previous lane and the total."""
    bits = TARGETS[target].bit_length() - 1
    program = lane_runs.program(target, [tuple(range(bits))], reverse)
    moves = _moves(_lower(write_functions(program), program.machine, "lower_scan"))
    assert moves["update.dpp"]
    assert not [name for name in moves if name.startswith("ds_")]


@pytest.mark.parametrize("target", AMD)
def test_the_assembler_accepts_the_moves(target: str) -> None:
    for reverse in (False, True):
        program = lane_runs.program(target, lane_runs.neighbouring(target), reverse)
        binary, _ = runner.compile_program(program, "hsaco")
        assert binary[:4] == b"\x7fELF"


# The accumulator of tl.dot of 64x64 tiles in 4 warps, and the same as a linear layout.
ACCUMULATORS = {
    "hip:gfx942": (
        "#ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], "
        "isTransposed = true}>",
        "#ttg.linear<{register = [[0, 1], [0, 2], [0, 8], [0, 16]], "
        "lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 4]], "
        "warp = [[0, 32], [32, 0]], block = []}>",
    ),
    "hip:gfx1100": (
        "#ttg.amd_wmma<{version = 1, isTranspose = true, ctaLayout = {warp = [[0, 1], [1, 0]]}}>",
        "#ttg.linear<{register = [[0, 2], [0, 4], [0, 8], [0, 32], [32, 0]], "
        "lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1]], "
        "warp = [[0, 16], [16, 0]], block = []}>",
    ),
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("target", ACCUMULATORS)
def test_accumulator_of_a_dot(target: str, axis: int, reverse: bool) -> None:
    accumulator, linear = ACCUMULATORS[target]
    machine = Machine(TARGETS[target], 4, 1, target)
    scan = Scan(Layout((64, 64), linear), axis, reverse, ops.affine_map("i32"), "none", 1, False, 0)
    program = Program(machine, (scan,))
    runner.run_steps(program)
    # The accumulator becomes the same code.
    text = write_functions(program)
    lowered = [
        re.sub(r"(?m)^#.*\n|#\w+", "", _lower(t, machine, "lower_scan"))
        for t in (text, text.replace(linear, accumulator))
    ]
    assert lowered[0] == lowered[1]


FLIP = """
  tt.func public @flip{number}(%x: {type}) -> ({type}) {{
    %y = "tt.scan"(%x) <{{axis = 1 : i32, reverse = false}}> ({{
    ^bb0(%a: i32, %b: i32):
      %f = tt.extern_elementwise %a, %b {{libname = "triton_scan", libpath = "", pure = true, symbol = "triton_scan_flip"}} : (i32, i32) -> i32
      tt.scan.return %f : i32
    }}) : ({type}) -> {type}
    tt.return %y : {type}
  }}
"""  # noqa: E501


@pytest.mark.parametrize("target", AMD)
def test_flip_of_any_lanes(target: str) -> None:
    lanes = TARGETS[target]
    bits = lanes.bit_length() - 1
    machine = Machine(lanes, 1, 1, target)
    types, functions = [], []
    for mask in range(1, lanes):
        flipped = [bit for bit in range(bits) if mask >> bit & 1]
        others = [bit for bit in range(bits) if not mask >> bit & 1]
        bases = [[0, 1 << flipped.index(b)] if b in flipped else [1 << others.index(b), 0]
                 for b in range(bits)]  # fmt: skip
        types.append(
            f"tensor<{1 << len(others)}x{1 << len(flipped)}xi32, "
            f"#ttg.linear<{{register = [], lane = {bases}, warp = [], block = []}}>>"
        )
        functions.append(FLIP.format(number=mask, type=types[-1]))
    text = _lower(write_functions(Program(machine, ())).replace("{\n", "{\n" + "".join(functions)),
                  machine, "lower_flip")  # fmt: skip
    evaluator = Evaluator(text, lanes, 1)
    for mask, kind in enumerate(types, 1):
        shape, _, layout = evaluator.tensor_type(kind)
        values = np.arange(lanes, dtype=np.int32).reshape(shape)
        (got,) = evaluator.run(f"flip{mask}", [values])
        np.testing.assert_array_equal(got[0], values[:, ::-1][layout.index][0], err_msg=str(mask))
    # The rows of a wave are flipped without shared memory; 64 lanes at once take ds_bpermute.
    assert _moves(text)["update.dpp"]


def test_controls_by_hand() -> None:
    """The evaluator's own semantics, against values read off the tables of the guides."""
    gfx9, gfx11 = Wave("gfx942", 64), Wave("gfx1100", 32)

    def sources(wave: Wave, control: int) -> list[int | None]:
        return [wave.dpp_source(control, lane) for lane in (0, 1, 15, 16, 17, 31)]

    assert sources(gfx9, 0b00_01_10_11) == [3, 2, 12, 19, 18, 28]  # quad_perm:[3,2,1,0]
    assert sources(gfx9, 0x101) == [1, 2, None, 17, 18, None]  # row_shl:1
    assert sources(gfx9, 0x111) == [None, 0, 14, None, 16, 30]  # row_shr:1
    assert sources(gfx9, 0x121) == [15, 0, 14, 31, 16, 30]  # row_ror:1
    assert sources(gfx9, 0x130) == [1, 2, 16, 17, 18, 32]  # wave_shl:1
    assert sources(gfx9, 0x138) == [None, 0, 14, 15, 16, 30]  # wave_shr:1
    assert sources(gfx9, 0x13C) == [63, 0, 14, 15, 16, 30]  # wave_ror:1
    assert gfx9.dpp_source(0x134, 63) == 0  # wave_rol:1
    assert sources(gfx9, 0x140) == [15, 14, 0, 31, 30, 16]  # row_mirror
    assert sources(gfx9, 0x141) == [7, 6, 8, 23, 22, 24]  # row_half_mirror
    assert sources(gfx9, 0x142) == [None, None, None, 15, 15, 15]  # row_bcast:15
    assert sources(gfx9, 0x157) == [7, 7, 7, 23, 23, 23]  # row_newbcast:7
    assert sources(gfx11, 0x157) == [7, 7, 7, 23, 23, 23]  # row_share:7
    assert sources(gfx11, 0x161) == [1, 0, 14, 17, 16, 30]  # row_xmask:1
    for wave, control in ((gfx11, 0x13C), (gfx11, 0x142), (gfx9, 0x161), (gfx9, 0x100)):
        with pytest.raises(IllegalMove):
            wave.dpp_source(control, 0)
    with pytest.raises(IllegalMove):
        Wave("gfx908", 64).dpp_source(0x150, 0)

    lane = np.arange(32, dtype=np.int32)[None]
    old = np.full((1, 32), -1, np.int32)
    kept = gfx11.update_dpp(old, lane, 0x111, 0b01, 0b0011, False)[0]
    assert kept.tolist() == [-1, *range(7), *[-1] * 24]
    zeroed = gfx11.update_dpp(old, lane, 0x111, 0b11, 0b1111, True)[0]
    assert zeroed[[0, 1, 2, 16, 17]].tolist() == [0, 0, 1, 0, 16]
    assert gfx11.permlane16(lane, 0x76543210, 0xFEDCBA98, True)[0].tolist() == [
        *range(16, 32),
        *range(16),
    ]
    assert gfx11.swizzle(lane, 0x041F)[0, :4].tolist() == [1, 0, 3, 2]  # xor 1
    wide = np.arange(64)[None]
    first, second = Wave("gfx950", 64).permlane_swap(wide, wide + 100, 16)
    assert first[0, [0, 16, 32, 48]].tolist() == [0, 100, 32, 132]
    assert second[0, [0, 16, 32, 48]].tolist() == [16, 116, 48, 148]
