"""The native form of tl.flip, which the pass lower_flip lowers; standard.py chooses it."""

from __future__ import annotations

from .. import native_scan
from . import core


def _builtin(fn):
    # Not core.builtin: that refuses to be called by the interpreter, which patches the builtins of
    # triton.language and no others.
    setattr(fn, core.TRITON_BUILTIN, True)
    return fn


@_builtin
def is_chosen(_semantic=None) -> core.constexpr:
    """Return whether the kernel being compiled uses the native lowering; False when interpreted.

    The answer is the compile option `native_scan`, which is part of the caches' keys.
    """
    options = None if _semantic is None else _semantic.builder.options
    return core.constexpr(native_scan.is_native(getattr(options, "native_scan", None)))


@_builtin
def flip(x: core.tensor, dim: core.constexpr, _semantic=None) -> core.tensor:
    """Flip the block `x` of integers or floats along `dim`, an int in [0, rank).

    Raises TypeError for a block of pointers.
    """
    if not (x.dtype.is_int() or x.dtype.is_floating()):
        raise TypeError(f"flip: x must be a tensor of integers or floats, got one of {x.dtype}")
    builder = _semantic.builder

    def build_region(scan_op) -> None:
        element = x.dtype.to_ir(builder)
        with core._insertion_guard(builder):
            block = builder.create_block_with_parent(scan_op.get_region(0), [element, element])
            # What lib/Analysis/Flip.cpp recognises.
            mark = builder.create_extern_elementwise(
                "triton_scan", "", "triton_scan_flip", [block.arg(0), block.arg(1)], element, True
            )
            builder.create_scan_ret(mark)

    return _semantic.associative_scan((x,), core._unwrap_if_constexpr(dim), build_region, False)[0]
