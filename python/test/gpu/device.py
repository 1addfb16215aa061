"""Runs kernels on the CUDA GPU through the interface of the simulator.

`install()` puts launch() and run_compiled() of this module in the place of those of
triton.tools.ptx_sim; a test module imported after that runs its kernels on the GPU.

A buffer lies between two guards of GUARD bytes, so that a store outside of it is noticed; buffers
of read-only arrays must come back as they were.
"""

from __future__ import annotations

import functools
import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from triton import native_scan
from triton.backends.nvidia import ptxas_faults
from triton.tools.ptx_sim import Scratch

GUARD, PATTERN = 256, 0xA7
CAPABILITY = 90


class NoGpu(Exception):
    """There is nothing to run on; the text says what is missing."""


class GuardError(AssertionError):
    """A kernel wrote where it must not."""


def require() -> str:
    """Return the GPU's name.  Raises NoGpu."""
    try:
        import torch
    except ImportError as error:
        raise NoGpu(f"PyTorch is needed to run on a GPU, and cannot be imported: {error}") from None
    if not torch.cuda.is_available():
        raise NoGpu("there is no CUDA GPU that PyTorch can use")
    name = torch.cuda.get_device_name()
    if capability() != CAPABILITY:
        raise NoGpu(f"the checks are for compute capability 9.0, and this is {name}")
    return name


def capability() -> int:
    """Return the GPU's compute capability, such as 90."""
    import torch

    major, minor = torch.cuda.get_device_capability()
    return major * 10 + minor


