"""The fuzzer's programs on a GPU; their seeds follow from the run's."""

from __future__ import annotations

import numpy as np
import pytest
from fuzz.campaign import run_programs

# Small ones: LLVM and ptxas take minutes for a kernel of six scans, or with thousands of values in
# a thread.  larger.py has the sizes.
PROGRAMS = 16


@pytest.mark.parametrize("part", range(32))
def test_programs(part):
    seed = int(np.random.default_rng(part).integers(1 << 31))
    count = run_programs(seed, PROGRAMS, max_scans=2, shrink=False, large_tensors=False)
    assert count >= PROGRAMS
