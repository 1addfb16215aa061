"""run_kernel(): compile a @triton.jit or @gluon.jit function without a GPU and simulate it."""

from __future__ import annotations

import contextlib

import numpy as np

from .dtypes import Typed, triton_type
from .errors import PtxSimError
from .launch import Scratch, Stats, launch


def _stores_all_replicas() -> bool:
    """Return whether this is the source base, whose Triton stores a tensor's every register."""
    try:
        from triton import native_scan
    except ImportError:  # upstream's triton
        return False
    return native_scan.is_built_in()


@contextlib.contextmanager
def _native(value):
    import triton

    if value is None:
        yield
        return
    knobs = getattr(triton.knobs, "scan", None)
    if knobs is None:
        if value:
            raise PtxSimError("native=True, but this triton has no native scan lowering")
        yield
        return
    with knobs.scope():
        knobs.native = bool(value)
        yield


def compile_kernel(
    fn, args, constexprs=None, *, num_warps=4, num_ctas=1, capability=90, native=None, **options
):
    """triton.compile for the arguments' types, specialised as the JIT does it: pointers and
    integers divisible by 16 get the attribute, the integer 1 becomes a constant.
    Returns (compiled kernel, the arguments that remain parameters)."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    constexprs = dict(constexprs or {})
    names = [n for n in fn.arg_names if n not in constexprs]
    if len(names) != len(args):
        raise PtxSimError(
            f"{fn.__name__} takes {len(names)} run-time arguments {names}, got {len(args)}"
        )
    values = dict(zip(names, args, strict=True))
    signature, attrs, kept = {}, {}, []
    for k, name in enumerate(fn.arg_names):
        if name in constexprs:
            signature[name] = "constexpr"
            continue
        value = values[name]
        if type(value) is int and value == 1:
            signature[name] = "constexpr"
            constexprs[name] = 1
            continue
        signature[name] = triton_type(value)
        array = value.array if isinstance(value, Typed) else value
        if isinstance(array, np.ndarray) or (type(value) is int and value % 16 == 0):
            attrs[(k,)] = [["tt.divisibility", 16]]
        kept.append(array)
    kind = ASTSource
    if hasattr(fn, "is_gluon") and fn.is_gluon():  # the source base's Triton has no Gluon
        from triton.experimental.gluon._runtime import GluonASTSource as kind
    source = kind(fn, signature, constexprs=constexprs, attrs=attrs)
    with _native(native):
        kernel = triton.compile(
            source,
            target=GPUTarget("cuda", capability, 32),
            options={"num_warps": num_warps, "num_ctas": num_ctas, **options},
        )
    return kernel, kept


def run_compiled(kernel, grid, args, **limits) -> Stats:
    """Launches a compiled kernel; `args` are its remaining parameters in order."""
    meta = kernel.metadata
    if getattr(meta, "tmem_size", 0):
        raise PtxSimError("the kernel uses tensor memory (tcgen05), which is not simulated")
    if getattr(meta, "tensordesc_meta", None):
        raise PtxSimError("the kernel takes tensor descriptors, which are not simulated")
    dims = (grid,) if isinstance(grid, int) else tuple(grid)
    programs = int(np.prod(dims)) * meta.num_ctas
    if _stores_all_replicas():
        limits.setdefault("equal_writes", True)
    # The source base's Triton has one of the two.
    scratches = ("global_scratch_size", "profile_scratch_size")
    hidden = [Scratch(getattr(meta, s) * programs) for s in scratches if hasattr(meta, s)]
    return launch(
        kernel.asm["ptx"],
        grid,
        [*args, *hidden],
        num_warps=meta.num_warps,
        shared_bytes=meta.shared,
        cluster=meta.num_ctas,
        **limits,
    )


def run_kernel(
    fn,
    grid,
    args,
    constexprs=None,
    *,
    num_warps=4,
    num_ctas=1,
    capability=90,
    native=None,
    **options,
) -> Stats:
    """Compiles `fn` for sm_<capability> and runs it in the simulator.

    * `grid`: int or tuple, in programs.
    * `args`: the run-time arguments in order: NumPy arrays (modified in place), Typed arrays for
      bf16 and fp8, scalars.
    * `constexprs`: dict of the rest.
    * `native`: None for the default lowering of scans, True or False to choose it.

    Other options go to triton.compile. Raises what triton.compile and launch raise."""
    kernel, kept = compile_kernel(
        fn,
        args,
        constexprs,
        num_warps=num_warps,
        num_ctas=num_ctas,
        capability=capability,
        native=native,
        **options,
    )
    return run_compiled(kernel, grid, kept)