class _Buffer:
    """A device copy of an array."""

    def __init__(self, array: np.ndarray):
        import torch

        self.array = array
        content = np.full(array.nbytes + 2 * GUARD, PATTERN, np.uint8)
        content[GUARD : GUARD + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view("u1")
        self.before = content
        self.memory = torch.from_numpy(content).cuda()

    def data_ptr(self) -> int:
        return self.memory.data_ptr() + GUARD

    def fetch(self, what: str) -> None:
        """Copy to the array.  Raises GuardError."""
        after = self.memory.cpu().numpy()
        inside = slice(GUARD, GUARD + self.array.nbytes)
        changed = after != self.before
        if self.array.flags.writeable:
            self.array.reshape(-1).view("u1")[...] = after[inside]
            changed[inside] = False
        if changed.any():
            at = int(np.flatnonzero(changed)[0]) - GUARD
            raise GuardError(f"{what}: byte {at} of {self.array.nbytes} was written to")


def _launch(where: tuple, size: tuple, scratch: list, types: list[str], values: list) -> None:
    """Launch a function; `where` is the grid's dimensions, the stream and the function."""
    from triton.backends.nvidia import driver as nvidia
    from triton.runtime import driver

    driver.active.utils.launch(
        *where,
        False,  # cooperative
        False,  # programmatic dependent launch
        size,
        None,
        None,
        None,
        *scratch,
        nvidia.annotate_arguments(types),
        nvidia.make_kernel_signature(types),
        tuple(values),
    )


def _launch_built_in(
    where: tuple, size: tuple, scratch: list, types: list[str], values: list
) -> None:
    """Do the same with the Triton of the source base, which compiles a launcher a signature."""
    num_warps, num_ctas, shared = size
    _launcher(tuple(types))(
        *where,
        False,
        False,
        *scratch,
        (num_warps, num_ctas, shared, num_ctas, 1, 1),  # a cluster lies along the first axis
        None,
        None,
        None,
        *values,
    )


@functools.cache
def _launcher(types: tuple[str, ...]):
    from triton.backends.nvidia import driver as nvidia

    source = nvidia.make_launcher({}, dict(enumerate(types)))
    return nvidia.compile_module_from_src(source, "__triton_launcher").launch


def _run(
    image: bytes, name: str, grid, args, num_warps: int, num_ctas: int, shared: int, scratch
) -> None:
    """Launch one kernel, whose last parameters are the scratch pointers that Triton adds.

    image: a cubin
    args: contiguous arrays, which are changed in place, and scalars, without the scratch pointers
    scratch: the bytes that each CTA needs behind these pointers
    """
    import torch
    from triton.runtime import driver
    from triton.tools.ptx_sim.dtypes import triton_type

    torch.cuda.init()
    buffers: dict[tuple[int, int], _Buffer] = {}  # an array that is passed twice is one buffer
    types, values = [], []
    for value in args:
        if isinstance(value, np.ndarray):
            key = (value.__array_interface__["data"][0], value.nbytes)
            types.append("*i8")
            if key not in buffers:
                buffers[key] = _Buffer(value)
            values.append(buffers[key])
        else:
            types.append(triton_type(value))
            values.append(value.item() if isinstance(value, np.generic) else value)
    utils = driver.active.utils
    device = driver.active.get_current_device()
    module, function, _, _, threads = utils.load_binary(name, image, shared, device)
    start = _launch_built_in if native_scan.is_built_in() else _launch
    try:
        if num_warps * 32 > threads:
            raise RuntimeError(f"{num_warps} warps do not fit: {threads} threads do")
        dims = (grid, 1, 1) if isinstance(grid, int) else (*grid, 1, 1)[:3]
        ctas = int(np.prod(dims)) * num_ctas
        memory = [torch.zeros(n * ctas, dtype=torch.uint8, device="cuda") for n in scratch]
        start(
            (*dims, driver.active.get_current_stream(device), function),
            (num_warps, num_ctas, shared),
            [m if m.numel() else None for m in memory],
            types,
            values,
        )
        torch.cuda.synchronize()
    finally:
        if hasattr(utils, "unload_module"):
            utils.unload_module(module)
    for number, buffer in enumerate(buffers.values()):
        buffer.fetch(f"{name}, array {number}")


def assembled(ptx: str) -> bytes:
    """Return the cubin of a PTX module for this GPU, made by the ptxas that Triton uses.

    Not by the driver's own compiler: that may be older than the PTX.
    """
    from triton.backends.nvidia.compiler import get_ptxas

    ptxas = get_ptxas() if native_scan.is_built_in() else get_ptxas(CAPABILITY)

    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        source.write_text(ptxas_faults.avoid(ptx, ptxas.version))
        command = [ptxas.path, "--gpu-name=sm_90a", "-o", cubin, source]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode:
            raise RuntimeError(f"ptxas refuses a kernel: {run.stderr.strip()}")
        return cubin.read_bytes()


def run_compiled(kernel, grid, args, **_) -> None:
    """Launch a compiled kernel; `args` are its remaining parameters in order.

    Of code for another capability the PTX is assembled for this GPU.
    """
    meta = kernel.metadata
    # The source base's Triton has one of the two.
    names = ("global_scratch_size", "profile_scratch_size")
    scratch = [getattr(meta, name) for name in names if hasattr(meta, name)]
    own = meta.target.arch == capability()
    image = kernel.asm["cubin"] if own else assembled(kernel.asm["ptx"])
    _run(image, meta.name, grid, args, meta.num_warps, meta.num_ctas, meta.shared, scratch)


def launch(ptx: str, grid, args, *, num_warps: int, shared_bytes=0, cluster=1, **_) -> None:
    """Launch the kernel of a PTX module; Scratch in `args`, at their end, is Triton's own."""
    scratch = [arg.size for arg in args if isinstance(arg, Scratch)]
    args = args[: len(args) - len(scratch)]
    name = re.search(r"\.entry\s+([\w$]+)", ptx).group(1)
    _run(assembled(ptx), name, grid, args, num_warps, cluster, shared_bytes, scratch)


def install() -> None:
    """Let modules that import the simulator's functions from now on run on the GPU."""
    from triton.tools import ptx_sim

    def run_kernel(fn, grid, args, constexprs=None, **options) -> None:
        kernel, kept = ptx_sim.compile_kernel(fn, args, constexprs, **options)
        run_compiled(kernel, grid, kept)

    ptx_sim.launch, ptx_sim.run_compiled, ptx_sim.run_kernel = launch, run_compiled, run_kernel
