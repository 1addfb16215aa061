"""The kernels that `make demo` compiles: what people scan in both directions, with their
references.

Every kernel takes its inputs' pointers, then its outputs' pointers, then the constexpr REVERSE.
References are sequential folds in the direction, in float64 where the kernel computes in floats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import triton
import triton.language as tl


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def affine(a1, b1, a2, b2):
    # h -> a1*h + b1, then h -> a2*h + b2
    return a2 * a1, a2 * b1 + b2


@triton.jit
def log_add(m1, s1, m2, s2):
    # The sum s of exp(x - m), with the maximum m
    m = tl.maximum(m1, m2)
    return m, s1 * tl.exp(m1 - m) + s2 * tl.exp(m2 - m)


@triton.jit
def segmented_add(f1, v1, f2, v2):
    # A set flag starts a new sum.
    return f1 | f2, tl.where(f2 != 0, v2, v1 + v2)


@triton.jit
def cumsum(x, out, REVERSE: tl.constexpr):
    i = tl.arange(0, 1024)
    tl.store(out + i, tl.cumsum(tl.load(x + i), 0, reverse=REVERSE))


@triton.jit
def recurrence(a, b, out_a, out_b, REVERSE: tl.constexpr):
    i = tl.arange(0, 1024)
    ya, yb = tl.associative_scan((tl.load(a + i), tl.load(b + i)), 0, affine, reverse=REVERSE)
    tl.store(out_a + i, ya)
    tl.store(out_b + i, yb)


@triton.jit
def tile_cumsum(x, out, REVERSE: tl.constexpr):
    i = tl.arange(0, 64)[:, None] * 64 + tl.arange(0, 64)[None, :]
    tl.store(out + i, tl.associative_scan(tl.load(x + i), 0, add, reverse=REVERSE))


@triton.jit
def logcumsumexp(x, out, REVERSE: tl.constexpr):
    i = tl.arange(0, 4)[:, None] * 512 + tl.arange(0, 512)[None, :]
    v = tl.load(x + i)
    m, s = tl.associative_scan((v, tl.full(v.shape, 1.0, tl.float32)), 1, log_add, reverse=REVERSE)
    tl.store(out + i, m + tl.log(s))


@triton.jit
def segmented_sum(flag, x, out, REVERSE: tl.constexpr):
    i = tl.arange(0, 1024)
    _, v = tl.associative_scan(
        (tl.load(flag + i), tl.load(x + i)), 0, segmented_add, reverse=REVERSE
    )
    tl.store(out + i, v)


@dataclass(frozen=True)
class Example:
    """A kernel with what is needed to compile it, run it and check it.

    inputs(rng) returns the input arrays; reference(*inputs) the forward results, in the order of
    the kernel's outputs; the scan goes along `axis` of every array.
    """

    title: str
    kernel: object
    num_warps: int
    axis: int
    inputs: Callable[[np.random.Generator], tuple[np.ndarray, ...]]
    reference: Callable[..., tuple[np.ndarray, ...]]
    tolerance: float = 1e-5
    types: tuple[str, ...] = field(default=("*fp32", "*fp32"))

    @property
    def signature(self) -> dict[str, str]:
        """Return the signature for triton.compiler.ASTSource."""
        names = self.kernel.arg_names
        return dict(zip(names, (*self.types, "constexpr"), strict=True))

    def expected(self, inputs: tuple[np.ndarray, ...], reverse: bool) -> tuple[np.ndarray, ...]:
        """Return the results in the direction."""
        if not reverse:
            return self.reference(*inputs)
        results = self.reference(*(np.flip(x, self.axis) for x in inputs))
        return tuple(np.flip(y, self.axis) for y in results)


def _recurrence(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, ...]:
    ya, yb = a.astype(np.float64), b.astype(np.float64)
    for i in range(1, len(a)):
        ya[i], yb[i] = ya[i] * ya[i - 1], ya[i] * yb[i - 1] + yb[i]
    return ya, yb


def _segmented(flag: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, ...]:
    y = x.copy()
    for i in range(1, len(x)):
        if not flag[i]:
            y[i] += y[i - 1]
    return (y,)


def _sum64(axis: int) -> Callable[[np.ndarray], tuple[np.ndarray, ...]]:
    return lambda x: (np.cumsum(x.astype(np.float64), axis),)


def _normal(*shape: int) -> Callable[[np.random.Generator], tuple[np.ndarray, ...]]:
    return lambda rng: (rng.standard_normal(shape, np.float32),)


EXAMPLES = (
    Example("cumsum 1024", cumsum, 4, 0, _normal(1024), _sum64(0), 1e-4),
    Example(
        "recurrence 1024",
        recurrence,
        8,
        0,
        lambda rng: (rng.uniform(0.5, 1.0, 1024).astype(np.float32), *_normal(1024)(rng)),
        _recurrence,
        1e-4,
        ("*fp32",) * 4,
    ),
    Example("tile 64x64, axis 0", tile_cumsum, 4, 0, _normal(64, 64), _sum64(0), 1e-4),
    Example(
        "logcumsumexp 4x512",
        logcumsumexp,
        4,
        1,
        _normal(4, 512),
        lambda x: (np.logaddexp.accumulate(x.astype(np.float64), 1),),
    ),
    Example(
        "segmented sum 1024",
        segmented_sum,
        4,
        0,
        lambda rng: (
            rng.integers(0, 16, 1024, np.int32) // 15,
            rng.integers(-100, 100, 1024, np.int32),
        ),
        _segmented,
        0.0,
        ("*i32",) * 3,
    ),
)
