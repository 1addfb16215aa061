"""The mutations: one line of lib/ each, and what it breaks."""

from __future__ import annotations

from dataclasses import dataclass

DROPPED_BARRIER = "bar.sync removed from the PTX"


@dataclass(frozen=True)
class Mutation:
    """Replaces `old`, which stands once in `file` (below lib/), by `new`.

    fuzzed: whether the fuzzer's programs get there
    """

    name: str
    file: str
    old: str
    new: str
    fuzzed: bool = True


_AMD = "Conversion/AmdLaneMoves.cpp"
_SHUFFLE = "Conversion/LaneShuffle.cpp"
_EMITTER = "Conversion/ScanEmitter.cpp"
_EXCHANGE = "Conversion/TotalsExchange.cpp"
_PACKING = "Conversion/WordPacking.cpp"
_FLIP = "Conversion/LowerFlip.cpp"
_FIELDS = "Conversion/BitFields.cpp"
_LOWER = "Conversion/LowerScan.cpp"
_PREFIX = "Conversion/Prefix.cpp"
_PLAN = "Analysis/ScanPlan.cpp"
_CHOOSE = "Transforms/ChooseScanLayout.cpp"
_CLUSTERS = "Conversion/Clusters.cpp"
_OUTLINE = "Transforms/OutlineScans.cpp"


def fault(mutation: Mutation, text: str) -> str | None:
    """Return why the mutation cannot be applied to its file's text, or None."""
    if (times := text.count(mutation.old)) == 1:
        return None
    return (
        f"'{mutation.name}': lib/{mutation.file} has {times} times {mutation.old!r}, not once; "
        "bring python/test/mutation/mutations.py up to date"
    )


