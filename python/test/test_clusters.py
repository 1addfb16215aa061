"""Scans whose axis is split over the CTAs of a cluster, run in the simulator's cluster mode.

The values are integers that wrap around, or small ones in floats, under combine functions that do
not commute: results equal the sequential fold bit for bit.
"""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl
from scan_values import assert_close, check, decode, fold, run
from test_gluon import affine_numpy, line, linear, operands, rectangle
from triton.experimental.gluon import language as gl
from triton.tools.ptx_sim import compile_kernel

RNG = np.random.default_rng


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def affine(a1, b1, a2, b2):
    return a2 * a1, a2 * b1 + b2


@triton.jit
def matrix(a1, b1, c1, d1, a2, b2, c2, d2):
    return a2 * a1 + b2 * c1, a2 * b1 + b2 * d1, c2 * a1 + d2 * c1, c2 * b1 + d2 * d1


def matrix_numpy(a1, b1, c1, d1, a2, b2, c2, d2):
    return a2 * a1 + b2 * c1, a2 * b1 + b2 * d1, c2 * a1 + d2 * c1, c2 * b1 + d2 * d1


def integers(*shape: int, seed: int = 0, dtype=np.int32) -> np.ndarray:
    info = np.iinfo(dtype)
    return RNG(seed).integers(info.min, info.max, shape, dtype, endpoint=True)


# --- the layouts that Triton chooses


@triton.jit
def cumsum(x, out, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.cumsum(tl.load(x + i), 0, reverse=REVERSE))


