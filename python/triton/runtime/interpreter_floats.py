"""bf16 and fp8 in the interpreter, which stores them as unsigned integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from triton.language import core as tl

from .._C.libtriton import ir


class _Format(NamedTuple):
    """A float format as bits, without the sign: `largest` is what overflows become."""

    storage: type
    fraction: int
    bias: int
    largest: int
    infinity: int | None
    nan: int


_FORMATS = {
    tl.bfloat16: _Format(np.uint16, 7, 127, 0x7F80, 0x7F80, 0x7FC0),
    # Conversions to fp8 saturate.
    tl.float8e5: _Format(np.uint8, 2, 15, 0x7B, 0x7C, 0x7F),
    tl.float8e4nv: _Format(np.uint8, 3, 7, 0x7E, None, 0x7F),
}
_NUMPY = {tl.float16: np.float16, tl.float32: np.float32, tl.float64: np.float64}


def _decode(data: np.ndarray, form: _Format) -> np.ndarray:
    """Return the values as float64, which is exact."""
    sign = 1 << (8 * form.storage().itemsize - 1)
    bits = data.view(form.storage)
    magnitude = (bits & form.storage(sign - 1)).astype(np.int64)
    exponent = np.maximum(magnitude >> form.fraction, 1)
    digits = magnitude - ((exponent - 1) << form.fraction)
    values = np.ldexp(digits.astype(np.float64), exponent - form.bias - form.fraction)
    if form.infinity is None:
        values[magnitude == form.nan] = np.nan
    else:
        values[magnitude == form.infinity] = np.inf
        values[magnitude > form.infinity] = np.nan
    return np.where(bits & form.storage(sign), -values, values)


def _encode(values: np.ndarray, form: _Format) -> np.ndarray:
    """Round float64 to nearest, ties to even."""
    finite = np.isfinite(values)
    magnitude = np.where(finite, np.abs(values), 0.0)
    _, exponent = np.frexp(magnitude)
    biased = np.where(magnitude > 0, exponent - 1 + form.bias, 1)
    exponent = np.maximum(biased, 1).astype(np.int64)
    digits = np.rint(
        np.ldexp(np.where(finite, magnitude, 0.0), form.bias + form.fraction - exponent)
    )
    # A carry out of the digits goes into the exponent, as it should.
    bits = ((exponent - 1) << form.fraction) + digits.astype(np.int64)
    bits = np.where(finite, np.minimum(bits, form.largest), form.largest)
    bits = np.where(np.isnan(values), form.nan, bits)
    sign = np.signbit(values).astype(np.int64) << (8 * form.storage().itemsize - 1)
    return (bits | sign).astype(form.storage)


def convert(data: np.ndarray, source: tl.dtype, target: tl.dtype, rounding: object) -> object:
    """Convert between float types, where bf16 or fp8 takes part, as the compiled kernel does.

    Returns unsigned integers of the target's size and the data's shape, or None for what is left
    to the caller: other types, and other roundings than to nearest.
    """
    if rounding not in (None, ir.ROUNDING_MODE.RTNE):
        return None
    if not (source in _FORMATS or target in _FORMATS):
        return None
    if source in _FORMATS:
        values = _decode(data, _FORMATS[source])
    elif source in _NUMPY:
        values = data.view(_NUMPY[source]).astype(np.float64)
    else:
        return None
    if target in _FORMATS:
        return _encode(values, _FORMATS[target])
    if target in _NUMPY:
        with np.errstate(over="ignore"):
            numbers = values.astype(_NUMPY[target])
        return numbers.view(f"u{numbers.itemsize}")
    return None


def hold_bf16(*handles: object) -> bool:
    """Return whether all these handles hold bf16."""
    return all(
        h.dtype.scalar == tl.bfloat16 and h.data.dtype == _FORMATS[tl.bfloat16].storage
        for h in handles
    )


def compute_bf16(function: Callable, handles: tuple, *arguments: object) -> object:
    """Return function(*handles, *arguments), computed in float64 and rounded once."""
    kind = type(handles[0])
    form = _FORMATS[tl.bfloat16]
    wide = [kind(_decode(h.data, form), tl.float64) for h in handles]
    with np.errstate(all="ignore"):
        result = function(*wide, *arguments)
    if result.data.dtype == np.bool_:
        return kind(result.data, tl.int1)
    return kind(_encode(result.data, form), tl.bfloat16)


def numbers(handle: object) -> np.ndarray:
    """Return a handle's data, bf16 as float32."""
    if not hold_bf16(handle):
        return handle.data
    return _decode(handle.data, _FORMATS[tl.bfloat16]).astype(np.float32)


def cast_bf16(handle: object, target: tl.dtype, numpy_dtype: np.dtype) -> object:
    """Return a handle's values cast from or to bf16."""
    if hold_bf16(handle):
        values = _decode(handle.data, _FORMATS[tl.bfloat16])
    else:
        values = handle.data.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        if target == tl.bfloat16:
            data = _encode(values, _FORMATS[target])
        else:
            data = values.astype(numpy_dtype)
    return type(handle)(data, target)
