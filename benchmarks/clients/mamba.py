"""mamba-ssm's chunked kernels for Mamba-2 (ops/triton/ssd_*), forward and backward."""

from __future__ import annotations

import torch
from cases import Case, Draw, Problem
from references import in_float64, linear_attention, with_gradients
from torch import Tensor
from torch.nn.functional import softplus

CHUNK = 256
# Batch, time, heads, features of a head, states.
SHAPES = {
    "check": (2, 1000, 8, 64, 64),
    "time": (8, 4096, 16, 64, 64),
    "tiny": (1, 70, 4, 32, 16),
}


def _inputs(draw: Draw, size: str) -> dict[str, Tensor]:
    batch, time, heads, features, states = SHAPES[size]
    return {
        "x": draw.normal(batch, time, heads, features, dtype=torch.bfloat16),
        "dt": draw.normal(batch, time, heads),
        "A": draw.uniform(heads, low=-1.0, high=-0.1),
        "B": draw.normal(batch, time, 1, states, dtype=torch.bfloat16),
        "C": draw.normal(batch, time, 1, states, dtype=torch.bfloat16),
        "D": draw.normal(heads),
        "bias": draw.uniform(heads, low=-4.0, high=-2.0),
    }


def _reference(
    x: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor, bias: Tensor
) -> Tensor:
    steps = softplus(dt + bias)
    heads = x.shape[2]
    read, written = C.expand(-1, -1, heads, -1), B.expand(-1, -1, heads, -1)
    decay = (steps * A)[..., None]
    return linear_attention(read, written, x * steps[..., None], decay, 1.0) + D[:, None] * x


def _build(device: torch.device, size: str) -> Problem:
    from mamba_ssm.ops.triton.ssd_combined import mamba_chunk_scan_combined

    def client(x, dt, A, B, C, D, bias):
        return mamba_chunk_scan_combined(
            x, dt, A, B, C, CHUNK if size != "tiny" else 32, D=D, dt_bias=bias, dt_softplus=True
        )

    inputs = _inputs(Draw(device), size)
    run = with_gradients(client, inputs)
    if size == "time":
        return Problem(run)
    return Problem(run, with_gradients(_reference, in_float64(inputs)))


CASES = [
    # The gradients of A and bias are sums of some thousand terms of either sign, from bf16.
    Case("mamba-ssm", "mamba_chunk_scan_combined, forward and backward", _build, 5e-2, slow=True)
]
