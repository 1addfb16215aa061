"""The kernels of test_auto_specialize.py on a GPU: their loops load through TMA.

The products are of small integers, and exact.
"""

from __future__ import annotations

import numpy as np
import pytest
from scan_values import check
from test_auto_specialize import WHATS, product, tiles, turned_numpy

RNG = np.random.default_rng


def small(*shape: int, seed: int) -> np.ndarray:
    return RNG(seed).integers(-2, 3, shape).astype(np.float16)


@pytest.mark.parametrize("what", WHATS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize(("m", "n"), [(128, 64), (64, 128), (256, 64)])
def test_product(m, n, axis, what):
    def reference(x, y, reverse):
        return [turned_numpy(x @ y, what, axis, reverse)]

    check(
        product,
        [small(m, 256, seed=1), small(256, n, seed=2)],
        reference,
        axis=axis,
        outputs=[np.zeros((m, n), np.float32)],
        scalars=[4],
        constexprs={
            "M": m, "N": n, "K": 64, "AXIS": axis, "WHAT": what, "INSIDE": False, "STAGES": 3,
        },
        mirrored=False,  # flipping the inputs does not flip their product
    )  # fmt: skip


@pytest.mark.parametrize("what", ["sum", "flip", "pair", "branch"])
@pytest.mark.parametrize("axis", [0, 1])
def test_inside_the_loop(axis, what):
    def reference(x, y, reverse):
        parts = [x[:, k : k + 64] @ y[k : k + 64] for k in range(0, 256, 64)]
        return [sum(turned_numpy(z, what, axis, reverse) for z in parts)]

    check(
        product,
        [small(128, 256, seed=1), small(256, 128, seed=2)],
        reference,
        axis=axis,
        outputs=[np.zeros((128, 128), np.float32)],
        scalars=[4],
        constexprs={
            "M": 128, "N": 128, "K": 64, "AXIS": axis, "WHAT": what, "INSIDE": True, "STAGES": 2,
        },
        mirrored=False,  # flipping the inputs does not flip their product
    )  # fmt: skip


@pytest.mark.parametrize("what", WHATS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("stages", [2, 4])
def test_tiles(stages, axis, what):
    def reference(x, y, reverse):
        parts = [turned_numpy(x[t : t + 128] @ y, what, axis, reverse) for t in range(0, 384, 128)]
        return [np.concatenate(parts)]

    check(
        tiles,
        [small(384, 128, seed=1), small(128, 64, seed=2)],
        reference,
        axis=axis,
        outputs=[np.zeros((384, 64), np.float32)],
        scalars=[2],
        constexprs={
            "T": 3, "M": 128, "N": 64, "K": 64, "AXIS": axis, "WHAT": what, "STAGES": stages,
        },
        mirrored=False,  # flipping the inputs does not flip their product
    )  # fmt: skip
