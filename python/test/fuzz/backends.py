"""The operations from which combine functions are made, as TTGIR text and as NumPy arithmetic.

Both backends have the same methods; a value of one is a pair of an SSA name and its type, of the
other an array.  bf16 is float32 in NumPy: the fuzzer's floats are small integers, exact in both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

NUMPY = {
    "i1": np.dtype(bool),
    "i8": np.dtype(np.int8),
    "i16": np.dtype(np.int16),
    "i32": np.dtype(np.int32),
    "i64": np.dtype(np.int64),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(np.float32),
    "f32": np.dtype(np.float32),
    "f64": np.dtype(np.float64),
}
INTEGERS = ("i8", "i16", "i32", "i64")
FLOATS = ("f16", "bf16", "f32", "f64")


def is_float(kind: str) -> bool:
    return "f" in kind


class TextBackend:
    """Writes TTGIR; `lines` is what has been written, `captured` the kernel's scalars."""

    def __init__(self, captured: Sequence[tuple[str, str]] = ()):
        self.lines: list[str] = []
        self.captured = captured
        self.count = 0

    def _name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def _emit(self, text: str, kind: str) -> tuple[str, str]:
        name = self._name()
        self.lines.append(f"{name} = {text}")
        return name, kind

    def _binary(self, op: str, a, b):
        return self._emit(f"arith.{op} {a[0]}, {b[0]} : {a[1]}", a[1])

    def add(self, a, b):
        return self._binary("addf" if is_float(a[1]) else "addi", a, b)

    def mul(self, a, b):
        return self._binary("mulf" if is_float(a[1]) else "muli", a, b)

    def rem(self, a, b):
        """The remainder of unsigned integers."""
        return self._binary("remui", a, b)

    def bit_and(self, a, b):
        return self._binary("andi", a, b)

    def bit_or(self, a, b):
        return self._binary("ori", a, b)

    def bit_xor(self, a, b):
        return self._binary("xori", a, b)

    def maximum(self, a, b):
        return self._binary("maxnumf" if is_float(a[1]) else "maxsi", a, b)

    def minimum(self, a, b):
        return self._binary("minnumf" if is_float(a[1]) else "minsi", a, b)

    def greater(self, a, b):
        op = "cmpf ogt" if is_float(a[1]) else "cmpi sgt"
        return self._emit(f"arith.{op}, {a[0]}, {b[0]} : {a[1]}", "i1")

    def truth(self, a):
        """Is an integer not zero?"""
        if a[1] == "i1":
            return a
        zero = self._emit(f"arith.constant 0 : {a[1]}", a[1])
        return self._emit(f"arith.cmpi ne, {a[0]}, {zero[0]} : {a[1]}", "i1")

    def select(self, condition, a, b):
        return self._emit(f"arith.select {condition[0]}, {a[0]}, {b[0]} : {a[1]}", a[1])

    def capture(self, index: int):
        return self.captured[index]

    def branch(self, condition, then: Callable[[], list], otherwise: Callable[[], list]) -> list:
        """An scf.if that yields the values of the side taken."""
        outer, self.lines = self.lines, []
        sides = []
        for side in (then, otherwise):
            self.lines = []
            values = side()
            kinds = [kind for _, kind in values]
            names = ", ".join(name for name, _ in values)
            self.lines.append(f"scf.yield {names} : {', '.join(kinds)}")
            sides.append(self.lines)
        self.lines = outer
        result = self._name()
        kinds_text = ", ".join(kinds)
        self.lines.append(f"{result}:{len(kinds)} = scf.if {condition[0]} -> ({kinds_text}) {{")
        self.lines += [f"  {line}" for line in sides[0]] + ["} else {"]
        self.lines += [f"  {line}" for line in sides[1]] + ["}"]
        return [(f"{result}#{i}", kind) for i, kind in enumerate(kinds)]


class NumpyBackend:
    """Computes; integers wrap around."""

    def __init__(self, captured: Sequence[np.generic] = ()):
        self.captured = captured

    def add(self, a, b):
        return a + b

    def mul(self, a, b):
        return a * b

    def rem(self, a, b):
        unsigned = f"u{a.dtype.itemsize}"
        return (a.view(unsigned) % np.asarray(b).view(unsigned)).view(a.dtype)

    def bit_and(self, a, b):
        return a & b

    def bit_or(self, a, b):
        return a | b

    def bit_xor(self, a, b):
        return a ^ b

    def maximum(self, a, b):
        return np.maximum(a, b)

    def minimum(self, a, b):
        return np.minimum(a, b)

    def greater(self, a, b):
        return a > b

    def truth(self, a):
        return a != 0

    def select(self, condition, a, b):
        return np.where(condition, a, b)

    def capture(self, index: int):
        return self.captured[index]

    def branch(self, condition, then: Callable[[], list], otherwise: Callable[[], list]) -> list:
        return [np.where(condition, a, b) for a, b in zip(then(), otherwise(), strict=True)]
