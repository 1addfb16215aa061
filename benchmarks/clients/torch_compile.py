"""What torch.compile makes of scans.  Its code generator never asks for reverse=True: it flips."""

from __future__ import annotations

from collections.abc import Callable

import torch
from cases import Case, Draw, Problem
from references import in_float64, recurrence
from torch import Tensor

SHAPES = {"check": (64, 3000), "time": (16384, 4096)}
# A single row is cut into blocks that look back at one another's sums.
ONE_ROW = {"check": (1, 100003), "time": (1, 1 << 26)}


def _pair(left: tuple[Tensor, Tensor], right: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    return left[0] * right[0], left[1] * right[0] + right[1]


def _scan(gates: Tensor, tokens: Tensor, reverse: bool) -> Tensor:
    from torch._higher_order_ops.associative_scan import associative_scan

    return associative_scan(
        _pair, (gates, tokens), dim=1, reverse=reverse, combine_mode="pointwise"
    )[1]


def _case(
    name: str,
    function: Callable[..., Tensor],
    inputs: Callable[[Draw, tuple[int, ...]], dict[str, Tensor]],
    reference: Callable[..., Tensor] | None = None,
    shapes: dict[str, tuple[int, ...]] = SHAPES,
) -> Case:
    """`reference` is the function itself, uncompiled, unless given."""

    def build(device: torch.device, size: str) -> Problem:
        if device.type != "cuda":
            raise RuntimeError(f"torch.compile makes no Triton kernels for {device.type} tensors")
        drawn = inputs(Draw(device), shapes[size])
        torch._dynamo.reset()
        # Not one program with symbolic sizes for both.
        compiled = torch.compile(function, dynamic=False, fullgraph=True)

        def expected() -> dict:
            return {"output": (reference or function)(**in_float64(drawn))}

        return Problem(lambda: {"output": compiled(**drawn)}, expected)

    return Case("torch.compile", name, build, 1e-5)


def _normal(draw: Draw, shape: tuple[int, ...]) -> dict[str, Tensor]:
    return {"x": draw.normal(*shape)}


def _near_one(draw: Draw, shape: tuple[int, ...]) -> dict[str, Tensor]:
    return {"x": draw.uniform(*shape, low=0.999, high=1.001)}


def _gates(draw: Draw, shape: tuple[int, ...]) -> dict[str, Tensor]:
    return {"gates": draw.uniform(*shape, low=0.5, high=1.0), "tokens": draw.normal(*shape)}


CASES = [
    _case("cumsum", lambda x: x.cumsum(-1), _normal),
    _case("cumsum, one row", lambda x: x.cumsum(-1), _normal, shapes=ONE_ROW),
    _case("flip, cumsum, flip", lambda x: x.flip(-1).cumsum(-1).flip(-1), _normal),
    _case("cumprod", lambda x: x.cumprod(-1), _near_one),
    _case("logcumsumexp", lambda x: x.logcumsumexp(-1), _normal),
    _case(
        "associative_scan, recurrence",
        lambda gates, tokens: _scan(gates, tokens, False),
        _gates,
        recurrence,
    ),
    _case(
        "associative_scan, recurrence, reverse",
        lambda gates, tokens: _scan(gates, tokens, True),
        _gates,
        lambda gates, tokens: recurrence(gates.flip(-1), tokens.flip(-1)).flip(-1),
    ),
]
