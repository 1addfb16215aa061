"""Scans and flips in loops that Triton specialises by itself (tl.range(..., warp_specialize=True)).

Such loops load through TMA, which the simulator does not know: here the code is inspected, and
gpu/specialized.py checks the values on a GPU.  For sm_80, where nothing is specialised and
descriptors become pointers, the scans are taken out and put back all the same, and simulated.
"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
import triton
import triton.language as tl
from scan_values import check, fold
from triton.backends.compiler import GPUTarget

HOPPER, BLACKWELL = (GPUTarget("cuda", n, 32) for n in (90, 100))


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def affine(a1, b1, a2, b2):
    return a2 * a1, a2 * b1 + b2


@triton.jit
def saturating(a, b):
    c = a + b
    if c > 1000.0:
        c = 1000.0
    return c


@triton.jit
def counting(a, b):
    return a + b + tl.num_programs(1)


@triton.jit
def turned(z, WHAT: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    # What a kernel does with a product; all of it exact for small integers.
    if WHAT == "sum":
        z = tl.associative_scan(z, AXIS, add, reverse=REVERSE)
    elif WHAT == "cumsum":
        z = tl.cumsum(z, AXIS, reverse=REVERSE)
    elif WHAT == "flip":
        z = tl.flip(z, AXIS)
    elif WHAT == "pair":
        sign = tl.where(z > 0, 1.0, -1.0)
        sign, z = tl.associative_scan((sign, z), AXIS, affine, reverse=REVERSE)
        z = z * sign
    elif WHAT == "branch":
        z = tl.associative_scan(tl.abs(z), AXIS, saturating, reverse=REVERSE)
    elif WHAT == "captured":
        # The count is computed once, here, for the combine function as well.
        z = tl.associative_scan(z + tl.num_programs(1), AXIS, counting, reverse=REVERSE)
    elif WHAT == "both":
        z = tl.flip(tl.associative_scan(tl.flip(z, AXIS), AXIS, add, reverse=REVERSE), AXIS)
    elif WHAT == "axes":
        z = tl.associative_scan(z, 1 - AXIS, add, reverse=REVERSE)
        z = tl.associative_scan(z, AXIS, add, reverse=not REVERSE)
    return z


@triton.jit
def product(
    x, y, out, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, AXIS: tl.constexpr,
    WHAT: tl.constexpr, INSIDE: tl.constexpr, STAGES: tl.constexpr, REVERSE: tl.constexpr,
):  # fmt: skip
    """[M, n * K] times [n * K, N]; the scan is of each step's product, or of the accumulator."""
    x_desc = tl.make_tensor_descriptor(x, [M, n * K], [n * K, 1], [M, K])
    y_desc = tl.make_tensor_descriptor(y, [n * K, N], [N, 1], [K, N])
    acc = tl.zeros([M, N], tl.float32)
    for k in tl.range(0, n, num_stages=STAGES, warp_specialize=True):
        a, b = x_desc.load([0, k * K]), y_desc.load([k * K, 0])
        if INSIDE:
            acc += turned(tl.dot(a, b), WHAT, AXIS, REVERSE)
        else:
            acc = tl.dot(a, b, acc)
    if not INSIDE:
        acc = turned(acc, WHAT, AXIS, REVERSE)
    tl.store(out + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], acc)


@triton.jit
def tiles(
    x, y, out, n, T: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    AXIS: tl.constexpr, WHAT: tl.constexpr, STAGES: tl.constexpr, REVERSE: tl.constexpr,
):  # fmt: skip
    """T tiles of [M, n * K] times [n * K, N], the tiles' loop specialised."""
    x_desc = tl.make_tensor_descriptor(x, [T * M, n * K], [n * K, 1], [M, K])
    y_desc = tl.make_tensor_descriptor(y, [n * K, N], [N, 1], [K, N])
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    for t in tl.range(0, T, num_stages=STAGES, warp_specialize=True):
        acc = tl.zeros([M, N], tl.float32)
        for k in tl.range(0, n):
            acc = tl.dot(x_desc.load([t * M, k * K]), y_desc.load([k * K, 0]), acc)
        tl.store(out + t * M * N + i, turned(acc, WHAT, AXIS, REVERSE))


def turned_numpy(z: np.ndarray, what: str, axis: int, reverse: bool) -> np.ndarray:
    """Return what turned() computes, in float64."""

    def scanned(z, axis, reverse):
        return fold(np.add, [z], axis, reverse)[0]

    if what in ("sum", "cumsum"):
        return scanned(z, axis, reverse)
    if what == "flip":
        return np.flip(z, axis)
    if what == "pair":
        sign = np.where(z > 0, 1.0, -1.0)
        maps = fold(lambda a1, b1, a2, b2: (a2 * a1, a2 * b1 + b2), [sign, z], axis, reverse)
        return maps[0] * maps[1]
    if what == "branch":
        return np.minimum(scanned(np.abs(z), axis, reverse), 1000.0)
    if what == "captured":
        ones = np.ones_like(z)
        return scanned(z + 1, axis, reverse) + scanned(ones, axis, reverse) - 1
    if what == "both":
        return scanned(z, axis, not reverse)
    assert what == "axes"
    return scanned(scanned(z, 1 - axis, reverse), axis, not reverse)


WHATS = ("sum", "cumsum", "flip", "pair", "branch", "captured", "both", "axes")
POINTERS = {"x": "*fp16", "y": "*fp16", "out": "*fp32", "n": "i32"}


