"""What TRITON_NATIVE_SCAN_REMARKS=1 prints: one line a scan or flip, at the user's place.

The numbers are compared with the code.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.native_scan import ScanLoweringError
from triton.tools.asm_counts import count_ptx
from triton.tools.ptx_sim import compile_kernel as compile_for

REMARK = re.compile(
    r"(?P<file>\S+):(?P<line>\d+):(?P<column>\d+): (?P<what>forward scan|reverse scan|flip) along "
    r"axis (?P<axis>\d+) of 'tensor<(?P<type>[\dx]+x\w+), (?P<encoding>#ttg\..*)>'; axis bits, "
    r"finest first: (?P<runs>[\w ]*); a thread executes (?P<shuffles>\d+) shuffles, "
    r"(?P<exchanges>\d+) exchanges(, (?P<combines>\d+) combines)?"
)


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def rows(x, out, T: tl.constexpr, D: tl.constexpr, WHAT: tl.constexpr, AXIS: tl.constexpr):
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    v = tl.load(x + i)
    if WHAT == "forward scan":
        v = tl.associative_scan(v, AXIS, add)
    elif WHAT == "reverse scan":
        v = tl.cumsum(v, AXIS, reverse=True)
    elif WHAT == "flip":
        v = tl.flip(v, AXIS)
    tl.store(out + i, v)


@triton.jit
def several(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.flip(tl.load(x + i))
    tl.store(out + i, tl.cumsum(v, 0) + tl.cumsum(v, 0, reverse=True))


@gluon.jit
def line(x, out, N: gl.constexpr, LAYOUT: gl.constexpr, WHAT: gl.constexpr):
    i = gl.arange(0, N, LAYOUT)
    v = gl.load(x + i)
    v = gl.associative_scan(v, 0, add, reverse=WHAT == "reverse scan")
    gl.store(out + i, v)


@pytest.fixture
def remarks(capfd, monkeypatch):
    """Return remarks(compile): what a compilation prints, as groups of REMARK."""
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")

    def remarks(compile_it) -> tuple[list[dict], str]:
        capfd.readouterr()
        with triton.knobs.scan.scope():
            triton.knobs.scan.remarks = True
            compiled = compile_it()
        lines = [text for text in capfd.readouterr().err.splitlines() if " along axis " in text]
        found = [REMARK.fullmatch(text) for text in lines]
        assert all(found), lines
        return [match.groupdict() for match in found], compiled.asm["ptx"]

    return remarks


WHATS = ("forward scan", "reverse scan", "flip")
# (shape, axis, warps): what the layout makes of the axis
SPLITS = {
    ((32, 4), 1, 1): "2 register",
    ((8, 16), 1, 1): "2 register 2 lane",
    ((1, 4), 1, 1): "2 lane",
    ((1, 256), 1, 2): "2 register 5 lane 1 warp",
    ((32, 4), 0, 1): "5 lane",
    ((64, 32), 0, 8): "2 lane 3 warp 1 register",
    ((4, 1), 1, 1): "none",
}


@pytest.mark.parametrize("what", WHATS)
@pytest.mark.parametrize("split", SPLITS, ids=str)
def test_one_line(remarks, split, what):
    (t, d), axis, warps = split
    x = np.zeros((t, d), np.float32)
    constexprs = {"T": t, "D": d, "WHAT": what, "AXIS": axis}
    (said,), ptx = remarks(lambda: compile_for(rows, [x, x.copy()], constexprs, num_warps=warps)[0])
    assert said["what"] == what
    assert int(said["axis"]) == axis
    assert said["type"] == f"{t}x{d}xf32"
    assert said["runs"] == SPLITS[split]
    assert said["file"].endswith("test_remarks.py")
    source = rows.raw_src[int(said["line"]) - rows.starting_line_number]
    assert {"forward scan": "associative_scan", "reverse scan": "cumsum", "flip": "tl.flip"}[
        what
    ] in source
    counts = count_ptx(ptx)
    assert counts.shuffles == int(said["shuffles"])
    assert counts.barriers == int(said["exchanges"])
    assert (said["combines"] is None) == (what == "flip")


@pytest.mark.parametrize("what", WHATS)
def test_clusters(remarks, what):
    x = np.zeros((1, 1024), np.float32)
    constexprs = {"T": 1, "D": 1024, "WHAT": what, "AXIS": 1}
    (said,), ptx = remarks(lambda: compile_for(rows, [x, x.copy()], constexprs, num_ctas=2)[0])
    assert said["runs"] == "2 register 5 lane 2 warp 1 block"
    assert int(said["exchanges"]) == 2
    assert "shared::cluster" in ptx


@pytest.mark.parametrize("reverse", [False, True])
def test_interleaved_runs(remarks, reverse):
    layout = gl.DistributedLinearLayout(
        [[2], [64]], [[1], [4], [8], [128], [256]], [[16], [32]], [], [512]
    )
    x = np.zeros(512, np.float32)
    what = "reverse scan" if reverse else "forward scan"
    constexprs = {"N": 512, "LAYOUT": layout, "WHAT": what}
    (said,), _ = remarks(lambda: compile_for(line, [x, x.copy()], constexprs)[0])
    assert said["what"] == what
    assert said["runs"] == "1 lane 1 register 2 lane 2 warp 1 register 2 lane"


def test_one_line_each(remarks):
    x = np.zeros(256, np.float32)
    said, _ = remarks(lambda: compile_for(several, [x, x.copy()], {"N": 256})[0])
    assert [one["what"] for one in said] == ["flip", "forward scan", "reverse scan"]


def test_nothing_is_printed_unless_asked_for(capfd, monkeypatch):
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    x = np.zeros(256, np.float32)
    compile_for(several, [x, x.copy()], {"N": 256})
    assert "along axis" not in capfd.readouterr().err


AMD = GPUTarget("hip", "gfx1250", 32)


@pytest.mark.parametrize(("what", "op"), [("reverse scan", "'tt.scan' op"), ("flip", "tl.flip")])
def test_refused_at_the_users_line(compile_kernel, what, op):
    """One line with the place, the op, the reason and the way out."""
    signature = {"x": "*fp32", "out": "*fp32"}
    constexprs = {"T": 1, "D": 1024, "WHAT": what, "AXIS": 1}
    with pytest.raises(ScanLoweringError) as caught:
        compile_kernel(
            rows,
            signature | dict.fromkeys(constexprs, "constexpr"),
            constexprs,
            target=AMD,
            num_ctas=2,
        )
    text = str(caught.value)
    assert re.fullmatch(
        rf"\S*test_remarks\.py:(\d+):\d+: {re.escape(op)} cannot be lowered: axis 1 crosses CTAs, "
        r"which cannot .* on this target; use num_ctas=1",
        text,
    ), text
    number = int(re.search(r"\.py:(\d+):", text)[1])
    assert ("cumsum" if "scan" in what else "flip") in rows.raw_src[
        number - rows.starting_line_number
    ]
