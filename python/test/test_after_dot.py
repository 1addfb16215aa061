"""Scans and flips of what tl.dot computes, run in the simulator: operand types, tile sizes, axes.

The factors are small integers, so that products and sums are exact in every order.
"""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl
from scan_values import check, encode, fold

RNG = np.random.default_rng


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def affine(a1, b1, a2, b2):
    return a2 * a1, a2 * b1 + b2


@triton.jit
def after_dot(
    x, y, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, AXIS: tl.constexpr,
    WHAT: tl.constexpr, REVERSE: tl.constexpr,
):  # fmt: skip
    row, column, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(x + row[:, None] * K + inner[None, :])
    b = tl.load(y + inner[:, None] * N + column[None, :])
    z = tl.dot(a, b)
    if WHAT == "sum":
        z = tl.associative_scan(z, AXIS, add, reverse=REVERSE) - z
    elif WHAT == "pair":
        sign = tl.where(z > 0, 1, -1).to(z.dtype)
        sign, z = tl.associative_scan((sign, z), AXIS, affine, reverse=REVERSE)
        z = z * sign
    elif WHAT == "chain":
        # A product of the scanned product.
        z = tl.associative_scan(z, AXIS, add, reverse=REVERSE) % 4
        z = tl.dot(z.to(a.dtype), tl.trans(z.to(a.dtype)))
        z = tl.associative_scan(z, 1 - AXIS, add, reverse=REVERSE)
    elif WHAT == "flip":
        z = tl.flip(z, AXIS) + z
    else:
        z = tl.flip(tl.associative_scan(tl.flip(z, AXIS), AXIS, add, reverse=REVERSE), AXIS)
    tl.store(out + row[:, None] * N + column[None, :], z)


def wanted(z: np.ndarray, what: str, axis: int, reverse: bool) -> np.ndarray:
    """Return what the kernel makes of the product."""
    if what == "sum":
        return fold(np.add, [z], axis, reverse)[0] - z
    if what == "pair":
        sign = np.where(z > 0, 1, -1).astype(z.dtype)
        maps = fold(lambda a1, b1, a2, b2: (a2 * a1, a2 * b1 + b2), [sign, z], axis, reverse)
        return maps[0] * maps[1]
    if what == "chain":
        z = np.fmod(fold(np.add, [z], axis, reverse)[0], 4)
        return fold(np.add, [z @ z.T], 1 - axis, reverse)[0]
    if what == "flip":
        return np.flip(z, axis) + z
    return fold(np.add, [z], axis, not reverse)[0]


def check_product(dtype, m, n, k, axis, what, **options):
    """Check a product of [m, k] and [k, n], both directions."""
    x, y = (RNG(s).integers(-2, 3, shape) for s, shape in ((1, (m, k)), (2, (k, n))))
    out = np.zeros((m, n), np.int32 if dtype == "int8" else np.float32)

    def reference(x, y, reverse):
        z = x.astype(np.int64) @ y.astype(np.int64)
        return [wanted(z, what, axis, reverse)]

    check(
        after_dot,
        [encode(x, dtype), encode(y, dtype)],
        reference,
        axis=axis,
        outputs=[out],
        constexprs={"M": m, "N": n, "K": k, "AXIS": axis, "WHAT": what},
        mirrored=False,  # flipping the inputs does not flip their product
        **options,
    )


DTYPES = ("float16", "bf16", "float32", "int8")


@pytest.mark.parametrize("what", ["sum", "flip"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("capability", [80, 90])
def test_dtypes(capability, dtype, axis, what):
    """float32 is tf32 for tl.dot."""
    check_product(dtype, 64, 64, 32, axis, what, capability=capability)


@pytest.mark.parametrize("what", ["sum", "pair", "chain", "flip", "both"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("capability", [80, 90])
def test_programs(capability, axis, what):
    check_product("float16", 64, 64, 64, axis, what, capability=capability)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("m", "n"), [(16, 32), (64, 16), (128, 32)])
@pytest.mark.parametrize("num_warps", [1, 4, 8])
def test_sizes(num_warps, m, n, axis):
    """Tiles that fill wgmma's 64 rows and some that mma.sync gets."""
    check_product("float16", m, n, 32, axis, "sum", num_warps=num_warps)
