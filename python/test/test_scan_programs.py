# ruff: noqa: SIM108  (branches in kernels are the point)
"""Scans inside whole kernels: operands of several dtypes, combine functions of many kinds, control
flow, pipelined loops, matrix products, and loops whose layouts choose_scan_layout rewrites.

Values are integers that wrap around, or floats in which every step is exact, so results have to be
equal bit for bit unless a test says otherwise.
"""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
import triton
import triton.language as tl
from scan_values import check, fold, run
from triton.language.extra import libdevice
from triton.tools.ptx_sim import compile_kernel

RNG = np.random.default_rng


def integers(*shape: int, seed: int = 0, dtype=np.int32) -> np.ndarray:
    """Return any integers of the dtype."""
    info = np.iinfo(dtype)
    return RNG(seed).integers(info.min, info.max, shape, dtype, endpoint=True)


def small(*shape: int, seed: int = 0, dtype=np.float32) -> np.ndarray:
    """Return integers from -4 to 4 in a float dtype."""
    return RNG(seed).integers(-4, 5, shape).astype(dtype)


def add_numpy(a, b):
    return a + b


def scanned(x: np.ndarray, axis: int, reverse: bool) -> np.ndarray:
    """Return the sums along an axis."""
    return fold(add_numpy, [x], axis, reverse)[0]


# --- combine functions


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def affine(a1, b1, a2, b2):
    return a2 * a1, a2 * b1 + b2


def affine_numpy(a1, b1, a2, b2):
    return a2 * a1, a2 * b1 + b2


@triton.jit
def one(x, out, N: tl.constexpr, FN: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.associative_scan(tl.load(x + i), 0, FN, reverse=REVERSE))