@pytest.mark.parametrize("dtype", ["int8", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("num_ctas", [2, 4, 8])
def test_sums(num_ctas, dtype):
    """Sums of signs are exact in every order."""
    x = RNG(1).choice([-1, 1], 1024).astype(dtype)
    outputs = [x.astype(np.int32) if dtype == "int8" else x]
    check(
        cumsum,
        [x],
        lambda x, reverse: fold(np.add, [x.astype(outputs[0].dtype)], 0, reverse),
        axis=0,
        outputs=outputs,
        constexprs={"N": 1024},
        num_ctas=num_ctas,
    )


@pytest.mark.parametrize("num_ctas", [2, 4, 8, 16])
def test_rounding(num_ctas):
    """Each sum is a tree of depth log2(4096) at most, so as many roundings."""
    x = RNG(2).standard_normal(4096).astype(np.float32)
    for reverse in (False, True):
        (got,) = run(cumsum, [x], [x], (), {"N": 4096, "REVERSE": reverse}, num_ctas=num_ctas)
        wanted = fold(np.add, [decode(x)], 0, reverse)[0]
        bound = fold(np.add, [np.abs(decode(x))], 0, reverse)[0]
        assert_close(got, wanted, 2 * 12 * 2.0**-24 * bound)


@triton.jit
def tile(x, out, T: tl.constexpr, D: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(out + i, tl.associative_scan(tl.load(x + i), AXIS, add, reverse=REVERSE))


@pytest.mark.parametrize("shape", [(16, 64), (64, 16), (2, 256), (256, 2)], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("num_ctas", [2, 4, 8])
def test_tiles(num_ctas, axis, shape):
    constexprs = {"T": shape[0], "D": shape[1], "AXIS": axis}
    x = integers(*shape)
    check(tile, [x], np.add, axis=axis, constexprs=constexprs, num_ctas=num_ctas, num_warps=2)


@triton.jit
def matrices(a, b, c, d, oa, ob, oc, od, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    values = (tl.load(a + i), tl.load(b + i), tl.load(c + i), tl.load(d + i))
    ya, yb, yc, yd = tl.associative_scan(values, 0, matrix, reverse=REVERSE)
    tl.store(oa + i, ya)
    tl.store(ob + i, yb)
    tl.store(oc + i, yc)
    tl.store(od + i, yd)


@pytest.mark.parametrize("dtype", [np.int8, np.int64])
@pytest.mark.parametrize("num_ctas", [2, 4, 8])
def test_four_operands(num_ctas, dtype):
    values = [integers(512, seed=s, dtype=dtype) for s in range(4)]
    check(matrices, values, matrix_numpy, axis=0, constexprs={"N": 512}, num_ctas=num_ctas)


@triton.jit
def in_a_loop(x, y, out_x, out_y, n, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    for k in range(n):
        # An exchange in each turn, and one in some turns only.
        a, b = tl.associative_scan((a | 1, b), 0, affine, reverse=REVERSE)
        if k % 2 == 1:
            b = tl.associative_scan(b, 0, add, reverse=not REVERSE) + k
    tl.store(out_x + i, a)
    tl.store(out_y + i, b)


@pytest.mark.parametrize(("num_ctas", "num_warps"), [(2, 4), (4, 1), (8, 2)])
def test_in_a_loop(num_ctas, num_warps):
    def reference(a, b, reverse):
        for k in range(4):
            a, b = fold(affine_numpy, [a | np.int32(1), b], 0, reverse)
            if k % 2 == 1:
                b = fold(np.add, [b], 0, not reverse)[0] + np.int32(k)
        return [a, b]

    x, y = integers(512), integers(512, seed=1)
    check(
        in_a_loop,
        [x, y],
        reference,
        axis=0,
        outputs=[x, y],
        scalars=[4],
        constexprs={"N": 512},
        num_ctas=num_ctas,
        num_warps=num_warps,
    )


# --- layouts in which the CTAs' bits lie anywhere; 4 warps


LINES = {
    "2: above": (512, linear([512], [1, 2], [4, 8, 16, 32, 64], [128, 0], [256]), 2),
    "2: below": (512, linear([512], [2, 4], [8, 16, 32, 64, 128], [256, 0], [1]), 2),
    "2: between lanes": (512, linear([512], [1], [2, 8, 32, 64, 128], [16, 256], [4]), 2),
    "4: two places": (512, linear([512], [4], [1, 8, 16, 64, 128], [2, 0], [256, 32]), 4),
    "4: falling": (256, linear([256], [], [4, 8, 16, 32, 64], [128, 0], [2, 1]), 4),
    "4: one holds copies": (128, linear([128], [1], [2, 4, 8, 16, 32], [0, 0], [64, 0]), 4),
    "8: above": (1024, linear([1024], [1], [2, 4, 8, 16, 32], [64, 0], [128, 256, 512]), 8),
    "8: mixed": (1024, linear([1024], [8], [1, 4, 16, 64, 256], [2, 0], [32, 512, 128]), 8),
    "8: nothing else": (8, linear([8], [0], [0] * 5, [0] * 2, [2, 4, 1]), 8),
}


@pytest.mark.parametrize("name", LINES)
def test_lines(name):
    n, layout, num_ctas = LINES[name]
    constexprs = {"N": n, "LAYOUT": layout}
    check(line, operands((n,)), affine_numpy, axis=0, constexprs=constexprs, num_ctas=num_ctas)


RECTANGLES = {
    "2: rows": (
        linear([16, 32], [[4, 0]], [[0, 16], [1, 0], [0, 1], [0, 8], [0, 4]], [[2, 0], [0, 2]],
               [[8, 0]]),
        2,
    ),
    "4: both axes": (
        linear([16, 32], [[0, 4]], [[0, 16], [1, 0], [0, 1], [0, 8], [8, 0]], [[2, 0], [0, 0]],
               [[4, 0], [0, 2]]),
        4,
    ),
    "8: columns below, rows above": (
        linear([16, 32], [], [[0, 16], [1, 0], [0, 4], [0, 8], [2, 0]], [[4, 0], [0, 0]],
               [[0, 1], [0, 2], [8, 0]]),
        8,
    ),
}  # fmt: skip


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", RECTANGLES)
def test_rectangles(name, axis):
    layout, num_ctas = RECTANGLES[name]
    constexprs = {"M": 16, "N": 32, "LAYOUT": layout, "AXIS": axis}
    check(
        rectangle,
        operands((16, 32)),
        affine_numpy,
        axis=axis,
        constexprs=constexprs,
        num_ctas=num_ctas,
    )


@pytest.mark.parametrize("reverse", [False, True])
def test_the_axis_is_split(reverse):
    """The kernels are worth their name: totals go through distributed shared memory."""
    x = np.zeros(1024, np.float32)
    kernel, _ = compile_kernel(cumsum, [x, x], {"N": 1024, "REVERSE": reverse}, num_ctas=4)
    assert "shared::cluster" in kernel.asm["ptx"]
    rows = gl.BlockedLayout([2], [32], [4], [0], [[1], [2]])
    constexprs = {"N": 1024, "LAYOUT": rows, "REVERSE": reverse}
    kernel, _ = compile_kernel(line, operands((1024,)) * 2, constexprs, num_ctas=4)
    assert "shared::cluster" in kernel.asm["ptx"]
