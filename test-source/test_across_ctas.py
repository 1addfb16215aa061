"""A scan along an axis that is split over CTAs: one clear error, whichever lowering is chosen.

Neither lowering of the source base's Triton can move totals between CTAs; upstream's own would
compile such a scan to one of each CTA's part.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
import triton
import triton.language as tl
from scan_values import fold
from triton.native_scan import ScanLoweringError
from triton.tools.ptx_sim import run_kernel


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def row(x, z, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z + i, tl.associative_scan(tl.load(x + i), 0, add, reverse=REVERSE))


@triton.jit
def tile(x, z, T: tl.constexpr, D: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(z + i, tl.associative_scan(tl.load(x + i), AXIS, add, reverse=REVERSE))


def refusal(kernel, shape, constexprs, native) -> str:
    x = np.zeros(shape, np.int32)
    with pytest.raises(ScanLoweringError) as caught:
        run_kernel(kernel, 1, [x, x.copy()], constexprs, num_ctas=2, native=native)
    return str(caught.value)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("reverse", [False, True])
def test_refused_at_the_users_line(native, reverse):
    place = rf"\S*{re.escape(__file__.rpartition('/')[2])}:\d+:\d+"
    words = "cannot be lowered: axis {} crosses CTAs, which cannot share totals on this target; "
    cases = [
        (row, (1024,), {"N": 1024}, 0),
        (tile, (16, 256), {"T": 16, "D": 256, "AXIS": 0}, 0),
    ]
    for kernel, shape, constexprs, axis in cases:
        text = refusal(kernel, shape, {**constexprs, "REVERSE": reverse}, native)
        wanted = f"{place}: 'tt.scan' op {words.format(axis)}use num_ctas=1"
        assert re.fullmatch(wanted, text), text


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("reverse", [False, True])
def test_the_other_axis_is_scanned(native, reverse):
    """Each CTA has whole rows of the tile whose columns test_refused_at_the_users_line scans."""
    x = np.random.default_rng(0).integers(-(2**31), 2**31, (16, 256)).astype(np.int32)
    z = np.zeros_like(x)
    constexprs = {"T": 16, "D": 256, "AXIS": 1, "REVERSE": reverse}
    run_kernel(tile, 1, [x, z], constexprs, num_ctas=2, native=native)
    assert np.array_equal(z, fold(np.add, [x], 1, reverse)[0])
