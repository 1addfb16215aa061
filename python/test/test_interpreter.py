"""Scans under TRITON_INTERPRET=1: the sequential fold, and what the compiled kernel computes.

The kernels are those of test_cases.py, row by row (row 6, several CTAs, means nothing to the
interpreter), and some of this file.  Each runs in both directions in the interpreter, which must
give the bits of the sequential fold in the operands' own dtypes, and compiled in the simulator.
"""

from __future__ import annotations

import numpy as np
import pytest
import test_cases as cases
import triton
import triton.language as tl
from interpreter_worker import Interpreter, Named, Request
from scan_values import assert_close, assert_same, copy, decode, encode, fold, like, run
from triton.compiler.errors import CompilationError
from triton.runtime.jit import JITFunction
from triton.tools.ptx_sim import Typed

RNG = np.random.default_rng
_TRITON_NAMES = {"bf16": "bfloat16", "fp8e4nv": "float8e4nv", "fp8e5": "float8e5"}


@pytest.fixture(scope="module")
def interpreter():
    """A worker process that interprets kernels."""
    with Interpreter() as worker:
        yield worker


@pytest.fixture
def interpret(interpreter):
    """Return interpret(kernel, inputs, outputs, scalars, constexprs), like scan_values.run()."""

    def interpret(kernel, inputs, outputs, scalars=(), constexprs=None, grid=1) -> list:
        results = [like(x) for x in outputs]
        arrays = [*(copy(x) for x in inputs), *results]
        travelling = [
            (x.array, _TRITON_NAMES[x.type]) if isinstance(x, Typed) else (x, x.dtype.name)
            for x in arrays
        ]
        functions = {
            k: Named(v.__name__) if isinstance(v, JITFunction) else v
            for k, v in (constexprs or {}).items()
        }
        module, name = kernel.fn.__module__, kernel.__name__
        request = Request(module, name, (grid,), [*travelling, *scalars], functions)
        after = interpreter.run(request)[len(inputs) :]
        return [
            Typed(a, x.type) if isinstance(x, Typed) else a
            for a, x in zip(after, results, strict=True)
        ]

    return interpret


@pytest.fixture
def agree(interpret):
    """Return agree(kernel, inputs, wanted, ...): both directions, against fold and simulator.

    wanted: the function of (inputs, reverse) that gives the interpreter's results, in their
        dtypes' own arithmetic.
    exact: whether the interpreter's floats must have the wanted bits.
    relative: allowed difference from the compiled kernel as a fraction of max(|value|, 1).
    """

    def agree(
        kernel,
        inputs,
        wanted,
        outputs=None,
        scalars=(),
        constexprs=None,
        relative=0.0,
        exact=True,
        **options,
    ):
        outputs = inputs if outputs is None else outputs
        for reverse in (False, True):
            direction = {**(constexprs or {}), "REVERSE": reverse}
            mine = interpret(kernel, inputs, outputs, scalars, direction)
            compiled = run(kernel, inputs, outputs, scalars, direction, **options)
            for i, (got, right) in enumerate(zip(mine, wanted(*inputs, reverse), strict=True)):
                what = f"interpreted, reverse={reverse}, output {i}:"
                if exact:
                    assert_same(got, right, what)
                else:
                    right = decode(right)
                    assert_close(got, right, relative * np.maximum(np.abs(right), 1), what)
            for i, (got, other) in enumerate(zip(mine, compiled, strict=True)):
                value = decode(got)
                tolerance = relative * np.maximum(np.abs(value), 1) if relative else 0.0
                what = f"compiled against interpreted, reverse={reverse}, output {i}:"
                assert_close(other, value, tolerance, what)

    return agree


def folded(fn, axis=0):
    """Return wanted(*inputs, reverse) for agree(): the fold of all inputs."""
    return lambda *inputs: fold(fn, inputs[:-1], axis, inputs[-1])


# --- The rows of cases.md


