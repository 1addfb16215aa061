//===- ScanCost.h - What a scan costs in a layout ---------------*- C++ -*-===//

#ifndef TRITON_SCAN_ANALYSIS_SCANCOST_H
#define TRITON_SCAN_ANALYSIS_SCANCOST_H

#include "triton-scan/Analysis/ScanPlan.h"

namespace mlir::triton::scan {

/// What has to be combined at every position of a scan.
struct ScanWork {
  unsigned numRegisters; ///< elements of each operand that a thread holds
  unsigned wordsPerElement;
  unsigned opsPerCombine;
};

/// Estimates what a warp spends on a scan that is split into `runs`, in issue
/// slots of one of the four schedulers of an SM.
///
/// The schedulers issue one instruction a cycle each, but share a unit that
/// shuffles, loads or stores one 128-byte wavefront a cycle; such an
/// instruction counts as four. Latencies are left out, other warps hide them,
/// but for those of barriers.
int64_t costOfScan(llvm::ArrayRef<Run> runs, ScanWork work);

/// Estimates, in the same unit, a flip of one operand along the axis that is
/// split into `runs`.
int64_t costOfFlip(llvm::ArrayRef<Run> runs, unsigned numRegisters,
                   unsigned wordsPerElement);

/// Estimates, in the same unit, the conversion of one operand's tensor through
/// shared memory.
int64_t costOfConversion(unsigned numRegisters, unsigned wordsPerElement);

/// Returns the layout of the same tensor that makes a scan along `axis`
/// cheapest: the finest bits of the axis in registers, then lanes, then warps.
/// The split over CTAs and the number of registers stay as they are.
///
/// `layout` is a register layout. Returns nullopt if the tensor does not fit,
/// which takes a basis over CTAs that moves more than one bit.
std::optional<LinearLayout> layoutForScan(const LinearLayout &layout,
                                          unsigned axis);

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_ANALYSIS_SCANCOST_H
