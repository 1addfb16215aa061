"""Scans in the partitions of a warp-specialised kernel, run in the simulator.

Each partition has warps of its own, which number themselves from 0 and meet at a barrier of their
own while the other partitions go on.  The simulator finds a barrier that warps of another partition
are waited for at, and shared memory that two partitions use at once.

The values are integers that wrap around; results equal the sequential fold bit for bit.
"""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from scan_values import check, fold
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier
from triton.tools.ptx_sim import compile_kernel

RNG = np.random.default_rng


@gluon.jit
def affine(a1, b1, a2, b2):
    return a2 * a1, a2 * b1 + b2


@gluon.jit
def add(a, b):
    return a + b


def affine_numpy(a1, b1, a2, b2):
    return a2 * a1, a2 * b1 + b2


def integers(*shape: int, seed: int = 0) -> np.ndarray:
    """Return any 32-bit integers."""
    return RNG(seed).integers(-(2**31), 2**31, shape).astype(np.int32)


def scanned(x: np.ndarray, axis: int, reverse: bool) -> np.ndarray:
    """Return the sums along an axis."""
    return fold(np.add, [x], axis, reverse)[0]


@gluon.constexpr_function
def row_of(warps):
    """Return a layout for 1-D tensors, two elements a thread."""
    return gl.BlockedLayout([2], [32], [warps], [0])


# --- every partition at once


@gluon.jit
def pair(x, y, out_x, out_y, N: gl.constexpr, REVERSE: gl.constexpr):
    i = gl.arange(0, N, row_of(gl.num_warps()))
    a, b = gl.associative_scan((gl.load(x + i), gl.load(y + i)), 0, affine, reverse=REVERSE)
    gl.store(out_x + i, a)
    gl.store(out_y + i, b)


@gluon.jit
def pairs(
    x, y, out_x, out_y, N: gl.constexpr, WARPS: gl.constexpr, REGISTERS: gl.constexpr,
    REVERSE: gl.constexpr,
):  # fmt: skip
    gl.warp_specialize(
        [
            (pair, (x, y, out_x, out_y, N, REVERSE)),
            (pair, (x + N, y + N, out_x + N, out_y + N, N, REVERSE)),
            (pair, (x + 2 * N, y + 2 * N, out_x + 2 * N, out_y + 2 * N, N, REVERSE)),
        ],
        WARPS,
        REGISTERS,
    )


@pytest.mark.parametrize("n", [16, 512, 1024])
@pytest.mark.parametrize(
    ("num_warps", "workers", "registers"),
    [(4, [1, 2], [24, 24]), (4, [4, 4], [24, 64]), (8, [4, 4], [64, 64]), (4, [2, 8], [40, 24])],
)
def test_all_partitions_scan(n, num_warps, workers, registers):
    check(
        pairs,
        [integers(3, n, seed=1) | 1, integers(3, n, seed=2)],
        affine_numpy,
        axis=1,
        constexprs={"N": n, "WARPS": workers, "REGISTERS": registers},
        num_warps=num_warps,
    )


def test_each_partition_has_a_barrier_of_its_own():
    x = integers(3, 1024)
    for reverse in (False, True):
        constexprs = {"N": 1024, "WARPS": [2, 8], "REGISTERS": [40, 24], "REVERSE": reverse}
        kernel, _ = compile_kernel(pairs, [x] * 4, constexprs, num_warps=4)
        barriers = re.findall(r"bar(?:rier)?\.sync(?:\.aligned)?\s+(\d+), (\d+)", kernel.asm["ptx"])
        assert sorted(int(threads) for _, threads in set(barriers)) == [64, 128, 256]
        assert len({number for number, _ in barriers}) == 3


# --- control flow in a partition


@gluon.jit
def chained(x, out, n, N: gl.constexpr, REVERSE: gl.constexpr):
    i = gl.arange(0, N, row_of(gl.num_warps()))
    for k in range(n):
        v = gl.load(x + k * N + i)
        if k % 2 == 1:
            # Twice in one expression, and a result that feeds the next scan.
            once = gl.associative_scan(v, 0, add, reverse=REVERSE)
            v = gl.associative_scan(once * 3, 0, add, reverse=not REVERSE) - gl.associative_scan(
                v, 0, add, reverse=not REVERSE
            )
        else:
            left = k + 1
            while left > 0:
                v = gl.associative_scan(v, 0, add, reverse=REVERSE)
                left -= 1
        gl.store(out + k * N + i, v)


@gluon.jit
def control_flow(x, out, n, N: gl.constexpr, WARPS: gl.constexpr, REVERSE: gl.constexpr):
    gl.warp_specialize(
        [
            (chained, (x, out, n, N, REVERSE)),
            (chained, (x + n * N, out + n * N, n, N, not REVERSE)),
            (chained, (x + 2 * n * N, out + 2 * n * N, n, N, REVERSE)),
        ],
        WARPS,
    )