def compiled(compile_kernel, kernel, target, *, native=True, num_warps=4, **changes):
    """Compile for 128x64 products; `changes` are constexprs."""
    values = {"T": 3, "M": 128, "N": 64, "K": 64, "AXIS": 1, "WHAT": "sum"}
    values |= {"INSIDE": False, "STAGES": 2, "REVERSE": True, **changes}
    constexprs = {name: values[name] for name in kernel.arg_names if name in values}
    signature = POINTERS | dict.fromkeys(constexprs, "constexpr")
    signature = {name: signature[name] for name in kernel.arg_names}
    return compile_kernel(
        kernel, signature, constexprs, target=target, native=native, num_warps=num_warps
    )


def scanned_shapes(ttgir: str) -> list[str]:
    """Return the shapes of the scans, with those of flips."""
    return re.findall(r"\}\)[^()]*: \(tensor<([\dx]+)x\w+, [^)]*\) -> ", ttgir)


def is_specialized(ttgir: str) -> bool:
    return "ttg.warp_specialize(" in ttgir


CASES = [*((product, what) for what in WHATS), (tiles, "sum"), (tiles, "flip")]


@pytest.mark.parametrize(("kernel", "what"), CASES, ids=lambda v: getattr(v, "__name__", v))
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("target", [HOPPER, BLACKWELL], ids=lambda t: str(t.arch))
def test_compiles(compile_kernel, target, axis, kernel, what):
    kernel = compiled(compile_kernel, kernel, target, AXIS=axis, WHAT=what)
    assert "triton_scan.outlined" not in kernel.asm["ttgir"]
    assert "tt.scan" in kernel.asm["ttgir"]
    # Hopper's accumulators are split along their rows; loops whose scans need whole columns are
    # pipelined instead.
    rows_stay_apart = axis == 1 and what != "axes"
    assert is_specialized(kernel.asm["ttgir"]) == (target is BLACKWELL or rows_stay_apart)


@pytest.mark.parametrize("what", ["sum", "flip", "pair", "branch", "captured"])
@pytest.mark.parametrize("target", [HOPPER, BLACKWELL], ids=lambda t: str(t.arch))
def test_inside_the_loop(compile_kernel, target, what):
    kernel = compiled(compile_kernel, product, target, WHAT=what, INSIDE=True)
    assert is_specialized(kernel.asm["ttgir"])
    assert "tt.scan" in kernel.asm["ttgir"]


@pytest.mark.parametrize("what", ["sum", "flip", "pair"])
def test_each_group_of_warps_scans_its_own_rows(compile_kernel, what):
    ttgir = compiled(compile_kernel, product, HOPPER, WHAT=what).asm["ttgir"]
    assert scanned_shapes(ttgir) == ["64x64", "64x64"]
    partitions = re.split(r"\n    partition\d+\(", ttgir)
    assert [part.count('"tt.scan"') for part in partitions] == [0, 1, 1]


@pytest.mark.parametrize("axis", [0, 1])
def test_few_rows_are_not_split(compile_kernel, axis):
    ttgir = compiled(compile_kernel, product, HOPPER, M=64, AXIS=axis, WHAT="flip").asm["ttgir"]
    assert is_specialized(ttgir)
    assert set(scanned_shapes(ttgir)) == {"64x64"}


@pytest.mark.parametrize("target", [HOPPER, BLACKWELL], ids=lambda t: str(t.arch))
def test_loops_without_scans_are_upstreams(compile_kernel, target):
    """A kernel without a scan consists of the same ops, whose order upstream leaves open."""
    ours, upstreams = (
        compiled(compile_kernel, product, target, native=native, WHAT="nothing").asm["ttgir"]
        for native in (True, False)
    )
    count = re.compile(r"\b(?:ttn?g?|arith|scf)\.\w+")
    assert Counter(count.findall(ours)) == Counter(count.findall(upstreams))
    assert is_specialized(ours)


@pytest.mark.parametrize("target", [HOPPER, BLACKWELL], ids=lambda t: str(t.arch))
def test_upstream_refuses(compile_kernel, target):
    with pytest.raises(RuntimeError, match="PassManager::run failed"):
        compiled(compile_kernel, tiles, target, native=False, WHAT="sum")


@pytest.mark.parametrize("what", WHATS)
@pytest.mark.parametrize("axis", [0, 1])
def test_values(axis, what):
    x, y = (np.random.default_rng(s).integers(-2, 3, (128, 128)) for s in (1, 2))
    check(
        product,
        [x.astype(np.float16), y[:, :32].astype(np.float16)],
        lambda x, y, reverse: [turned_numpy(x @ y, what, axis, reverse)],
        axis=axis,
        outputs=[np.zeros((128, 32), np.float32)],
        scalars=[2],
        constexprs={
            "M": 128, "N": 32, "K": 64, "AXIS": axis, "WHAT": what, "INSIDE": False, "STAGES": 2,
        },
        mirrored=False,  # flipping the inputs does not flip their product
        capability=80,
    )  # fmt: skip


@pytest.mark.parametrize("axis", [0, 1])
def test_remark_where_a_loop_is_not_specialized(compile_kernel, capfd, monkeypatch, axis):
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    capfd.readouterr()
    for remarks in (False, True):
        monkeypatch.setenv("TRITON_NATIVE_SCAN_REMARKS", str(int(remarks)))
        compiled(compile_kernel, tiles, HOPPER, AXIS=axis, WHAT="sum")
        said = re.findall(
            r"test_auto_specialize\.py:(\d+):\d+: the loop is pipelined and not warp-specialised, "
            r"which could split the axis of a scan or flip\n",
            capfd.readouterr().err,
        )
        assert len(said) == (remarks and axis == 0)
        for line in said:
            text = tiles.raw_src[int(line) - tiles.starting_line_number]
            assert "warp_specialize=True" in text
