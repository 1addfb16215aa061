"""What is run of each client, on which inputs, and what it has to agree with.

A case builds its problem at one of three sizes: "check" (compared with float64; lengths that no
chunk divides), "time" (what training has) and "tiny" (a machine without a GPU).
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Results = dict[str, Tensor]


@dataclass(frozen=True)
class Problem:
    """`run` computes on the device what is timed and compared; `reference` the same in float64
    (`None` for "time")."""

    run: Callable[[], Results]
    reference: Callable[[], Results] | None = None


@dataclass(frozen=True)
class Case:
    """`build(device, size)` imports the client.  A result may differ from the reference by
    `tolerance`, root mean square over root mean square.  Cases with one `group` solve the same
    problem and are compared with one another.  `knob` is False where no scan of Triton's runs,
    `slow` is set where preparing takes long."""

    client: str
    name: str
    build: Callable[[torch.device, str], Problem]
    tolerance: float
    group: str = ""
    knob: bool = True
    slow: bool = False

    def __str__(self) -> str:
        return f"{self.client}: {self.name}"


class Draw:
    """Random inputs, the same in every process on one kind of device."""

    def __init__(self, device: torch.device, seed: int = 0):
        self.generator = torch.Generator(device).manual_seed(seed)

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        device = self.generator.device
        return torch.randn(shape, generator=self.generator, device=device).to(dtype)

    def uniform(self, *shape: int, low: float, high: float) -> Tensor:
        device = self.generator.device
        return low + (high - low) * torch.rand(shape, generator=self.generator, device=device)

    def unit(self, *shape: int, dtype: torch.dtype) -> Tensor:
        """Vectors of length one along the last dimension."""
        return torch.nn.functional.normalize(self.normal(*shape), dim=-1).to(dtype)

    def log_decay(self, *shape: int) -> Tensor:
        """Logarithms of decay factors, between -1 and a little below 0."""
        return self.uniform(*shape, low=-1.0, high=-0.01)


def all_cases() -> list[Case]:
    """Every client's, those that are slow to prepare first."""
    modules = ("mamba", "fla_ops", "fla_cumsum", "torch_compile", "accelerated")
    cases = [case for name in modules for case in importlib.import_module(name).CASES]
    return sorted(cases, key=lambda case: not case.slow)
