"""A PTX SIMT simulator and checker on NumPy; see README.md beside this file.

launch(ptx, grid, args, ...) runs PTX text; run_kernel(fn, grid, args, constexprs, ...)
compiles a @triton.jit function first. Both return Stats. Only run_kernel needs triton.
"""

from .dtypes import Typed, from_bf16, from_fp8, to_bf16, to_fp8
from .errors import PtxMemoryError, PtxRaceError, PtxSimError, PtxSyncError, PtxUnsupported
from .kernels import compile_kernel, run_compiled, run_kernel
from .launch import Scratch, Stats, count, launch

__all__ = [
    "PtxMemoryError",
    "PtxRaceError",
    "PtxSimError",
    "PtxSyncError",
    "PtxUnsupported",
    "Scratch",
    "Stats",
    "Typed",
    "compile_kernel",
    "count",
    "from_bf16",
    "from_fp8",
    "launch",
    "run_compiled",
    "run_kernel",
    "to_bf16",
    "to_fp8",
]