@pytest.mark.parametrize("workers", [[4, 4], [2, 1]])
def test_control_flow(workers):
    rows, n = 4, 256

    def part(x, reverse):
        out = x.copy()
        for k in range(rows):
            if k % 2 == 1:
                once = scanned(x[k], 0, reverse)
                twice = scanned(once * np.int32(3), 0, not reverse)
                out[k] = twice - scanned(x[k], 0, not reverse)
            else:
                for _ in range(k + 1):
                    out[k] = scanned(out[k], 0, reverse)
        return out

    def wanted(x, reverse):
        return [np.stack([part(x[p], reverse != (p == 1)) for p in range(3)])]

    x = integers(3, rows, n)
    check(
        control_flow,
        [x],
        wanted,
        axis=2,
        outputs=[x],
        scalars=[rows],
        constexprs={"N": n, "WARPS": workers},
        mirrored=True,
    )


# --- a loop in which choose_scan_layout finds a better layout


@gluon.constexpr_function
def along_lanes(warps):
    """Return a layout for [64, 64] tensors in which both axes cross lanes."""
    return gl.BlockedLayout([1, 4], [2, 16], [warps, 1], [1, 0])


@gluon.jit
def carried(x, out, n, T: gl.constexpr, D: gl.constexpr, AXIS: gl.constexpr, REVERSE: gl.constexpr):
    layout: gl.constexpr = along_lanes(gl.num_warps())
    row = gl.arange(0, T, gl.SliceLayout(1, layout))
    column = gl.arange(0, D, gl.SliceLayout(0, layout))
    i = row[:, None] * D + column[None, :]
    v = gl.load(x + i)
    for k in range(n):
        v = gl.associative_scan(v, AXIS, add, reverse=REVERSE) * 3 + k
    gl.store(out + i, v)


@gluon.jit
def loops(
    x, out, n, T: gl.constexpr, D: gl.constexpr, AXIS: gl.constexpr, WARPS: gl.constexpr,
    REVERSE: gl.constexpr,
):  # fmt: skip
    gl.warp_specialize(
        [
            (carried, (x, out, n, T, D, AXIS, REVERSE)),
            (carried, (x + T * D, out + T * D, n, T, D, AXIS, REVERSE)),
            (carried, (x + 2 * T * D, out + 2 * T * D, n, T, D, AXIS, REVERSE)),
        ],
        WARPS,
    )


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("workers", [[4, 4], [2, 8]])
def test_loop_carried(axis, workers):
    x = integers(3, 64, 64)

    def wanted(x, reverse):
        for k in range(5):
            x = scanned(x, axis + 1, reverse) * np.int32(3) + np.int32(k)
        return [x]

    constexprs = {"T": 64, "D": 64, "AXIS": axis, "WARPS": workers}
    check(loops, [x], wanted, axis=axis + 1, outputs=[x], scalars=[5], constexprs=constexprs)


def test_layouts_are_chosen_for_each_partition():
    """The loops are worth their name: choose_scan_layout gives each a layout for its warps."""
    x = np.zeros((3, 64, 64), np.int32)
    constexprs = {"T": 64, "D": 64, "AXIS": 0, "WARPS": [2, 8], "REVERSE": True}
    ttgir = compile_kernel(loops, [x, x, 5], constexprs)[0].asm["ttgir"]
    command = [sys.executable, "-m", "triton.tools.scan_opt", "--choose-scan-layout", "-"]
    done = subprocess.run(command, input=ttgir, capture_output=True, text=True, check=True)
    # The type of a scan stands at the end of its region.
    names = re.findall(r"\}\) : \(tensor<\w+, #(\w+)>", done.stdout)
    layouts = [re.search(rf"#{name} = (.*)", done.stdout)[1] for name in names]
    warps = [len(re.findall(r"\[\d", re.search("warp = (.*), block", text)[1])) for text in layouts]
    assert all(text.startswith("#ttg.linear<{register = [[1, 0]") for text in layouts), layouts
    assert warps == [2, 1, 3], layouts


# --- values that travel between partitions


