"""What the clients' kernels compute, step by step in float64: slow, and no code of the clients'.

Tensors are laid out as the clients do: batch, time, head, then features.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def cumsum(x: Tensor, dim: int, reverse: bool, chunk: int = 0) -> Tensor:
    """Inclusive sums along `dim`, in the direction; with `chunk`, anew every so many elements."""
    if chunk:
        parts = x.split(chunk, dim)
        return torch.cat([cumsum(part, dim, reverse) for part in parts], dim)
    return x.flip(dim).cumsum(dim).flip(dim) if reverse else x.cumsum(dim)


def recurrence(gates: Tensor, tokens: Tensor) -> Tensor:
    """x[t] = gates[t] * x[t-1] + tokens[t] along the last dimension."""
    state, states = torch.zeros_like(tokens[..., 0]), []
    for gate, token in zip(gates.unbind(-1), tokens.unbind(-1), strict=True):
        state = gate * state + token
        states.append(state)
    return torch.stack(states, -1)


def linear_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    decay: Tensor,
    scale: float,
    *,
    beta: Tensor | None = None,
    bonus: Tensor | None = None,
    correction: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """Outputs q[t]·S[t] of a state S (keys by values) that is decayed and added to at every step.

    q, k: [B, T, H, K]; v: [B, T, H, V]; decay, in log: [B, T, H, K] or [B, T, H, 1].
    beta [B, T, H]: the delta rule; what the decayed state holds at k is taken off v first.
    bonus [H, K]: the output reads S[t-1] + bonus*k v instead of S[t] (RWKV-6).
    correction (a, b), [B, T, H, K] each: b (a·S[t-1]) is added as well (RWKV-7).
    """
    state = q.new_zeros(*k.shape[:1], *k.shape[2:], v.shape[-1])
    outputs = []
    for t in range(q.shape[1]):
        key, value = k[:, t], v[:, t]
        extra = 0
        if correction is not None:
            a, b = correction
            extra = _outer(b[:, t], _read(a[:, t], state))
        decayed = state * decay[:, t].exp()[..., None]
        if beta is not None:
            value = beta[:, t, :, None] * (value - _read(key, decayed))
        added = _outer(key, value)
        seen = state + bonus[..., None] * added if bonus is not None else None
        state = decayed + added + extra
        outputs.append(_read(q[:, t], state if seen is None else seen))
    return scale * torch.stack(outputs, 1)


def _outer(key: Tensor, value: Tensor) -> Tensor:
    return key[..., None] * value[..., None, :]


def _read(key: Tensor, state: Tensor) -> Tensor:
    return (key[..., None] * state).sum(-2)


def additive_gate(x: Tensor) -> tuple[Tensor, Tensor]:
    """exp(x - z) and z[t-1] - z[t], z the running log-sum-exp of x along time; [B, T, H, K]."""
    z = x.logcumsumexp(1)
    before = torch.cat((z[:, :1], z[:, :-1]), 1)
    return (x - z).exp(), before - z


def with_gradients(
    function: Callable[..., Tensor | tuple[Tensor, ...]],
    inputs: dict[str, Tensor],
    constant: tuple[str, ...] = (),
) -> Callable[[], dict[str, Tensor]]:
    """A function that returns the outputs and the gradients of all inputs but `constant`.

    The outputs' gradients are drawn once, in float32 whatever the type of the outputs, so that
    a reference gets the same.
    """
    leaves = {name: x.detach().clone().requires_grad_() for name, x in inputs.items()}
    for name in constant:
        leaves[name] = inputs[name]
    wanted = [name for name in leaves if name not in constant]
    drawn: list[Tensor] = []

    def run() -> dict[str, Tensor]:
        outputs = function(**leaves)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        if not drawn:
            for k, y in enumerate(outputs):
                generator = torch.Generator(y.device).manual_seed(k)
                gradient = torch.randn(y.shape, generator=generator, device=y.device)
                # Through the narrowest type that a client uses: exact in all of them.
                drawn.append(gradient.to(torch.bfloat16).to(y.dtype))
        gradients = torch.autograd.grad(outputs, [leaves[n] for n in wanted], drawn)
        found = {f"output {k}": y.detach() for k, y in enumerate(outputs)}
        found |= {f"d{n}": g for n, g in zip(wanted, gradients, strict=True)}
        return found

    return run


def in_float64(inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Complex inputs become complex128."""
    return {n: x.to(torch.promote_types(x.dtype, torch.float64)) for n, x in inputs.items()}