MUTATIONS = [
    Mutation(
        "the predecessor lane's distance doubled",
        _SHUFFLE,
        "1u << bits.front()",
        "2u << bits.front()",
    ),
    Mutation(
        "the predecessor's position off by one",
        _SHUFFLE,
        "constantI32(rewriter, loc, reverse ? 1 : -1)",
        "constantI32(rewriter, loc, reverse ? 1 : -2)",
    ),
    Mutation(
        "the earlier half's lane not mirrored in reverse",
        _SHUFFLE,
        "fromField(scalars, mask, reverse ? bit : finer, isUsed)",
        "fromField(scalars, mask, finer, isUsed)",
    ),
    Mutation(
        "the predicate of the later half inverted",
        _SHUFFLE,
        "reverse ? LLVM::ICmpPredicate::eq : LLVM::ICmpPredicate::ne, bit, 0)",
        "reverse ? LLVM::ICmpPredicate::ne : LLVM::ICmpPredicate::eq, bit, 0)",
    ),
    Mutation(
        "the bound of the upward shuffle at the wrong end",
        _SHUFFLE,
        "unsigned bound = reverse ? threadsPerWarp - 1 : 0;",
        "unsigned bound = threadsPerWarp - 1;",
    ),
    Mutation(
        "operands swapped between lanes",
        _EMITTER,
        "combiner.combineIf(earlier.exists, earlier.scalars, own, own)",
        "combiner.combineIf(earlier.exists, own, earlier.scalars, own)",
    ),
    Mutation(
        "operands swapped between registers",
        _EMITTER,
        "combiner.combine(sum, totals[registerAt(slot, j)])",
        "combiner.combine(totals[registerAt(slot, j)], sum)",
    ),
    Mutation(
        "a carry missing",
        _EMITTER,
        "carry.through = combiner.join(outer, through());",
        "carry.through = through();",
    ),
    Mutation(
        "the lane run's total taken from the wrong lane in reverse",
        _EMITTER,
        "unsigned first = reverse ? mask : 0;",
        "unsigned first = 0;",
    ),
    Mutation(
        "the last lane not mirrored in reverse when it writes its total",
        _EMITTER,
        "indexIs(laneId, mask, reverse ? 0 : mask,",
        "indexIs(laneId, mask, mask,",
    ),
    Mutation(
        "isAfter off by one",
        _EMITTER,
        "LLVM::ICmpPredicate::ugt,",
        "LLVM::ICmpPredicate::uge,",
    ),
    Mutation(
        "the last warp taken for the first",
        _EMITTER,
        "inOrder(0, runs[run].size())",
        "inOrder(1, runs[run].size())",
    ),
    Mutation(
        "the total of the warps without the last one",
        _EMITTER,
        "blockTotals[slot] = prefix.total;",
        "blockTotals[slot] = prefix.before;",
    ),
    Mutation(
        "the last chunk's prefix put at the first register",
        _EMITTER,
        "result[registerAt(slot, count - 1)].through = outer[slot].through;",
        "result[registerAt(slot, 0)].through = outer[slot].through;",
    ),
    Mutation(
        "the mask of an empty prefix forgotten",
        _PREFIX,
        "combineIf(earlier.valid, earlier.values, later.values, later.values));",
        "combine(earlier.values, later.values));",
    ),
    Mutation(
        "warps in the wrong order in reverse",
        _EXCHANGE,
        "if (inDirection && reverse)",
        "if (false)",
    ),
    Mutation(
        "CTAs in the wrong order in reverse",
        _EXCHANGE,
        "if (reverse)\n    for (",
        "if (false)\n    for (",
    ),
    Mutation(
        "lanes that hold no total write to the total's place",
        _EXCHANGE,
        "LLVM::XOrOp::create(builder, loc, index, beside)",
        "LLVM::OrOp::create(builder, loc, index, index)",
    ),
    Mutation(
        "copies of other warps write to the totals' place",
        _EXCHANGE,
        "1 << warpBits.size() | 1",
        "1 << run.bits.size() | 1",
    ),
    Mutation(
        "totals read from a buffer that nobody wrote",
        _EXCHANGE,
        "gpu::MemDescSubsliceOp::create(builder, loc, partType, memory,",
        "gpu::MemDescSubsliceOp::create(builder, loc, partType, "
        "gpu::LocalAllocOp::create(builder, loc, memoryType),",
    ),
    Mutation(
        "a slot's words read at the wrong stride",
        _EXCHANGE,
        "words[position + (slot * stride + i) * numPositions]",
        "words[position + (slot + i * slots.size()) * numPositions]",
    ),
    Mutation(
        "one warp scans: no barrier before it reads",
        _EXCHANGE,
        "gpu::BarrierOp::create(builder, loc, gpu::AddrSpace::Local);\n  SmallVector",
        "SmallVector",
    ),
    Mutation(
        "one warp scans: a prefix written for the position before in reverse",
        _EXCHANGE,
        "constantI32(builder, loc, reverse ? -1 : 1)",
        "constantI32(builder, loc, 1)",
    ),
    Mutation(
        "one warp scans: the total taken from the first position in reverse",
        _EXCHANGE,
        "reverse ? run.size() - 1 : 0)",
        "0)",
    ),
    Mutation(
        "raked: the words of a position mixed up with those of the next",
        _EXCHANGE,
        "packed[i + j * words.size()]",
        "packed[j + i * run.size()]",
    ),
    Mutation(
        "raked: the first thread not mirrored in reverse",
        _EMITTER,
        "reverse ? mask : 0, LLVM::ICmpPredicate::ne)",
        "0, LLVM::ICmpPredicate::ne)",
    ),
    Mutation(
        "raked: the first thread told by its lane alone",
        _EMITTER,
        "isNotFirst(warpId, threads[1])",
        "isNotFirst(laneId, threads[0])",
    ),
    Mutation(
        "a flipped register left in its place",
        _FLIP,
        "moved[i ^ inverted]",
        "moved[i]",
    ),
    Mutation(
        "the bytes of a word flipped twice",
        _FLIP,
        "inverted &= ~withinWord;",
        "",
    ),
    Mutation(
        "narrow scalars packed over each other",
        _PACKING,
        "slots.push_back({type, words - 1, used});",
        "slots.push_back({type, words - 1, 0});",
    ),
    Mutation(
        "the second word of a 64-bit scalar given away",
        _PACKING,
        "words += width / wordBits;",
        "words += 1 + 0 * width;",
    ),
    Mutation(
        "scattered bits moved as if they were contiguous",
        _FIELDS,
        "to[end] == to[end - 1] + 1",
        "to[end] >= 0",
    ),
    Mutation(
        "a register's position scattered to the wrong bits",
        _FIELDS,
        "((coord >> i) & 1u) << bit",
        "((coord >> i) & 1u) << bits[bits.size() - 1 - i]",
    ),
    Mutation(
        "axis bits of a lane counted from the wrong end",
        _PLAN,
        "runs.back().bits.push_back(bit.index);",
        "runs.back().bits.insert(runs.back().bits.begin(), bit.index);",
    ),
    Mutation(
        "a scan's result handed from block to block as a cast (aborts for AMD)",
        "Conversion/StructCast.cpp",
        "type.getRank() > 1 && leavesBlock(result)",
        "false && leavesBlock(result)",
    ),
    Mutation(
        "AMD: row_ror turned the other way",
        _AMD,
        "row | ((inRow + rowLanes - n) % rowLanes)",
        "row | ((inRow + n) % rowLanes)",
    ),
    Mutation(
        "AMD: wave_rol taken for wave_ror",
        _AMD,
        "return (lane + 1) % lanes",
        "return (lane + lanes - 1) % lanes",
    ),
    Mutation(
        "AMD: lanes without a source zeroed where they keep what was moved before",
        _AMD,
        "/*boundCtrl=*/false",
        "/*boundCtrl=*/true",
    ),
    Mutation(
        "AMD: v_permlane16 and v_permlanex16 mixed up",
        _AMD,
        "move.kind == LaneMove::Permlane16 ?",
        "move.kind != LaneMove::Permlane16 ?",
    ),
    Mutation(
        "AMD: v_permlane16_swap's registers mixed up",
        _AMD,
        "control ? lane | 16 : lane & ~16u",
        "control ? lane & ~16u : lane | 16",
    ),
    Mutation(
        "AMD: a second move that reads what the first one read",
        _AMD,
        "emitMove(builder, loc, plan.second, first)",
        "emitMove(builder, loc, plan.second, word)",
    ),
    Mutation(
        "AMD: ds_swizzle believed to reach all 64 lanes",
        _AMD,
        "(lane & ~31u) |",
        "(lane & ~63u) |",
    ),
    Mutation(
        "AMD: row_shl believed to reach into the next row",
        _AMD,
        "inRow + n < rowLanes ?",
        "inRow + n <= rowLanes ?",
    ),
    Mutation(
        "AMD: selectors of v_permlane16 counted from the last lane",
        _AMD,
        "<< i * bits",
        "<< (group - 1 - i) * bits",
    ),
    Mutation(
        "AMD: the other half of the lanes taken to need the value",
        _SHUFFLE,
        "((lane & bit) == 0) == reverse",
        "((lane & bit) == 0) != reverse",
    ),
    Mutation(
        "AMD: rotations of a wavefront on RDNA",
        _AMD,
        "if (!isGfx10Plus) {",
        "if (lanes) {",
    ),
    Mutation(
        "AMD: banks to be written counted as lanes",
        _AMD,
        "banks &= ~(1u << lane % rowLanes / 4)",
        "banks &= ~(1u << lane % 4)",
    ),
    Mutation(
        "warps specialised: an accumulator believed whole that is split",
        _OUTLINE,
        "< splitRows",
        "<= splitRows",
        fuzzed=False,
    ),
    Mutation(
        "warps specialised: the axis of the rows believed whole",
        _OUTLINE,
        "scan.getAxis() == 1",
        "scan.getAxis() == 0",
        fuzzed=False,
    ),
    Mutation(
        "warps specialised: a scan put back in its old shape",
        _OUTLINE,
        "result.setType(old.getType())",
        "old.setType(result.getType())",
        fuzzed=False,
    ),
    Mutation(
        "CTAs: a function that crosses them left apart",
        _CLUSTERS,
        'function->removeAttr("noinline")',
        "(void)function",
    ),
]
