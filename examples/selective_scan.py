"""Mamba's selective scan, forward and backward, over sequences of any length.

For each batch element and channel d, with N states n and delta > 0 (after an optional softplus):

    h[n,t] = exp(delta[t] A[d,n]) h[n,t-1] + delta[t] u[t] B[n,t]
    y[t]   = (sum over n of C[n,t] h[n,t] + D[d] u[t]) * silu(z[t])        the last factor optional

Forward, a program walks one channel from the left in tiles of BLOCK steps and saves the state that
enters each tile.  Backward goes from the right.  First, for each channel, a walk over the tiles
that leaves the gradient of the state that leaves each tile: decays and a sum, no scan.  With the
states and gradients at their edges known, all tiles are independent; each recomputes its states by
a forward scan and carries their gradients by a reverse one.

The gradients of B and C are sums over channels.  A program adds up GROUP channels in registers and
writes one partial sum a group; what is left to add is 1/GROUP of what there was.  So nothing needs
an atomic addition, and every run gives the same bits.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Sequence

import numpy as np
import runner
import triton
import triton.language as tl
from runner import (
    Array,
    Comparison,
    Function,
    Place,
    cast,
    empty,
    launch,
    require,
    stacked,
    steps,
)
from triton.language.extra import libdevice

BLOCK = 128  # steps of a tile
GROUP = 32  # channels of a program in the backward pass
WARPS = 4
DTYPES = ("float16", "bfloat16", "float32")
LOG2E = tl.constexpr(1.4426950408889634)


@triton.jit
def affine(a1, b1, a2, b2):
    """Compose h -> a1 h + b1 with h -> a2 h + b2, which comes later in the direction."""
    return a2 * a1, a2 * b1 + b2


@triton.jit
def load_steps(ptr, t, inside):
    """Load one row's steps in fp32, zeros outside."""
    return tl.load(ptr + t, mask=inside, other=0.0).to(tl.float32)


@triton.jit
def positive(delta, inside, SOFTPLUS: tl.constexpr):
    """Return the step sizes.  A step of size 0, which is what lies outside, keeps the state."""
    if SOFTPLUS:
        # log(1 + exp(delta)) without overflow, and without losing a small exp(delta)
        delta = tl.maximum(delta, 0.0) + libdevice.log1p(tl.exp(-tl.abs(delta)))
    return tl.where(inside, delta, 0.0)


@triton.jit
def sum_inside(x, inside, axis: tl.constexpr):
    """Add up a product between lanes.

    Without the select it would be fused into the first addition, in which each lane then rounds the
    other's product and not its own: their sums, and which of them is stored, could differ.
    """
    return tl.sum(tl.where(inside, x, 0.0), axis)


