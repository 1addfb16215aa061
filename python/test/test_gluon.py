"""Scans in Gluon, where the kernel chooses the layout: also those that no heuristic produces.

The values are integers that wrap around, under a combine function that does not commute; results
equal the sequential fold bit for bit in both directions.
"""

from __future__ import annotations

import numpy as np
import pytest
from scan_values import check, run
from triton.compiler.errors import CompilationError
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.tools.ptx_sim import compile_kernel

RNG = np.random.default_rng


@gluon.jit
def affine(a1, b1, a2, b2):
    return a2 * a1, a2 * b1 + b2


@gluon.jit
def add(a, b):
    return a + b


def affine_numpy(a1, b1, a2, b2):
    return a2 * a1, a2 * b1 + b2


def operands(shape: tuple) -> list:
    """Return factors, odd so that no product loses its history, and summands."""
    a, b = (RNG(s).integers(-(2**31), 2**31, shape).astype(np.int32) for s in (1, 2))
    return [a | 1, b]


@gluon.jit
def line(
    x, y, out_x, out_y, N: gl.constexpr, LAYOUT: gl.constexpr, REVERSE: gl.constexpr
):  # fmt: skip
    i = gl.arange(0, N, LAYOUT)
    a, b = gl.associative_scan((gl.load(x + i), gl.load(y + i)), 0, affine, reverse=REVERSE)
    gl.store(out_x + i, a)
    gl.store(out_y + i, b)


@gluon.jit
def rectangle(
    x, y, out_x, out_y, M: gl.constexpr, N: gl.constexpr, LAYOUT: gl.constexpr,
    AXIS: gl.constexpr, REVERSE: gl.constexpr,
):  # fmt: skip
    row = gl.arange(0, M, gl.SliceLayout(1, LAYOUT))
    column = gl.arange(0, N, gl.SliceLayout(0, LAYOUT))
    i = row[:, None] * N + column[None, :]
    a, b = gl.associative_scan((gl.load(x + i), gl.load(y + i)), AXIS, affine, reverse=REVERSE)
    gl.store(out_x + i, a)
    gl.store(out_y + i, b)


@gluon.jit
def cube(
    x, y, out_x, out_y, D0: gl.constexpr, D1: gl.constexpr, D2: gl.constexpr,
    LAYOUT: gl.constexpr, AXIS: gl.constexpr, REVERSE: gl.constexpr,
):  # fmt: skip
    i0 = gl.arange(0, D0, gl.SliceLayout(1, gl.SliceLayout(2, LAYOUT)))
    i1 = gl.arange(0, D1, gl.SliceLayout(0, gl.SliceLayout(2, LAYOUT)))
    i2 = gl.arange(0, D2, gl.SliceLayout(0, gl.SliceLayout(1, LAYOUT)))
    plane = i0[:, None] * (D1 * D2) + i1[None, :] * D2
    i = plane[:, :, None] + i2[None, None, :]
    a, b = gl.associative_scan((gl.load(x + i), gl.load(y + i)), AXIS, affine, reverse=REVERSE)
    gl.store(out_x + i, a)
    gl.store(out_y + i, b)


@gluon.jit
def converted(
    x, y, out_x, out_y, M: gl.constexpr, N: gl.constexpr, MEMORY: gl.constexpr,
    LAYOUT: gl.constexpr, AXIS: gl.constexpr, REVERSE: gl.constexpr,
):  # fmt: skip
    row = gl.arange(0, M, gl.SliceLayout(1, MEMORY))
    column = gl.arange(0, N, gl.SliceLayout(0, MEMORY))
    i = row[:, None] * N + column[None, :]
    a = gl.convert_layout(gl.load(x + i), LAYOUT)
    b = gl.convert_layout(gl.load(y + i), LAYOUT)
    a, b = gl.associative_scan((a, b), AXIS, affine, reverse=REVERSE)
    gl.store(out_x + i, gl.convert_layout(a, MEMORY))
    gl.store(out_y + i, gl.convert_layout(b, MEMORY))