@pytest.mark.parametrize("R", [8, 32])
def test_1_ones_in_a_loop(agree, R):
    ramp = np.arange(1, R + 1)

    def wanted(x, reverse):
        row = np.tile(ramp[::-1] if reverse else ramp, 3)
        return [np.tile(row, (4, 1)), row]

    x = np.ones(3 * R, np.int64)
    outputs = [np.zeros((4, 3 * R), np.int64), x]
    agree(cases.loop, [x], wanted, outputs, [3 * R], {"R": R, "ROWS": 4})


@pytest.mark.parametrize("n", [64, 128, 256, 2048])
def test_2_recurrence(agree, n):
    agree(
        cases.recurrence,
        cases.pair(n),
        folded(cases.affine_numpy),
        constexprs={"N": n},
        relative=3e-4,
    )


@pytest.mark.parametrize("reverse", [False, True])
def test_3_in_place(interpreter, interpret, reverse):
    a, b = cases.pair(256)
    constexprs = {"N": 256, "REVERSE": reverse}
    arguments = [(a.copy(), "float32"), (b.copy(), "float32")]
    name = cases.in_place.__name__
    mine = interpreter.run(Request("test_cases", name, (1,), arguments, constexprs))
    others = interpret(cases.recurrence, [a, b], [a, b], (), constexprs)
    for got, other in zip(mine, others, strict=True):
        assert_same(got, other)


def test_4_large_before_small(interpret):
    x = np.repeat(np.float32([1e8, 1.0]), 32)
    (got,) = interpret(cases.cumsum, [x], [x], (), {"N": 64, "REVERSE": True})
    assert got[32] == 32.0
    assert_same(got, fold(cases.add_numpy, [x], 0, True)[0])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float16", "bf16"])
def test_5_after_dot(agree, axis, dtype):
    x, y = (encode(RNG(s).integers(-2, 3, (64, 64)), dtype) for s in (0, 1))

    def wanted(x, y, reverse):
        z = (decode(x) @ decode(y)).astype(np.float32)
        return [fold(cases.add_numpy, [z], axis, reverse)[0] * z]

    outputs = [np.zeros((64, 64), np.float32)]
    agree(cases.after_dot, [x, y], wanted, outputs, constexprs={"N": 64, "AXIS": axis})


@pytest.mark.parametrize(
    ("kernel", "constexprs"),
    [(cases.reversed_by_sum, {}), (cases.reversed_by_dot, {"PRECISION": "ieee"})],
)
def test_7_reversed_by_hand(agree, kernel, constexprs):
    def wanted(x, reverse):
        return [x[:, ::-1], fold(cases.add_numpy, [x], 1, reverse)[0][:, ::-1]]

    x = RNG(7).integers(-9, 10, (32, 32)).astype(np.float32)
    agree(kernel, [x], wanted, [x, x], constexprs={"R": 32, **constexprs})


@pytest.mark.parametrize(
    ("fn", "reference"),
    [
        (cases.first_greatest, cases.nan_greatest),
        (cases.first_greatest_number, cases.nan_least),
    ],
)
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_8_argmax_with_ties(agree, fn, reference, dtype):
    n = 256
    x = RNG(8).integers(-3, 4, n)
    if dtype == "float32":
        x = np.where(RNG(9).random(n) < 0.02, np.nan, x)
        assert np.isnan(x).any()
    x = x.astype(dtype)
    index = np.arange(n, dtype=np.int32)

    def wanted(x, reverse):
        return fold(reference, [x, index], 0, reverse)

    agree(cases.argmax, [x], wanted, [x, index], constexprs={"N": n, "FN": fn})


def test_9_segmented(agree):
    n = 256
    f = (RNG(1).random(n) < 0.1).astype(np.int8)
    x = RNG(2).integers(-4, 5, n).astype(np.float16)
    k = RNG(3).integers(-(2**62), 2**62, n)

    def restart(f1, x1, n1, f2, x2, n2):
        return f1 | f2, np.where(f2, x2, x1 + x2), np.where(f2, n2, n1 + n2)

    def restart_pair(f1, x1, f2, x2):
        return f1 | f2, np.where(f2, x2, x1 + x2)

    agree(cases.segments, [f, x, k], folded(restart), constexprs={"N": n})
    agree(cases.flag_and_value, [f, x], folded(restart_pair), constexprs={"N": n})


