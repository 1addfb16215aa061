"""The fuzzer's programs on a GPU; their seeds follow from the run's."""

from __future__ import annotations

import numpy as np
import pytest
from fuzz.campaign import run_programs

# Of two scans at most: ptxas took more than 90 s for a kernel of six.
PROGRAMS = 16


@pytest.mark.parametrize("part", range(32))
def test_programs(part):
    seed = int(np.random.default_rng(part).integers(1 << 31))
    assert run_programs(seed, PROGRAMS, max_scans=2, shrink=False) >= PROGRAMS