@gluon.jit
def produce(x, buffer, full, empty, n, N: gl.constexpr):
    i = gl.arange(0, N, row_of(gl.num_warps()))
    for k in range(n):
        slot = k % 2
        mbarrier.wait(empty.index(slot), (k // 2) % 2 ^ 1)
        v = gl.associative_scan(gl.load(x + k * N + i), 0, add)
        buffer.index(slot).store(v)
        mbarrier.arrive(full.index(slot), count=1)


@gluon.jit
def consume(out, buffer, full, empty, n, N: gl.constexpr, REVERSE: gl.constexpr):
    layout: gl.constexpr = row_of(gl.num_warps())
    i = gl.arange(0, N, layout)
    for k in range(n):
        slot = k % 2
        mbarrier.wait(full.index(slot), (k // 2) % 2)
        v = buffer.index(slot).load(layout)
        mbarrier.arrive(empty.index(slot), count=1)
        gl.store(out + k * N + i, gl.associative_scan(v, 0, add, reverse=REVERSE))


@gluon.jit
def pipeline(x, out, n, N: gl.constexpr, WORKER: gl.constexpr, REVERSE: gl.constexpr):
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [0])
    buffer = gl.allocate_shared_memory(gl.int32, [2, N], shared)
    full = mbarrier.allocate_mbarrier(batch=2)
    empty = mbarrier.allocate_mbarrier(batch=2)
    for slot in gl.static_range(2):
        mbarrier.init(full.index(slot), count=1)
        mbarrier.init(empty.index(slot), count=1)
    gl.warp_specialize(
        [
            (consume, (out, buffer, full, empty, n, N, REVERSE)),
            (produce, (x, buffer, full, empty, n, N)),
        ],
        [WORKER],
    )


@pytest.mark.parametrize("worker", [1, 2, 8])
def test_producer_and_consumer(worker):
    x = integers(5, 256)

    def wanted(x, reverse):
        return [scanned(scanned(x, 1, False), 1, reverse)]

    check(
        pipeline,
        [x],
        wanted,
        axis=1,
        outputs=[x],
        scalars=[5],
        constexprs={"N": 256, "WORKER": worker},
        mirrored=False,  # the producer does not turn
    )


@gluon.jit
def yields(v, REVERSE: gl.constexpr):
    return gl.associative_scan(v, 0, add, reverse=REVERSE)


@gluon.jit
def around(x, out, other, N: gl.constexpr, REVERSE: gl.constexpr):
    i = gl.arange(0, N, row_of(gl.num_warps()))
    before = gl.associative_scan(gl.load(x + i), 0, add, reverse=REVERSE)
    inside = gl.warp_specialize(
        [(yields, (before * 3, REVERSE)), (one_row, (x, other, N, REVERSE))], [4]
    )
    gl.store(out + i, gl.associative_scan(inside - before, 0, add, reverse=REVERSE))


@gluon.jit
def one_row(x, out, N: gl.constexpr, REVERSE: gl.constexpr):
    i = gl.arange(0, N, row_of(gl.num_warps()))
    gl.store(out + i, gl.associative_scan(gl.load(x + i), 0, add, reverse=not REVERSE))


def test_scans_before_inside_and_after():
    x = integers(512)

    def wanted(x, reverse):
        before = scanned(x, 0, reverse)
        inside = scanned(before * np.int32(3), 0, reverse)
        return [scanned(inside - before, 0, reverse), scanned(x, 0, not reverse)]

    check(around, [x], wanted, axis=0, outputs=[x, x], constexprs={"N": 512}, mirrored=False)


# --- across CTAs


@gluon.jit
def across(x, out, N: gl.constexpr, LAYOUT: gl.constexpr, REVERSE: gl.constexpr):
    i = gl.arange(0, N, LAYOUT)
    v = gl.load(x + i)
    for _ in range(3):  # exchanges that follow each other
        v = gl.associative_scan(v, 0, add, reverse=REVERSE)
    gl.store(out + i, v)


@gluon.jit
def all_across(
    x, out, N: gl.constexpr, NARROW: gl.constexpr, WIDE: gl.constexpr, REVERSE: gl.constexpr
):
    gl.warp_specialize(
        [
            (across, (x, out, N, WIDE, REVERSE)),
            (across, (x + N, out + N, N, NARROW, not REVERSE)),
            (across, (x + 2 * N, out + 2 * N, N, WIDE, REVERSE)),
        ],
        [2, 4],
    )


def test_partitions_scan_across_ctas():
    """Partitions of two CTAs meet at mbarriers of their own, which are not whole clusters'."""
    x = integers(3, 512)

    def wanted(x, reverse):
        out = x.copy()
        for _ in range(3):
            out = np.stack([scanned(out[p], 0, reverse != (p == 1)) for p in range(3)])
        return [out]

    check(
        all_across,
        [x],
        wanted,
        axis=1,
        outputs=[x],
        constexprs={
            "N": 512,
            "NARROW": gl.BlockedLayout([2], [32], [2], [0], [[1]]),
            "WIDE": gl.BlockedLayout([2], [32], [4], [0], [[1]]),
        },
        num_ctas=2,
    )
