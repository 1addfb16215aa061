"""fla-core's chunked kernels with scans, forward and backward, against step-by-step references."""

from __future__ import annotations

from collections.abc import Callable

import torch
from cases import Case, Draw, Problem
from references import in_float64, linear_attention, with_gradients
from torch import Tensor
from torch.nn.functional import logsigmoid

# Batch, time, heads, features.
SHAPES = {"check": (2, 1000, 8, 64), "time": (8, 8192, 8, 64), "tiny": (1, 70, 1, 32)}
BF16 = torch.bfloat16

Inputs = dict[str, Tensor]


def _case(
    name: str,
    inputs: Callable[[Draw, tuple[int, ...]], Inputs],
    client: Callable[[], Callable[..., Tensor]],
    reference: Callable[..., Tensor],
    tolerance: float = 2e-2,
) -> Case:
    """`client()` imports the op; both functions take the inputs by name and return the output."""

    def build(device: torch.device, size: str) -> Problem:
        drawn = inputs(Draw(device), SHAPES[size])
        run = with_gradients(client(), drawn)
        if size == "time":
            return Problem(run)
        return Problem(run, with_gradients(reference, in_float64(drawn)))

    return Case("fla-core", f"{name}, forward and backward", build, tolerance, slow=True)


def _qkv(draw: Draw, shape: tuple[int, ...], unit_keys: bool = False) -> Inputs:
    keys = draw.unit if unit_keys else draw.normal
    return {
        "q": draw.normal(*shape, dtype=BF16),
        "k": keys(*shape, dtype=BF16),
        "v": draw.normal(*shape, dtype=BF16),
    }


def _scale(q: Tensor) -> float:
    return q.shape[-1] ** -0.5


def _gla() -> Case:
    def client() -> Callable:
        from fla.ops.gla import chunk_gla

        return lambda q, k, v, g: chunk_gla(q, k, v, g)[0]

    return _case(
        "chunk_gla",
        lambda draw, shape: _qkv(draw, shape) | {"g": draw.log_decay(*shape)},
        client,
        lambda q, k, v, g: linear_attention(q, k, v, g, _scale(q)),
    )


def _simple_gla() -> Case:
    def client() -> Callable:
        from fla.ops.simple_gla import chunk_simple_gla

        return lambda q, k, v, g: chunk_simple_gla(q, k, v, g)[0]

    return _case(
        "chunk_simple_gla",
        lambda draw, shape: _qkv(draw, shape) | {"g": draw.log_decay(*shape[:3])},
        client,
        lambda q, k, v, g: linear_attention(q, k, v, g[..., None], _scale(q)),
    )


def _gated_delta_rule() -> Case:
    def client() -> Callable:
        from fla.ops.gated_delta_rule import chunk_gated_delta_rule

        return lambda q, k, v, g, beta: chunk_gated_delta_rule(q, k, v, g, beta)[0]

    def inputs(draw: Draw, shape: tuple[int, ...]) -> Inputs:
        return _qkv(draw, shape, unit_keys=True) | {
            "g": draw.log_decay(*shape[:3]),
            "beta": draw.uniform(*shape[:3], low=0.1, high=0.9).to(BF16),
        }

    return _case(
        "chunk_gated_delta_rule",
        inputs,
        client,
        lambda q, k, v, g, beta: linear_attention(q, k, v, g[..., None], _scale(q), beta=beta),
    )


def _kda() -> Case:
    def client() -> Callable:
        from fla.ops.kda import chunk_kda

        return lambda q, k, v, g, beta: chunk_kda(q, k, v, g, beta)[0]

    def inputs(draw: Draw, shape: tuple[int, ...]) -> Inputs:
        return _qkv(draw, shape, unit_keys=True) | {
            "g": draw.log_decay(*shape),
            "beta": draw.uniform(*shape[:3], low=0.1, high=0.9).to(BF16),
        }

    return _case(
        "chunk_kda",
        inputs,
        client,
        lambda q, k, v, g, beta: linear_attention(q, k, v, g, _scale(q), beta=beta),
    )


def _rwkv6() -> Case:
    def client() -> Callable:
        from fla.ops.rwkv6 import chunk_rwkv6

        return lambda q, k, v, g, u: chunk_rwkv6(q, k, v, g, u)[0]

    def inputs(draw: Draw, shape: tuple[int, ...]) -> Inputs:
        return _qkv(draw, shape) | {
            "g": draw.log_decay(*shape),
            "u": draw.normal(*shape[2:], dtype=BF16),
        }

    return _case(
        "chunk_rwkv6",
        inputs,
        client,
        lambda q, k, v, g, u: linear_attention(q, k, v, g, _scale(q), bonus=u),
    )


def _rwkv7() -> Case:
    """The generalized delta rule; its backward has a reverse cumsum in a kernel with products."""

    def client() -> Callable:
        from fla.ops.generalized_delta_rule import chunk_dplr_delta_rule

        return lambda q, k, v, g, a, b: chunk_dplr_delta_rule(q, k, v, a, b, g)[0]

    def inputs(draw: Draw, shape: tuple[int, ...]) -> Inputs:
        direction = draw.unit(*shape, dtype=torch.float32)
        return _qkv(draw, shape) | {
            "g": draw.log_decay(*shape),
            "a": (-direction).to(BF16),
            "b": (direction * draw.uniform(*shape, low=0.1, high=0.9)).to(BF16),
        }

    return _case(
        "chunk_dplr_delta_rule (RWKV-7)",
        inputs,
        client,
        lambda q, k, v, g, a, b: linear_attention(q, k, v, g, _scale(q), correction=(a, b)),
    )


def _stickbreaking() -> Case:
    """Reverse sums of rows of attention scores."""

    def client() -> Callable:
        from fla.ops.stickbreaking_attn import parallel_stickbreaking_attn

        return lambda q, k, v: parallel_stickbreaking_attn(q, k, v)[0]

    def reference(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * _scale(q)
        earlier = torch.ones_like(scores, dtype=torch.bool).tril(-1)
        kept = logsigmoid(-scores).masked_fill(~earlier, 0)
        after = kept.flip(-1).cumsum(-1).flip(-1) - kept
        weights = (logsigmoid(scores) + after).masked_fill(~earlier, float("-inf")).exp()
        return torch.einsum("bhqk,bkhd->bqhd", weights, v)

    return _case("parallel_stickbreaking_attn", _qkv, client, reference)


def _forgetting() -> Case:
    """Its gates are summed over the whole sequence, and their gradients from the right."""

    def client() -> Callable:
        from fla.ops.forgetting_attn import parallel_forgetting_attn

        return parallel_forgetting_attn

    def reference(q: Tensor, k: Tensor, v: Tensor, g: Tensor) -> Tensor:
        total = g.cumsum(1).transpose(1, 2)
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * _scale(q)
        scores = scores + total[..., :, None] - total[..., None, :]
        later = torch.ones_like(scores, dtype=torch.bool).triu(1)
        weights = scores.masked_fill(later, float("-inf")).softmax(-1)
        return torch.einsum("bhqk,bkhd->bqhd", weights, v)

    return _case(
        "parallel_forgetting_attn",
        lambda draw, shape: _qkv(draw, shape) | {"g": draw.log_decay(*shape[:3])},
        client,
        reference,
    )


CASES = [
    _kda(),
    _gated_delta_rule(),
    _rwkv7(),
    _gla(),
    _rwkv6(),
    _simple_gla(),
    _stickbreaking(),
    _forgetting(),
]
