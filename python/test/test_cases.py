"""The cases of cases.md, run in the simulator in both directions.

A test is named after its row.  Row 13 is in test_errors.py.
"""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl
from scan_values import (
    EPSILON,
    INTEGERS,
    assert_close,
    assert_same,
    bits,
    check,
    compile_ttgir,
    decode,
    encode,
    flip,
    fold,
    run,
    run_module,
    scan_module,
)
from triton.tools.ptx_sim import Typed, run_compiled, run_kernel

RNG = np.random.default_rng


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def affine(a1, b1, a2, b2):
    return a2 * a1, a2 * b1 + b2


@triton.jit
def first_greatest(v1, i1, v2, i2):
    # NaN is the greatest; of equals the first in the direction stays.
    later = (v2 > v1) | ((v2 != v2) & (v1 == v1))
    return tl.where(later, v2, v1), tl.where(later, i2, i1)


@triton.jit
def first_greatest_number(v1, i1, v2, i2):
    # NaN is the least.
    later = (v2 > v1) | ((v1 != v1) & (v2 == v2))
    return tl.where(later, v2, v1), tl.where(later, i2, i1)


@triton.jit
def segmented(f1, v1, f2, v2):
    return f1 | f2, tl.where(f2, v2, v1 + v2)


@triton.jit
def segmented_three(f1, x1, n1, f2, x2, n2):
    return f1 | f2, tl.where(f2, x2, x1 + x2), tl.where(f2, n2, n1 + n2)


@triton.jit
def log_add(m1, s1, m2, s2):
    m = tl.maximum(m1, m2)
    return m, s1 * tl.exp(m1 - m) + s2 * tl.exp(m2 - m)


def add_numpy(a, b):
    return a + b


def affine_numpy(a1, b1, a2, b2):
    return a2 * a1, a2 * b1 + b2


# --- 1


@triton.jit
def loop(x, out, rows, rnumel, R: tl.constexpr, ROWS: tl.constexpr, REVERSE: tl.constexpr):
    column = tl.arange(0, R)[None, :]
    row = tl.arange(0, ROWS)[:, None]
    for off in range(0, rnumel, R):
        y = tl.cumsum(tl.load(x + off + column), 1, reverse=REVERSE)
        # Each row takes its own copy of the [1, R] result.
        tl.store(out + row * rnumel + off + column, tl.broadcast_to(y, [ROWS, R]))
        tl.store(rows + off + column, y)


@pytest.mark.parametrize("R", [8, 32])
@pytest.mark.parametrize("reverse", [False, True])
def test_1_ones_in_a_loop(R, reverse):
    rnumel = 3 * R
    ramp = np.arange(1, R + 1)
    wanted = np.tile(ramp[::-1] if reverse else ramp, 3)
    out, row = run(
        loop,
        [np.ones(rnumel, np.int64)],
        [np.zeros((64, rnumel), np.int64), np.zeros(rnumel, np.int64)],
        [rnumel],
        {"R": R, "ROWS": 64, "REVERSE": reverse},
        num_warps=4,
    )
    np.testing.assert_array_equal(row, wanted)
    np.testing.assert_array_equal(out, np.tile(wanted, (64, 1)))


EVERY_COPY = """
#l = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1],
                   warpsPerCTA = [4, 1], order = [1, 0]}>
#lanes = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8],
                       warpsPerCTA = [4, 1], order = [1, 0]}>
#column = #ttg.slice<{dim = 0, parent = ENCODING}>
#row = #ttg.slice<{dim = 1, parent = ENCODING}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90",
                   "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @kernel(%x: !tt.ptr<i64>, %out: !tt.ptr<i64>) {
    %xs = tt.splat %x : !tt.ptr<i64> -> tensor<1x8x!tt.ptr<i64>, ENCODING>
    %c = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #column>
    %c1 = tt.expand_dims %c {axis = 0 : i32} : tensor<8xi32, #column> -> tensor<1x8xi32, ENCODING>
    %px = tt.addptr %xs, %c1 : tensor<1x8x!tt.ptr<i64>, ENCODING>, tensor<1x8xi32, ENCODING>
    %v = tt.load %px : tensor<1x8x!tt.ptr<i64>, ENCODING>
    %y = "tt.scan"(%v) <{axis = 1 : i32, reverse = REVERSE}> ({
    ^bb0(%a: i64, %b: i64):
      %s = arith.addi %a, %b : i64
      tt.scan.return %s : i64
    }) : (tensor<1x8xi64, ENCODING>) -> tensor<1x8xi64, ENCODING>
    %all = tt.broadcast %y : tensor<1x8xi64, ENCODING> -> tensor<128x8xi64, ENCODING>
    %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #row>
    %r1 = tt.expand_dims %r {axis = 1 : i32} : tensor<128xi32, #row> -> tensor<128x1xi32, ENCODING>
    %eight = arith.constant dense<8> : tensor<128x1xi32, ENCODING>
    %r8 = arith.muli %r1, %eight : tensor<128x1xi32, ENCODING>
    %rb = tt.broadcast %r8 : tensor<128x1xi32, ENCODING> -> tensor<128x8xi32, ENCODING>
    %cb = tt.broadcast %c1 : tensor<1x8xi32, ENCODING> -> tensor<128x8xi32, ENCODING>
    %off = arith.addi %rb, %cb : tensor<128x8xi32, ENCODING>
    %os = tt.splat %out : !tt.ptr<i64> -> tensor<128x8x!tt.ptr<i64>, ENCODING>
    %po = tt.addptr %os, %off : tensor<128x8x!tt.ptr<i64>, ENCODING>, tensor<128x8xi32, ENCODING>
    tt.store %po, %all : tensor<128x8x!tt.ptr<i64>, ENCODING>
    tt.return
  }
}
"""


