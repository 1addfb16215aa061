"""A reverse scan costs what a forward scan costs: instructions counted in PTX and amdgcn text."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from scan_matrix import (
    GFX90A,
    GFX942,
    GFX950,
    GFX1100,
    GFX1200,
    SM_80,
    SM_90,
    SM_100,
    SM_120,
    add,
    after_dot,
    argmax,
    assembly,
    case,
    greater,
    llvm_ir,
    lowered,
    multiply,
    of_slice,
    recurrence,
    row,
    segments,
    tile,
    without_scan,
)
from triton.tools.asm_counts import amd_lane_moves, amd_lane_moves_in_llvm_ir, ptx_opcodes

FP32 = "fp32 fp32"
ROWS = ((128, 1), (256, 1), (1024, 1), (1024, 4), (1024, 8), (4096, 4), (4096, 8), (8192, 8))
RECURRENCES = ((256, 1), (1024, 4), (4096, 8))
TILES = ((64, 64, 4), (128, 32, 4), (256, 16, 4), (64, 16, 1))
SEGMENTED = "i8 fp16 i64 fp16 i64"

# The shapes of the two benchmarks: R scans in a loop (bound by scans), one scan (bound by memory).
BENCHMARKS = [
    *(case(row, FP32, w, N=n, FN=add, R=r) for n, w in ROWS for r in (1, 64)),
    *(case(recurrence, "fp32 fp32 fp32", w, N=n, R=r) for n, w in RECURRENCES for r in (1, 64)),
    *(case(tile, FP32, w, T=t, D=d, AXIS=0, R=r) for t, d, w in TILES for r in (1, 64)),
]
AFTER_DOT = [
    case(after_dot, "fp16 fp16 fp32", 4, target, N=64, AXIS=a)
    for a in (0, 1)
    for target in (SM_80, SM_90, SM_100, SM_120, GFX942, GFX1100)
]
FLOATS = [
    *BENCHMARKS,
    *(case(row, FP32, w, N=1024, FN=add, R=1) for w in (2, 16)),
    # Fewer elements than threads.
    *(case(row, FP32, w, N=n, FN=add, R=1) for n, w in ((64, 4), (16, 8))),
    *(case(tile, FP32, w, T=8, D=8, AXIS=a, R=1) for w in (1, 16) for a in (0, 1)),
    *(case(tile, FP32, w, T=64, D=64, AXIS=0, R=1) for w in (8, 16)),
    *(
        case(tile, FP32, w, T=t, D=d, AXIS=1, R=1)
        for t, d, w in ((64, 64, 4), (4, 512, 4), (4, 512, 8), (128, 16, 1))
    ),
    *(case(recurrence, "fp32 fp32 fp32", w, N=1024, R=1) for w in (8, 16)),
    *(case(row, f"{t} {t}", N=1024, FN=add, R=1) for t in ("fp16", "bf16", "fp64")),
    *(case(row, f"{t} {t}", N=1024, FN=greater, R=1) for t in ("fp32", "bf16")),
    case(row, FP32, N=1024, FN=multiply, R=1),
    *(case(argmax, "fp32 i32", w, N=1024) for w in (1, 4)),
    *(case(of_slice, FP32, w, T=64, D=32) for w in (1, 4)),
    *(case(row, FP32, 4, target, N=1024, FN=add, R=1) for target in (SM_80, SM_100, SM_120)),
    *(c for c in AFTER_DOT if c.target.backend == "cuda"),
]
INTEGERS = [
    *(case(row, f"{t} {t}", N=1024, FN=add, R=1) for t in ("i8", "u8", "i16", "i32", "i64")),
    case(row, "i32 i32", N=1024, FN=multiply, R=1),
    *(case(row, f"{t} {t}", N=1024, FN=greater, R=1) for t in ("i32", "i64")),
    case(argmax, "i32 i32", N=1024),
    *(case(segments, SEGMENTED, w, N=512) for w in (1, 4)),
]
AMD = [
    c
    for target in (GFX942, GFX1100)
    for c in (
        *(case(row, FP32, w, target, N=1024, FN=add, R=1) for w in (1, 4)),
        case(row, "i64 i64", 4, target, N=1024, FN=greater, R=1),
        case(recurrence, "fp32 fp32 fp32", 8, target, N=4096, R=1),
        *(case(tile, FP32, 4, target, T=64, D=64, AXIS=a, R=1) for a in (0, 1)),
        case(tile, FP32, 4, target, T=8, D=8, AXIS=0, R=1),
        case(segments, SEGMENTED, 4, target, N=512),
    )
]
AMD += [case(row, FP32, 4, t, N=1024, FN=add, R=1) for t in (GFX90A, GFX950, GFX1200)]
AMD_AFTER_DOT = [c for c in AFTER_DOT if c.target.backend == "hip"]


def selects_of_zero(ptx: str) -> int:
    """Count the selects between a value and zero."""
    return len(re.findall(r"selp\.\S+\s+%\w+, (?:0, |%\w+, 0,)", ptx))


def ptx_counts(ptx: str) -> dict[str, int]:
    """Count what a scan is made of."""
    ops = Counter(ptx_opcodes(ptx))

    def count(*prefixes: str) -> int:
        return sum(n for op, n in ops.items() if op.startswith(prefixes))

    floats = re.compile(r"(add|sub|mul|fma|max|min)\.(?:.*\.)?(?:b?f(?:16|32|64))(x2)?$")
    return {
        "shuffles": count("shfl."),
        "barriers": count("bar.sync", "barrier."),
        "warp barriers": count("bar.warp"),
        "shared loads": count("ld.shared", "ldmatrix"),
        "shared stores": count("st.shared", "stmatrix"),
        "selects": count("selp"),
        # A packed operation is two.
        "float operations": sum(
            n * (2 if m.group(2) else 1) for op, n in ops.items() if (m := floats.match(op))
        ),
    }


def amd_counts(asm: str) -> dict[str, int]:
    """Count what a scan is made of, but for moves with DPP (see amd_lane_moves)."""
    code = re.sub(r"(?m);.*$", "", asm)

    def count(pattern: str) -> int:
        return len(re.findall(rf"(?m)^\s+(?:{pattern})", code))

    moves = amd_lane_moves(asm)
    return {name: n for name, n in moves.items() if not name.startswith("dpp")} | {
        "barriers": count(r"s_barrier(?!_wait)"),
        "shared loads": count(r"ds_read|ds_load"),
        "shared stores": count(r"ds_write|ds_store"),
    }


def differing(forward: dict[str, int], reverse: dict[str, int]) -> dict[str, tuple[int, int]]:
    """Return {name: (forward, reverse)} where the two differ."""
    return {k: (n, reverse[k]) for k, n in forward.items() if n != reverse[k]}


@pytest.mark.parametrize("kernel", [*FLOATS, *INTEGERS], ids=str)
def test_reverse_costs_what_forward_costs(kernel):
    texts = [assembly(kernel, d) for d in (False, True)]
    forward, reverse = map(ptx_counts, texts)
    assert forward["selects"] or forward["float operations"]
    if kernel in INTEGERS:
        # A masked integer addition adds a value or zero, which LLVM writes as a select or, where a
        # bit of the lane is the mask as it is, as an and. The same holds for them before LLVM:
        # test_lowering_emits_the_same_operations.
        for counts, text in zip((forward, reverse), texts, strict=True):
            counts["selects"] -= selects_of_zero(text)
        # LLVM makes one comparison of "not in lane 0" and "not in warp 0", and then no longer sees
        # that a masked prefix needs no second mask.
        assert forward["selects"] - reverse["selects"] in (0, 1)
        reverse["selects"] = forward["selects"]
    # From sm_100 on LLVM pairs fp32 operations as it likes, also with halves that nobody uses;
    # test_lowering_emits_the_same_operations counts them before it.
    ignored = {"float operations"} if any(".f32x2" in text for text in texts) else set()
    assert set(differing(forward, reverse)) <= ignored


@pytest.mark.parametrize("kernel", [*FLOATS, *INTEGERS, *AMD, *AMD_AFTER_DOT], ids=str)
def test_lowering_emits_the_same_operations(kernel):
    def operations(text: str) -> Counter:
        ops = re.findall(r"(?m)^\s*(?:%[\w:, %]+ = )?\"?((?:\w+\.)+\w+)", text)
        # What computes a lane's or warp's number may differ: xor reverses, sub steps back.
        index = ("llvm.mlir.constant", "llvm.xor", "llvm.sub", "llvm.add")
        return Counter(op for op in ops if op not in index)

    forward, reverse = (operations(lowered(kernel, d)) for d in (False, True))
    assert forward["builtin.unrealized_conversion_cast"]
    assert not forward["tt.scan"]
    assert forward == reverse


@pytest.mark.parametrize("kernel", [*AMD, *AMD_AFTER_DOT], ids=str)
def test_reverse_costs_what_forward_costs_on_amd(kernel):
    forward, reverse = (amd_counts(assembly(kernel, d)) for d in (False, True))
    assert differing(forward, reverse) == {}
    # Moves with DPP are counted before LLVM folds some of them in instructions that use them.
    forward, reverse = (amd_lane_moves_in_llvm_ir(llvm_ir(kernel, d)) for d in (False, True))
    assert any(forward.values())
    assert differing(forward, reverse) == {}


def through_lds(counts: dict[str, int]) -> int:
    return counts["ds_bpermute"] + counts["ds_swizzle"]


@pytest.mark.parametrize("kernel", AMD, ids=str)
def test_no_more_moves_than_upstream_forward_on_amd(kernel):
    """A move through the LDS unit counts twice, for itself and for the wait for it."""

    def cost(moves: dict[str, int]) -> int:
        return sum(moves.values()) + through_lds(moves)

    upstream = amd_lane_moves_in_llvm_ir(llvm_ir(kernel, False, native=False))
    barriers = amd_counts(assembly(kernel, False, native=False))["barriers"]
    for reverse in (False, True):
        ours = amd_lane_moves_in_llvm_ir(llvm_ir(kernel, reverse))
        assert through_lds(ours) <= through_lds(upstream)
        assert cost(ours) <= cost(upstream)
        assert amd_counts(assembly(kernel, reverse))["barriers"] <= barriers


@pytest.mark.parametrize("kernel", AFTER_DOT, ids=str)
def test_a_scan_after_a_dot_needs_no_conversion(kernel):
    """The accumulator is scanned in its own layout; upstream converts to a blocked one and back.

    It has fewer barriers, and not more accesses: a slot's totals are loaded where they are used,
    which takes more loads and fewer registers than vectors over several slots.
    """

    def memory(text: str) -> tuple[int, int]:
        counts = (ptx_counts if kernel.target.backend == "cuda" else amd_counts)(text)
        return counts["shared loads"] + counts["shared stores"], counts["barriers"]

    # NVIDIA's store is coalesced by one.
    stores = int(kernel.target.backend == "cuda")
    accesses, barriers = memory(assembly(kernel, False, native=False))
    for reverse in (False, True):
        assert lowered(kernel, reverse).count(" ttg.convert_layout ") == stores
        own_accesses, own_barriers = memory(assembly(kernel, reverse))
        assert own_accesses <= accesses
        assert own_barriers < barriers


def executed(ptx: str, iterations: int) -> Counter:
    """Count what a thread executes; the kernel's only loop, if any, runs `iterations` times."""
    total = Counter(ptx_counts(ptx))
    loops = re.findall(r"(?s)(\$L__BB\w+):(?=[^\n]*\n)(.*?)bra\S*\s+\1;", ptx)
    assert len(loops) == (iterations > 1)
    for _, body in loops:
        for name, n in ptx_counts(body).items():
            total[name] += n * (iterations - 1)
    return total


