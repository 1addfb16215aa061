"""Stands in for an H200 on a machine without one: clients' kernels are compiled for sm_90, and run
in the simulator or not at all.

`install(simulate)` changes triton's driver, its launch, and what clients ask torch.cuda, for the
rest of the process.  Tensors live on the CPU.
"""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import triton
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.runtime.errors import OutOfResources
from triton.runtime.jit import JITFunction

SHARED = 232448
PROPERTIES = SimpleNamespace(
    name="NVIDIA H200",
    major=9,
    minor=0,
    multi_processor_count=132,
    shared_memory_per_block=49152,
    shared_memory_per_block_optin=SHARED,
    total_memory=141 << 30,
)


class Driver:
    """What triton's runtime and the clients ask a driver."""

    utils = SimpleNamespace(
        get_device_properties=lambda device: {
            "max_shared_mem": SHARED,
            "multiprocessor_count": PROPERTIES.multi_processor_count,
            "warpSize": 32,
        }
    )

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cpu")

    def get_benchmarker(self) -> Any:
        def once(call: Any, quantiles: Any) -> list[float]:
            call()
            return [1.0] * 3

        return once


def _array(tensor: Tensor) -> np.ndarray:
    """The memory from a tensor's first element to its storage's end, for the simulator."""
    size = tensor.untyped_storage().nbytes() // tensor.element_size() - tensor.storage_offset()
    flat = torch.as_strided(tensor.detach(), (size,), (1,), tensor.storage_offset())
    if tensor.dtype == torch.bfloat16:
        flat = flat.view(torch.uint16)
    return flat.numpy()


def _simulate(function: JITFunction, kernel: Any, grid: Any, args: tuple, kwargs: dict) -> None:
    from triton.tools.ptx_sim import run_compiled

    values = {p.name: p.default for p in function.params if p.has_default}
    values |= dict(zip(function.arg_names, args, strict=False))
    values |= {n: v for n, v in kwargs.items() if n in function.arg_names}
    grid = grid(values) if callable(grid) else grid
    kept = [values[n] for n, kind in kernel.src.signature.items() if kind != "constexpr"]
    run_compiled(kernel, tuple(grid), [_array(v) if isinstance(v, Tensor) else v for v in kept])


def install(simulate: bool) -> None:
    """Also lets kernels that need more shared memory than there is fail as on the GPU."""
    triton.runtime.driver.set_active(Driver())
    run = JITFunction.run

    def run_without_gpu(
        function: JITFunction, *args: Any, grid: Any, warmup: bool, **kwargs: Any
    ) -> Any:
        kernel = run(function, *args, grid=grid, warmup=True, **kwargs)
        if kernel.metadata.shared > SHARED:
            raise OutOfResources(kernel.metadata.shared, SHARED, "shared memory")
        if simulate and not warmup:
            _simulate(function, kernel, grid, args, kwargs)
        return kernel

    JITFunction.run = run_without_gpu
    torch.cuda.get_device_name = lambda device=None: PROPERTIES.name
    torch.cuda.get_device_capability = lambda device=None: (PROPERTIES.major, PROPERTIES.minor)
    torch.cuda.get_device_properties = lambda device=None: PROPERTIES
    torch.cuda.current_device = lambda: 0
    torch.cuda.device_count = lambda: 1
    torch.cuda.device = lambda device=None: contextlib.nullcontext()