def tile_constexprs(shape: tuple, axis: int) -> dict:
    """Return the constexprs of cases.tile."""
    padded = [*shape, 1, 1, 1, 1][:5]
    sizes = {f"D{k}": size for k, size in enumerate(padded)}
    return {**sizes, "RANK": len(shape), "AXIS": axis}


@pytest.mark.parametrize("dtype", cases.INTEGERS)
@pytest.mark.parametrize("axis", [0, -1])
def test_10_integers_wrap_around(agree, dtype, axis):
    info = np.iinfo(dtype)
    x = RNG(10).integers(info.min, info.max, (8, 32), dtype, endpoint=True)
    wide = cases.wide(dtype)

    def wanted(x, reverse):
        return [
            fold(cases.add_numpy, [x], axis, reverse)[0],
            fold(cases.add_numpy, [x.astype(wide)], axis, reverse)[0],
        ]

    outputs = [x, x.astype(wide)]
    agree(cases.tile, [x], wanted, outputs, constexprs=tile_constexprs((8, 32), axis))


@pytest.mark.parametrize("dtype", cases.FLOATS)
@pytest.mark.parametrize("axis", [0, -1])
def test_10_floats_round_at_each_step(agree, dtype, axis):
    """The interpreter rounds every sum to the dtype, as the compiled kernel does."""
    x = encode(RNG(4).standard_normal((8, 32)), dtype)

    def wanted(x, reverse):
        def rounded(a, b):
            return decode(encode(a + b, dtype))

        return [encode(fold(rounded, [decode(x)], axis, reverse)[0], dtype)] * 2

    relative = 32 * cases.EPSILON[dtype]
    constexprs = tile_constexprs((8, 32), axis)
    agree(cases.tile, [x], wanted, [x, x], constexprs=constexprs, relative=relative)


@pytest.mark.parametrize(
    ("shape", "axis"),
    [(s, a) for s in cases.SHAPES for a in range(-len(s), len(s)) if a >= 0 or len(s) in (1, 3)],
    ids=str,
)
def test_10_ranks_and_axes(agree, shape, axis):
    x = RNG(5).integers(-(2**15), 2**15, shape).astype(np.int16)

    def wanted(x, reverse):
        return [
            fold(cases.add_numpy, [x], axis, reverse)[0],
            fold(cases.add_numpy, [x.astype(np.int32)], axis, reverse)[0],
        ]

    outputs = [x, x.astype(np.int32)]
    agree(cases.tile, [x], wanted, outputs, constexprs=tile_constexprs(shape, axis))


@pytest.mark.parametrize("dtype", ["fp8e4nv", "fp8e5"])
@pytest.mark.parametrize("axis", [0, 1])
def test_10_fp8(agree, dtype, axis):
    x = RNG(3).integers(0, 2, (8, 64)) * 2 - 1
    x[:, 8:] = 0

    def wanted(x, reverse):
        return [encode(fold(cases.add_numpy, [decode(x)], axis, reverse)[0], dtype)]

    constexprs = {"D0": 8, "D1": 64, "AXIS": axis}
    agree(cases.fp8_sums, [encode(x, dtype)], wanted, constexprs=constexprs)


@pytest.mark.parametrize("dtype", ["fp8e4nv", "fp8e5"])
@pytest.mark.parametrize("rows", [2, 256])
def test_10_fp8_rounds_at_each_step(agree, interpret, dtype, rows):
    """Subnormal to large, so that sums tie, carry into the exponent and saturate."""
    x = encode(RNG(6).standard_normal((rows, 64)) * np.repeat([2e-3, 1, 30, 3e4], 16), dtype)

    def wanted(x, reverse):
        def rounded(a, b):
            return decode(encode((a + b).astype(np.float32), dtype))

        return [encode(fold(rounded, [decode(x)], 0, reverse)[0], dtype)]

    constexprs = {"D0": rows, "D1": 64, "AXIS": 0}
    if rows == 2:  # more rows can be added in other orders, which fp8 does not forgive
        agree(cases.fp8_sums, [x], wanted, constexprs=constexprs)
    for reverse in (False, True):
        (got,) = interpret(cases.fp8_sums, [x], [x], (), {**constexprs, "REVERSE": reverse})
        assert_same(got, wanted(x, reverse)[0])