@triton.jit
def forward_kernel(
    u_ptr,
    delta_ptr,
    A_ptr,
    B_ptr,
    C_ptr,
    D_ptr,
    h0_ptr,
    z_ptr,
    y_ptr,
    last_ptr,
    entering_ptr,
    channels,
    length,
    SOFTPLUS: tl.constexpr,
    N: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Walk channel program_id(0) of batch element program_id(1) from the left.

    u_ptr, delta_ptr, z_ptr (or None), y_ptr: (batch, channels, length); A_ptr: (channels, N);
    B_ptr, C_ptr: (batch, N, length); D_ptr: (channels,); h0_ptr (or None for zeros), last_ptr:
    (batch, channels, N); entering_ptr (or None): (batch, channels, tiles, N), the
    state before each tile.
    """
    d, batch = tl.program_id(0), tl.program_id(1)
    channel = batch.to(tl.int64) * channels + d
    n, j = tl.arange(0, N), tl.arange(0, BLOCK)
    rate = tl.load(A_ptr + d * N + n) * LOG2E  # exp(delta A) is 2 to the delta * rate
    skip = tl.load(D_ptr + d)
    state = tl.zeros((N,), tl.float32)
    if h0_ptr is not None:
        state = tl.load(h0_ptr + channel * N + n)
    rows = (batch * N + n).to(tl.int64)[:, None] * length
    tiles = tl.cdiv(length, BLOCK)
    for tile in range(tiles):
        if entering_ptr is not None:
            tl.store(entering_ptr + (channel * tiles + tile) * N + n, state)
        t = tile * BLOCK + j
        inside = t < length
        u = load_steps(u_ptr + channel * length, t, inside)
        delta = positive(load_steps(delta_ptr + channel * length, t, inside), inside, SOFTPLUS)
        B = load_steps(B_ptr, rows + t[None, :], inside[None, :])
        C = load_steps(C_ptr, rows + t[None, :], inside[None, :])
        a = tl.exp2(delta[None, :] * rate[:, None])
        decay, h = tl.associative_scan((a, (delta * u)[None, :] * B), 1, affine)
        h += decay * state[:, None]
        y = sum_inside(h * C, inside[None, :], 0) + skip * u
        if z_ptr is not None:
            z = load_steps(z_ptr + channel * length, t, inside)
            y *= z * tl.sigmoid(z)
        tl.store(y_ptr + channel * length + t, y, mask=inside)
        # Beyond the end nothing changes the state, so this is the state after the last step, too.
        state = tl.sum(tl.where(j[None, :] == BLOCK - 1, h, 0.0), 1)
    tl.store(last_ptr + channel * N + n, state)


@triton.jit
def edges_kernel(
    delta_ptr,
    A_ptr,
    C_ptr,
    z_ptr,
    dy_ptr,
    dlast_ptr,
    leaving_ptr,
    dh0_ptr,
    channels,
    length,
    SOFTPLUS: tl.constexpr,
    N: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Walk channel program_id(0) of batch element program_id(1) from the right.

    dlast_ptr, dh0_ptr (or None): (batch, channels, N); leaving_ptr: (batch, channels, tiles, N),
    the gradient of the state after each tile; the others as in forward_kernel.
    """
    d, batch = tl.program_id(0), tl.program_id(1)
    channel = batch.to(tl.int64) * channels + d
    n, j = tl.arange(0, N), tl.arange(0, BLOCK)
    rate = tl.load(A_ptr + d * N + n) * LOG2E
    dstate = tl.load(dlast_ptr + channel * N + n)
    rows = (batch * N + n).to(tl.int64)[:, None] * length
    tiles = tl.cdiv(length, BLOCK)
    for tile in range(tiles - 1, -1, -1):
        tl.store(leaving_ptr + (channel * tiles + tile) * N + n, dstate)
        t = tile * BLOCK + j
        inside = t < length
        dy = load_steps(dy_ptr + channel * length, t, inside)
        if z_ptr is not None:
            z = load_steps(z_ptr + channel * length, t, inside)
            dy *= z * tl.sigmoid(z)
        delta = positive(load_steps(delta_ptr + channel * length, t, inside), inside, SOFTPLUS)
        C = load_steps(C_ptr, rows + t[None, :], inside[None, :])
        # What is left at t of the state that enters the tile: the decays' exponents add up.
        left = tl.exp2(tl.cumsum(delta, 0)[None, :] * rate[:, None])
        dstate = tl.exp2(tl.sum(delta, 0) * rate) * dstate
        dstate += sum_inside(left * C * dy[None, :], inside[None, :], 1)
    if dh0_ptr is not None:
        tl.store(dh0_ptr + channel * N + n, dstate)


@triton.jit
def backward_kernel(
    u_ptr,
    delta_ptr,
    A_ptr,
    B_ptr,
    C_ptr,
    D_ptr,
    z_ptr,
    dy_ptr,
    entering_ptr,
    leaving_ptr,
    du_ptr,
    ddelta_ptr,
    dA_ptr,
    dB_ptr,
    dC_ptr,
    dD_ptr,
    dz_ptr,
    channels,
    length,
    SOFTPLUS: tl.constexpr,
    N: tl.constexpr,
    BLOCK: tl.constexpr,
    GROUP: tl.constexpr,
):
    """Differentiate tile program_id(0) of the GROUP channels program_id(1) of a batch element.

    dA_ptr: (batch, tiles, channels, N) and dD_ptr: (batch, tiles, channels), to be added up over
    batch and tiles; dB_ptr, dC_ptr: (batch, groups, N, length), over groups; du_ptr, ddelta_ptr,
    dz_ptr (or None) like their inputs.
    """
    tile, group, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    tiles = tl.num_programs(0)
    n, j = tl.arange(0, N), tl.arange(0, BLOCK)
    t = tile * BLOCK + j
    inside = t < length
    # The gradient that enters from the right has crossed the last step's successor already.
    next_inside = (j + 1 < BLOCK) & (t + 1 < length)
    rows = (batch * N + n).to(tl.int64)[:, None] * length + t[None, :]
    B = load_steps(B_ptr, rows, inside[None, :])
    C = load_steps(C_ptr, rows, inside[None, :])
    dB = tl.zeros((N, BLOCK), tl.float32)
    dC = tl.zeros((N, BLOCK), tl.float32)
    for d in range(group * GROUP, min(group * GROUP + GROUP, channels)):
        channel = batch.to(tl.int64) * channels + d
        at = channel * length
        A = tl.load(A_ptr + d * N + n)
        rate = A * LOG2E
        skip = tl.load(D_ptr + d)
        u = load_steps(u_ptr + at, t, inside)
        raw = load_steps(delta_ptr + at, t, inside)
        delta = positive(raw, inside, SOFTPLUS)
        delta_next = load_steps(delta_ptr + at, t + 1, next_inside)
        delta_next = positive(delta_next, next_inside, SOFTPLUS)
        dy = load_steps(dy_ptr + at, t, inside)

        entering = tl.load(entering_ptr + (channel * tiles + tile) * N + n)
        fed = (delta * u)[None, :] * B
        a = tl.exp2(delta[None, :] * rate[:, None])
        decay, h = tl.associative_scan((a, fed), 1, affine)
        h += decay * entering[:, None]

        if z_ptr is not None:
            z = load_steps(z_ptr + at, t, inside)
            gate = tl.sigmoid(z)
            y = sum_inside(h * C, inside[None, :], 0) + skip * u
            dz = dy * y * gate * (1.0 + z * (1.0 - gate))
            tl.store(dz_ptr + at + t, dz, mask=inside)
            dy *= z * gate

        leaving = tl.load(leaving_ptr + (channel * tiles + tile) * N + n)
        a_next = tl.exp2(delta_next[None, :] * rate[:, None])
        decay, dh = tl.associative_scan((a_next, dy[None, :] * C), 1, affine, reverse=True)
        dh += decay * leaving[:, None]

        dB += dh * (delta * u)[None, :]
        dC += h * dy[None, :]
        dfed = sum_inside(dh * B, inside[None, :], 0)
        # The exponent delta A has the gradient dh a[t] h[t-1]; a[t] h[t-1] is h less what t fed.
        dexponent = dh * (h - fed)
        ddelta = sum_inside(dexponent * A[:, None], inside[None, :], 0) + u * dfed
        if SOFTPLUS:
            ddelta *= tl.sigmoid(raw)
        tl.store(ddelta_ptr + at + t, ddelta, mask=inside)
        tl.store(du_ptr + at + t, delta * dfed + skip * dy, mask=inside)
        part = (batch.to(tl.int64) * tiles + tile) * channels + d
        tl.store(dA_ptr + part * N + n, sum_inside(dexponent * delta[None, :], inside[None, :], 1))
        tl.store(dD_ptr + part, sum_inside(dy * u, inside, 0))
    part = (batch * tl.num_programs(1) + group).to(tl.int64) * N
    sums = (part + n)[:, None] * length + t[None, :]
    tl.store(dB_ptr + sums, dB, mask=inside[None, :])
    tl.store(dC_ptr + sums, dC, mask=inside[None, :])


class SelectiveScan(Function):
    """(y, the state after the last step) of u, delta, A, B, C, D, h0, z; see selective_scan()."""

    @staticmethod
    def forward(
        ctx,
        u: Array,
        delta: Array,
        A: Array,
        B: Array,
        C: Array,
        D: Array,
        h0: Array | None,
        z: Array | None,
        softplus: bool = False,
        block: int = BLOCK,
        group: int = GROUP,
    ) -> tuple[Array, Array]:
        batch, channels, length = u.shape
        N = A.shape[-1]
        if N & (N - 1) or not N:
            raise ValueError(f"A has {N} states a channel; the number must be a power of two")
        u = require("u", u, u.shape, DTYPES)
        delta = require("delta", delta, u.shape, DTYPES)
        A = require("A", A, (channels, N))
        B = require("B", B, (batch, N, length), DTYPES)
        C = require("C", C, (batch, N, length), DTYPES)
        D = require("D", D, (channels,))
        if h0 is not None:
            h0 = require("h0", h0, (batch, channels, N))
        if z is not None:
            z = require("z", z, u.shape, DTYPES)
        tiles = triton.cdiv(length, block)
        y = empty(u, u.shape)
        last = empty(u, (batch, channels, N), "float32")
        entering = None
        if any(ctx.needs_input_grad):
            entering = empty(u, (batch, channels, tiles, N), "float32")
        launch(forward_kernel, (channels, batch))(
            *(u, delta, A, B, C, D, h0, z, y, last, entering, channels, length),
            SOFTPLUS=softplus,
            N=N,
            BLOCK=block,
            num_warps=WARPS,
        )
        ctx.save_for_backward(u, delta, A, B, C, D, h0, z, entering)
        ctx.softplus, ctx.block, ctx.group = softplus, block, group
        return y, last

    @staticmethod
    def backward(ctx, dy: Array, dlast: Array) -> tuple[Array | None, ...]:
        u, delta, A, B, C, D, h0, z, entering = ctx.saved_tensors
        batch, channels, tiles, N = entering.shape
        length = u.shape[-1]
        dy = require("dy", dy, u.shape, DTYPES)
        dlast = require("dlast", dlast, (batch, channels, N))
        sizes = {"SOFTPLUS": ctx.softplus, "N": N, "BLOCK": ctx.block, "num_warps": WARPS}
        leaving = empty(entering, entering.shape)
        dh0 = None if h0 is None else empty(h0, h0.shape)
        launch(edges_kernel, (channels, batch))(
            *(delta, A, C, z, dy, dlast, leaving, dh0, channels, length), **sizes
        )
        groups = triton.cdiv(channels, ctx.group)
        du, ddelta = empty(u, u.shape), empty(delta, u.shape)
        dz = None if z is None else empty(z, u.shape)
        dA = empty(A, (batch, tiles, channels, N))
        dD = empty(D, (batch, tiles, channels))
        dB = empty(u, (batch, groups, N, length), "float32")
        dC = empty(u, (batch, groups, N, length), "float32")
        launch(backward_kernel, (tiles, groups, batch))(
            *(u, delta, A, B, C, D, z, dy, entering, leaving),
            *(du, ddelta, dA, dB, dC, dD, dz, channels, length),
            **sizes,
            GROUP=ctx.group,
        )
        dA, dD = dA.sum((0, 1)), dD.sum((0, 1))
        dB, dC = cast(dB.sum(1), B), cast(dC.sum(1), C)
        return du, ddelta, dA, dB, dC, dD, dh0, dz, None, None, None


def selective_scan(
    u: Array,
    delta: Array,
    A: Array,
    B: Array,
    C: Array,
    D: Array,
    h0: Array | None = None,
    z: Array | None = None,
    softplus: bool = False,
) -> tuple[Array, Array]:
    """Return (y, last): y like u, and the state after the last step, (batch, channels, N) in fp32.

    u, delta, z: (batch, channels, L), B, C: (batch, N, L) in fp16, bf16 or fp32, with any L and N a
    power of two; A: (channels, N), D: (channels,), h0: (batch, channels, N) in fp32.  Without h0
    the first state is zero.  Computes in fp32.  Differentiable in all of them; needs A <= 0 and
    delta >= 0 (softplus=True makes it so), or states and gradients grow without bounds.
    """
    return SelectiveScan.apply(u, delta, A, B, C, D, h0, z, softplus)


# ---- the check


def reference(softplus: bool, xp, u, delta, A, B, C, D, h0=None, z=None) -> tuple[Array, Array]:
    if softplus:
        above = delta.real >= 0
        delta = xp.where(above, delta, 0 * delta) + xp.log1p(xp.exp(xp.where(above, -delta, delta)))
    rates, skip = A[..., None, :, :], D[..., None, :]
    h, all_y = (0 * u.sum(-1)[..., None] * rates if h0 is None else h0), []
    for ut, dt, Bt, Ct in zip(*(steps(xp, x) for x in (u, delta, B, C)), strict=True):
        h = xp.exp(dt[..., None] * rates) * h + (dt * ut)[..., None] * Bt[..., None, :]
        all_y.append((h * Ct[..., None, :]).sum(-1) + skip * ut)
    y = stacked(xp, all_y, u)
    return (y if z is None else y * z / (1 + xp.exp(-z))), h


def inputs(batch: int, channels: int, states: int, length: int) -> list[np.ndarray]:
    """Return u, delta, A, B, C, D, h0, z, dy and dlast."""
    rng = np.random.default_rng(length)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, np.float32)

    row, state = (batch, channels, length), (batch, channels, states)
    u, z, dy = (normal(*row) for _ in range(3))
    delta = normal(*row) - 3  # softplus makes about 0.05 of it, as in trained models
    A = -np.exp(normal(channels, states) + 0.5)
    B, C = (normal(batch, states, length) for _ in range(2))
    return [u, delta, A, B, C, normal(channels), normal(*state), z, dy, normal(*state)]


