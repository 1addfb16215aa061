"""Triton kernels compiled here and run in the simulator, against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.tools.ptx_sim import (
    PtxSimError,
    Typed,
    from_bf16,
    from_fp8,
    run_kernel,
    to_bf16,
    to_fp8,
)


@triton.jit
def _add(a, b):
    return a + b


@triton.jit
def _pair(a1, b1, a2, b2):
    return a2 * a1, a2 * b1 + b2


@triton.jit
def _branchy(a, b):
    if tl.program_id(0) > 0:  # noqa: SIM108 - a branch is the point
        r = tl.maximum(a, b)
    else:
        r = a + b
    return r


@triton.jit
def cumsum_kernel(x_ptr, z_ptr, N: tl.constexpr, REV: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(z_ptr + i, tl.associative_scan(tl.load(x_ptr + i), 0, _add, reverse=REV))


@triton.jit
def branchy_kernel(x_ptr, z_ptr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(z_ptr + i, tl.associative_scan(tl.load(x_ptr + i), 0, _branchy))


@triton.jit
def tile_kernel(
    x_ptr, z_ptr, T: tl.constexpr, D: tl.constexpr, AXIS: tl.constexpr, REV: tl.constexpr
):
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(z_ptr + i, tl.associative_scan(tl.load(x_ptr + i), AXIS, _add, reverse=REV))


@triton.jit
def pair_kernel(a_ptr, b_ptr, n, N: tl.constexpr, REV: tl.constexpr):
    i = tl.arange(0, N)
    m = i < n
    a = tl.load(a_ptr + i, mask=m, other=1.0)
    b = tl.load(b_ptr + i, mask=m, other=0.0)
    a, b = tl.associative_scan((a, b), 0, _pair, reverse=REV)
    tl.store(a_ptr + i, a, mask=m)
    tl.store(b_ptr + i, b, mask=m)


@triton.jit
def loop_kernel(x_ptr, z_ptr, n, R: tl.constexpr):
    for off in range(0, n, R):
        i = off + tl.arange(0, R)[None, :]
        tl.store(z_ptr + i, tl.cumsum(tl.load(x_ptr + i), 1))


@triton.jit
def while_kernel(x_ptr, z_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x_ptr + i)
    k = 0
    while tl.sum(v) > 10:
        v = v * 0.5
        k += 1
    tl.store(z_ptr + i, v + k)


@triton.jit
def reduce_kernel(x_ptr, z_ptr, N: tl.constexpr):
    v = tl.load(x_ptr + tl.arange(0, N))
    tl.store(z_ptr, tl.sum(v))
    tl.store(z_ptr + 1, tl.max(v))
    tl.store(z_ptr + 2, tl.argmax(v, 0))


@triton.jit
def sort_kernel(x_ptr, z_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z_ptr + i, tl.sort(tl.load(x_ptr + i)))


@triton.jit
def math_kernel(x_ptr, z_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x_ptr + i)
    r = tl.exp(v) + tl.log(v) + tl.sin(v) + tl.sqrt(v) + tl.rsqrt(v) + tl.sigmoid(v)
    tl.store(z_ptr + i, tl.softmax(r))


@triton.jit
def dot_kernel(a_ptr, b_ptr, z_ptr, K, N: tl.constexpr):
    i = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    c = tl.zeros((N, N), tl.float32)
    for k in range(0, K):
        c = tl.dot(tl.load(a_ptr + i + k * N * N), tl.load(b_ptr + i + k * N * N), c)
    tl.store(z_ptr + i, tl.cumsum(c, 0) * c)


@triton.jit
def shaped_dot_kernel(
    a_ptr, b_ptr, z_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, BT: tl.constexpr
):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + m[:, None] * K + k[None, :])
    if BT:  # b lies transposed in memory
        b = tl.load(b_ptr + k[:, None] + n[None, :] * K)
    else:
        b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    c = tl.dot(a, b)
    tl.store(z_ptr + m[:, None] * N + n[None, :], c)


@triton.jit
def chained_dot_kernel(a_ptr, b_ptr, z_ptr, N: tl.constexpr):
    i = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    b = tl.load(b_ptr + i)
    c = tl.dot(tl.load(a_ptr + i), b)
    tl.store(z_ptr + i, tl.dot((c * 0.5).to(tl.float16), b))


@triton.jit
def cast_kernel(x_ptr, z_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z_ptr + i, tl.load(x_ptr + i).to(z_ptr.dtype.element_ty))


@triton.jit
def out_of_bounds_kernel(x_ptr, N: tl.constexpr):
    tl.store(x_ptr + tl.arange(0, N), 0.0)


@triton.jit(noinline=True)
def _callee(a, b):
    return a * b + 1


@triton.jit
def call_kernel(x_ptr, z_ptr):
    tl.store(z_ptr + tl.program_id(0), _callee(tl.load(x_ptr + tl.program_id(0)), 3))


def directed(x, rev, axis=-1):
    fn = np.cumsum(np.flip(x, axis) if rev else x, axis)
    return np.flip(fn, axis) if rev else fn


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("rev", [False, True])
@pytest.mark.parametrize(("n", "warps"), [(32, 1), (64, 4), (256, 2), (1024, 8), (512, 16)])
def test_cumsum(n, warps, rev, native):
    rng = np.random.default_rng(0)
    for dtype, tol in (("int32", 0), ("float32", 1e-5)):
        x = (rng.standard_normal((3, n)) * 100).astype(dtype)
        z = np.zeros_like(x)
        run_kernel(cumsum_kernel, 3, [x, z], {"N": n, "REV": rev}, num_warps=warps, native=native)
        np.testing.assert_allclose(z, directed(x.astype(np.float64), rev), rtol=tol, atol=tol * 1e4)


@pytest.mark.parametrize("dtype", ["int8", "int16", "int64", "uint8", "float16", "float64"])
def test_cumsum_dtypes(dtype):
    x = (np.random.default_rng(1).standard_normal(256) * 4).astype(dtype)
    z = np.zeros_like(x)
    run_kernel(cumsum_kernel, 1, [x, z], {"N": 256, "REV": True})
    if dtype[0] == "f":
        want = directed(x.astype(np.float64), True)
        np.testing.assert_allclose(z, want, atol={"float16": 1.0, "float64": 1e-11}[dtype])
    else:
        np.testing.assert_array_equal(z, directed(x.astype(np.int64), True).astype(dtype))


def test_bf16():
    x = Typed(to_bf16(np.random.default_rng(1).integers(-3, 4, 256)), "bf16")
    z = Typed(np.zeros(256, np.uint16), "bf16")
    run_kernel(cumsum_kernel, 1, [x, z], {"N": 256, "REV": False})
    np.testing.assert_array_equal(from_bf16(z.array), np.cumsum(from_bf16(x.array)))  # exact sums


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("rev", [False, True])
def test_tiles(axis, rev):
    x = np.random.default_rng(2).integers(-99, 99, (32, 16)).astype(np.int32)
    z = np.zeros_like(x)
    run_kernel(tile_kernel, 1, [x, z], {"T": 32, "D": 16, "AXIS": axis, "REV": rev})
    np.testing.assert_array_equal(z, directed(x, rev, axis))


@pytest.mark.parametrize("rev", [False, True])
def test_pair_in_place(rev):
    rng = np.random.default_rng(3)
    a, b = rng.uniform(0.5, 1, 200).astype(np.float32), rng.standard_normal(200).astype(np.float32)
    ra, rb = a.astype(np.float64), b.astype(np.float64)
    order = range(198, -1, -1) if rev else range(1, 200)
    for i in order:
        j = i + 1 if rev else i - 1
        ra[i], rb[i] = ra[i] * ra[j], ra[i] * rb[j] + rb[i]
    run_kernel(pair_kernel, 1, [a, b, 200], {"N": 256, "REV": rev})
    np.testing.assert_allclose(a, ra, rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(b, rb, rtol=1e-4, atol=1e-5)


def test_loops_and_control_flow():
    x, z = np.ones(64, np.int64), np.zeros(64, np.int64)
    run_kernel(loop_kernel, 1, [x, z, 64], {"R": 8})
    np.testing.assert_array_equal(z, np.tile(np.arange(1, 9), 8))
    x = np.random.default_rng(0).standard_normal((2, 64)).astype(np.float32)
    z = np.zeros_like(x)
    # upstream's lowering cannot: "'tt.scan' op expects region #0 to have 0 or 1 blocks"
    run_kernel(branchy_kernel, 2, [x, z], {"N": 64}, native=True)
    np.testing.assert_allclose(z[0], np.cumsum(x[0].astype(np.float64)), atol=1e-5)
    np.testing.assert_array_equal(z[1], np.maximum.accumulate(x[1]))
    x = np.full(128, 3, np.float32)
    z = np.zeros_like(x)
    run_kernel(while_kernel, 1, [x, z], {"N": 128})
    np.testing.assert_array_equal(z, np.full(128, 3 / 64 + 6, np.float32))


@pytest.mark.parametrize("ctas", [1, 2, 4])
def test_reduce_across_ctas(ctas):
    x = np.random.default_rng(4).integers(-500, 500, 1024).astype(np.int32)
    z = np.zeros(3, np.float32)
    run_kernel(reduce_kernel, 1, [x, z], {"N": 1024}, num_ctas=ctas)
    np.testing.assert_array_equal(z, [x.sum(), x.max(), x.argmax()])


def test_sort_and_math():
    x = np.abs(np.random.default_rng(5).standard_normal(256)).astype(np.float32) + np.float32(0.1)
    z = np.zeros_like(x)
    run_kernel(sort_kernel, 1, [x, z], {"N": 256})
    np.testing.assert_array_equal(z, np.sort(x))
    run_kernel(math_kernel, 1, [x, z], {"N": 256})
    v = x.astype(np.float64)
    r = np.exp(v) + np.log(v) + np.sin(v) + np.sqrt(v) + v**-0.5 + 1 / (1 + np.exp(-v))
    e = np.exp(r - r.max())
    np.testing.assert_allclose(z, e / e.sum(), rtol=1e-4, atol=1e-9)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_dot_on_sm80(dtype):
    """mma, ldmatrix and a pipelined loop of cp.async."""
    rng = np.random.default_rng(6)
    a, b = (rng.integers(-4, 5, (3, 32, 32)).astype(dtype) for _ in range(2))
    z = np.zeros((32, 32), np.float32)
    run_kernel(dot_kernel, 1, [a, b, z, 3], {"N": 32}, capability=80)
    c = sum(x.astype(np.float64) @ y.astype(np.float64) for x, y in zip(a, b, strict=True))
    np.testing.assert_array_equal(z, np.cumsum(c, 0) * c)


SHAPES = [(64, 64, 64), (64, 32, 16), (128, 16, 32), (64, 128, 32)]


@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "fp8e5"])
@pytest.mark.parametrize("transposed", [False, True])
def test_dot_shapes(dtype, shape, capability, transposed):
    """mma and wgmma in every swizzle; small integers, so the sums are exact."""
    m, n, k = shape
    if dtype in ("int8", "fp8e5") and k < 32:
        k = 32
    rng = np.random.default_rng(8)
    a, b = rng.integers(-4, 5, (m, k)), rng.integers(-4, 5, (k, n))
    z = np.zeros((m, n), np.int32 if dtype == "int8" else np.float32)
    args = []
    for v in (a, np.ascontiguousarray(b.T) if transposed else b):
        bits = to_fp8(v, dtype) if dtype == "fp8e5" else v.astype(dtype)
        args.append(Typed(bits, dtype) if dtype == "fp8e5" else bits)
    consts = {"M": m, "N": n, "K": k, "BT": transposed}
    stats = run_kernel(shaped_dot_kernel, 1, [*args, z], consts, capability=capability)
    np.testing.assert_array_equal(z, a @ b)
    assert stats.static["mma"] and bool(stats.static["wgmma_sync"]) == (capability == 90)


@pytest.mark.parametrize("capability", [80, 90])
def test_chained_dots(capability):
    """The first product is the second one's operand in registers."""
    rng = np.random.default_rng(9)
    a, b = (rng.integers(-2, 3, (64, 64)).astype(np.float16) for _ in range(2))
    z = np.zeros((64, 64), np.float32)
    run_kernel(chained_dot_kernel, 1, [a, b, z], {"N": 64}, capability=capability)
    want = (a.astype(np.float64) @ b * 0.5) @ b
    np.testing.assert_array_equal(z, want)


