"""Random associative combine functions, most of them not commutative."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from .backends import FLOATS, INTEGERS, NUMPY, is_float

MAX_OPERANDS = 4
# Largest integers up to which a sum of integers is exact.
_EXACT = {"f16": 1 << 11, "bf16": 1 << 8, "f32": 1 << 24, "f64": 1 << 53}


@dataclass(frozen=True)
class Operator:
    """An associative function of two tuples.

    kinds: the element types of a tuple
    combine: combine(backend, earlier, later) returns a tuple; earlier and later are lists
    sample: sample(rng, shape, length) returns the arrays to scan along an axis of `length`
    captured: types and values of the scalars that `combine` captures
    is_closed: may results be scanned again? Not if sums of floats would cease to be exact.
    """

    name: str
    kinds: tuple[str, ...]
    combine: Callable
    sample: Callable[[np.random.Generator, tuple[int, ...], int], list[np.ndarray]]
    captured: tuple[tuple[str, int], ...] = ()
    is_closed: bool = True


def _any_values(rng, kind: str, shape, length: int) -> np.ndarray:
    """Anything that the type can hold; small integers if it is a float."""
    dtype = NUMPY[kind]
    if kind == "i1":
        return rng.integers(0, 2, shape).astype(bool)
    if is_float(kind):
        return rng.integers(-100, 101, shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


def _summands(rng, kind: str, shape, length: int) -> np.ndarray:
    """Values of which any `length` sum up exactly."""
    if not is_float(kind):
        return _any_values(rng, kind, shape, length)
    limit = min(_EXACT[kind] // max(length, 1), 1000)
    if limit:
        return rng.integers(-limit, limit + 1, shape).astype(NUMPY[kind])
    # bf16 along a long axis: few of them are not zero.
    values = rng.integers(-1, 2, shape) * (rng.random(shape) < _EXACT[kind] / (4 * length))
    return values.astype(NUMPY[kind])


def _simple(name: str, method: str, kind: str) -> Operator:
    sample = _summands if method == "add" else _any_values
    return Operator(
        f"{name}.{kind}",
        (kind,),
        lambda k, a, b: [getattr(k, method)(a[0], b[0])],
        lambda rng, shape, length: [sample(rng, kind, shape, length)],
        is_closed=not (is_float(kind) and method == "add"),
    )


def _simple_operators() -> st.SearchStrategy[Operator]:
    integer = [
        _simple(method, method, kind)
        for kind in INTEGERS
        for method in ("add", "mul", "bit_and", "bit_or", "bit_xor", "maximum", "minimum")
    ]
    boolean = [_simple(method, method, "i1") for method in ("bit_and", "bit_or", "bit_xor")]
    floating = [
        _simple(method, method, kind) for kind in FLOATS for method in ("add", "maximum", "minimum")
    ]
    return st.sampled_from(integer + boolean + floating)


def keeper(kinds: tuple[str, ...], keeps_earlier: bool) -> Operator:
    """Keep the earlier or the later tuple, of any types."""
    return Operator(
        f"keep-{'earlier' if keeps_earlier else 'later'}.{'.'.join(kinds)}",
        kinds,
        lambda k, a, b: list(a if keeps_earlier else b),
        lambda rng, shape, length: [_any_values(rng, kind, shape, length) for kind in kinds],
    )


def _matrix_product(k, a, b) -> list:
    """The product of 2x2 matrices given by rows."""
    return [
        k.add(k.mul(a[2 * i], b[j]), k.mul(a[2 * i + 1], b[2 + j]))
        for i in range(2)
        for j in range(2)
    ]


def matrix_product(kind: str) -> Operator:
    """The product of 2x2 matrices of integers that wrap around."""
    return Operator(
        f"matrix.{kind}",
        (kind,) * 4,
        _matrix_product,
        lambda rng, shape, length: [_any_values(rng, kind, shape, length) for _ in range(4)],
    )


def matrix_product_modulo(kind: str, prime: int) -> Operator:
    """The product of 2x2 matrices modulo a captured prime; 2 * prime**2 has to fit unsigned."""
    return Operator(
        f"matrix-mod-{prime}.{kind}",
        (kind,) * 4,
        lambda k, a, b: [k.rem(x, k.capture(0)) for x in _matrix_product(k, a, b)],
        lambda rng, shape, length: [rng.integers(0, prime, shape, NUMPY[kind]) for _ in range(4)],
        captured=((kind, prime),),
    )


def affine_map(kind: str) -> Operator:
    """(a, b) is x -> a x + b, the earlier map is applied first; floats have slopes -1, 0 and 1."""

    def sample(rng, shape, length):
        slopes = (
            rng.integers(-1, 2, shape).astype(NUMPY[kind])
            if is_float(kind)
            else _any_values(rng, kind, shape, length)
        )
        return [slopes, _summands(rng, kind, shape, length)]

    return Operator(
        f"affine.{kind}",
        (kind, kind),
        lambda k, a, b: [k.mul(b[0], a[0]), k.add(k.mul(b[0], a[1]), b[1])],
        sample,
        is_closed=not is_float(kind),
    )


def first_maximum(value: str, index: str, branches: bool) -> Operator:
    """(value, index) of the first maximum in the direction, by scf.if or by select."""

    def combine(k, a, b):
        takes_later = k.greater(b[0], a[0])
        if branches:
            return k.branch(takes_later, lambda: list(b), lambda: list(a))
        return [k.select(takes_later, y, x) for x, y in zip(a, b, strict=True)]

    def sample(rng, shape, length):
        # Few different values, so that there are ties.
        values = rng.integers(-20, 21, shape).astype(NUMPY[value])
        indices = rng.permutation(values.size).reshape(shape).astype(NUMPY[index])
        return [values, indices]

    name = f"first-maximum{'-if' if branches else ''}.{value}.{index}"
    return Operator(name, (value, index), combine, sample)


def captured_middle(kind: str, method: str, value: int) -> Operator:
    """a op captured op b."""
    return Operator(
        f"captured-{method}.{kind}",
        (kind,),
        lambda k, a, b: [getattr(k, method)(getattr(k, method)(a[0], k.capture(0)), b[0])],
        lambda rng, shape, length: [_any_values(rng, kind, shape, length)],
        captured=((kind, value),),
    )


def segmented(operator: Operator, flag: str, branches: bool) -> Operator:
    """(flag, values): a set flag starts a new segment; by scf.if or by select.

    The operator itself if it has too many operands for a flag.
    """
    if len(operator.kinds) >= MAX_OPERANDS:
        return operator

    def combine(k, a, b):
        starts = k.truth(b[0])
        flags = k.bit_or(a[0], b[0])
        if branches:
            values = k.branch(
                starts, lambda: list(b[1:]), lambda: operator.combine(k, a[1:], b[1:])
            )
        else:
            values = [
                k.select(starts, own, joined)
                for own, joined in zip(b[1:], operator.combine(k, a[1:], b[1:]), strict=True)
            ]
        return [flags, *values]

    def sample(rng, shape, length):
        flags = (rng.random(shape) < rng.choice((0.5, 0.1, 0.02))).astype(NUMPY[flag])
        return [flags, *operator.sample(rng, shape, length)]

    return Operator(
        f"segmented{'-if' if branches else ''}.{flag}({operator.name})",
        (flag, *operator.kinds),
        combine,
        sample,
        operator.captured,
        operator.is_closed,
    )


class _Shifted:
    """A backend whose captures begin at number `by`."""

    def __init__(self, backend, by: int):
        self.backend, self.by = backend, by

    def __getattr__(self, name):
        return getattr(self.backend, name)

    def capture(self, index: int):
        return self.backend.capture(index + self.by)


def pair(first: Operator, second: Operator) -> Operator:
    """Two operators side by side; the first alone if both have too many operands."""
    size, by = len(first.kinds), len(first.captured)
    if size + len(second.kinds) > MAX_OPERANDS:
        return first
    return Operator(
        f"({first.name}, {second.name})",
        first.kinds + second.kinds,
        lambda k, a, b: [
            *first.combine(k, a[:size], b[:size]),
            *second.combine(_Shifted(k, by), a[size:], b[size:]),
        ],
        lambda rng, shape, length: [
            *first.sample(rng, shape, length),
            *second.sample(rng, shape, length),
        ],
        first.captured + second.captured,
        first.is_closed and second.is_closed,
    )


def operators() -> st.SearchStrategy[Operator]:
    """All of the above, nested up to two deep, with up to MAX_OPERANDS operands."""
    integers, numbers = st.sampled_from(INTEGERS), st.sampled_from(INTEGERS + FLOATS)
    any_kinds = st.lists(st.sampled_from(list(NUMPY)), min_size=1, max_size=3).map(tuple)
    plain = st.one_of(
        _simple_operators(),
        st.builds(affine_map, numbers),
        st.builds(keeper, any_kinds, st.booleans()),
        st.builds(matrix_product, integers),
        st.builds(
            matrix_product_modulo,
            st.sampled_from(("i32", "i64")),
            st.sampled_from((2, 3, 251, 46337)),
        ),
        st.builds(first_maximum, numbers, st.sampled_from(("i16", "i32", "i64")), st.booleans()),
        st.builds(
            captured_middle,
            integers,
            st.sampled_from(("add", "mul", "bit_xor")),
            st.integers(-100, 100),
        ),
    )
    flags = st.sampled_from(("i1", "i8", "i32"))

    def nest(inner: st.SearchStrategy[Operator]) -> list[st.SearchStrategy[Operator]]:
        return [st.builds(segmented, inner, flags, st.booleans()), st.builds(pair, inner, inner)]

    once = st.one_of(plain, *nest(plain))
    return st.one_of(plain, *nest(once))
