"""Clusters and flips at sizes that only a GPU runs in a moment; not of the source base's Triton."""

from __future__ import annotations

import numpy as np
import pytest
from scan_values import assert_close, check, decode, fold, run
from test_cases import add_numpy, affine_numpy, recurrence
from test_clusters import cumsum
from test_flip import flip_shaped
from triton.tools.ptx_sim import run_kernel

RNG = np.random.default_rng


@pytest.mark.parametrize("num_ctas", [2, 4, 8, 16])
@pytest.mark.parametrize("num_warps", [1, 4, 8])
def test_1_clusters(num_warps, num_ctas):
    x = RNG(1).integers(-(2**31), 2**31, 16384).astype(np.int32)
    options = {"num_warps": num_warps, "num_ctas": num_ctas}
    check(cumsum, [x], add_numpy, axis=0, constexprs={"N": 16384}, **options)


@pytest.mark.parametrize("num_ctas", [1, 2, 4, 8])
def test_1_cluster_recurrence(num_ctas):
    """Floats, within the error of a tree whose every step rounds twice."""
    a = RNG(1).uniform(0.5, 1.0, 8192) * RNG(2).choice([-1.0, 1.0], 8192)
    operands = [a.astype(np.float32), RNG(3).standard_normal(8192).astype(np.float32)]
    for reverse in (False, True):
        constexprs = {"N": 8192, "REVERSE": reverse}
        got = run(recurrence, operands, operands, (), constexprs, num_ctas=num_ctas)
        exact = [decode(x) for x in operands]
        wanted = fold(affine_numpy, exact, 0, reverse)
        bounds = fold(affine_numpy, [np.abs(x) for x in exact], 0, reverse)
        for mine, right, bound in zip(got, wanted, bounds, strict=True):
            # Products below the smallest number lose all of their digits.
            assert_close(mine, right, 64 * 2.0**-24 * bound + 2.0**-126)


SHAPES = [(65536,), (128, 256), (4, 64, 128), (16, 2, 32, 8), (2, 8, 4, 16, 8)]


@pytest.mark.parametrize(("num_warps", "num_ctas"), [(1, 1), (4, 1), (8, 1), (16, 1), (4, 4)])
@pytest.mark.parametrize(("shape", "dim"), [(s, d) for s in SHAPES for d in range(len(s))], ids=str)
def test_7_flips(shape, dim, num_warps, num_ctas):
    if len(shape) == 1:  # at most 128 elements a thread
        shape = (min(shape[0], 4096 * num_warps),)
    x = RNG(1).integers(-(2**31), 2**31, shape).astype(np.int32)
    z = np.zeros_like(x)
    constexprs = {"N": x.size, "SHAPE": x.shape, "DIM": dim}
    run_kernel(flip_shaped, 1, [x, z], constexprs, num_warps=num_warps, num_ctas=num_ctas)
    np.testing.assert_array_equal(z, np.flip(x, dim))