@pytest.mark.parametrize("xblock", [1, 8])
def test_12_logcumsumexp(agree, xblock):
    x = (RNG(12).standard_normal((xblock, 512)) * 5).astype(np.float32)

    def wanted(x, reverse):
        return [fold(np.logaddexp, [x.astype(np.float64)], 1, reverse)[0].astype(np.float32)]

    constexprs = {"XBLOCK": xblock, "RBLOCK": 512}
    agree(cases.logcumsumexp, [x], wanted, constexprs=constexprs, relative=1e-5, exact=False)


# --- What else combine functions and scans may be written like


GAMMA: tl.constexpr = tl.constexpr(3)


@triton.jit
def by_branches(a, b):
    if a > b:
        r = a * 3
    elif a == b:
        r = a + b
    else:
        r = b - a
    return r


def by_branches_numpy(a, b):
    return np.where(a > b, a * 3, np.where(a == b, a + b, b - a))


@triton.jit
def by_a_loop(a, b):
    r = b
    while r > 5:
        r -= a * a + 1
    return r


def by_a_loop_numpy(a, b):
    b = b.copy()
    while (b > 5).any():
        b = np.where(b > 5, b - (a * a + 1), b)
    return b


@triton.jit
def by_a_global(a, b):
    return a * GAMMA + b


@triton.jit
def doubled(x):
    return x + x


@triton.jit
def by_a_call(a, b):
    return tl.maximum(doubled(a), b) - tl.minimum(a, doubled(b))


def by_a_call_numpy(a, b):
    return np.maximum(a + a, b) - np.minimum(a, b + b)


@triton.jit
def keep_left(a, b):
    return a


@triton.jit
def one_tensor(
    x, out, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, FN: tl.constexpr,
    REVERSE: tl.constexpr,
):  # fmt: skip
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + i, tl.load(x + i).associative_scan(AXIS, FN, REVERSE))


FUNCTIONS = [
    (by_branches, by_branches_numpy),
    (by_a_loop, by_a_loop_numpy),
    (by_a_global, lambda a, b: a * 3 + b),
    (by_a_call, by_a_call_numpy),
    (keep_left, lambda a, b: a),
]


@pytest.mark.parametrize("shape", [(8, 16), (1, 64)], ids=str)
@pytest.mark.parametrize(("fn", "reference"), FUNCTIONS, ids=[f.__name__ for f, _ in FUNCTIONS])
def test_combine_functions(interpret, fn, reference, shape):
    """None of these associates, so only the sequential fold in operand order gives the values."""
    x = RNG(13).integers(-9, 10, shape).astype(np.int32)
    for axis in (0, 1, -2):
        for reverse in (False, True):
            constexprs = {"M": shape[0], "N": shape[1], "AXIS": axis, "FN": fn, "REVERSE": reverse}
            (got,) = interpret(one_tensor, [x], [x], (), constexprs)
            assert_same(got, fold(reference, [x], axis, reverse)[0], f"{axis} {reverse}")


@triton.jit
def greater(a, b):
    r = b
    if a > b:
        r = a
    return r


def test_branches_agree_with_the_compiled_kernel(agree):
    x = RNG(14).integers(-99, 100, (8, 16)).astype(np.int32)
    for axis in (0, 1):
        constexprs = {"M": 8, "N": 16, "AXIS": axis, "FN": greater}
        agree(one_tensor, [x], folded(np.maximum, axis), constexprs=constexprs)


@triton.jit
def discounted(g1, a1, b1, g2, a2, b2):
    return g1, a1 * a2 * g1, g1 * a2 * b1 + b2


