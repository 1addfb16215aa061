"""Generalized advantage estimation over batches of rollouts, with episodes that end inside them.

The advantages are a recurrence from the right on the temporal differences,

    adv[t] = e[t] + gamma lambda adv[t+1],    e[t] = r[t] + gamma V[t+1] - V[t],

which starts anew where an episode ends: done[t] drops both V[t+1] and adv[t+1].
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import numpy as np
import runner
import triton
import triton.language as tl
from runner import Array, Comparison, Place, empty, launch, require

ROWS, BLOCK = 4, 256  # a tile's environments and steps


@triton.jit
def affine_with_resets(a1, b1, a2, b2):
    """Compose v -> a1 v + b1 with v -> a2 v + b2, which comes later in the direction.

    An a2 of 0 drops b1 instead of multiplying it, as 0 times a NaN of another episode is NaN.
    """
    return a2 * a1, tl.where(a2 == 0, b2, a2 * b1 + b2)


@triton.jit
def gae_kernel(
    rewards_ptr,
    values_ptr,
    dones_ptr,
    advantages_ptr,
    returns_ptr,
    batch,
    length,
    gamma,
    lam,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Walk ROWS environments a program, from the right.

    rewards_ptr, dones_ptr, advantages_ptr, returns_ptr: (batch, length), dones of any integer type;
    values_ptr: (batch, length + 1), the last column the value of the state after the last step.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    exists = (row < batch)[:, None]
    start = row.to(tl.int64)[:, None] * length
    value_start = start + row[:, None]
    carry = tl.zeros((ROWS,), tl.float32)  # the first advantage of the tile on the right
    j = tl.arange(0, BLOCK)[None, :]
    for tile in range((tl.cdiv(length, BLOCK) - 1) * BLOCK, -1, -BLOCK):
        t = tile + j
        inside = exists & (t < length)
        reward = tl.load(rewards_ptr + start + t, mask=inside, other=0.0).to(tl.float32)
        value = tl.load(values_ptr + value_start + t, mask=inside, other=0.0).to(tl.float32)
        after = tl.load(values_ptr + value_start + t + 1, mask=inside, other=0.0).to(tl.float32)
        done = tl.load(dones_ptr + start + t, mask=inside, other=0) != 0
        error = reward + tl.where(done, 0.0, gamma * after) - value
        decay = tl.where(done, 0.0, gamma * lam)
        scanned = tl.associative_scan((decay, error), 1, affine_with_resets, reverse=True)
        _, advantage = affine_with_resets(0.0, carry[:, None], scanned[0], scanned[1])
        tl.store(advantages_ptr + start + t, advantage, mask=inside)
        tl.store(returns_ptr + start + t, advantage + value, mask=inside)
        carry = tl.sum(tl.where(j == 0, advantage, 0.0), 1)


def gae(
    rewards: Array,
    values: Array,
    dones: Array,
    gamma: float = 0.99,
    lam: float = 0.95,
    rows: int = ROWS,
    block: int = BLOCK,
) -> tuple[Array, Array]:
    """Return the advantages and the returns (advantages + values), (batch, T) like rewards.

    rewards: (batch, T); values: (batch, T + 1); in fp16, bf16 or fp32, with any T.
    dones: (batch, T), bool or integer: nonzero where the episode ends with this step.
    """
    floats = ("float16", "bfloat16", "float32")
    batch, length = rewards.shape
    rewards = require("rewards", rewards, rewards.shape, floats)
    values = require("values", values, (batch, length + 1), floats)
    dones = require("dones", dones, (batch, length), ("bool", "uint8", "int32", "int64"))
    advantages, returns = (empty(rewards, rewards.shape) for _ in range(2))
    launch(gae_kernel, (triton.cdiv(batch, rows),))(
        *(rewards, values, dones, advantages, returns, batch, length, float(gamma), float(lam)),
        ROWS=rows,
        BLOCK=block,
    )
    return advantages, returns


# ---- the check


def reference(xp, rewards: Array, values: Array, dones: Array, gamma: float, lam: float) -> Array:
    """Return the advantages, step by step; `xp` is numpy or torch."""
    advantages = xp.zeros_like(rewards)
    advantage = xp.zeros_like(rewards[:, 0]) if rewards.shape[1] else None
    for t in range(rewards.shape[1] - 1, -1, -1):
        goes_on = ~dones[:, t]
        error = rewards[:, t] + gamma * values[:, t + 1] * goes_on - values[:, t]
        advantage = error + gamma * lam * advantage * goes_on
        advantages[:, t] = advantage
    return advantages


def inputs(batch: int, length: int) -> tuple[np.ndarray, ...]:
    """Return rewards, values and dones; episodes have about 100 steps."""
    rng = np.random.default_rng(length)
    rewards = rng.standard_normal((batch, length), np.float32)
    values = rng.standard_normal((batch, length + 1), np.float32)
    return rewards, values, rng.random((batch, length)) < 0.01


def check(place: Place, length: int, block: int) -> Iterator[Comparison]:
    rewards, values, dones = inputs(1023 if place.gpu else 5, length)
    exact = [x.astype(np.float64) for x in (rewards, values)]
    advantages, returns = estimate(place, block, rewards, values, dones)
    right = reference(np, *exact, dones, 0.99, 0.95)
    yield "advantages", advantages, right
    yield "returns", returns, right + exact[1][:, :-1]

    # Where an episode ends nothing comes in from behind, not even NaN.
    middle = length // 2
    dones[:, middle : middle + 1] = True
    right = reference(np, *exact, dones, 0.99, 0.95)[:, : middle + 1]
    values[:, middle + 1 :] = np.nan
    yield "before NaN", estimate(place, block, rewards, values, dones)[0][:, : middle + 1], right


def estimate(place: Place, block: int, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    results = gae(*map(place.put, arrays), 0.99, 0.95, ROWS, block)
    return tuple(map(place.get, results))


def measure(place: Place) -> Iterator[tuple[str, object]]:
    rewards, values, dones = map(place.put, inputs(4096, 1041))
    yield "gae(), 4096 environments of 1041 steps, fp32", lambda: gae(rewards, values, dones)
    yield (
        "a loop over the steps in PyTorch",
        lambda: reference(runner.torch, rewards, values, dones, 0.99, 0.95),
    )


def main(argv: Sequence[str] | None = None) -> int:
    return runner.main(__doc__, check, measure, BLOCK, argv=argv)


if __name__ == "__main__":
    sys.exit(main())
