"""Cumulative log-sum-exp, y[t] = log(exp(x[0]) + ... + exp(x[t])), forward and backward, stable.

Forward, a sum s of exp(x - m) travels with the maximum m of its x.  Backward, the gradient

    dx[s] = exp(x[s] - y[s]) R[s],   R[s] = sum over t >= s of dy[t] exp(y[s] - y[t]),

is a linear recurrence from the right, R[s] = dy[s] + exp(y[s] - y[s+1]) R[s+1].  The scan carries y
and not the factor: a product of thousands of factors near 1 would add up the errors of as many exp,
while y[s] - y[t] takes one, however far t is.  As y never falls, all exponents are at most 0 and
nothing overflows, whatever the sign of dy.  An x of -inf adds nothing and has the gradient 0.
"""

from __future__ import annotations

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
def add_exp(m1, s1, m2, s2):
    """Add s1 exp(m1) and s2 exp(m2), with the larger m; equal ones may be infinite."""
    ratio = tl.where(m1 == m2, 1.0, tl.exp(-tl.abs(m1 - m2)))
    first = m1 >= m2
    return tl.where(first, m1, m2), tl.where(first, s1 + s2 * ratio, s1 * ratio + s2)


@triton.jit
def shrink(y_from, r, y_to):
    """Return exp(y_to - y_from) r, where y_from >= y_to; both may be -inf, and it is 0 then."""
    return tl.exp(y_to - tl.where(y_from == -float("inf"), 0.0, y_from)) * r


@triton.jit
def add_shrunk(y1, r1, y2, r2):
    """Add R as seen from y1 to what comes after it, on its left, as seen from y2 <= y1."""
    return y2, shrink(y1, r1, y2) + r2


@triton.jit
def forward_kernel(x_ptr, y_ptr, length, BLOCK: tl.constexpr):
    """Walk one row a program, from the left.

    x_ptr, y_ptr: (rows, length), contiguous; all in fp32, as a rounded y would be a factor exp of
    its error in the gradient.
    """
    start = tl.program_id(0).to(tl.int64) * length
    j = tl.arange(0, BLOCK)
    carry_m, carry_s = -float("inf"), 0.0
    for tile in range(0, length, BLOCK):
        i = tile + j
        x = tl.load(x_ptr + start + i, mask=i < length, other=-float("inf"))
        m, s = tl.associative_scan((x, tl.full((BLOCK,), 1.0, tl.float32)), 0, add_exp)
        m, s = add_exp(carry_m, carry_s, m, s)
        tl.store(y_ptr + start + i, m + tl.log(s), mask=i < length)
        carry_m = tl.max(m, 0)
        carry_s = tl.sum(tl.where(j == BLOCK - 1, s, 0.0), 0)


@triton.jit
def backward_kernel(x_ptr, y_ptr, dy_ptr, dx_ptr, length, BLOCK: tl.constexpr):
    """Walk one row a program, from the right: the tile that reaches beyond the end is the first.

    All arrays: (rows, length), contiguous, fp32.
    """
    start = tl.program_id(0).to(tl.int64) * length
    j = tl.arange(0, BLOCK)
    # What is beyond the end has R = 0, seen from a y that is above all others and no infinity.
    beyond = 3e38
    carry_y, carry = beyond, 0.0  # y and R at the first position of the tile on the right
    for tile in range((tl.cdiv(length, BLOCK) - 1) * BLOCK, -1, -BLOCK):
        i = tile + j
        x = tl.load(x_ptr + start + i, mask=i < length, other=-float("inf"))
        y = tl.load(y_ptr + start + i, mask=i < length, other=beyond)
        dy = tl.load(dy_ptr + start + i, mask=i < length, other=0.0)
        _, r = tl.associative_scan((y, dy), 0, add_shrunk, reverse=True)
        r += shrink(carry_y, carry, y)
        tl.store(dx_ptr + start + i, shrink(y, r, x), mask=i < length)
        carry_y = tl.min(y, 0)
        carry = tl.sum(tl.where(j == 0, r, 0.0), 0)


