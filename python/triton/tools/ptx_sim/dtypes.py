"""bf16 and fp8 as plain integer arrays, and the Triton type names of arrays and scalars."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from . import rounding as rd

_NAMES = {
    "float16": "fp16",
    "float32": "fp32",
    "float64": "fp64",
    "bool": "i1",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
}
_BYTES = {"bf16": 2, "fp8e4nv": 1, "fp8e5": 1}


@dataclass(frozen=True)
class Typed:
    """An array whose bits stand for `type`: "bf16" (uint16), "fp8e4nv" or "fp8e5" (uint8)."""

    array: np.ndarray
    type: str

    def __post_init__(self):
        if _BYTES.get(self.type) != self.array.dtype.itemsize:
            raise TypeError(f"{self.type} in an array of {self.array.dtype}")


def to_bf16(x) -> np.ndarray:
    """float array -> bf16 bits (uint16), round to nearest even."""
    return rd.to_bf16_bits(np.asarray(x, np.float64))


def from_bf16(bits) -> np.ndarray:
    """bf16 bits (uint16) -> float32, exact."""
    return rd.bf16_to_f32(np.asarray(bits, np.uint16))


def to_fp8(x, kind: str) -> np.ndarray:
    """float array -> fp8 bits (uint8); kind "fp8e4nv" or "fp8e5"; nearest even, saturating."""
    return rd.to_fp8_bits(np.asarray(x, np.float64), {"fp8e4nv": "e4m3", "fp8e5": "e5m2"}[kind])


def from_fp8(bits, kind: str) -> np.ndarray:
    """fp8 bits (uint8) -> float32, exact."""
    fmt = {"fp8e4nv": "e4m3", "fp8e5": "e5m2"}[kind]
    return rd.fp8_to_f64(np.asarray(bits, np.uint8), fmt).astype(np.float32)


def triton_type(value) -> str:
    """The type that Triton's JIT gives an argument ("*fp32", "i32", ...)."""
    if isinstance(value, Typed):
        return "*" + value.type
    if isinstance(value, np.ndarray):
        if value.dtype.name not in _NAMES:
            raise TypeError(f"no Triton type for an array of {value.dtype}")
        return "*" + _NAMES[value.dtype.name]
    if isinstance(value, (bool, np.bool_)):
        return "i1"
    if isinstance(value, np.generic):
        return _NAMES[value.dtype.name]
    if isinstance(value, int):
        if -(2**31) <= value < 2**31:
            return "i32"
        return "i64" if value < 2**63 else "u64"
    if isinstance(value, float):
        return "fp32"
    raise TypeError(f"no Triton type for {type(value).__name__}")
