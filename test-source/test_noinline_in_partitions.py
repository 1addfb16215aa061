"""Functions that are not inlined, in a kernel that specialises its warps.

This Triton gives the barriers of such a function the number of the whole CTA's, so that the warps
of a partition would wait for ever, with either lowering.
"""

from __future__ import annotations

import pytest
from fuzz import operators as ops
from fuzz import runner
from fuzz.layouts import Layout, Machine
from fuzz.programs import Program, Scan
from triton import knobs, native_scan

WARPS = (
    "#ttg.linear<{register = [], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], "
    "block = []}>"
)
ROWS = (
    "#ttg.linear<{register = [], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], "
    "warp = [[1, 0], [2, 0]], block = []}>"
)


def program(layout: Layout, axis: int, reverse: bool, called: int) -> Program:
    """Two scans, in the default region and in a partition, one of them in a function."""
    scans = tuple(
        Scan(layout, axis, reverse, ops.affine_map("i32"), "none", 1, False, i, form)
        for i, form in enumerate(("call", "scan") if called == 0 else ("scan", "call"))
    )
    return Program(Machine(32, 4, 1), scans, workers=(4,))


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("called", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
def test_scan_across_warps_is_refused(reverse, called, native, monkeypatch):
    monkeypatch.setattr(knobs.scan, "native", native)
    words = (
        "axis 0 crosses warps, which cannot wait for each other in a function that is not inlined"
    )
    with pytest.raises(native_scan.ScanLoweringError, match=words):
        runner.run(program(Layout((128,), WARPS), 0, reverse, called))


@pytest.mark.parametrize("called", [0, 1])
@pytest.mark.parametrize("reverse", [False, True])
def test_scan_within_warps(reverse, called):
    runner.run(program(Layout((4, 32), ROWS), 1, reverse, called))