@triton.jit
def two(x, y, out_x, out_y, N: tl.constexpr, FN: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    z, w = tl.associative_scan((tl.load(x + i), tl.load(y + i)), 0, FN, reverse=REVERSE)
    tl.store(out_x + i, z)
    tl.store(out_y + i, w)


@triton.jit
def matrix_2x2(a1, b1, c1, d1, a2, b2, c2, d2):
    return (
        a2 * a1 + b2 * c1,
        a2 * b1 + b2 * d1,
        c2 * a1 + d2 * c1,
        c2 * b1 + d2 * d1,
    )


@triton.jit
def stepped_sum(f1, a1, b1, c1, n1, f2, a2, b2, c2, n2):
    # A segmented sum, a product, a maximum, a running (weight, sum) pair and a count.
    return (
        f1 | f2,
        tl.where(f2 != 0, a2, a1 + a2),
        tl.maximum(b1, b2),
        c1 * c2,
        n1 + n2,
    )


@triton.jit
def three(x, y, z, ox, oy, oz, N: tl.constexpr, FN: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    a, b, c = tl.associative_scan(
        (tl.load(x + i), tl.load(y + i), tl.load(z + i)), 0, FN, reverse=REVERSE
    )
    tl.store(ox + i, a)
    tl.store(oy + i, b)
    tl.store(oz + i, c)


@triton.jit
def five(a, b, c, d, e, oa, ob, oc, od, oe, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    operands = (tl.load(a + i), tl.load(b + i), tl.load(c + i), tl.load(d + i), tl.load(e + i))
    va, vb, vc, vd, ve = tl.associative_scan(operands, 0, stepped_sum, reverse=REVERSE)
    tl.store(oa + i, va)
    tl.store(ob + i, vb)
    tl.store(oc + i, vc)
    tl.store(od + i, vd)
    tl.store(oe + i, ve)


@triton.jit
def rolled(a1, last1, cur1, a2, last2, cur2):
    return a1 + a2, tl.where(a2 == 1, cur1, 0) + last2, cur2


@pytest.mark.parametrize(("n", "num_warps"), [(32, 4), (512, 1), (1024, 8), (2048, 4)])
def test_five_operands(n, num_warps):
    flags = (RNG(1).random(n) < 0.1).astype(np.int8)
    operands = [
        flags,
        small(n, seed=2, dtype=np.float16),
        integers(n, seed=3, dtype=np.int16),
        RNG(4).choice([-1.0, 1.0], n),
        integers(n, seed=5, dtype=np.int64),
    ]

    def combine(f1, a1, b1, c1, n1, f2, a2, b2, c2, n2):
        kept = np.where(f2 != 0, a2, a1 + a2)
        return f1 | f2, kept, np.maximum(b1, b2), c1 * c2, n1 + n2

    check(five, operands, combine, axis=0, constexprs={"N": n}, num_warps=num_warps)


@pytest.mark.parametrize(("n", "num_warps"), [(64, 4), (1024, 4), (1024, 8)])
def test_three_operands(n, num_warps):
    """`roll` of upstream's tests: the element before, in the direction."""
    x = np.ones(n, np.int32)
    operands = [x, np.zeros(n, np.int32), integers(n)]

    def combine(a1, last1, cur1, a2, last2, cur2):
        return a1 + a2, np.where(a2 == 1, cur1, 0) + last2, cur2

    results = check(
        three, operands, combine, axis=0, constexprs={"N": n, "FN": rolled}, num_warps=num_warps
    )
    np.testing.assert_array_equal(results[False][1][1:], operands[2][:-1])
    np.testing.assert_array_equal(results[True][1][:-1], operands[2][1:])


@triton.jit
def branching_sum(a, b):
    # Saturating sum of numbers from 0 to 1000, with branches on run-time values
    c = a + b
    if c > 1000:
        c = 1000
    return c


@triton.jit
def branching_keep(a1, b1, a2, b2):
    # Segmented maximum, a2 the flag: nested branches and two results
    if a2 != 0:
        b = b2
    else:
        if b1 > b2:
            b = b1
        else:
            b = b2
    return a1 | a2, b


@triton.jit
def looping_product(a1, b1, a2, b2):
    # (a, b) of x -> a * x + b modulo 8191, the product by a loop over the bits
    product = 0
    term = a2
    for bit in range(13):
        if (a1 >> bit) & 1:
            product = (product + term) % 8191
        term = (term * 2) % 8191
    return product, (a2 * b1 + b2) % 8191


@triton.jit
def while_product(a, b):
    # The product modulo 8191 by a loop of unknown length
    product = 0
    while b > 0:
        product = (product + a * (b & 1)) % 8191
        a = (a * 2) % 8191
        b = b >> 1
    return product


@pytest.mark.parametrize(("n", "num_warps"), [(64, 2), (512, 4), (1024, 8)])
class TestCombineFunctions:
    def test_branch(self, n, num_warps):
        x = RNG(1).integers(0, 20, n).astype(np.int32)
        check(
            one,
            [x],
            lambda a, b: np.minimum(a + b, 1000),
            axis=0,
            constexprs={"N": n, "FN": branching_sum},
            num_warps=num_warps,
        )

    def test_nested_branches(self, n, num_warps):
        operands = [(RNG(1).random(n) < 0.1).astype(np.int32), integers(n)]
        check(
            two,
            operands,
            lambda a1, b1, a2, b2: (a1 | a2, np.where(a2 != 0, b2, np.maximum(b1, b2))),
            axis=0,
            constexprs={"N": n, "FN": branching_keep},
            num_warps=num_warps,
        )

    def test_loop(self, n, num_warps):
        operands = [RNG(s).integers(0, 8191, n).astype(np.int32) for s in (1, 2)]

        def combine(a1, b1, a2, b2):
            return (a2 * a1) % 8191, (a2 * b1 + b2) % 8191

        check(
            two,
            operands,
            combine,
            axis=0,
            constexprs={"N": n, "FN": looping_product},
            num_warps=num_warps,
        )

    def test_while(self, n, num_warps):
        x = RNG(1).integers(1, 8191, n).astype(np.int32)
        check(
            one,
            [x],
            lambda a, b: a * b % 8191,
            axis=0,
            constexprs={"N": n, "FN": while_product},
            num_warps=num_warps,
        )


@triton.jit
def joined(first1, last1, first2, last2):
    # Of two blocks that are neighbours, in either direction
    tl.device_assert((last1 + 1 == first2) | (last2 + 1 == first1), "no neighbours")
    return min(first1, first2), max(last1, last2)


@triton.jit
def stepwise(first1, last1, first2, last2):
    # Without an end where the blocks are no neighbours
    step = 1 if first2 > first1 else -1
    if step > 0:
        at = last1
        end = first2
    else:
        at = first1
        end = last2
    while at + step != end:
        at -= step * 4096
    return min(first1, first2), max(last1, last2)


@triton.jit
def repeated_pairs(x, lows, highs, n, N: tl.constexpr, FN: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    low = tl.load(x + i)
    high = low
    for _ in range(n):
        low, high = tl.associative_scan((tl.load(x + i),) * 2, 0, FN, reverse=REVERSE)
    tl.store(lows + i, low)
    tl.store(highs + i, high)


@triton.jit
def pairs_of_rows(x, lows, highs, n, N: tl.constexpr, FN: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, 2)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + tl.arange(0, N))[None, :] + 0 * i
    low, high = tl.associative_scan((v, v), 1, FN, reverse=REVERSE)
    tl.store(lows + i % N, low)
    tl.store(highs + i % N, high)


@pytest.mark.parametrize("fn", [joined, stepwise])
@pytest.mark.parametrize(
    ("kernel", "n", "num_warps", "num_ctas"),
    [
        (two, 16, 1, 1),
        (two, 64, 1, 1),
        (two, 128, 4, 1),
        (two, 1024, 4, 1),
        (two, 512, 16, 1),
        (two, 512, 2, 2),
        (repeated_pairs, 128, 4, 1),
        (repeated_pairs, 512, 8, 1),
        (repeated_pairs, 2048, 8, 1),
        (pairs_of_rows, 512, 4, 1),
    ],
)
@pytest.mark.parametrize("reverse", [False, True])
def test_only_neighbours_are_combined(fn, kernel, n, num_warps, num_ctas, reverse):
    """What a combine function asserts, or takes for granted to end, holds whenever it runs."""
    x = np.arange(n, dtype=np.int32)
    inputs, scalars = ([x, x], []) if kernel is two else ([x], [2])
    low, high = run(
        kernel,
        inputs,
        [x, x],
        scalars,
        {"N": n, "FN": fn, "REVERSE": reverse},
        num_warps=num_warps,
        num_ctas=num_ctas,
        debug=True,
    )
    np.testing.assert_array_equal(low, x if reverse else np.zeros_like(x))
    np.testing.assert_array_equal(high, np.full_like(x, n - 1) if reverse else x)


@triton.jit
def helper(a, b, K: tl.constexpr):
    return tl.maximum(a, b) if K == 3 else a


@triton.jit
def with_helper(a, b):
    return helper(a, b, 3)


@triton.jit
def log_add(a, b):
    m = tl.maximum(a, b)
    return m + tl.log(tl.exp(a - m) + tl.exp(b - m))


@triton.jit
def log_add_libdevice(a, b):
    m = libdevice.fast_dividef(tl.maximum(a, b), 1.0)
    return m + libdevice.log1p(libdevice.exp(tl.minimum(a, b) - m))


@triton.jit
def hypotenuse(a, b):
    return tl.sqrt(a * a + b * b)


@triton.jit
def clamped(a, b):
    return tl.clamp(a + b, 0.0, 1000.0)


@pytest.mark.parametrize(
    ("fn", "reference", "relative"),
    [
        (with_helper, np.maximum, 0.0),
        (log_add, np.logaddexp, 1e-5),
        (log_add_libdevice, np.logaddexp, 1e-5),
        (hypotenuse, np.hypot, 1e-5),
        (clamped, lambda a, b: np.clip(a + b, 0.0, 1000.0), 1e-5),
    ],
)
def test_calls_in_the_combine_function(fn, reference, relative):
    x = RNG(1).uniform(0.0, 4.0, 1024).astype(np.float32)
    check(one, [x], reference, axis=0, constexprs={"N": 1024, "FN": fn}, relative=relative)


@triton.jit
def four(a, b, c, d, oa, ob, oc, od, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    operands = (tl.load(a + i), tl.load(b + i), tl.load(c + i), tl.load(d + i))
    va, vb, vc, vd = tl.associative_scan(operands, 0, matrix_2x2, reverse=REVERSE)
    tl.store(oa + i, va)
    tl.store(ob + i, vb)
    tl.store(oc + i, vc)
    tl.store(od + i, vd)


@pytest.mark.parametrize("dtype", [np.int8, np.uint32, np.int64])
def test_matrix_products(dtype):
    def combine(a1, b1, c1, d1, a2, b2, c2, d2):
        return (
            a2 * a1 + b2 * c1,
            a2 * b1 + b2 * d1,
            c2 * a1 + d2 * c1,
            c2 * b1 + d2 * d1,
        )

    operands = [integers(512, seed=s, dtype=dtype) for s in range(4)]
    check(four, operands, combine, axis=0, constexprs={"N": 512})


# --- control flow around scans


@triton.jit
def in_for(x, out, n, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    for _ in range(n):
        v = tl.associative_scan(v, 0, add, reverse=REVERSE) + 1
    tl.store(out + i, v)


@triton.jit
def in_while(x, out, n, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    while n > 0:
        v = tl.associative_scan(v, 0, add, reverse=REVERSE) + 1
        n -= 1
    tl.store(out + i, v)


@triton.jit
def in_if(x, out, n, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    for k in range(n + 2):
        if k % 2 == 0:
            v = tl.associative_scan(v, 0, add, reverse=REVERSE) + 1
        else:
            v = v ^ (v >> 3)
    tl.store(out + i, v)


def loop_reference(n, kind):
    def reference(x, reverse):
        for k in range(n + 2 if kind == "if" else n):
            if kind == "if" and k % 2:
                x = x ^ (x >> 3)
            else:
                x = scanned(x, 0, reverse) + np.int32(1)
        return [x]

    return reference


@pytest.mark.parametrize(
    ("kernel", "kind"), [(in_for, "for"), (in_while, "while"), (in_if, "if")], ids=str
)
@pytest.mark.parametrize(("size", "num_warps"), [(128, 4), (1024, 4), (2048, 8)])
def test_control_flow(kernel, kind, size, num_warps):
    x = integers(size)
    check(
        kernel,
        [x],
        loop_reference(3, kind),
        axis=0,
        outputs=[x],
        scalars=[3],
        constexprs={"N": size},
        num_warps=num_warps,
    )


@triton.jit
def both_ways(x, out, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    # Two scans of one tensor in one expression, and a scan of a scan
    y = tl.associative_scan(v, 0, add, reverse=REVERSE) - tl.associative_scan(
        v, 0, add, reverse=not REVERSE
    )
    tl.store(out + i, tl.associative_scan(y, 0, add, reverse=REVERSE))


@pytest.mark.parametrize(("n", "num_warps"), [(32, 4), (1024, 1), (2048, 8)])
def test_two_scans_in_one_expression(n, num_warps):
    x = integers(n)

    def reference(x, reverse):
        return [scanned(scanned(x, 0, reverse) - scanned(x, 0, not reverse), 0, reverse)]

    check(
        both_ways,
        [x],
        reference,
        axis=0,
        outputs=[x],
        constexprs={"N": n},
        num_warps=num_warps,
    )


@triton.jit
def summed_area(x, out, T: tl.constexpr, D: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    v = tl.load(x + i)
    v = tl.associative_scan(v, 1, add, reverse=REVERSE)
    v = tl.associative_scan(v, 0, add, reverse=not REVERSE)
    tl.store(out + i, v)


@pytest.mark.parametrize("shape", [(16, 64), (64, 16), (2, 512), (64, 64)], ids=str)
@pytest.mark.parametrize("num_warps", [1, 4, 8])
def test_along_one_axis_then_the_other(shape, num_warps):
    x = integers(*shape)

    def reference(x, reverse):
        return [scanned(scanned(x, 1, reverse), 0, not reverse)]

    check(
        summed_area,
        [x],
        reference,
        axis=1,
        outputs=[x],
        constexprs={"T": shape[0], "D": shape[1]},
        num_warps=num_warps,
        mirrored=False,  # along the other axis the direction is the opposite
    )


@triton.jit(noinline=True)
def scan_apart(x, out, N: tl.constexpr, REVERSE: tl.constexpr):
    # Triton passes scalars only to functions that it does not inline.
    i = tl.arange(0, N)
    tl.store(out + i, tl.associative_scan(tl.load(x + i) * 3, 0, add, reverse=REVERSE))


@triton.jit
def calls(x, out, other, N: tl.constexpr, REVERSE: tl.constexpr):
    scan_apart(x, out, N, REVERSE)
    scan_apart(x + N, out + N, N, REVERSE)
    i = tl.arange(0, N)
    tl.store(other + i, tl.associative_scan(tl.load(x + i), 0, add, reverse=REVERSE))


@pytest.mark.parametrize(("n", "num_warps"), [(64, 1), (1024, 4)])
def test_in_a_function_that_is_not_inlined(n, num_warps):
    x = integers(2, n)
    arrays = [x, x, x[0]]
    kernel, _ = compile_kernel(calls, arrays, {"N": n, "REVERSE": True}, num_warps=num_warps)
    assert "call.uni" in kernel.asm["ptx"]
    check(
        calls,
        [x],
        lambda x, reverse: [scanned(x * np.int32(3), 1, reverse), scanned(x[0], 0, reverse)],
        axis=-1,
        outputs=arrays[1:],
        constexprs={"N": n},
        num_warps=num_warps,
    )


# --- pipelines and matrix products


@triton.jit
def pipelined(
    x, out, total, n, N: tl.constexpr, D: tl.constexpr, STAGES: tl.constexpr, REVERSE: tl.constexpr
):
    i = tl.arange(0, N)[:, None] * D + tl.arange(0, D)[None, :]
    carry = tl.zeros([D], tl.int32)
    for k in tl.range(0, n, num_stages=STAGES):
        v = tl.load(x + k * N * D + i)
        y = tl.associative_scan(v, 0, add, reverse=REVERSE) + carry[None, :]
        carry += tl.sum(v, 0)
        tl.store(out + k * N * D + i, y)
    tl.store(total + tl.arange(0, D), carry)


@pytest.mark.parametrize("stages", [1, 2, 3, 4])
@pytest.mark.parametrize("num_warps", [4, 8])
def test_pipelined_loop(stages, num_warps):
    x = integers(5, 32, 32)

    def reference(x, reverse):
        before = np.zeros_like(x[:, :1])
        sums = x.sum(1, keepdims=True, dtype=np.int32)
        before[1:] = np.cumsum(sums, 0, dtype=np.int32)[:-1]
        return [scanned(x, 1, reverse) + before, sums.sum(0, dtype=np.int32)[0]]

    check(
        pipelined,
        [x],
        reference,
        axis=1,
        outputs=[x, np.zeros(32, np.int32)],
        scalars=[5],
        constexprs={"N": 32, "D": 32, "STAGES": stages},
        num_warps=num_warps,
        mirrored=False,  # only the tiles are mirrored, not their order
    )


@triton.jit
def matmul_scan(
    x,
    y,
    out,
    n,
    N: tl.constexpr,
    K: tl.constexpr,
    AXIS: tl.constexpr,
    STAGES: tl.constexpr,
    INSIDE: tl.constexpr,
    REVERSE: tl.constexpr,
):
    row, column = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    inner = tl.arange(0, K)
    acc = tl.zeros([N, N], tl.float32)
    for k in tl.range(0, n, num_stages=STAGES):
        a = tl.load(x + row * n * K + k * K + inner[None, :])
        b = tl.load(y + (k * K + inner[:, None]) * N + column)
        if INSIDE:
            acc += tl.associative_scan(tl.dot(a, b), AXIS, add, reverse=REVERSE)
        else:
            acc = tl.dot(a, b, acc)
    if not INSIDE:
        acc = tl.associative_scan(acc, AXIS, add, reverse=REVERSE)
    tl.store(out + row * N + column, acc)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("stages", [1, 3])
def test_matrix_product_in_a_loop(axis, capability, inside, stages):
    x, y = small(64, 128, dtype=np.float16), small(128, 64, seed=1, dtype=np.float16)
    check(
        matmul_scan,
        [x, y],
        lambda x, y, reverse: [scanned(x @ y, axis, reverse)],
        axis=axis,
        outputs=[np.zeros((64, 64), np.float32)],
        scalars=[4],
        constexprs={"N": 64, "K": 32, "AXIS": axis, "STAGES": stages, "INSIDE": inside},
        capability=capability,
        mirrored=False,  # flipping the inputs does not flip their product
    )


@triton.jit
def dot_of_scans(x, y, out, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    # The scans' results are operands of the product.
    i = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    a = tl.associative_scan(tl.load(x + i), AXIS, add, reverse=REVERSE)
    b = tl.associative_scan(tl.load(y + i), 1 - AXIS, add, reverse=REVERSE)
    tl.store(out + i, tl.dot(a, b))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("capability", [80, 90])
def test_matrix_product_of_scans(axis, capability):
    """Signs, whose sums along 32 fit fp16 exactly and whose products fit fp32."""
    x, y = (RNG(s).choice([-1.0, 1.0], (32, 32)).astype(np.float16) for s in (0, 1))
    check(
        dot_of_scans,
        [x, y],
        lambda x, y, r: [scanned(x, axis, r) @ scanned(y, 1 - axis, r)],
        axis=axis,
        outputs=[np.zeros((32, 32), np.float32)],
        constexprs={"N": 32, "AXIS": axis},
        capability=capability,
        mirrored=False,  # two axes
    )


# --- loops in which choose_scan_layout changes layouts


@triton.jit
def carried(x, w, out, other, n, T: tl.constexpr, D: tl.constexpr, REVERSE: tl.constexpr):
    # Loop-carried scans between elementwise ops, with a value from outside and one used outside
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    v = tl.load(x + i)
    weight = tl.load(w + i)
    total = tl.zeros([T, D], tl.int32)
    for k in range(n):
        v = tl.associative_scan(v * 3 + weight, 1, add, reverse=REVERSE)
        v = tl.where(v > 0, v ^ k, v + weight)
        total += v >> 4
    tl.store(out + i, v)
    tl.store(other + i, total)


def carried_reference(n):
    def reference(x, w, reverse):
        total = np.zeros_like(x)
        for k in range(n):
            x = scanned(x * np.int32(3) + w, 1, reverse)
            x = np.where(x > 0, x ^ np.int32(k), x + w)
            total = total + (x >> 4)
        return [x, total]

    return reference


TILES = [(1, 256), (4, 64), (32, 32), (64, 8), (2, 512), (16, 128)]


@pytest.mark.parametrize("shape", TILES, ids=str)
@pytest.mark.parametrize("num_warps", [1, 4, 8])
@pytest.mark.parametrize("n", [0, 9])
def test_loop_carried(shape, num_warps, n):
    x, w = integers(*shape), integers(*shape, seed=1)
    check(
        carried,
        [x, w],
        carried_reference(n),
        axis=1,
        outputs=[x, x],
        scalars=[n],
        constexprs={"T": shape[0], "D": shape[1]},
        num_warps=num_warps,
    )


@triton.jit
def carried_affine(a, b, out_a, out_b, n, T: tl.constexpr, D: tl.constexpr, REVERSE: tl.constexpr):
    # A thread's total takes from one word (two int16) to four (int64)
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    v, w = tl.load(a + i), tl.load(b + i)
    for _ in range(n):
        v, w = tl.associative_scan((v, w), 1, affine, reverse=REVERSE)
        w = w * 5 + v
    tl.store(out_a + i, v)
    tl.store(out_b + i, w)


@pytest.mark.parametrize("shape", [(1, 256), (1, 512), (2, 128), (4, 256)], ids=str)
@pytest.mark.parametrize("num_warps", [4, 8])
@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64])
def test_loop_carried_pairs(shape, num_warps, dtype):
    def reference(a, b, reverse):
        for _ in range(3):
            a, b = fold(affine_numpy, [a, b], 1, reverse)
            b = b * dtype(5) + a
        return [a, b]

    a, b = (integers(*shape, seed=seed, dtype=dtype) for seed in range(2))
    check(
        carried_affine,
        [a, b],
        reference,
        axis=1,
        outputs=[a, b],
        scalars=[3],
        constexprs={"T": shape[0], "D": shape[1]},
        num_warps=num_warps,
    )


@triton.jit
def crossing(x, out, n, T: tl.constexpr, D: tl.constexpr, REVERSE: tl.constexpr):
    # Scans along both axes of one carried tensor, and a second tensor scanned along one only
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    v = tl.load(x + i)
    u = v * 5
    for _ in range(n):
        v = tl.associative_scan(v, 0, add, reverse=REVERSE) + u
        v = tl.associative_scan(v, 1, add, reverse=REVERSE) - 7
        u = tl.associative_scan(u, 1, add, reverse=REVERSE) ^ 11
    tl.store(out + i, v)


@pytest.mark.parametrize("shape", TILES, ids=str)
@pytest.mark.parametrize("num_warps", [1, 4])
def test_two_axes_in_one_loop(shape, num_warps):
    x = integers(*shape)

    def reference(x, reverse):
        v, u = x, x * np.int32(5)
        for _ in range(3):
            v = scanned(v, 0, reverse) + u
            v = scanned(v, 1, reverse) - np.int32(7)
            u = scanned(u, 1, reverse) ^ np.int32(11)
        return [v]

    check(
        crossing,
        [x],
        reference,
        axis=1,
        outputs=[x],
        scalars=[3],
        constexprs={"T": shape[0], "D": shape[1]},
        num_warps=num_warps,
        mirrored=False,  # two axes
    )


@triton.jit
def nested(x, out, mid, n, m, T: tl.constexpr, D: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    v = tl.load(x + i)
    row = tl.zeros([D], tl.int32)
    for k in range(n):
        v = tl.associative_scan(v, 1, add, reverse=REVERSE) + k
        u = v
        for j in range(m):
            u = tl.associative_scan(u - j, 1, add, reverse=REVERSE)
            if j == 1:
                u = u ^ v
        # Used by a reduction, by the outer loop and by a store
        row += tl.sum(u, 0)
        v = v + (u >> 1)
        tl.store(mid + k * T * D + i, u)
    tl.store(out + i, v + row[None, :])


@pytest.mark.parametrize("shape", [(4, 64), (2, 512), (64, 8)], ids=str)
@pytest.mark.parametrize("num_warps", [1, 4])
def test_loop_in_a_loop(shape, num_warps):
    x = integers(*shape)
    n, m = 2, 3

    def reference(x, reverse):
        v, row, mid = x, np.zeros_like(x[0]), []
        for k in range(n):
            v = scanned(v, 1, reverse) + np.int32(k)
            u = v
            for j in range(m):
                u = scanned(u - np.int32(j), 1, reverse)
                if j == 1:
                    u = u ^ v
            row = row + u.sum(0, dtype=np.int32)
            v = v + (u >> 1)
            mid.append(u)
        return [v + row, np.stack(mid)]

    check(
        nested,
        [x],
        reference,
        axis=1,
        outputs=[x, np.stack([x] * n)],
        scalars=[n, m],
        constexprs={"T": shape[0], "D": shape[1]},
        num_warps=num_warps,
        mirrored=False,  # the second output has another rank
    )


@triton.jit
def doubly_carried(x, y, out, other, n, m, T: tl.constexpr, D: tl.constexpr, REVERSE: tl.constexpr):
    # The inner loop's values are the outer loop's, and one is from outside of both.
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    v, w = tl.load(x + i), tl.load(y + i)
    total = tl.zeros([T, D], tl.int32)
    for k in range(n):
        u = v ^ k
        for j in range(m):
            u = tl.associative_scan(u + w, 1, add, reverse=REVERSE)
            total += u * j
        v = tl.associative_scan(v - u, 1, add, reverse=REVERSE)
    tl.store(out + i, v)
    tl.store(other + i, total)


@pytest.mark.parametrize("shape", [(4, 64), (2, 512), (64, 8)], ids=str)
@pytest.mark.parametrize("num_warps", [1, 4])
def test_values_of_two_loops(shape, num_warps):
    def reference(v, w, reverse):
        total = np.zeros_like(v)
        for k in range(3):
            u = v ^ np.int32(k)
            for j in range(2):
                u = scanned(u + w, 1, reverse)
                total = total + u * np.int32(j)
            v = scanned(v - u, 1, reverse)
        return [v, total]

    x, y = integers(*shape), integers(*shape, seed=1)
    check(
        doubly_carried,
        [x, y],
        reference,
        axis=1,
        outputs=[x, x],
        scalars=[3, 2],
        constexprs={"T": shape[0], "D": shape[1]},
        num_warps=num_warps,
    )


@triton.jit
def swapped(x, y, out_x, out_y, n, T: tl.constexpr, D: tl.constexpr, REVERSE: tl.constexpr):
    # Carried variables that change places, one that never changes, and one that only starts equal
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    a, b = tl.load(x + i), tl.load(y + i)
    start = a
    c = a
    for _ in range(n):
        s = tl.associative_scan(a, 1, add, reverse=REVERSE)
        a, b = b, s + start
        c = c * 3
    tl.store(out_x + i, a + c)
    tl.store(out_y + i, b)


@triton.jit
def pair_carried(x, y, out_x, out_y, n, T: tl.constexpr, D: tl.constexpr, REVERSE: tl.constexpr):
    # Operands of 64 and 16 bits, and conversions between elements' types in the loop
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    a, b = tl.load(x + i).to(tl.int16), tl.load(y + i).to(tl.int64)
    for _ in range(n):
        a, b = tl.associative_scan((a, b), 1, both, reverse=REVERSE)
        a = (a.to(tl.int32) + 40000).to(tl.int16)
        b = b * 3 + a.to(tl.int64)
    tl.store(out_x + i, a.to(tl.int32))
    tl.store(out_y + i, b.to(tl.int32))


@triton.jit
def both(a1, b1, a2, b2):
    return a1 + a2, b1 ^ b2


@pytest.mark.parametrize("shape", TILES, ids=str)
@pytest.mark.parametrize("num_warps", [1, 4])
class TestCarriedVariables:
    def test_swapped(self, shape, num_warps):
        def reference(x, y, reverse):
            a, b, c = x, y, x
            for _ in range(5):
                a, b, c = b, scanned(a, 1, reverse) + x, c * np.int32(3)
            return [a + c, b]

        x, y = integers(*shape), integers(*shape, seed=1)
        check(
            swapped,
            [x, y],
            reference,
            axis=1,
            outputs=[x, x],
            scalars=[5],
            constexprs={"T": shape[0], "D": shape[1]},
            num_warps=num_warps,
        )

    def test_pair_of_two_widths(self, shape, num_warps):
        def reference(x, y, reverse):
            a, b = x.astype(np.int16), y.astype(np.int64)
            for _ in range(3):
                a, b = fold(lambda a1, b1, a2, b2: (a1 + a2, b1 ^ b2), [a, b], 1, reverse)
                a = (a.astype(np.int32) + 40000).astype(np.int16)
                b = b * 3 + a.astype(np.int64)
            return [a.astype(np.int32), b.astype(np.int32)]

        x, y = integers(*shape), integers(*shape, seed=1)
        check(
            pair_carried,
            [x, y],
            reference,
            axis=1,
            outputs=[x, x],
            scalars=[3],
            constexprs={"T": shape[0], "D": shape[1]},
            num_warps=num_warps,
        )


@triton.jit
def conditional(x, out, n, T: tl.constexpr, D: tl.constexpr, REVERSE: tl.constexpr):
    # The carried tensor is scanned on some turns only, summed on others, and its address is carried
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    v = tl.load(x + i)
    place = out + i
    for k in range(n):
        v = tl.associative_scan(v, 1, add, reverse=REVERSE)
        if k % 3 == 1:
            v = tl.associative_scan(v + 1, 0, add, reverse=REVERSE)
        elif k % 3 == 2:
            v = v - tl.sum(v, 1)[:, None]
        tl.store(place, v)
        place += T * D


@triton.jit
def masked_addresses(x, out, n, T: tl.constexpr, D: tl.constexpr, REVERSE: tl.constexpr):
    # The scans' results are addresses and masks of loads in the loop, and zeros are carried
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    v = tl.zeros([T, D], tl.int32)
    for k in range(n):
        v = tl.associative_scan(v + 1, 1, add, reverse=REVERSE)
        mask = v % 3 != k
        v = v + tl.load(x + v % (T * D), mask=mask, other=-5)
    tl.store(out + i, v)


@pytest.mark.parametrize("shape", TILES, ids=str)
@pytest.mark.parametrize("num_warps", [1, 4])
class TestUsesInLoops:
    def test_conditional(self, shape, num_warps):
        n = 6

        def reference(x, reverse):
            v, stored = x, []
            for k in range(n):
                v = scanned(v, 1, reverse)
                if k % 3 == 1:
                    v = scanned(v + np.int32(1), 0, reverse)
                elif k % 3 == 2:
                    v = v - v.sum(1, keepdims=True, dtype=np.int32)
                stored.append(v)
            return [np.stack(stored)]

        x = integers(*shape)
        check(
            conditional,
            [x],
            reference,
            axis=1,
            outputs=[np.stack([x] * n)],
            scalars=[n],
            constexprs={"T": shape[0], "D": shape[1]},
            num_warps=num_warps,
            mirrored=False,  # the output has another rank
        )

    def test_addresses(self, shape, num_warps):
        def reference(x, reverse):
            v = np.zeros_like(x)
            flat = x.reshape(-1)
            for k in range(3):
                v = scanned(v + np.int32(1), 1, reverse)
                # As in C, the remainder has the sign of the dividend.
                mask = np.fmod(v, 3) != k
                v = v + np.where(mask, flat[np.fmod(v, x.size)], np.int32(-5))
            return [v]

        x = np.abs(integers(*shape) % 100)
        check(
            masked_addresses,
            [x],
            reference,
            axis=1,
            outputs=[x],
            scalars=[3],
            constexprs={"T": shape[0], "D": shape[1]},
            num_warps=num_warps,
            mirrored=False,  # x is looked up by address
        )


@triton.jit
def in_while_loop(x, out, n, m, T: tl.constexpr, D: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    v = tl.load(x + i)
    while n > 0:
        for k in range(m):
            v = tl.associative_scan(v + k, 1, add, reverse=REVERSE)
        v = v ^ 5
        n -= 1
    tl.store(out + i, v)


@triton.jit
def float_carried(x, out, n, T: tl.constexpr, D: tl.constexpr, REVERSE: tl.constexpr):
    # Floats with math ops; the doubled maximum is exact
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    v = tl.load(x + i)
    for _ in range(n):
        v = tl.associative_scan(v, 1, greatest, reverse=REVERSE)
        v = tl.abs(v.to(tl.bfloat16).to(tl.float32)) * 2.0 - tl.floor(tl.sqrt(v * v))
    tl.store(out + i, v)


@triton.jit
def greatest(a, b):
    return tl.maximum(a, b)


@pytest.mark.parametrize("shape", TILES, ids=str)
def test_loop_in_a_while(shape):
    def reference(x, reverse):
        for _ in range(3):
            for k in range(2):
                x = scanned(x + np.int32(k), 1, reverse)
            x = x ^ np.int32(5)
        return [x]

    x = integers(*shape)
    check(
        in_while_loop,
        [x],
        reference,
        axis=1,
        outputs=[x],
        scalars=[3, 2],
        constexprs={"T": shape[0], "D": shape[1]},
    )


@pytest.mark.parametrize("shape", TILES, ids=str)
def test_floats_with_math(shape):
    def reference(x, reverse):
        for _ in range(3):
            x = fold(np.maximum, [x], 1, reverse)[0]
            x = np.abs(x) * 2.0 - np.floor(np.sqrt(x * x))
        return [x]

    x = RNG(3).integers(-128, 128, shape).astype(np.float32)
    check(
        float_carried,
        [x],
        reference,
        axis=1,
        outputs=[x],
        scalars=[3],
        constexprs={"T": shape[0], "D": shape[1]},
    )


def layouts_of_scans(kernel, arrays, constexprs, num_warps) -> list[str]:
    """Return the names of the layouts that choose_scan_layout gives a kernel's scans."""
    ttgir = compile_kernel(kernel, arrays, constexprs, num_warps=num_warps)[0].asm["ttgir"]
    command = [sys.executable, "-m", "triton.tools.scan_opt", "--choose-scan-layout", "-"]
    done = subprocess.run(command, input=ttgir, capture_output=True, text=True, check=True)
    # The type of a scan stands at the end of its region.
    return re.findall(r"\}\) : \(tensor<\w+, #(\w+)>", done.stdout)


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize(
    ("kernel", "pointers", "counts"),
    [
        (carried, 4, ["n"]),
        (crossing, 2, ["n"]),
        (doubly_carried, 4, ["n", "m"]),
        (swapped, 4, ["n"]),
        (pair_carried, 4, ["n"]),
        (float_carried, 2, ["n"]),
    ],
)
def test_layouts_are_chosen(kernel, pointers, counts, num_warps):
    """The loops above are worth their name: with enough turns their scans get another layout."""
    arrays = [np.zeros(8, np.float32 if kernel is float_carried else np.int32)] * pointers
    constexprs = {"T": 32, "D": 32, "REVERSE": True} | dict.fromkeys(counts, 4096)
    names = layouts_of_scans(kernel, arrays, constexprs, num_warps)
    assert all(name.startswith("linear") for name in names), names


@pytest.mark.parametrize("num_warps", [1, 4])
def test_many_turns(num_warps):
    """As many turns, known to the compiler, as a change of layouts pays for."""
    x, w = integers(32, 32), integers(32, 32, seed=1)
    constexprs = {"T": 32, "D": 32, "n": 60}
    (name,) = layouts_of_scans(carried, [x, w, x, x], constexprs | {"REVERSE": True}, num_warps)
    assert name.startswith("linear")
    check(
        carried,
        [x, w],
        carried_reference(60),
        axis=1,
        outputs=[x, x],
        constexprs=constexprs,
        num_warps=num_warps,
    )