def linear(shape: list, registers: list, lanes: list, warps: list, blocks: list = ()):
    """Return a linear layout; in one dimension a basis may be an int."""
    bases = [[[b] if isinstance(b, int) else b for b in owner]
             for owner in (registers, lanes, warps, list(blocks))]  # fmt: skip
    return gl.DistributedLinearLayout(*bases, shape)


WGMMA = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, 64, 16])
MMA = gl.NVMMADistributedLayout(version=[2, 0], warps_per_cta=[2, 2], instr_shape=[16, 8])

# (elements, layout), for 4 warps
LINES = {
    "scattered lane bits": (256, linear([256], [1], [64, 2, 32, 4, 16], [8, 128])),
    "falling lane bits": (256, linear([256], [1], [128, 64, 32, 16, 8], [4, 2])),
    "warps below lanes": (256, linear([256], [128], [4, 8, 16, 32, 64], [1, 2])),
    "warps between lanes": (256, linear([256], [16], [1, 2, 32, 64, 128], [4, 8])),
    "registers between all": (1024, linear([1024], [2, 16, 128], [1, 8, 32, 512, 4], [64, 256])),
    "falling registers, idle warps": (
        512,
        linear([512], [8, 4, 2, 1], [16, 32, 64, 128, 256], [0, 0]),
    ),
    "copies of each kind": (16, linear([16], [4, 0], [0, 1, 0, 2, 0], [8, 0])),
    "one element everywhere": (1, linear([1], [0], [0] * 5, [0] * 2)),
    "all in registers": (32, linear([32], [16, 1, 8, 2, 4], [0] * 5, [0] * 2)),
    "all in warps": (4, linear([4], [], [0] * 5, [2, 1])),
    "slice of scattered lanes": (
        64,
        gl.SliceLayout(
            0,
            linear(
                [8, 64],
                [[0, 2], [4, 0]],
                [[0, 32], [1, 0], [0, 1], [2, 0], [0, 8]],
                [[0, 16], [0, 4]],
            ),
        ),
    ),
    "slice of a slice": (
        32,
        gl.SliceLayout(
            1, gl.SliceLayout(0, gl.BlockedLayout([1, 2, 2], [2, 2, 8], [2, 2, 1], [0, 2, 1]))
        ),
    ),
    "slice of wgmma": (64, gl.SliceLayout(0, WGMMA)),
    "blocked": (512, gl.BlockedLayout([2], [32], [4], [0])),
}


@pytest.mark.parametrize("name", LINES)
def test_one_dimension(name):
    n, layout = LINES[name]
    check(line, operands((n,)), affine_numpy, axis=0, constexprs={"N": n, "LAYOUT": layout})


# (shape, layout)
RECTANGLES = {
    "rows of warps, columns of lanes": (
        (16, 32),
        linear([16, 32], [[4, 0], [0, 4]], [[0, 16], [1, 0], [0, 1], [0, 8], [8, 0]],
               [[2, 0], [0, 2]]),
    ),
    "mma": ((32, 32), MMA),
    "wgmma": ((64, 64), WGMMA),
}  # fmt: skip


@pytest.mark.parametrize("name", RECTANGLES)
@pytest.mark.parametrize("axis", [0, -1])
def test_two_dimensions(name, axis):
    shape, layout = RECTANGLES[name]
    constexprs = {"M": shape[0], "N": shape[1], "LAYOUT": layout, "AXIS": axis}
    check(rectangle, operands(shape), affine_numpy, axis=axis, constexprs=constexprs)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_three_dimensions(axis):
    layout = linear(
        [8, 8, 8],
        [[0, 0, 1], [2, 0, 0]],
        [[0, 4, 0], [1, 0, 0], [0, 0, 4], [0, 1, 0], [4, 0, 0]],
        [[0, 0, 2], [0, 2, 0]],
    )
    constexprs = {"D0": 8, "D1": 8, "D2": 8, "LAYOUT": layout, "AXIS": axis}
    check(cube, operands((8, 8, 8)), affine_numpy, axis=axis, constexprs=constexprs)


