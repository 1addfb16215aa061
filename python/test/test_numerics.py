"""The product that upstream's own scan tests span, run in the simulator against sequential folds.

Upstream's test_scan2d is dtype x operator x axis x shape x warps x direction, and its
test_scan_layouts layout x axis x shape.  Each kernel here scans in both directions; its programs
scan

    0  values for which every step is exact: the bits of the fold, wrap-around included,
    1  random values: close to the float64 fold (fp32, fp64), integers equal,
    2, 3  the two flipped along the axis: the reverse scan of a tile must have the bits of the
       flipped forward scan of the flipped tile, which pins the order of operations.

By default a part runs in which every operator meets every dtype along both axes, every layout both
axes, and shapes, warps and combine functions take turns; `pytest -m long` runs the whole product.
The control runs a sample through upstream's lowering; what differs is in UPSTREAM_FAULTS.md.
"""

from __future__ import annotations

import itertools

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
    copy,
    decode,
    encode,
    flip,
    fold,
    like,
    run_module,
    scan_module,
)
from triton.tools.ptx_sim import Typed, compile_kernel, run_compiled

FLOATS = ("float16", "bf16", "float32", "float64")
FP8 = ("fp8e4nv", "fp8e5")


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def multiply(a, b):
    return a * b


@triton.jit
def get_first_element(a, b):
    return a