@triton.jit
def captured(x, out, gamma, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    ones = tl.full([N], 1, tl.int32)
    operands = (tl.full([N], 1, tl.int32) * gamma, ones, tl.load(x + i))
    _, _, y = tl.associative_scan(operands, 0, discounted, reverse=REVERSE)
    tl.store(out + i, y)


def test_11_captured_scalar(agree):
    """A combine function sees nothing but its arguments: the scalar is an operand."""
    x = RNG(11).integers(-9, 10, 128).astype(np.int32)
    agree(captured, [x], folded(lambda y, x: 3 * y + x), scalars=[3], constexprs={"N": 128})


@triton.jit
def exclusive_or(x, out, N: tl.constexpr, FN: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.associative_scan(tl.load(x + i) != 0, 0, FN, REVERSE).to(tl.int8))


@triton.jit
def bool_add(a, b):
    return a + b


def test_bools_add_modulo_two(agree):
    x = RNG(15).integers(0, 2, 128).astype(np.int8)
    agree(exclusive_or, [x], folded(np.bitwise_xor), constexprs={"N": 128, "FN": bool_add})


@triton.jit
def members(x, out, product, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    tl.store(out + i, v.cumsum(0, REVERSE))
    tl.store(product + i, v.cumprod(-1, REVERSE))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "float32"])
def test_cumsum_and_cumprod(agree, dtype):
    x = RNG(16).integers(1, 3, 64).astype(dtype)
    wide = cases.wide(dtype)

    def wanted(x, reverse):
        x = x.astype(wide)
        return fold(np.add, [x], 0, reverse) + fold(np.multiply, [x], 0, reverse)

    agree(members, [x], wanted, [x.astype(wide)] * 2, constexprs={"N": 64})


@triton.jit
def bf16_arithmetic(x, y, out, less, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, a * b - (a + 0.3) * (-b))
    tl.store(less + i, tl.where(a < b, tl.abs(a), b).to(tl.float32))
    tl.store(less + N + i, ((a < b) & (a != b)).to(tl.float32))
    tl.store(less + 2 * N + i, (tl.load(x + i).to(tl.float32) * 1.1).to(tl.bfloat16).to(tl.float32))
    odd = (i % 2).to(tl.bfloat16)
    tl.store(less + 3 * N + i, tl.sum(odd, 0).to(tl.float32) + tl.max(b, 0).to(tl.float32) + i)


def test_bf16_arithmetic(interpret):
    """What combine functions of bf16 are made of has the compiled kernel's bits."""
    x, y = (encode(RNG(s).standard_normal(256) * 9, "bf16") for s in (1, 2))
    outputs = [x, np.zeros(4 * 256, np.float32)]
    constexprs = {"N": 256, "REVERSE": False}
    mine = interpret(bf16_arithmetic, [x, y], outputs, (), constexprs)
    for got, other in zip(
        mine, run(bf16_arithmetic, [x, y], outputs, (), constexprs, enable_fp_fusion=False),
        strict=True,
    ):  # fmt: skip
        assert_same(got, other)


# --- 13


@triton.jit
def wrong_type(a, b):
    return (a + b).to(tl.float64)


@triton.jit
def two_results(a, b):
    return a, b


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"AXIS": 2}, r"axis must be an int in \[-2, 1\] for an input of rank 2, got 2"),
        ({"AXIS": -3}, r"axis must be an int in \[-2, 1\] for an input of rank 2, got -3"),
        ({"REVERSE": 1}, "reverse must be True or False, known at compile time, got 1"),
        ({"FN": wrong_type}, "combine_fn wrong_type must return int32 for operand 0"),
        ({"FN": two_results}, "combine_fn two_results must return 1 value"),
    ],
)
def test_13_errors_are_the_compilers(interpret, change, message):
    x = np.zeros((8, 16), np.int32)
    constexprs = {"M": 8, "N": 16, "AXIS": 0, "FN": keep_left, "REVERSE": False, **change}
    with pytest.raises(RuntimeError, match=message):
        interpret(one_tensor, [x], [x], (), constexprs)
    with pytest.raises(CompilationError, match=message):
        run(one_tensor, [x], [x], (), constexprs)
