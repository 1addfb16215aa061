"""Kernels of the simulator's tests at sizes that only a GPU runs in a moment."""

from __future__ import annotations

import numpy as np
import pytest
from scan_values import assert_close, check, decode, encode, fold, run
from test_after_dot import after_dot, check_product
from test_cases import add_numpy, affine_numpy, recurrence
from test_clusters import cumsum
from test_flip import flip_shaped
from test_scan_programs import matmul_scan, pipelined
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


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float16", "bf16", "float32", "int8"])
@pytest.mark.parametrize(
    ("m", "n", "k", "num_warps"), [(128, 128, 64, 4), (128, 256, 64, 8), (256, 64, 32, 8)]
)
def test_2_products(m, n, k, num_warps, dtype, axis):
    check_product(dtype, m, n, k, axis, "sum", num_warps=num_warps)


@pytest.mark.parametrize("what", ["pair", "chain", "flip", "both"])
@pytest.mark.parametrize("axis", [0, 1])
def test_2_programs(axis, what):
    check_product("bf16", 128, 128, 64, axis, what, num_warps=8)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["float16", "bf16", "float32"])
def test_2_random_factors(dtype, axis):
    """Of a normal distribution, against float64.

    Each of the 64 products of a sum, and each sum, is rounded, tf32's factors to 11 bits.
    """
    x, y = (encode(RNG(s).standard_normal((64, 64)), dtype) for s in (1, 2))
    for reverse in (False, True):
        constexprs = {"M": 64, "N": 64, "K": 64, "AXIS": axis, "WHAT": "both", "REVERSE": reverse}
        (got,) = run(after_dot, [x, y], [np.zeros((64, 64), np.float32)], (), constexprs)
        wanted = fold(np.add, [decode(x) @ decode(y)], axis, not reverse)[0]
        bound = fold(np.add, [np.abs(decode(x)) @ np.abs(decode(y))], axis, not reverse)[0]
        error = 2.0**-9 if dtype == "float32" else 2.0**-16
        assert_close(got, wanted, error * bound)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("stages", [2, 3, 4])
def test_3_pipelined_products(stages, inside, axis):
    x, y = (RNG(s).integers(-2, 3, shape) for s, shape in ((1, (128, 512)), (2, (512, 128))))
    check(
        matmul_scan,
        [x.astype(np.float16), y.astype(np.float16)],
        lambda x, y, reverse: fold(np.add, [x @ y], axis, reverse),
        axis=axis,
        outputs=[np.zeros((128, 128), np.float32)],
        scalars=[8],
        constexprs={"N": 128, "K": 64, "AXIS": axis, "STAGES": stages, "INSIDE": inside},
        mirrored=False,  # flipping the inputs does not flip their product
        num_warps=8,
    )


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_3_pipelined_loads(stages):
    x = RNG(1).integers(-(2**31), 2**31, (40, 64, 128)).astype(np.int32)

    def reference(x, reverse):
        sums = x.sum(1, keepdims=True, dtype=np.int32)
        before = np.cumsum(sums, 0, dtype=np.int32) - sums
        return [fold(np.add, [x], 1, reverse)[0] + before, sums.sum(0, dtype=np.int32)[0]]

    check(
        pipelined,
        [x],
        reference,
        axis=1,
        outputs=[x, np.zeros(128, np.int32)],
        scalars=[40],
        constexprs={"N": 64, "D": 128, "STAGES": stages},
        mirrored=False,  # only the tiles are mirrored, not their order
    )


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