@pytest.mark.parametrize("count", ["shuffles", "barriers"])
@pytest.mark.parametrize("kernel", BENCHMARKS, ids=str)
def test_no_more_than_upstream_forward(kernel, count):
    # A round of the loop is compared: conversions outside the loop run once and are paid back by
    # the rounds.
    rounds = dict(kernel.constexprs)["R"]
    upstream = executed(assembly(kernel, False, native=False), rounds)[count] // rounds
    for reverse in (False, True):
        assert executed(assembly(kernel, reverse), rounds)[count] // rounds <= upstream


@pytest.mark.parametrize("kernel", [*FLOATS, *INTEGERS], ids=str)
def test_nothing_is_flipped(kernel):
    # Reductions exchange by xor too; the kernel with one may use as many as its forward form.
    allowed = 0
    if kernel.kernel is of_slice:
        allowed = assembly(kernel, False, native=False).count("shfl.sync.bfly")
    assert assembly(kernel, True).count("shfl.sync.bfly") <= allowed
    assert assembly(kernel, True, native=False).count("shfl.sync.bfly") > allowed


@pytest.mark.parametrize("target", [SM_80, SM_90, SM_100, SM_120, GFX942, GFX1100], ids=str)
def test_kernels_without_scans_are_the_same(target):
    kernel = case(without_scan, "fp16 fp16 fp32", 4, target, N=64)
    assert assembly(kernel, None) == assembly(kernel, None, native=False)
