"""Kernels in Python with random parameters: what goes through Triton's and Gluon's frontends,
matrix products, pipelined loops, and the interpreter.

All results are exact: integers that wrap around, or floats that hold small ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod

import hypothesis
import numpy as np
import test_after_dot
import test_scan_programs
import triton
import triton.language as tl
from hypothesis import strategies as st
from interpreter_worker import Interpreter, Request
from scan_values import assert_same, fold, run
from test_gluon import affine_numpy, line
from triton.experimental.gluon import language as gl

from .drawing import draws_of
from .layouts import Machine, linear_layouts, shapes


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def affine(a1, b1, a2, b2):
    return a2 * a1, a2 * b1 + b2


@triton.jit
def saturated(a, b):
    c = a + b
    if c > 1000:
        c = c * 0 + 1000
    return c


@triton.jit
def chain(x, out, N: tl.constexpr, SHAPE: tl.constexpr, STEPS: tl.constexpr):
    """Steps (what, axis, reverse), one after the other."""
    i = tl.arange(0, N)
    v = tl.reshape(tl.load(x + i), SHAPE)
    for k in tl.static_range(len(STEPS)):
        if STEPS[k][0] == "flip":
            v = tl.flip(v, STEPS[k][1])
        elif STEPS[k][0] == "sum":
            v = tl.cumsum(v, STEPS[k][1], reverse=STEPS[k][2])
        elif STEPS[k][0] == "product":
            v = tl.cumprod(v | 1, STEPS[k][1], reverse=STEPS[k][2])
        elif STEPS[k][0] == "pair":
            a, b = tl.associative_scan((v | 1, v), STEPS[k][1], affine, reverse=STEPS[k][2])
            v = a ^ b
        elif STEPS[k][0] == "branch":
            v = tl.associative_scan(v & 127, STEPS[k][1], saturated, reverse=STEPS[k][2])
        else:
            # Two scans of one tensor in one expression, and a flip of a scan of a flip.
            v = tl.associative_scan(v, STEPS[k][1], add, reverse=STEPS[k][2]) - tl.flip(
                tl.associative_scan(tl.flip(v, STEPS[k][1]), STEPS[k][1], add, reverse=STEPS[k][2]),
                STEPS[k][1],
            )
    tl.store(out + i, tl.reshape(v, [N]))


STEPS = ("flip", "sum", "product", "pair", "branch", "expression")


def chain_numpy(v: np.ndarray, steps: tuple) -> np.ndarray:
    """Return what chain() computes."""
    for what, axis, reverse in steps:
        if what == "flip":
            v = np.flip(v, axis)
        elif what == "sum":
            v = fold(np.add, [v], axis, reverse)[0]
        elif what == "product":
            v = fold(np.multiply, [v | v.dtype.type(1)], axis, reverse)[0]
        elif what == "pair":
            a, b = fold(affine_numpy, [v | v.dtype.type(1), v], axis, reverse)
            v = a ^ b
        elif what == "branch":
            v = fold(lambda a, b: np.minimum(a + b, 1000), [v & v.dtype.type(127)], axis, reverse)[
                0
            ]
            v = v.astype(v.dtype)
        else:
            one, other = (fold(np.add, [v], axis, r)[0] for r in (reverse, not reverse))
            v = one - other
    return v


@dataclass(frozen=True)
class Draw:
    """One check.  Its text has all that repeats it."""

    family: str
    values: tuple[tuple[str, object], ...]
    call: Callable = field(repr=False, compare=False)

    def __repr__(self) -> str:
        return f"{self.family}({', '.join(f'{k}={v}' for k, v in self.values)})"


def _check_chain(interpreter, *, dtype, shape, steps, num_warps, num_ctas, interpreted, seed):
    info = np.iinfo(dtype)
    rng = np.random.default_rng(seed)
    x = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    wanted = chain_numpy(x, steps)
    constexprs = {"N": x.size, "SHAPE": shape, "STEPS": steps}
    options = {"num_warps": num_warps, "num_ctas": num_ctas}
    (got,) = run(chain, [x], [x], (), constexprs, **options)
    assert_same(got, wanted, "compiled:")
    if interpreted and interpreter is not None:
        out = np.zeros_like(x)
        arrays = [(x.copy(), x.dtype.name), (out, x.dtype.name)]
        request = Request("fuzz.kernels", "chain", (1,), arrays, constexprs)
        assert_same(interpreter.run(request)[1], wanted, "interpreted:")


def _check_product(_, *, dtype, m, n, k, axis, what, num_warps, capability):
    options = {"num_warps": num_warps, "capability": capability}
    test_after_dot.check_product(dtype, m, n, k, axis, what, **options)


def _check_pipeline(_, *, tiles, n, d, stages, num_warps, reverse, seed):
    x = np.random.default_rng(seed).integers(-(2**31), 2**31, (tiles, n, d)).astype(np.int32)
    sums = x.sum(1, keepdims=True, dtype=np.int32)
    before = np.cumsum(sums, 0, dtype=np.int32) - sums
    constexprs = {"N": n, "D": d, "STAGES": stages, "REVERSE": reverse}
    outputs = [x, np.zeros(d, np.int32)]
    got = run(test_scan_programs.pipelined, [x], outputs, [tiles], constexprs, num_warps=num_warps)
    assert_same(got[0], fold(np.add, [x], 1, reverse)[0] + before, "tiles:")
    assert_same(got[1], sums.sum(0, dtype=np.int32)[0], "total:")


def _check_line(_, *, n, layout, num_warps, num_ctas, reverse, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.integers(-(2**31), 2**31, (2, n)).astype(np.int32)
    operands = [a | 1, b]
    options = {"num_warps": num_warps, "num_ctas": num_ctas}
    constexprs = {"N": n, "LAYOUT": layout, "REVERSE": reverse}
    got = run(line, operands, operands, (), constexprs, **options)
    for mine, right in zip(got, fold(affine_numpy, operands, 0, reverse), strict=True):
        assert_same(mine, right)


@st.composite
def _chains(draw) -> Draw:
    num_ctas = draw(st.sampled_from((1, 1, 1, 1, 2, 4, 8)))
    num_warps = draw(st.sampled_from((1, 2, 4)))
    shape = draw(shapes(9))
    if draw(st.booleans()) and len(shape) > 1:
        shape = (*shape[:-1], 1, shape[-1])
    if prod(shape) < 8 * num_ctas:  # upstream's tl.reshape refuses some of these
        num_ctas = 1
    step = st.tuples(
        st.sampled_from(STEPS), st.integers(-len(shape), len(shape) - 1), st.booleans()
    )
    values = {
        "dtype": draw(st.sampled_from(("int32", "int64", "int32"))),
        "shape": shape,
        "steps": tuple(draw(st.lists(step, min_size=1, max_size=3))),
        "num_warps": num_warps,
        "num_ctas": num_ctas,
        "interpreted": num_ctas == 1 and draw(st.booleans()),
        "seed": draw(st.integers(0, 999)),
    }
    return Draw("chain", tuple(values.items()), _check_chain)


@st.composite
def _products(draw) -> Draw:
    values = {
        "dtype": draw(st.sampled_from(test_after_dot.DTYPES)),
        "m": draw(st.sampled_from((16, 32, 64))),
        "n": draw(st.sampled_from((16, 32, 64))),
        "k": draw(st.sampled_from((32, 64))),
        "axis": draw(st.integers(0, 1)),
        "what": draw(st.sampled_from(("sum", "pair", "flip", "both"))),
        "num_warps": draw(st.sampled_from((1, 4, 4, 8))),
        "capability": draw(st.sampled_from((80, 90))),
    }
    return Draw("product", tuple(values.items()), _check_product)


@st.composite
def _pipelines(draw) -> Draw:
    values = {
        "tiles": draw(st.integers(1, 6)),
        "n": draw(st.sampled_from((8, 16, 32))),
        "d": draw(st.sampled_from((16, 32, 64))),
        "stages": draw(st.integers(2, 4)),
        "num_warps": draw(st.sampled_from((1, 4, 8))),
        "reverse": draw(st.booleans()),
        "seed": draw(st.integers(0, 999)),
    }
    return Draw("pipeline", tuple(values.items()), _check_pipeline)


@st.composite
def _lines(draw) -> Draw:
    """Gluon kernels with explicit layouts."""
    num_ctas = draw(st.sampled_from((1, 1, 2, 4)))
    num_warps = draw(st.sampled_from((1, 2, 4)))
    shape = (1 << draw(st.integers(0, 9)),)
    layout = draw(linear_layouts(Machine(32, num_warps, num_ctas), shape, 10))
    bases = [[list(b) for b in layout.bases[owner]] for owner in layout.bases]
    values = {
        "n": prod(shape),
        "layout": gl.DistributedLinearLayout(*bases, list(shape)),
        "num_warps": num_warps,
        "num_ctas": num_ctas,
        "reverse": draw(st.booleans()),
        "seed": draw(st.integers(0, 999)),
    }
    return Draw("line", tuple(values.items()), _check_line)


draws = st.one_of(_chains(), _chains(), _chains(), _lines(), _lines(), _pipelines(), _products())


def run_kernels(
    seed: int,
    count: int,
    interpreter: Interpreter | None = None,
    before: Callable[[Draw], None] = lambda draw: None,
    shrink: bool = True,
) -> int:
    """Check `count` random kernels and return how many there were.

    interpreter: a worker that runs a share of the chains, too; None leaves that out
    before: called with each draw before it is checked

    The first failure is shrunk and raised as the exception of the smallest draw that fails, with
    the seed and the draw as a note.
    """
    total = 0

    @hypothesis.seed(seed)
    @draws_of(count, shrink)
    @hypothesis.given(draws)
    def check_one(draw: Draw) -> None:
        nonlocal total
        before(draw)
        try:
            draw.call(interpreter, **dict(draw.values))
        except Exception as error:
            error.add_note(f"seed {seed}, kernel: {draw}")
            raise
        total += 1

    check_one()
    return total
