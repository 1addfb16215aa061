"""The linear recurrence h[t] = a[t] h[t-1] + b[t]; its backward pass is one reverse scan.

With g[t] the gradient of h[t], all later steps included, and dh[t] what the loss adds at t,

    g[t] = dh[t] + a[t+1] g[t+1],    db[t] = g[t],    da[t] = g[t] h[t-1],    dh[-1] = a[0] g[0]:

the same recurrence, from the right, with the coefficients of the next step.
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
DTYPES = ("float16", "bfloat16", "float32")


@triton.jit
def affine(a1, b1, a2, b2):
    """Compose h -> a1 h + b1 with h -> a2 h + b2, which comes later in the direction."""
    return a2 * a1, a2 * b1 + b2


@triton.jit
def forward_kernel(a_ptr, b_ptr, h0_ptr, h_ptr, length, BLOCK: tl.constexpr):
    """Walk one row a program, from the left.

    a_ptr, b_ptr, h_ptr: (rows, length), h0_ptr: (rows,) or None for zeros; contiguous.
    """
    row = tl.program_id(0)
    start = row.to(tl.int64) * length
    carry = 0.0 if h0_ptr is None else tl.load(h0_ptr + row).to(tl.float32)
    j = tl.arange(0, BLOCK)
    for tile in range(0, length, BLOCK):
        i = tile + j
        a = tl.load(a_ptr + start + i, mask=i < length, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + start + i, mask=i < length, other=0.0).to(tl.float32)
        # The carry comes in behind the scan, so that a tile's scan need not wait for the last one.
        decay, h = tl.associative_scan((a, b), 0, affine)
        h += decay * carry
        tl.store(h_ptr + start + i, h, mask=i < length)
        carry = tl.sum(tl.where(j == BLOCK - 1, h, 0.0), 0)


@triton.jit
def backward_kernel(
    a_ptr, h0_ptr, h_ptr, dh_ptr, da_ptr, db_ptr, dh0_ptr, length, BLOCK: tl.constexpr
):
    """Walk one row a program, from the right: the tile that reaches beyond the end is the first.

    Shapes as in forward_kernel; each gradient has its input's.
    """
    row = tl.program_id(0)
    start = row.to(tl.int64) * length
    h0 = 0.0 if h0_ptr is None else tl.load(h0_ptr + row).to(tl.float32)
    carry = 0.0  # g at the first position of the tile on the right
    j = tl.arange(0, BLOCK)
    for tile in range((tl.cdiv(length, BLOCK) - 1) * BLOCK, -1, -BLOCK):
        i = tile + j
        a_next = tl.load(a_ptr + start + i + 1, mask=i + 1 < length, other=0.0).to(tl.float32)
        dh = tl.load(dh_ptr + start + i, mask=i < length, other=0.0).to(tl.float32)
        decay, g = tl.associative_scan((a_next, dh), 0, affine, reverse=True)
        g += decay * carry
        before = tl.load(h_ptr + start + i - 1, mask=(i > 0) & (i < length), other=0.0)
        before = tl.where(i == 0, h0, before.to(tl.float32))
        tl.store(da_ptr + start + i, g * before, mask=i < length)
        tl.store(db_ptr + start + i, g, mask=i < length)
        carry = tl.sum(tl.where(j == 0, g, 0.0), 0)
    if dh0_ptr is not None:
        first = tl.load(a_ptr + start, mask=length > 0, other=0.0).to(tl.float32)
        tl.store(dh0_ptr + row, first * carry)


class LinearRecurrence(Function):
    """Differentiable h of a, b: (..., L) and h0: (...) or None, along the last axis."""

    @staticmethod
    def forward(ctx, a: Array, b: Array, h0: Array | None, block: int = BLOCK) -> Array:
        a = require("a", a, a.shape, DTYPES)
        b = require("b", b, a.shape, DTYPES)
        if h0 is not None:
            h0 = require("h0", h0, a.shape[:-1], DTYPES)
        h = empty(b, b.shape)
        rows, length = math.prod(a.shape[:-1]), a.shape[-1]
        launch(forward_kernel, (rows,))(a, b, h0, h, length, BLOCK=block)
        ctx.save_for_backward(a, h0, h)
        ctx.block = block
        return h

    @staticmethod
    def backward(ctx, dh: Array) -> tuple[Array | None, ...]:
        a, h0, h = ctx.saved_tensors
        dh = require("dh", dh, h.shape, DTYPES)
        da, db = empty(a, a.shape), empty(h, h.shape)
        dh0 = None if h0 is None else empty(h0, h0.shape)
        rows, length = math.prod(a.shape[:-1]), a.shape[-1]
        launch(backward_kernel, (rows,))(a, h0, h, dh, da, db, dh0, length, BLOCK=ctx.block)
        return da, db, dh0, None


def linear_recurrence(a: Array, b: Array, h0: Array | None = None) -> Array:
    """Return h[..., t] = a[..., t] h[..., t-1] + b[..., t] with h[..., -1] = h0 or 0.

    a, b: (..., L) with any L, h0: (...); fp16, bf16 or fp32, combined in fp32, and h in b's dtype.
    Differentiable in all three.
    """
    return LinearRecurrence.apply(a, b, h0)


# ---- the check


def reference(xp, a: Array, b: Array, h0: Array) -> Array:
    h, all_h = h0, []
    for at, bt in zip(steps(xp, a), steps(xp, b), strict=True):
        h = at * h + bt
        all_h.append(h)
    return stacked(xp, all_h, a * b)


def inputs(rows: int, length: int) -> list[np.ndarray]:
    """Return a, b, h0 and dh."""
    rng = np.random.default_rng(length)
    a = rng.uniform(-0.5, 1, (rows, length)).astype(np.float32)
    b, dh = (rng.standard_normal((rows, length), np.float32) for _ in range(2))
    return [a, b, rng.standard_normal(rows, np.float32), dh]


def check(place: Place, length: int, block: int) -> Iterator[Comparison]:
    *arrays, dh = inputs(4096 if place.gpu else 2, length)
    (h,), gradients = place.gradients(LinearRecurrence, arrays, [dh], block)
    (right_h,), right = place.reference_gradients(reference, arrays, [dh])
    yield "h", h, right_h
    yield from zip(("da", "db", "dh0"), gradients, right, strict=True)


def measure(place: Place) -> Iterator[tuple[str, object]]:
    a, b, h0, dh = map(place.put, inputs(4096, 4113))
    h = linear_recurrence(a, b, h0)
    gradients = [empty(x, x.shape) for x in (a, b, h0)]
    yield (
        "forward, 4096 rows of 4113 fp32",
        lambda: launch(forward_kernel, (4096,))(a, b, h0, h, 4113, BLOCK=BLOCK),
    )
    yield (
        "backward",
        lambda: launch(backward_kernel, (4096,))(a, h0, h, dh, *gradients, 4113, BLOCK=BLOCK),
    )

    def with_flips() -> tuple[Array, Array]:
        a_next = runner.torch.nn.functional.pad(a[:, 1:], (0, 1))
        g = linear_recurrence(a_next.flip(-1), dh.flip(-1)).flip(-1)
        return g * runner.torch.cat((h0[:, None], h[:, :-1]), -1), a[:, 0] * g[:, 0]

    yield "the same gradients by flips around the forward kernel", with_flips


def main(argv: Sequence[str] | None = None) -> int:
    return runner.main(__doc__, check, measure, BLOCK, argv=argv)


if __name__ == "__main__":
    sys.exit(main())
