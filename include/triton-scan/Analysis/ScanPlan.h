//===- ScanPlan.h - How a layout splits a scan into runs --------*- C++ -*-===//
//
// Pure layout analysis: no operation is read or built here.
//
//===----------------------------------------------------------------------===//

#ifndef TRITON_SCAN_ANALYSIS_SCANPLAN_H
#define TRITON_SCAN_ANALYSIS_SCANPLAN_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "triton/Tools/LinearLayout.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace mlir::triton::scan {

/// The part of the hardware index that holds a bit of the axis coordinate.
enum class Owner { Register, Lane, Warp, Block };

/// The name of an owner as an in-dim of distributed layouts.
llvm::StringRef dimNameOf(Owner owner);

/// Neighbouring bits of the axis coordinate with one owner, which are combined
/// in one go: a run of n bits joins 2^n neighbouring blocks into one.
struct Run {
  Owner owner;
  /// The bits of the owner's hardware index, finest on the axis first.
  llvm::SmallVector<unsigned> bits;

  unsigned size() const { return 1u << bits.size(); }
};

/// Returns the layout of the registers in which a thread holds `type`, which
/// has a distributed encoding: the tensor's linear layout (in-dims register,
/// lane, warp, block) without register bits that only repeat elements.
LinearLayout registerLayout(RankedTensorType type);

/// Returns the number of elements that a thread holds.
unsigned numRegisters(const LinearLayout &layout);

/// Splits the axis `axis` of a register layout into runs, finest first. Bits
/// outside the runs hold other rows of the tensor, or copies.
///
/// Returns nullopt unless every bit of the axis coordinate has exactly one
/// owner that moves nothing else; such a layout has to be converted first.
std::optional<llvm::SmallVector<Run>> planScan(const LinearLayout &layout,
                                               unsigned axis);

/// Appends what a remark says of a scan or flip along `axis` of `type`, up to
/// the runs: " along axis 0 of <type>; axis bits, finest first: 2 register".
void describe(Diagnostic &remark, unsigned axis, RankedTensorType type,
              llvm::ArrayRef<Run> runs);

/// Returns the name of an axis as an out-dim of layouts.
StringAttr axisDimOf(MLIRContext *ctx, unsigned axis);

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_ANALYSIS_SCANPLAN_H