class LogCumSumExp(Function):
    """Differentiable y of x, (..., L), along the last axis."""

    @staticmethod
    def forward(ctx, x: Array, block: int = BLOCK) -> Array:
        x = require("x", x, x.shape)
        y = empty(x, x.shape)
        rows, length = math.prod(x.shape[:-1]), x.shape[-1]
        launch(forward_kernel, (rows,))(x, y, length, BLOCK=block)
        ctx.save_for_backward(x, y)
        ctx.block = block
        return y

    @staticmethod
    def backward(ctx, dy: Array) -> tuple[Array | None, ...]:
        x, y = ctx.saved_tensors
        dy = require("dy", dy, x.shape)
        dx = empty(x, x.shape)
        rows, length = math.prod(x.shape[:-1]), x.shape[-1]
        launch(backward_kernel, (rows,))(x, y, dy, dx, length, BLOCK=ctx.block)
        return dx, None


def logcumsumexp(x: Array) -> Array:
    """Return y[..., t] = log(exp(x[..., 0]) + ... + exp(x[..., t])), (..., L) of fp32, any L.

    Differentiable.  An infinite x makes y infinite from there on; with +inf the gradient is NaN.
    """
    return LogCumSumExp.apply(x)


# ---- the check


def reference(xp, x: Array) -> Array:
    """Return y, step by step; `xp` is numpy or torch."""
    y, all_y = None, []
    for column in steps(xp, x):
        if y is None:
            y = column
        else:
            first = y.real >= column.real
            high, low = xp.where(first, y, column), xp.where(first, column, y)
            y = high + xp.log1p(xp.exp(low - high))
        all_y.append(y)
    return stacked(xp, all_y, x)


def inputs(rows: int, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return x and dy."""
    rng = np.random.default_rng(length)
    return tuple(rng.standard_normal((rows, length), np.float32) for _ in range(2))


def check(place: Place, length: int, block: int) -> Iterator[Comparison]:
    x, dy = inputs(4096 if place.gpu else 2, length)
    (y,), (dx,) = place.gradients(LogCumSumExp, [x], [dy], block)
    (right,), (right_dx,) = place.reference_gradients(reference, [x], [dy])
    yield "y", y, right
    yield "dx", dx, right_dx

    # Values whose exp is 0 or infinite in fp32.
    wide, weights = x * 40, np.abs(dy)
    (y,), (dx,) = place.gradients(LogCumSumExp, [wide], [weights], block)
    (right,), (right_dx,) = place.reference_gradients(reference, [wide], [weights])
    yield "wide y", y, right
    yield "wide dx", dx, right_dx

    # Half of the elements are -inf, those at the front too; what -1e6 adds is 0 as well.
    absent = (np.arange(length) < 5) | (x < 0)
    (y,), (dx,) = place.gradients(
        LogCumSumExp, [np.where(absent, np.float32(-math.inf), x)], [dy], block
    )
    (right,), (right_dx,) = place.reference_gradients(
        reference, [np.where(absent, np.float32(-1e6), x)], [dy]
    )
    yield "-inf y", y, np.where(right < -1e5, -math.inf, right)
    yield "-inf dx", dx, np.where(absent, 0, right_dx)


def measure(place: Place) -> Iterator[tuple[str, object]]:
    torch = runner.torch
    x, dy = map(place.put, inputs(4096, 4113))
    x.requires_grad_()
    y, theirs = logcumsumexp(x), torch.logcumsumexp(x, -1)
    yield "forward, 4096 rows of 4113 fp32", lambda: logcumsumexp(x)
    yield "torch.logcumsumexp", lambda: torch.logcumsumexp(x, -1)
    yield "backward", lambda: torch.autograd.grad(y, x, dy, retain_graph=True)
    yield (
        "torch.logcumsumexp's backward",
        lambda: torch.autograd.grad(theirs, x, dy, retain_graph=True),
    )


def main(argv: Sequence[str] | None = None) -> int:
    # A y of 200 is rounded by 8e-6, and exp(x - y) by as much.
    return runner.main(__doc__, check, measure, BLOCK, tolerance=5e-5, argv=argv)


if __name__ == "__main__":
    sys.exit(main())
