# ruff: noqa: SIM108  (branches in kernels are the point)
"""Scans inside whole kernels: operands of several dtypes, combine functions of many kinds, control
flow, pipelined loops and matrix products.

Values are integers that wrap around, or floats in which every step is exact, so results have to be
equal bit for bit unless a test says otherwise.
"""

from __future__ import annotations

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