@pytest.mark.parametrize("encoding", ["#l", "#lanes"])
@pytest.mark.parametrize("reverse", [False, True])
def test_1_every_lane(encoding, reverse):
    """The result's copies of all 128 threads are stored, each by its own thread."""
    text = EVERY_COPY.replace("ENCODING", encoding).replace("REVERSE", str(reverse).lower())
    out = np.full((128, 8), -1)
    run_compiled(compile_ttgir(text), 1, [np.ones(8, np.int64), out])
    ramp = np.arange(1, 9)
    np.testing.assert_array_equal(out, np.tile(ramp[::-1] if reverse else ramp, (128, 1)))


# --- 2 and 3


@triton.jit
def recurrence(a, b, out_a, out_b, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    ya, yb = tl.associative_scan((tl.load(a + i), tl.load(b + i)), 0, affine, reverse=REVERSE)
    tl.store(out_a + i, ya)
    tl.store(out_b + i, yb)


@triton.jit
def in_place(a, b, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    ya, yb = tl.associative_scan((tl.load(a + i), tl.load(b + i)), 0, affine, reverse=REVERSE)
    tl.store(a + i, ya)
    tl.store(b + i, yb)


def pair(n: int) -> list:
    rng = RNG(n)
    a = rng.uniform(0.9, 1.1, n) * rng.choice([-1.0, 1.0], n)
    return [a.astype(np.float32), rng.standard_normal(n).astype(np.float32)]


@pytest.mark.parametrize("n", [64, 128, 256, 2048])
@pytest.mark.parametrize("num_warps", [1, 4, 8])
def test_2_recurrence(n, num_warps):
    operands = pair(n)
    check(
        recurrence,
        operands,
        affine_numpy,
        axis=0,
        constexprs={"N": n},
        relative=3e-4,
        num_warps=num_warps,
    )


@pytest.mark.parametrize("n", [64, 2048])
@pytest.mark.parametrize("num_warps", [1, 4, 8])
def test_2_exact(n, num_warps):
    """a in {-1, 1} and small integers b: every step is exact, so every bit is right."""
    rng = RNG(n)
    operands = [rng.choice([-1.0, 1.0], n), rng.integers(-9, 10, n)]
    operands = [x.astype(np.float32) for x in operands]
    check(recurrence, operands, affine_numpy, axis=0, constexprs={"N": n}, num_warps=num_warps)


@pytest.mark.parametrize("n", [128, 256, 512, 1024, 2048, 4096])
@pytest.mark.parametrize("reverse", [False, True])
def test_3_in_place(n, reverse):
    operands = pair(n)
    constexprs = {"N": n, "REVERSE": reverse}
    mine = [x.copy() for x in operands]
    run_kernel(in_place, 1, mine, constexprs)
    others = run(recurrence, operands, operands, (), constexprs)
    wanted = fold(affine_numpy, [decode(x) for x in operands], 0, reverse)
    for got, other, right in zip(mine, others, wanted, strict=True):
        assert_same(got, other)
        assert_close(got, right, 3e-4 * np.maximum(np.abs(right), 1))


# --- 4


@triton.jit
def cumsum(x, out, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.cumsum(tl.load(x + i), 0, reverse=REVERSE))


def test_4_large_before_small():
    x = np.repeat(np.float32([1e8, 1.0]), 32)
    for reverse, values in ((True, x), (False, x[::-1].copy())):
        results = [
            run(cumsum, [x_], [x_], (), {"N": 64, "REVERSE": reverse}, num_warps=w)[0]
            for w in (1, 2, 4, 8)
            for x_ in [values]
        ]
        ordered = results[0][::-1] if reverse else results[0]
        np.testing.assert_array_equal(ordered[:32], np.arange(1, 33))
        if reverse:
            assert results[0][32] == 32.0
        wanted = np.cumsum(x[::-1].astype(np.float64))
        np.testing.assert_allclose(ordered, wanted, rtol=1e-6)
        for result in results[1:]:
            assert_same(result, results[0])


# --- 5


@triton.jit
def after_dot(x, y, out, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    z = tl.dot(tl.load(x + i), tl.load(y + i))
    tl.store(out + i, tl.cumsum(z, AXIS, reverse=REVERSE) * z)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize("num_warps", [4, 8])
def test_5_after_dot(axis, capability, num_warps):
    """Small integers, so that the dot and the sums are exact."""
    x, y = (RNG(s).integers(-2, 3, (64, 64)).astype(np.float16) for s in (0, 1))

    def reference(x, y, reverse):
        z = x @ y
        return [fold(add_numpy, [z], axis, reverse)[0] * z]

    check(
        after_dot,
        [x, y],
        reference,
        axis=axis,
        outputs=[np.zeros((64, 64), np.float32)],
        constexprs={"N": 64, "AXIS": axis},
        mirrored=False,  # flipping the inputs does not flip their product
        capability=capability,
        num_warps=num_warps,
    )


# --- 6


@pytest.mark.parametrize("n", [256, 1024])
@pytest.mark.parametrize("num_ctas", [2, 4])
def test_6_across_ctas(n, num_ctas):
    x = RNG(n).standard_normal(n).astype(np.float32)
    check(cumsum, [x], add_numpy, axis=0, constexprs={"N": n}, relative=1e-4, num_ctas=num_ctas)
    x = RNG(n).integers(-9, 10, n).astype(np.float32)
    check(cumsum, [x], add_numpy, axis=0, constexprs={"N": n}, num_ctas=num_ctas)


# --- 7


@triton.jit
def reversed_by_sum(x, out, scanned, R: tl.constexpr, REVERSE: tl.constexpr):
    row, column = tl.arange(0, R)[:, None], tl.arange(0, R)[None, :]
    v = tl.load(x + row * R + column)
    mask = (row + column == R - 1).to(tl.float32)
    y = tl.sum(v[:, None, :] * mask[None, :, :], 2)
    tl.store(out + row * R + column, y)
    tl.store(scanned + row * R + column, tl.cumsum(y, 1, reverse=not REVERSE))


@triton.jit
def reversed_by_dot(
    x, out, scanned, R: tl.constexpr, PRECISION: tl.constexpr, REVERSE: tl.constexpr
):
    row, column = tl.arange(0, R)[:, None], tl.arange(0, R)[None, :]
    v = tl.load(x + row * R + column)
    exchange = (row + column == R - 1).to(tl.float32)
    y = tl.dot(v, exchange, input_precision=PRECISION)
    tl.store(out + row * R + column, y)
    tl.store(scanned + row * R + column, tl.cumsum(y, 1, reverse=not REVERSE))


@pytest.mark.parametrize(
    ("kernel", "constexprs"),
    [
        (reversed_by_sum, {}),
        (reversed_by_dot, {"PRECISION": "tf32"}),
        (reversed_by_dot, {"PRECISION": "ieee"}),
    ],
)
def test_7_reversed_by_hand(kernel, constexprs):
    """What is reversed by hand and scanned in the other direction is the reversed scan."""
    x = RNG(7).integers(-9, 10, (32, 32)).astype(np.float32)

    def reference(x, reverse):
        return [x[:, ::-1], fold(add_numpy, [x], 1, reverse)[0][:, ::-1]]

    check(
        kernel,
        [x],
        reference,
        axis=1,
        outputs=[x, x],
        constexprs={"R": 32, **constexprs},
        mirrored=False,  # the first output does not depend on the direction
    )


# --- 8


@triton.jit
def argmax(x, out, index, N: tl.constexpr, FN: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    v, k = tl.associative_scan((tl.load(x + i), i), 0, FN, reverse=REVERSE)
    tl.store(out + i, v)
    tl.store(index + i, k)


def nan_greatest(v1, i1, v2, i2):
    later = (v2 > v1) | ((v2 != v2) & (v1 == v1))
    return np.where(later, v2, v1), np.where(later, i2, i1)


def nan_least(v1, i1, v2, i2):
    later = (v2 > v1) | ((v1 != v1) & (v2 == v2))
    return np.where(later, v2, v1), np.where(later, i2, i1)


@pytest.mark.parametrize(
    ("fn", "reference_fn"), [(first_greatest, nan_greatest), (first_greatest_number, nan_least)]
)
@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize("n", [64, 1024])
def test_8_argmax_with_ties(fn, reference_fn, dtype, n):
    rng = RNG(8)
    x = rng.integers(-3, 4, n)
    if dtype == "float32":
        x = np.where(rng.random(n) < 3 / n, np.nan, x)
    x = x.astype(dtype)

    def reference(x, reverse):
        return fold(reference_fn, [x, np.arange(n, dtype=np.int32)], 0, reverse)

    check(
        argmax,
        [x],
        reference,
        axis=0,
        outputs=[x, np.zeros(n, np.int32)],
        constexprs={"N": n, "FN": fn},
        mirrored=False,  # indices are not mirrored
    )


# --- 9


@triton.jit
def segments(f, x, n, out_f, out_x, out_n, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    operands = (tl.load(f + i) != 0, tl.load(x + i), tl.load(n + i))
    flag, y, m = tl.associative_scan(operands, 0, segmented_three, reverse=REVERSE)
    tl.store(out_f + i, flag.to(tl.int8))
    tl.store(out_x + i, y)
    tl.store(out_n + i, m)


@triton.jit
def flag_and_value(f, x, out_f, out_x, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    operands = (tl.load(f + i) != 0, tl.load(x + i))
    flag, y = tl.associative_scan(operands, 0, segmented, reverse=REVERSE)
    tl.store(out_f + i, flag.to(tl.int8))
    tl.store(out_x + i, y)


@pytest.mark.parametrize("n", [32, 512, 2048])
def test_9_segmented(n):
    rng = RNG(n)
    f = (rng.random(n) < 0.1).astype(np.int8)
    x = rng.integers(-4, 5, n).astype(np.float16)
    k = rng.integers(-(2**62), 2**62, n)

    def restart(f1, x1, n1, f2, x2, n2):
        return f1 | f2, np.where(f2, x2, x1 + x2), np.where(f2, n2, n1 + n2)

    check(segments, [f, x, k], restart, axis=0, constexprs={"N": n})
    check(
        flag_and_value,
        [f, x],
        lambda f1, x1, f2, x2: restart(f1, x1, 0, f2, x2, 0)[:2],
        axis=0,
        constexprs={"N": n},
    )


# --- 10


@triton.jit
def tile(
    x,
    added,
    accumulated,
    D0: tl.constexpr,
    D1: tl.constexpr,
    D2: tl.constexpr,
    D3: tl.constexpr,
    D4: tl.constexpr,
    RANK: tl.constexpr,
    AXIS: tl.constexpr,
    REVERSE: tl.constexpr,
):
    n: tl.constexpr = D0 * D1 * D2 * D3 * D4
    i = tl.arange(0, n)
    shape: tl.constexpr = [D0, D1, D2, D3, D4][:RANK]
    v = tl.reshape(tl.load(x + i), shape)
    y = tl.associative_scan(v, AXIS, add, reverse=REVERSE)
    z = tl.cumsum(v, AXIS, reverse=REVERSE)
    tl.store(added + i, tl.reshape(y, [n]))
    tl.store(accumulated + i, tl.reshape(z, [n]))


def wide(dtype: str) -> str:
    """Return what tl.cumsum computes in: integers of at least 32 bits."""
    if dtype not in INTEGERS:
        return dtype
    return {"int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}.get(
        dtype, dtype
    )


SHAPES = [(256,), (1,), (8, 32), (64, 1), (4, 8, 16), (2, 4, 1, 16), (2, 4, 2, 8, 4)]


def check_tile(dtype: str, shape: tuple, axis: int) -> None:
    rng = RNG(10)
    padded = [*shape, 1, 1, 1, 1][:5]
    constexprs = {f"D{k}": size for k, size in enumerate(padded)}
    constexprs |= {"RANK": len(shape), "AXIS": axis}

    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        x = rng.integers(info.min, info.max, shape, dtype, endpoint=True)

        def reference(x, reverse):
            return [
                fold(add_numpy, [x], axis, reverse)[0],
                fold(add_numpy, [x.astype(wide(dtype))], axis, reverse)[0],
            ]
    else:
        x = encode(rng.integers(0, 2, shape) * 2 - 1, dtype)

        def reference(x, reverse):
            return fold(add_numpy, [x], axis, reverse) * 2

    outputs = [x, encode(np.zeros(shape), wide(dtype))]
    check(tile, [x], reference, axis=axis, outputs=outputs, constexprs=constexprs)


FLOATS = ["float16", "bf16", "float32", "float64"]


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
@pytest.mark.parametrize("shape", [(256,), (8, 32)], ids=str)
def test_10_dtypes(dtype, shape):
    """Integers wrap around; the sums of the floats are small integers, exact in every order."""
    check_tile(dtype, shape, -1)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [(s, a) for s in SHAPES for a in range(-len(s), len(s)) if a >= 0 or len(s) in (1, 3, 5)],
    ids=str,
)
def test_10_ranks_and_axes(shape, axis):
    check_tile("int16", shape, axis)


@pytest.mark.parametrize("dtype", FLOATS)
def test_10_rounding(dtype):
    """Inexact sums: within the error of as many additions as an element can be part of."""
    x = encode(RNG(1).standard_normal((4, 64)), dtype)
    constexprs = {"D0": 4, "D1": 64, "D2": 1, "D3": 1, "D4": 1, "RANK": 2, "AXIS": 1}
    for reverse in (False, True):
        got = run(tile, [x], [x, x], (), constexprs | {"REVERSE": reverse})
        wanted = fold(add_numpy, [decode(x)], 1, reverse)[0]
        bound = fold(add_numpy, [np.abs(decode(x))], 1, reverse)[0]
        for result in got:
            assert_close(result, wanted, 32 * EPSILON[dtype] * bound)
            assert_same(result, got[0])
        mirrored = run(tile, [flip(x, 1)], [x, x], (), constexprs | {"REVERSE": False})
        if reverse:
            assert_same(got[0], flip(mirrored[0], 1))


@triton.jit
def multiply(a, b):
    return a * b


@triton.jit
def greater(a, b):
    return tl.maximum(a, b)


@triton.jit
def greater_or_first(a, b):
    return tl.where(b > a, b, a)


@triton.jit
def add_halves(a, b):
    return (a.to(tl.float32) + b.to(tl.float32)).to(a.dtype)


@triton.jit
def fp8_tile(
    x,
    out,
    D0: tl.constexpr,
    D1: tl.constexpr,
    AXIS: tl.constexpr,
    FN: tl.constexpr,
    REVERSE: tl.constexpr,
):
    i = tl.arange(0, D0)[:, None] * D1 + tl.arange(0, D1)[None, :]
    tl.store(out + i, tl.associative_scan(tl.load(x + i), AXIS, FN, reverse=REVERSE))


@triton.jit
def fp8_sums(x, out, D0: tl.constexpr, D1: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    # For the interpreter's process, to which no function can be passed.
    i = tl.arange(0, D0)[:, None] * D1 + tl.arange(0, D1)[None, :]
    y = tl.associative_scan(tl.load(x + i), AXIS, add_halves, reverse=REVERSE)
    tl.store(out + i, y)


FP8_OPERATORS = {
    "add": (add, add_numpy),
    "converting add": (add_halves, add_numpy),
    "multiply": (multiply, lambda a, b: a * b),
    "maximum": (greater, np.maximum),
    "where": (greater_or_first, np.maximum),
}


@pytest.mark.parametrize("dtype", ["fp8e4nv", "fp8e5"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("operator", FP8_OPERATORS)
def test_10_fp8(dtype, axis, operator):
    """Signs and zeros, at most four of one sign along either axis: fp8 holds every sum exactly."""
    rng = RNG(3)
    x = rng.choice([-1, 1], (8, 64))
    if "add" in operator:
        x[4:] = 0
        x[:, 4:] = 0
    fn, reference = FP8_OPERATORS[operator]
    check(
        fp8_tile,
        [encode(x, dtype)],
        reference,
        axis=axis,
        constexprs={"D0": 8, "D1": 64, "AXIS": axis, "FN": fn},
    )


@pytest.mark.parametrize("dtype", ["fp8e4nv", "fp8e5"])
def test_10_fp8_rounds_after_each_step(dtype):
    """In one thread the scan is the fold itself: each sum rounded to nearest even."""
    x = encode(RNG(4).standard_normal((64, 4)), dtype)
    outputs = check(
        fp8_tile,
        [x],
        lambda x, reverse: fold(lambda a, b: decode(encode(a + b, dtype)), [x], 1, reverse),
        axis=1,
        outputs=[x],
        constexprs={"D0": 64, "D1": 4, "AXIS": 1, "FN": add},
        num_warps=1,
    )
    assert not (bits(outputs[False][0]) == bits(x)).all()


@pytest.mark.parametrize("dtype", ["fp8e4nv", "fp8e5"])
def test_10_fp8_cumsum(dtype):
    x = np.tile([1, -1, 1, 1], 16)
    x[8:] = 0
    check(cumsum, [encode(x, dtype)], add_numpy, axis=0, constexprs={"N": 64})


# --- 11

LAYOUT = (
    "#ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>"
)
DISCOUNTED = """
    %p = arith.mulf %a0, %b0 : f32
    %q = arith.mulf %p, %gamma : f32
    %s = arith.mulf %gamma, %b0 : f32
    %t = arith.mulf %s, %a1 : f32
    %u = arith.addf %t, %b1 : f32
    tt.scan.return %q, %u : f32, f32
"""


@pytest.mark.parametrize("n", [64, 256, 1024])
def test_11_captured_scalar(n):
    """(1, x) pairs under b = gamma * b + x, gamma being an argument of the kernel.

    As TTGIR: the frontend's combine functions see only their own arguments.
    """
    gamma = np.float32(0.9375)
    x = RNG(11).standard_normal((1, n)).astype(np.float32)
    operands = [np.ones_like(x), x]

    def discounted(a1, b1, a2, b2):
        return gamma * a1 * a2, gamma * a2 * b1 + b2

    text = scan_module(["float32"] * 2, [n], LAYOUT, 0, DISCOUNTED, captured="float32")
    forward, backward = run_module(text, operands, [gamma])
    for reverse, got in ((False, forward), (True, backward)):
        wanted = fold(discounted, [x.astype(np.float64) for x in operands], 1, reverse)
        plain = fold(lambda y, x: gamma * y + x, [operands[1].astype(np.float64)], 1, reverse)[0]
        np.testing.assert_allclose(wanted[1], plain)
        for result, right in zip(got, wanted, strict=True):
            assert_close(result, right, 1e-5 * np.maximum(np.abs(right), 1))
    mirrored, _ = run_module(text, [flip(x, 1) for x in operands], [gamma])
    for result, other in zip(backward, mirrored, strict=True):
        assert_same(result, flip(other, 1))


# --- 12


@triton.jit
def logcumsumexp(x, out, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, XBLOCK)[:, None] * RBLOCK + tl.arange(0, RBLOCK)[None, :]
    m = tl.broadcast_to(tl.load(x + i), [XBLOCK, RBLOCK])
    s = tl.broadcast_to(tl.full([1, 1], 1.0, tl.float32), [XBLOCK, RBLOCK])
    m, s = tl.associative_scan((m, s), 1, log_add, reverse=REVERSE)
    tl.store(out + i, m + tl.log(s))


@pytest.mark.parametrize("xblock", [1, 2, 8])
@pytest.mark.parametrize("num_warps", [4, 8])
def test_12_logcumsumexp(xblock, num_warps):
    x = (RNG(12).standard_normal((xblock, 512)) * 5).astype(np.float32)
    check(
        logcumsumexp,
        [x],
        lambda x, reverse: fold(np.logaddexp, [x], 1, reverse),
        axis=1,
        outputs=[x],
        constexprs={"XBLOCK": xblock, "RBLOCK": 512},
        relative=1e-5,
        num_warps=num_warps,
    )


# --- the checks themselves


def test_wrong_results_are_noticed():
    """A scan in the wrong direction, and one that swaps its operands, fail check()."""
    x = RNG(0).integers(-9, 10, 64).astype(np.int32)
    with pytest.raises(AssertionError, match=r"reverse=False, output 0: .* wrong"):
        check(cumsum, [x], lambda a, b: a - b, axis=0, constexprs={"N": 64})
    operands = [x.astype(np.float32) for x in pair(64)]
    with pytest.raises(AssertionError, match="wrong"):
        check(
            recurrence,
            operands,
            lambda a1, b1, a2, b2: (a1 * a2, a1 * b2 + b1),
            axis=0,
            constexprs={"N": 64},
            relative=3e-4,
        )
    assert (bits(Typed(np.uint16([1]), "bf16")) == 1).all()
