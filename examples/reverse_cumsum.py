"""Reverse cumulative sums, y[t] = x[t] + x[t+1] + ... + x[L-1], and why not total - cumsum(x) + x.

The gradient of a cumulative sum is the reverse one of its gradient, and the other way round.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence

import numpy as np
import runner
import triton
import triton.language as tl
from runner import Array, Comparison, Function, Place, empty, launch, require

BLOCK = 1024


@triton.jit
def cumsum_kernel(x_ptr, y_ptr, length, REVERSE: tl.constexpr, BLOCK: tl.constexpr):
    """Write the sums of one row a program, tile by tile in the direction.

    x_ptr, y_ptr: (rows, length), contiguous; fp16, bf16 or fp32, summed in fp32.
    """
    row = tl.program_id(0).to(tl.int64) * length
    carry = 0.0  # the sum of the tiles so far
    tiles = tl.cdiv(length, BLOCK)
    for k in range(tiles):
        # In reverse the tile that reaches beyond the end is the first: the zeros there are right.
        i = (tiles - 1 - k if REVERSE else k) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + i, mask=i < length, other=0.0).to(tl.float32)
        y = carry + tl.cumsum(x, 0, reverse=REVERSE)
        tl.store(y_ptr + row + i, y, mask=i < length)
        carry += tl.sum(x, 0)


class Cumsum(Function):
    """Differentiable cumulative sums of x, (..., L), along the last axis."""

    @staticmethod
    def forward(ctx, x: Array, reverse: bool, block: int = BLOCK) -> Array:
        ctx.reverse, ctx.block = reverse, block
        x = require("x", x, x.shape, ("float16", "bfloat16", "float32"))
        y = empty(x, x.shape)
        length = x.shape[-1]
        rows = math.prod(x.shape[:-1])
        launch(cumsum_kernel, (rows,))(x, y, length, REVERSE=reverse, BLOCK=block)
        return y

    @staticmethod
    def backward(ctx, dy: Array) -> tuple:
        return Cumsum.apply(dy, not ctx.reverse, ctx.block), None, None


def reverse_cumsum(x: Array) -> Array:
    """Return y[..., t] = x[..., t] + ... + x[..., L-1] for fp16, bf16 or fp32; differentiable."""
    return Cumsum.apply(x, True)


# ---- the check


def reference(xp, x: Array) -> Array:
    return xp.flip(xp.cumsum(xp.flip(x, (-1,)), -1), (-1,))


def check(place: Place, length: int, block: int) -> Iterator[Comparison]:
    rows = 4096 if place.gpu else 2
    rng = np.random.default_rng(length)
    x, dy = (rng.standard_normal((rows, length), np.float32) for _ in range(2))
    (y,), (dx,) = place.gradients(Cumsum, [x], [dy], True, block)
    (right,), (right_dx,) = place.reference_gradients(reference, [x], [dy])
    yield "y", y, right
    yield "dx", dx, right_dx

    # Values that fall to a millionth: the sums at the end are small, the total is not.
    x = rng.uniform(0.5, 1, (rows, length)) * 1e-6 ** (np.arange(length) / max(length, 1))
    x = x.astype(np.float32)
    right = reference(np, x.astype(np.float64))
    y = place.get(Cumsum.apply(place.put(x), True, block))
    yield "y / right y", y / right, np.ones_like(right)
    sums = place.put(x).cumsum(-1)
    subtracted = place.get(sums[..., -1:] - sums) + x
    worst = np.abs(subtracted / right - 1).max(initial=0)
    print(f"length {length:5}, total - cumsum(x) + x would be off by {worst:.1e} of the value")


def measure(place: Place) -> Iterator[tuple[str, object]]:
    x = place.put(np.random.default_rng(0).standard_normal((4096, 4113), np.float32))
    yield "reverse_cumsum(x), x of 4096 rows of 4113 fp32", lambda: reverse_cumsum(x)
    yield "the forward sums", lambda: Cumsum.apply(x, False)
    yield "x.flip(-1).cumsum(-1).flip(-1)", lambda: x.flip(-1).cumsum(-1).flip(-1)


def main(argv: Sequence[str] | None = None) -> int:
    return runner.main(__doc__, check, measure, BLOCK, argv=argv)


if __name__ == "__main__":
    sys.exit(main())
