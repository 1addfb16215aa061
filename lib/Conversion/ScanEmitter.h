//===- ScanEmitter.h - A scan as scalar code for one thread -----*- C++ -*-===//

#ifndef TRITON_SCAN_LIB_CONVERSION_SCANEMITTER_H
#define TRITON_SCAN_LIB_CONVERSION_SCANEMITTER_H

#include "LaneShuffle.h"
#include "Prefix.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "triton-scan/Analysis/ScanPlan.h"

namespace mlir::triton::scan {

/// Emits a scan run by run, from the finest to the coarsest and back.
///
/// Each run takes the total of every block that the finer runs have formed,
/// hands the totals of the larger blocks it forms to the next run, and gets
/// back the prefix that goes before each of them. A total or prefix belongs to
/// a slot: a choice of the register bits that no finer run has used up. Slots
/// are numbered by the register index with the used-up bits cleared.
///
/// A reverse scan visits the positions of every run in descending order and
/// masks by the distance from the last one; nothing else depends on the
/// direction. Combinations are never reassociated across the direction:
/// earlier in the direction is always the first argument.
class ScanEmitter {
public:
  ScanEmitter(ScanOp op, RewriterBase &rewriter, const LinearLayout &layout,
              const TargetInfoBase &targetInfo);

  // Input: the elements of a thread, by register.
  // Output: the inclusive prefixes, by register.
  SmallVector<Tuple> emit(ArrayRef<Run> runs, ArrayRef<Tuple> elements);

  // As emit, but the prefixes end before each element (the first's is
  // anything). No run may be of warps or CTAs.
  SmallVector<Tuple> emitExclusive(ArrayRef<Run> runs,
                                   ArrayRef<Tuple> elements);

  /// What the code of one thread consists of.
  struct Statistics {
    unsigned shuffles = 0, exchanges = 0, combines = 0;
  };
  Statistics statistics() const {
    return {shuffle->numShuffles() + ofLeader.shuffles, exchanges,
            combiner.numCombines() + ofLeader.combines};
  }

private:
  void begin(ArrayRef<Run> runs);
  unsigned threadsPerWarp();

  /// From so many warps on, one of them scans their totals.
  static constexpr unsigned minGroupsToScan = 16, minGroupsToScanInLoop = 8;
  /// In a loop, so many warps leave all shuffles to one of them, unless a
  /// thread then holds more words: fewer CTAs would run while it waits. The
  /// figures are measured (benchmarks/NOTES.md).
  static constexpr unsigned minWarpsToRake = 4, maxWarpsToRake = 8,
                            maxWordsToRake = 16;
  /// Nor may it take more words of shared memory, in each of two buffers: the
  /// kernel's own have to fit beside them.
  static constexpr unsigned maxSharedWordsToRake = 1024;

  /// The prefixes that end before a block and at its end.
  struct Carry {
    Prefix before, through;
  };
  /// Which of a block's prefixes are asked for. Before brings `through` too
  /// where it costs nothing, else leaves it empty.
  enum class Wanted { Before, Through };

  // Input: the totals of the blocks formed by the finer runs, by slot.
  // Output: the carries of each slot's block.
  SmallVector<Carry> scanRun(unsigned run, ArrayRef<Tuple> totals,
                             Wanted wanted);
  SmallVector<Carry> scanRegisters(unsigned run, ArrayRef<Tuple> totals,
                                   Wanted wanted);
  SmallVector<Carry> scanLanes(unsigned run, ArrayRef<Tuple> totals,
                               Wanted wanted);
  // The same for this run of lanes and the run of warps after it, in one go.
  SmallVector<Carry> scanThreads(unsigned run, ArrayRef<Tuple> totals,
                                 Wanted wanted);
  SmallVector<Carry> scanThreadGroups(unsigned run, ArrayRef<Tuple> totals,
                                      Wanted wanted);

  /// Whether scanThreads takes on this run of lanes.
  bool isRaked(unsigned run);

  /// Completes the prefixes within a block by what goes before the block. The
  /// function `before` emits the one that ends before the slot.
  Carry complete(const Prefix &outer, llvm::function_ref<Prefix()> before,
                 llvm::function_ref<Prefix()> through, Wanted wanted);

  // Input: the values of each lane, whose position is held by `bits` of its
  // index, finest first; empty tuples are passed over.
  // Output: their inclusive prefixes.
  //
  // Doubles the blocks bit by bit: the later half of a block takes in the total
  // of the earlier half, which that half's last lane holds (Sklansky,
  // "Conditional-Sum Addition Logic", 1960). The order of association depends
  // on the positions alone.
  SmallVector<Tuple> scanWithinWarp(ArrayRef<Tuple> values,
                                    ArrayRef<unsigned> bits);

  /// What the warps or CTAs before this one add up to (anything in the first),
  /// and all of them together (if asked for).
  struct GroupPrefix {
    Tuple before, total;
  };

  // Input: the totals of this warp or CTA, by slot.
  // Output: the prefixes over all warps or CTAs of `run`, in the same order.
  SmallVector<GroupPrefix> exchangeTotals(unsigned run, Value position,
                                          ArrayRef<Tuple> slotTotals);

  /// Returns for each group of `run` but the last, in the direction's order,
  /// an i1: does this thread's group come after it?
  SmallVector<Value> comesAfter(const Run &run, Value position);

  // Input: the totals of the groups in the direction's order, the last one's
  // only for the total; see comesAfter.
  // Output: this group's prefixes.
  GroupPrefix foldGroups(ArrayRef<Tuple> totals, ArrayRef<Value> isAfter,
                         bool wantTotal);

  /// Returns the coordinate of the j-th of `count` positions in the direction.
  unsigned inOrder(unsigned j, unsigned count) const {
    return reverse ? count - 1 - j : j;
  }

  /// Returns the slots that remain once the runs before `run` are done, in the
  /// direction's order: ptxas keeps to the order in which values are loaded,
  /// and those that are needed last would wait in registers.
  SmallVector<unsigned> slotsOf(unsigned run) const;

  /// Whether a shuffle returns the predicate for what it reads, on NVIDIA.
  bool shufflesReturnPredicates() const;

  /// Returns an i1 that compares the masked index of this thread with `value`.
  Value indexIs(Value index, unsigned mask, unsigned value,
                LLVM::ICmpPredicate predicate);

  /// Returns the position of this thread's warp or CTA in a run, an i32.
  Value positionIn(const Run &run);

  ScanOp op;
  bool reverse;
  RewriterBase &rewriter;
  const LinearLayout &layout;
  const TargetInfoBase &targetInfo;
  Combiner combiner;
  Value laneId, warpId;
  std::optional<LaneShuffle> shuffle;
  ArrayRef<Run> runs;
  unsigned exchanges = 0;
  /// What the leading warp executes besides, where threads are raked.
  Statistics ofLeader;
  /// The write of the last exchange, after which totals of several slots are
  /// read, or null.
  Operation *orderFrom = nullptr;
};

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_LIB_CONVERSION_SCANEMITTER_H