@pytest.mark.parametrize("operand", [0, 1])
@pytest.mark.parametrize("axis", [0, 1])
def test_operand_of_a_dot(operand, axis):
    constexprs = {
        "M": 32,
        "N": 32,
        "MEMORY": gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0]),
        "LAYOUT": gl.DotOperandLayout(operand_index=operand, parent=MMA, k_width=1),
        "AXIS": axis,
    }
    check(converted, operands((32, 32)), affine_numpy, axis=axis, constexprs=constexprs)


@pytest.mark.parametrize(
    "bases",
    [
        ([1], [2, 4, 8, 16, 32], [64, 128], [256]),  # CTA 1 has the second half
        ([128], [4, 8, 16, 32, 64], [2, 256], [1]),  # neighbours are in different CTAs
    ],
    ids=["halves", "alternating"],
)
def test_across_ctas(bases):
    constexprs = {"N": 512, "LAYOUT": linear([512], *bases)}
    check(line, operands((512,)), affine_numpy, axis=0, constexprs=constexprs, num_ctas=2)


@gluon.jit
def cumulative(x, out, N: gl.constexpr, LAYOUT: gl.constexpr, REVERSE: gl.constexpr):
    i = gl.arange(0, N, LAYOUT)
    y = gl.cumsum(gl.load(x + i), 0, reverse=REVERSE)
    gl.store(out + i, y + gl.zeros_like(y))  # the result has the operand's layout


def test_cumsum():
    n, layout = LINES["warps below lanes"]
    x = operands((n,))[1]
    constexprs = {"N": n, "LAYOUT": layout}
    check(cumulative, [x], lambda a, b: a + b, axis=0, constexprs=constexprs)
    constexprs["REVERSE"] = True
    compiled, _ = compile_kernel(cumulative, [x, x], constexprs)
    assert "bfly" not in compiled.asm["ptx"]


@gluon.jit
def two_layouts(
    x, out, LAYOUT: gl.constexpr, AXIS: gl.constexpr, FN: gl.constexpr, REVERSE: gl.constexpr
):
    i = gl.arange(0, 128, LAYOUT)
    j = gl.arange(0, 128, gl.BlockedLayout([1], [32], [4], [0]))
    a, _ = gl.associative_scan((gl.load(x + i), gl.load(x + j)), AXIS, FN, reverse=REVERSE)
    gl.store(out + i, a)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"AXIS": 1}, r"axis must be an int in \[-1, 0\] for an input of rank 1, got 1"),
        ({"AXIS": -2}, r"axis must be an int in \[-1, 0\] for an input of rank 1, got -2"),
        ({"AXIS": None}, r"axis must be an int in \[-1, 0\].*a scan has no default axis"),
        ({"REVERSE": "yes"}, "reverse must be True or False, known at compile time, got 'yes'"),
        ({"FN": add}, r"combine_fn add must take 4 arguments.*it takes \(a, b\)"),
        (
            {"LAYOUT": gl.BlockedLayout([2], [32], [2], [0])},
            r"must have the same layout.* got Blocked.*\[2\].*, Blocked.*\(1\).*; use gl\.convert",
        ),
    ],
)
def test_errors(change, message):
    x = np.zeros(128, np.int32)
    constexprs = {
        "LAYOUT": gl.BlockedLayout([1], [32], [4], [0]),
        "AXIS": 0,
        "FN": affine,
        "REVERSE": False,
        **change,
    }
    with pytest.raises(CompilationError, match=message) as caught:
        run(two_layouts, [x], [x], (), constexprs)
    assert "AssertionError" not in str(caught.value)


def test_error_for_swizzled_warps():
    """Triton has these layouts, whose warps move in two dimensions at once, but not for scans."""
    layout = linear([8, 32], [[1, 0]], [[0, 1], [0, 2], [0, 4], [0, 8], [4, 0]], [[2, 16], [0, 16]])
    constexprs = {"M": 8, "N": 32, "LAYOUT": layout, "AXIS": 1, "REVERSE": True}
    x = operands((8, 32))
    with pytest.raises(CompilationError, match=r"not move in two.* use gl\.convert") as caught:
        run(rectangle, x, x, (), constexprs)
    assert "AssertionError" not in str(caught.value)