@pytest.mark.parametrize("capability", [80, 90])
def test_casts_to_fp8_and_back(capability):
    x = (np.random.default_rng(7).standard_normal(256) * 50).astype(np.float32)
    z = Typed(np.zeros(256, np.uint8), "fp8e5")
    run_kernel(cast_kernel, 1, [x, z], {"N": 256}, capability=capability)
    np.testing.assert_array_equal(z.array, to_fp8(x, "fp8e5"))
    back = np.zeros_like(x)
    run_kernel(cast_kernel, 1, [z, back], {"N": 256}, capability=capability)
    np.testing.assert_array_equal(back, from_fp8(z.array, "fp8e5"))


def test_noinline_functions():
    x, z = np.arange(4, dtype=np.int32), np.zeros(4, np.int32)
    run_kernel(call_kernel, 4, [x, z])
    np.testing.assert_array_equal(z, x * 3 + 1)


def test_faults_and_bad_arguments():
    with pytest.raises(PtxSimError, match=r"out-of-bounds.*\n.*test_ptx_sim_kernels\.py"):
        run_kernel(out_of_bounds_kernel, 1, [np.zeros(100, np.float32)], {"N": 128})
    with pytest.raises(PtxSimError, match="takes 1 run-time arguments"):
        run_kernel(out_of_bounds_kernel, 1, [], {"N": 128})
    with pytest.raises(TypeError, match="no Triton type"):
        run_kernel(out_of_bounds_kernel, 1, [np.zeros(4, np.complex64)], {"N": 4})


def test_statistics():
    x, z = np.zeros(2048, np.float32), np.zeros(2048, np.float32)
    stats = run_kernel(cumsum_kernel, 2, [x, z], {"N": 1024, "REV": False})
    assert stats.executed["shuffle"] == stats.static["shuffle"] * 4 * 2
    assert stats.static["barrier"] >= 1 and stats.static["global_store"] == 2
