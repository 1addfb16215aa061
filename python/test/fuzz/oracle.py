"""What a scan has to give: the sequential left fold in the direction."""

from __future__ import annotations

import numpy as np

from .backends import NUMPY, NumpyBackend
from .operators import Operator


def fold(
    operator: Operator, operands: list[np.ndarray], axis: int, reverse: bool
) -> list[np.ndarray]:
    """Return the inclusive prefixes along `axis`, of the operands' shapes.

    The accumulated tuple is the first argument; a reverse scan starts at the last index.
    """
    captured = [NUMPY[kind].type(value) for kind, value in operator.captured]
    backend = NumpyBackend(captured)
    results = [np.empty_like(a) for a in operands]
    sources = [np.moveaxis(a, axis, 0) for a in operands]
    targets = [np.moveaxis(r, axis, 0) for r in results]
    positions = range(len(sources[0]))
    total = None
    with np.errstate(all="ignore"):
        for i in reversed(positions) if reverse else positions:
            # Arrays even if there is one element: NumPy's scalars warn and widen.
            own = [np.asarray(s[i : i + 1]) for s in sources]
            total = own if total is None else operator.combine(backend, total, own)
            for target, kind, value in zip(targets, operator.kinds, total, strict=True):
                assert value.dtype == NUMPY[kind], (operator.name, value.dtype, kind)
                target[i] = value[0]
    return results