@triton.jit
def linear_recurrence(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def cummax(v1, i1, v2, i2):
    earlier = v1 > v2
    return tl.where(earlier, v1, v2), tl.where(earlier, i1, i2)


@triton.jit
def roll(n1, last1, cur1, n2, last2, cur2):
    return n1 + n2, tl.where(n2 == 1, cur1, last2), cur2


@triton.jit
def accumulate(x, zf, zr, T: tl.constexpr, D: tl.constexpr, AXIS: tl.constexpr, FN: tl.constexpr):
    i = tl.program_id(0) * T * D + tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    v = tl.load(x + i)
    if FN == "cumsum":
        tl.store(zf + i, tl.cumsum(v, AXIS))
        tl.store(zr + i, tl.cumsum(v, AXIS, reverse=True))
    else:
        tl.store(zf + i, tl.cumprod(v, AXIS))
        tl.store(zr + i, tl.cumprod(v, AXIS, reverse=True))


@triton.jit
def scan_one(x, zf, zr, T: tl.constexpr, D: tl.constexpr, AXIS: tl.constexpr, FN: tl.constexpr):
    i = tl.program_id(0) * T * D + tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    v = tl.load(x + i)
    tl.store(zf + i, tl.associative_scan(v, AXIS, FN))
    tl.store(zr + i, tl.associative_scan(v, AXIS, FN, reverse=True))


@triton.jit
def scan_two(
    x,
    y,
    xf,
    yf,
    xr,
    yr,
    T: tl.constexpr,
    D: tl.constexpr,
    AXIS: tl.constexpr,
    FN: tl.constexpr,
):
    i = tl.program_id(0) * T * D + tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    operands = (tl.load(x + i), tl.load(y + i))
    a, b = tl.associative_scan(operands, AXIS, FN)
    tl.store(xf + i, a)
    tl.store(yf + i, b)
    a, b = tl.associative_scan(operands, AXIS, FN, reverse=True)
    tl.store(xr + i, a)
    tl.store(yr + i, b)


@triton.jit
def scan_three(
    x,
    y,
    z,
    xf,
    yf,
    zf,
    xr,
    yr,
    zr,
    T: tl.constexpr,
    D: tl.constexpr,
    AXIS: tl.constexpr,
    FN: tl.constexpr,
):
    i = tl.program_id(0) * T * D + tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    operands = (tl.load(x + i), tl.load(y + i), tl.load(z + i))
    a, b, c = tl.associative_scan(operands, AXIS, FN)
    tl.store(xf + i, a)
    tl.store(yf + i, b)
    tl.store(zf + i, c)
    a, b, c = tl.associative_scan(operands, AXIS, FN, reverse=True)
    tl.store(xr + i, a)
    tl.store(yr + i, b)
    tl.store(zr + i, c)


def _cummax(v1, i1, v2, i2):
    earlier = v1 > v2
    return np.where(earlier, v1, v2), np.where(earlier, i1, i2)


# name: (kernel, combine function, the same in NumPy)
OPERATORS = {
    "cumsum": (accumulate, "cumsum", lambda a, b: a + b),
    "cumprod": (accumulate, "cumprod", lambda a, b: a * b),
    "add": (scan_one, add, lambda a, b: a + b),
    "multiply": (scan_one, multiply, lambda a, b: a * b),
    "get_first_element": (scan_one, get_first_element, lambda a, b: a),
    "linear_recurrence": (
        scan_two,
        linear_recurrence,
        lambda a1, b1, a2, b2: (a1 * a2, b1 * a2 + b2),
    ),
    "cummax": (scan_two, cummax, _cummax),
    "roll": (
        scan_three,
        roll,
        lambda n1, l1, c1, n2, l2, c2: (n1 + n2, np.where(n2 == 1, c1, l2), c2),
    ),
}
SHAPES = ((8, 32), (16, 32), (32, 16), (2, 1024), (1024, 2), (32, 32), (1, 1024))
WARPS = (4, 8, 16)


def operands_of(op: str, dtype: str, shape: tuple, exact: bool) -> list[np.ndarray]:
    """Return the operands' values, before they are rounded to the dtype."""
    rng = np.random.default_rng(17 + exact)
    sign = rng.integers(0, 2, shape) * 2 - 1
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        x, y = (rng.integers(info.min, info.max, shape, dtype, endpoint=True) for _ in "xy")
        if "prod" in op or op == "multiply":
            x |= 1  # or everything is 0 soon
    elif exact:
        # Sums of signs and products of powers of two, within 8 bits.
        x, y = sign, rng.integers(-1, 2, shape)
        if "prod" in op or op == "multiply":
            x = sign * np.exp2(rng.choice([-1, 0, 0, 0, 0, 0, 0, 0, 0, 1], shape) * (x > 0))
            x[..., 3:] = sign[..., 3:]
            x[5:] = sign[5:]
    else:
        x = rng.standard_normal(shape)
        y = rng.standard_normal(shape)
        if "prod" in op or op in ("multiply", "linear_recurrence"):
            x = sign * rng.uniform(0.95, 1.05, shape)
    if op == "roll":
        return [np.ones(shape, np.int32), x, y]
    if op == "cummax":
        return [x, rng.integers(0, 2**31, shape)]
    return [x, y] if op == "linear_recurrence" else [x]


def dtypes_of(op: str, dtype: str) -> list[str]:
    """Return the operands' dtypes."""
    return {
        "roll": ["int32", dtype, dtype],
        "cummax": [dtype, "int32"],
        "linear_recurrence": [dtype, dtype],
    }.get(op, [dtype])


def result_dtypes(op: str, dtype: str) -> list[str]:
    """Return the results' dtypes: tl.cumsum and tl.cumprod widen integers to 32 bits."""
    narrow = {"int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}
    if op in ("cumsum", "cumprod"):
        return [narrow.get(dtype, dtype)]
    return dtypes_of(op, dtype)


def stack(arrays: list):
    """Return one device array of all, along a new first axis."""
    if isinstance(arrays[0], Typed):
        return Typed(np.stack([a.array for a in arrays]), arrays[0].type)
    return np.stack(arrays)


def program(array, k: int):
    """Return program k's part."""
    return Typed(array.array[k], array.type) if isinstance(array, Typed) else array[k]


def compare(forward, backward, tiles, fn, results, axis, dtype) -> None:
    """Compare the results of programs 0 to 3 as the module's docstring says.

    forward, backward: the results' arrays, programs first.  tiles: the operands of programs 0 and
    1.  results: the results' dtypes.
    """
    for k, operands in enumerate(tiles):
        values = [decode(x) for x in operands]
        if all(t in INTEGERS for t in results):
            values = [v.astype(t) for v, t in zip(values, results, strict=True)]
        for reverse, got in ((False, forward), (True, backward)):
            if k == 1 and dtype not in (*INTEGERS, "float32", "float64"):
                continue
            wanted = fold(fn, values, axis, reverse)
            # A random walk of rounding errors, twice as far as expected at most here.
            n = wanted[0].shape[axis]
            relative = k * EPSILON.get(dtype, 0) * (8 + 4 * np.sqrt(n))
            scale = fold(np.maximum, [np.abs(x) for x in wanted[-1:]], axis, reverse)[0]
            for i, right in enumerate(wanted):
                what = f"program {k}, reverse={reverse}, result {i}:"
                assert_close(program(got[i], k), right, relative * np.maximum(scale, 1), what)
        for mine, other in zip(backward, forward, strict=True):
            mirrored = flip(program(other, k + 2), axis)
            assert_same(program(mine, k), mirrored, "flip(forward(flip(x))):")


def check_product(op, dtype, shape, axis, num_warps, native=True) -> None:
    """Compile one kernel of the product and check its four programs."""
    kernel, fn, reference = OPERATORS[op]
    dtypes = dtypes_of(op, dtype)
    tiles = [
        [encode(x, t) for x, t in zip(operands_of(op, dtype, shape, exact), dtypes, strict=True)]
        for exact in (True, False)
    ]
    programs = [*tiles, *([flip(x, axis) for x in tile] for tile in tiles)]
    inputs = [stack(list(column)) for column in zip(*programs, strict=True)]
    results = result_dtypes(op, dtype)
    full_shape = bits(inputs[0]).shape
    forward = [like(encode(np.zeros(full_shape), t)) for t in results]
    backward = [copy(x) for x in forward]
    constexprs = {"T": shape[0], "D": shape[1], "AXIS": axis, "FN": fn}
    compiled, kept = compile_kernel(
        kernel, [*inputs, *forward, *backward], constexprs, num_warps=num_warps, native=native
    )
    run_compiled(compiled, len(programs), kept)
    compare(forward, backward, tiles, reference, results, axis, dtype)


def _scan2d_product() -> list:
    """Return pytest parameters; those beyond the default part are marked."""
    rows = [
        (op, dtype, axis)
        for op in OPERATORS
        for dtype in (*INTEGERS, *FLOATS, *FP8)
        for axis in (0, 1)
        # Triton has no arithmetic and no comparisons on fp8; test_cases.py has sums of them.
        if dtype not in FP8 or op == "get_first_element"
    ]
    cases = []
    for k, (op, dtype, axis) in enumerate(rows):
        turns = (SHAPES[(k + k // 14) % len(SHAPES)], WARPS[(k + k // 3) % len(WARPS)])
        for shape, num_warps in itertools.product(SHAPES, WARPS):
            marks = () if (shape, num_warps) == turns else pytest.mark.long
            cases.append(pytest.param(op, dtype, shape, axis, num_warps, marks=marks))
    return cases


@pytest.mark.parametrize(("op", "dtype", "shape", "axis", "num_warps"), _scan2d_product(), ids=str)
def test_scan2d(op, dtype, shape, axis, num_warps):
    check_product(op, dtype, shape, axis, num_warps)


def test_every_pair_of_values_meets():
    """The default part has every operator and dtype with every shape and number of warps."""
    default = [p.values for p in _scan2d_product() if not p.marks]
    for column, values in ((2, SHAPES), (4, WARPS)):
        for op in OPERATORS:
            assert {c[column] for c in default if c[0] == op} == set(values), (op, column)
        for dtype in (*INTEGERS, *FLOATS):
            got = {c[column] for c in default if c[1] == dtype}
            assert len(got) >= len(values) - 2, (dtype, got)


# --- layouts


def blocked(per_thread, lanes, warps, order) -> str:
    """Return a blocked layout."""
    return (
        f"#ttg.blocked<{{sizePerThread = {per_thread}, threadsPerWarp = {lanes}, "
        f"warpsPerCTA = {warps}, order = {order}}}>"
    )


def mma(version: int, warps: list[int], shape: list[int]) -> str:
    """Return the layout of a matrix product's accumulator."""
    return (
        f"#ttg.nvidia_mma<{{versionMajor = {version}, versionMinor = 0, warpsPerCTA = {warps}, "
        f"instrShape = {shape}}}>"
    )


MMA_V2, MMA_V3 = mma(2, [2, 2], [16, 8]), mma(3, [4, 1], [16, 16, 16])
CUBE = blocked([1, 2, 2], [4, 2, 4], [2, 1, 2], [2, 0, 1])
LAYOUTS = {
    **{
        f"{size}-{lanes}-{order}".replace(" ", ""): blocked(size, lanes, warps, order)
        for order in ([0, 1], [1, 0])
        for size, lanes, warps in (
            ([1, 4], [4, 8], [4, 1]),
            ([1, 4], [8, 4], [4, 1]),
            ([4, 1], [4, 8], [1, 4]),
            ([2, 2], [4, 8], [2, 2]),
            ([2, 2], [8, 4], [2, 2]),
        )
    },
    "narrow": blocked([1, 2], [1, 32], [1, 4], [1, 0]),
    "tall": blocked([2, 1], [32, 1], [4, 1], [0, 1]),
    "slice0": f"#ttg.slice<{{dim = 0, parent = {CUBE}}}>",
    "slice1": f"#ttg.slice<{{dim = 1, parent = {CUBE}}}>",
    "slice2": f"#ttg.slice<{{dim = 2, parent = {CUBE}}}>",
    "mma2": MMA_V2,
    "mma3": MMA_V3,
    "dot0": f"#ttg.dot_op<{{opIdx = 0, parent = {MMA_V2}, kWidth = 2}}>",
    "dot1": f"#ttg.dot_op<{{opIdx = 1, parent = {MMA_V2}, kWidth = 2}}>",
}
TILES = ((32, 16), (32, 32), (32, 64), (64, 32))

# name: (dtypes, region, the same in NumPy)
REGIONS = {
    "add": (
        ["int32"],
        "%s = arith.addi %a0, %b0 : i32\ntt.scan.return %s : i32",
        lambda a, b: a + b,
    ),
    # The sum with upstream's overflow check: an assertion in the region
    "checked": (
        ["int32"],
        """%x = arith.extsi %a0 : i32 to i64
        %y = arith.extsi %b0 : i32 to i64
        %z = arith.addi %x, %y : i64
        %min = arith.constant -2147483648 : i64
        %max = arith.constant 2147483647 : i64
        %low = arith.cmpi sge, %z, %min : i64
        %high = arith.cmpi sle, %z, %max : i64
        %ok = arith.andi %low, %high : i1
        tt.assert %ok, "overflow detected" : i1
        %s = arith.addi %a0, %b0 : i32
        tt.scan.return %s : i32""",
        lambda a, b: a + b,
    ),
    "affine": (
        ["int64", "int64"],
        """%p = arith.muli %b0, %a0 : i64
        %q = arith.muli %b0, %a1 : i64
        %s = arith.addi %q, %b1 : i64
        tt.scan.return %p, %s : i64, i64""",
        lambda a1, b1, a2, b2: (a2 * a1, a2 * b1 + b2),
    ),
    "mixed": (
        ["int8", "float16", "int64"],
        """%zero = arith.constant 0 : i8
        %flag = arith.ori %a0, %b0 : i8
        %starts = arith.cmpi ne, %b0, %zero : i8
        %sum = arith.addf %a1, %b1 : f16
        %x = arith.select %starts, %b1, %sum : f16
        %count = arith.addi %a2, %b2 : i64
        %n = arith.select %starts, %b2, %count : i64
        tt.scan.return %flag, %x, %n : i8, f16, i64""",
        lambda f1, x1, n1, f2, x2, n2: (
            f1 | f2,
            np.where(f2 != 0, x2, x1 + x2),
            np.where(f2 != 0, n2, n1 + n2),
        ),
    ),
}


def layout_operands(region: str, shape: tuple, seed: int) -> list[np.ndarray]:
    """Return operands for which every step is exact."""
    rng = np.random.default_rng(seed)
    if region == "checked":
        return [rng.integers(-(2**20), 2**20, shape).astype(np.int32)]
    if region == "add":
        return [rng.integers(-(2**31), 2**31, shape).astype(np.int32)]
    if region == "affine":
        return [rng.integers(-(2**63), 2**63 - 1, shape) | 1 for _ in range(2)]
    return [
        (rng.random(shape) < 0.1).astype(np.int8),
        rng.integers(-8, 9, shape).astype(np.float16),
        rng.integers(-(2**63), 2**63 - 1, shape),
    ]


def check_layout(layout, shape, axis, region, native=True) -> None:
    """Compile one kernel of the product over layouts and check it."""
    dtypes, body, reference = REGIONS[region]
    text = scan_module(dtypes, shape, LAYOUTS[layout], axis, body)
    tiles = [layout_operands(region, shape, seed) for seed in (0, 1)]
    programs = [*tiles, *([flip(x, axis) for x in tile] for tile in tiles)]
    inputs = [stack(list(column)) for column in zip(*programs, strict=True)]
    forward, backward = run_module(text, inputs, native=native)
    compare(forward, backward, tiles, reference, dtypes, axis, dtypes[0])


def _layout_product() -> list:
    cases = []
    for k, (layout, axis) in enumerate(itertools.product(LAYOUTS, (0, 1))):
        regions = list(REGIONS)
        turns = {(TILES[(k + j) % 4], regions[(k + k // 4 + 2 * j) % 4]) for j in (0, 1)}
        for shape, region in itertools.product(TILES, regions):
            marks = () if (shape, region) in turns else pytest.mark.long
            cases.append(pytest.param(layout, shape, axis, region, marks=marks))
    return cases


@pytest.mark.parametrize(("layout", "shape", "axis", "region"), _layout_product(), ids=str)
def test_scan_layouts(layout, shape, axis, region):
    check_layout(layout, shape, axis, region)


# --- the control


CONTROL = [p.values for p in _scan2d_product() if not p.marks and p.values[1] not in FP8][::4]
LAYOUT_CONTROL = [p.values for p in _layout_product() if not p.marks][::3]


@pytest.mark.parametrize(("op", "dtype", "shape", "axis", "num_warps"), CONTROL, ids=str)
def test_upstream_scan2d(op, dtype, shape, axis, num_warps):
    check_product(op, dtype, shape, axis, num_warps, native=False)


@pytest.mark.parametrize(("layout", "shape", "axis", "region"), LAYOUT_CONTROL, ids=str)
def test_upstream_scan_layouts(layout, shape, axis, region, capfd):
    if LAYOUTS[layout].startswith("#ttg.blocked"):
        check_layout(layout, shape, axis, region, native=False)
        return
    with pytest.raises(RuntimeError, match="PassManager::run failed"):
        check_layout(layout, shape, axis, region, native=False)
    assert "unsupported scan layout" in capfd.readouterr().err
