# ruff: noqa: SIM108  (branches in kernels are the point)
"""The kernels of UPSTREAM_FAULTS.md: what upstream's lowering does, and that ours is right."""

from __future__ import annotations

import numpy as np
import pytest
import triton
import triton.language as tl
from scan_values import assert_close, decode, encode, fold, run


@triton.jit
def scan(x, out, N: tl.constexpr, FN: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.associative_scan(tl.load(x + i), 0, FN, reverse=REVERSE))


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def first(a, b):
    return a


@triton.jit
def add_by_a_loop(a, b):
    for _ in range(b):
        a += 1
    return a


@triton.jit
def first_nonzero(a, b):
    if a != 0:
        c = a
    else:
        if b > 100:
            c = 100
        else:
            c = b * 2 - b
    return c


def add_numpy(a, b):
    return a + b


DIGITS = np.random.default_rng(0).integers(0, 4, 256)
FAULTS = {
    "loop": (add_by_a_loop, add_numpy, DIGITS.astype(np.int32), {}, "to have 0 or 1 blocks"),
    "branches": (
        first_nonzero,
        lambda a, b: np.where(a != 0, a, np.minimum(b, 100)),
        DIGITS.astype(np.int32),
        {},
        "to have 0 or 1 blocks",
    ),
    "num_ctas": (
        add,
        add_numpy,
        DIGITS.astype(np.float32),
        {"num_ctas": 2},
        "unsupported scan layout",
    ),
    "fp8": (
        first,
        lambda a, b: a,
        encode(DIGITS, "fp8e5"),
        {},
        "invalid element type in packLLElements",
    ),
}


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("fault", FAULTS)
def test_refused_by_upstream(fault, reverse, capfd):
    fn, reference, x, options, message = FAULTS[fault]
    constexprs = {"N": 256, "FN": fn, "REVERSE": reverse}
    (got,) = run(scan, [x], [x], (), constexprs, native=True, **options)
    assert_close(got, fold(reference, [decode(x)], 0, reverse)[0], 0)
    with pytest.raises(RuntimeError, match="PassManager::run failed"):
        run(scan, [x], [x], (), constexprs, native=False, **options)
    assert message in capfd.readouterr().err


@pytest.mark.parametrize("reverse", [False, True])
def test_bits_depend_on_the_number_of_warps(reverse):
    x = np.repeat(np.float32([1e8, 1.0]), 32)
    x = x if reverse else x[::-1].copy()
    results = {
        native: {
            run(
                scan,
                [x],
                [x],
                (),
                {"N": 64, "FN": add, "REVERSE": reverse},
                native=native,
                num_warps=num_warps,
            )[0].tobytes()
            for num_warps in (1, 2, 4, 8)
        }
        for native in (True, False)
    }
    assert len(results[True]) == 1
    assert len(results[False]) == 2
