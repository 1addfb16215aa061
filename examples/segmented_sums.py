"""Sums within segments, from the right and from the left, each the gradient of the other.

starts[t] is set where a segment begins.  From the left, y[t] is the sum of x from its segment's
first element to t; from the right, from t to its segment's last, which is where starts[t+1] is set.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Iterator, Sequence

import numpy as np
import runner
import triton
import triton.language as tl
from runner import Array, Comparison, Function, Place, empty, launch, require, stacked, steps

BLOCK = 1024


@triton.jit
def segmented_add(flag1, sum1, flag2, sum2):
    """Add what comes later in the direction, unless it begins a segment."""
    return flag1 | flag2, tl.where(flag2, sum2, sum1 + sum2)


@triton.jit
def segmented_kernel(x_ptr, starts_ptr, y_ptr, length, REVERSE: tl.constexpr, BLOCK: tl.constexpr):
    """Write the sums of one row a program, tile by tile in the direction.

    x_ptr, y_ptr, starts_ptr: (rows, length), contiguous.  Floats are summed in fp32, integers in
    their own type.
    """
    sum_type: tl.constexpr = (
        tl.float32 if x_ptr.dtype.element_ty.is_floating() else x_ptr.dtype.element_ty
    )
    row = tl.program_id(0).to(tl.int64) * length
    j = tl.arange(0, BLOCK)
    # The element met last, whose sum goes on in the next tile; and in reverse a segment begins, in
    # the direction, one element before the next one's first.
    edge: tl.constexpr = 0 if REVERSE else BLOCK - 1
    ahead: tl.constexpr = 1 if REVERSE else 0
    carry = tl.full((), 0, sum_type)
    tiles = tl.cdiv(length, BLOCK)
    for k in range(tiles):
        i = (tiles - 1 - k if REVERSE else k) * BLOCK + j
        x = tl.load(x_ptr + row + i, mask=i < length, other=0).to(sum_type)
        begins = tl.load(starts_ptr + row + i + ahead, mask=i + ahead < length, other=0) != 0
        begun, y = tl.associative_scan((begins, x), 0, segmented_add, reverse=REVERSE)
        y = tl.where(begun, y, carry + y)
        tl.store(y_ptr + row + i, y, mask=i < length)
        carry = tl.sum(tl.where(j == edge, y, tl.zeros_like(y)), 0)


class SegmentedSum(Function):
    """Differentiable sums of x within the segments of starts, (..., L), along the last axis."""

    @staticmethod
    def forward(ctx, x: Array, starts: Array, reverse: bool, block: int = BLOCK) -> Array:
        x = require("x", x, x.shape, ("float16", "bfloat16", "float32", "int32", "int64"))
        starts = require("starts", starts, x.shape, ("bool", "uint8", "int32", "int64"))
        y = empty(x, x.shape)
        rows, length = math.prod(x.shape[:-1]), x.shape[-1]
        launch(segmented_kernel, (rows,))(x, starts, y, length, REVERSE=reverse, BLOCK=block)
        ctx.save_for_backward(starts)
        ctx.reverse, ctx.block = reverse, block
        return y

    @staticmethod
    def backward(ctx, dy: Array) -> tuple[Array | None, ...]:
        (starts,) = ctx.saved_tensors
        return SegmentedSum.apply(dy, starts, not ctx.reverse, ctx.block), None, None, None


def segmented_sum(x: Array, starts: Array, reverse: bool = False) -> Array:
    """Return the sums of x within its segments, from the left or (reverse) from the right.

    x: (..., L) of fp16, bf16, fp32, int32 or int64, with any L; starts: the same shape, bool or
    integer, nonzero where a segment begins.  Differentiable in x.
    """
    return SegmentedSum.apply(x, starts, reverse)


# ---- the check


def reference(reverse: bool, xp, x: Array, starts: Array) -> Array:
    """Return the sums, step by step; `xp` is numpy or torch."""
    first = xp.roll(starts, -1, -1) if reverse else starts
    pairs = list(zip(steps(xp, x), steps(xp, first), strict=True))
    total, sums = 0, []
    for column, begins in reversed(pairs) if reverse else pairs:
        total = xp.where(begins, column, total + column)
        sums.append(total)
    return stacked(xp, sums[::-1] if reverse else sums, x)


def inputs(rows: int, length: int) -> tuple[np.ndarray, ...]:
    """Return x, starts and dy; segments have about 30 elements."""
    rng = np.random.default_rng(length)
    x, dy = (rng.standard_normal((rows, length), np.float32) for _ in range(2))
    return x, rng.random((rows, length)) < 1 / 30, dy


def check(place: Place, length: int, block: int) -> Iterator[Comparison]:
    x, starts, dy = inputs(4096 if place.gpu else 2, length)
    for reverse in (True, False):
        right = functools.partial(reference, reverse)
        (y,), (dx,) = place.gradients(SegmentedSum, [x, starts], [dy], reverse, block)
        (right_y,), (right_dx,) = place.reference_gradients(right, [x, starts], [dy])
        name = "reverse" if reverse else "forward"
        yield f"{name} y", y, right_y
        yield f"{name} dx", dx, right_dx
    counts = (x * 100).astype(np.int32)
    y = place.get(SegmentedSum.apply(place.put(counts), place.put(starts), True, block))
    yield "reverse int32", y, reference(True, np, counts, starts)


def measure(place: Place) -> Iterator[tuple[str, object]]:
    x, starts, _ = map(place.put, inputs(4096, 4113))
    yield "from the right, 4096 rows of 4113 fp32", lambda: segmented_sum(x, starts, reverse=True)
    yield "from the left", lambda: segmented_sum(x, starts)

    def with_flips() -> Array:
        ends = starts.roll(-1, -1).flip(-1)  # where a segment ends, seen from the right
        return segmented_sum(x.flip(-1), ends).flip(-1)

    yield "from the right by flips around the kernel from the left", with_flips


def main(argv: Sequence[str] | None = None) -> int:
    return runner.main(__doc__, check, measure, BLOCK, argv=argv)


if __name__ == "__main__":
    sys.exit(main())