NAMES = ("du", "ddelta", "dA", "dB", "dC", "dD", "dh0", "dz")


def check(place: Place, length: int, block: int) -> Iterator[Comparison]:
    batch, channels, states = (4, 1024, 16) if place.gpu else (2, 3, 4)
    *arrays, dy, dlast = inputs(batch, channels, states, length)
    options = block, GROUP if place.gpu else 2
    yield from compare(place, arrays, (dy, dlast), True, options, "")
    if place.gpu:
        first, again = (
            place.gradients(SelectiveScan, arrays, (dy, dlast), True, *options)[1] for _ in "12"
        )
        differ = sum((x != y).sum() for x, y in zip(first, again, strict=True))
        yield "other bits in a second run", np.array([differ]), np.array([0])
    # The least: delta as it is, the first state zero, no gate.
    arrays[1] = np.log1p(np.exp(arrays[1]))
    yield from compare(place, [*arrays[:6], None, None], (dy, dlast), False, options, "plain ")


def compare(place, arrays, cotangents, softplus, options, prefix) -> Iterator[Comparison]:
    results, gradients = place.gradients(SelectiveScan, arrays, cotangents, softplus, *options)
    right, right_gradients = place.reference_gradients(
        functools.partial(reference, softplus), arrays, cotangents
    )
    names = ("y", "last", *(n for n, x in zip(NAMES, arrays, strict=True) if x is not None))
    for name, got, wanted in zip(names, results + gradients, right + right_gradients, strict=True):
        yield prefix + name, got, wanted


def measure(place: Place) -> Iterator[tuple[str, object]]:
    for length in (4096, 4113):
        *arrays, dy, dlast = map(place.put, inputs(4, 1024, 16, length))
        leaves = [x.requires_grad_() for x in arrays]
        results = selective_scan(*leaves, softplus=True)
        shape = f"batch 4, 1024 channels, 16 states, {length} steps, fp32"
        yield f"forward, {shape}", functools.partial(selective_scan, *leaves, softplus=True)
        yield (
            "backward",
            functools.partial(
                runner.torch.autograd.grad, results, leaves, (dy, dlast), retain_graph=True
            ),
        )


def main(argv: Sequence[str] | None = None) -> int:
    # tl.exp is up to 2 ulp off, on a GPU mostly the same way, and a state keeps the errors of as
    # many decays as it remembers steps.
    return runner.main(__doc__, check, measure, BLOCK, tolerance=1e-4, argv=argv)


if __name__ == "__main__":
    sys.exit(main())
