"""Kernels of the simulator's tests at sizes that only a GPU runs in a moment."""

from __future__ import annotations

import numpy as np
import pytest
from scan_values import assert_close, check, decode, encode, fold, run
from test_after_dot import after_dot, check_product
from test_scan_programs import matmul_scan, pipelined

RNG = np.random.default_rng


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
