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

private:
  enum class Bounds { Exclusive, Inclusive };

  // Input: the totals of the blocks formed by the finer runs, by slot.
  // Output: for each of these slots, the prefix before its block (Exclusive)
  // or up to its end (Inclusive).
  SmallVector<Prefix> scanRun(unsigned run, ArrayRef<Tuple> totals,
                              Bounds bounds);
  SmallVector<Prefix> scanRegisters(unsigned run, ArrayRef<Tuple> totals,
                                    Bounds bounds);
  SmallVector<Prefix> scanLanes(unsigned run, ArrayRef<Tuple> totals,
                                Bounds bounds);
  SmallVector<Prefix> scanThreadGroups(unsigned run, ArrayRef<Tuple> totals,
                                       Bounds bounds);

  /// Hands the totals of all warps or CTAs of `run` to every thread. Returns,
  /// for each slot and each position in the direction, its total.
  SmallVector<SmallVector<Tuple>> exchangeTotals(unsigned run,
                                                 ArrayRef<Tuple> slotTotals);

  /// Returns the coordinate of the j-th of `count` positions in the direction.
  unsigned inOrder(unsigned j, unsigned count) const {
    return reverse ? count - 1 - j : j;
  }

  /// Returns the slots that remain once the runs before `run` are done.
  SmallVector<unsigned> slotsOf(unsigned run) const;

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
  ArrayRef<Run> runs;
};

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_LIB_CONVERSION_SCANEMITTER_H
