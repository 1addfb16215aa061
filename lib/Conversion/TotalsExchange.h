//===- TotalsExchange.h - Sharing totals between warps and CTAs -*- C++ -*-===//

#ifndef TRITON_SCAN_LIB_CONVERSION_TOTALSEXCHANGE_H
#define TRITON_SCAN_LIB_CONVERSION_TOTALSEXCHANGE_H

#include "WordPacking.h"
#include "triton-scan/Analysis/ScanPlan.h"
#include <map>

namespace mlir::triton::scan {

/// Lets every thread see the totals of all warps or all CTAs of one run.
///
/// The totals travel in a tensor of 32-bit words through Triton's own ops, so
/// that allocation, barriers and clusters stay upstream's business: between
/// warps through ttg.local_scatter and ttg.local_load, one barrier whatever the
/// number of slots and operands; between CTAs through ttg.convert_layout.
///
/// Threads that differ in a bit of the scanned tensor's layout hold totals of
/// their own, unless that bit is a copy, or along it the totals agree already.
class TotalsExchange {
public:
  /// One list of scalars, each of the same types.
  using Scalars = SmallVector<Value>;

  TotalsExchange(OpBuilder &builder, Location loc, const LinearLayout &layout,
                 const Run &run, bool reverse);

  /// Says that the totals agree along the bits `mask` of `owner`'s index.
  void setUniform(Owner owner, unsigned mask) { uniform[owner] = mask; }

  /// Says that, along the lane bits `mask`, only the lanes in which the i1
  /// `isHolder` is true hold the total.
  void setHolders(unsigned mask, Value isHolder) {
    holderMask = mask;
    this->isHolder = isHolder;
  }

  /// Returns the lane bits that tell nothing about a total.
  SmallVector<unsigned> idleLanes() const;

  // Input: the scalars of each slot, a power of two of slots.
  // Output: for each slot and each position in the direction, its scalars; for
  // acrossWarps with lane bits, for each slot the scalars of the one position
  // on the axis which these bits of the lane's index hold.
  SmallVector<SmallVector<Scalars>> acrossWarps(ArrayRef<Scalars> slots,
                                                Value warpId,
                                                ArrayRef<unsigned> lanes = {});
  SmallVector<SmallVector<Scalars>> acrossBlocks(ArrayRef<Scalars> slots);

private:
  /// What a bit of a thread's index says about the total that it holds: whose
  /// position it has, that another row of the tensor is meant, whether it is
  /// the one to write it, or nothing.
  enum class Role { Position, Row, Holder, Copy };
  Role roleOf(Owner owner, unsigned bit) const;

  /// Returns the bits of `owner`'s index, with their roles.
  SmallVector<std::pair<unsigned, Role>> rolesOf(Owner owner) const;

  /// Returns the write index of this thread, an i32; see acrossWarps.
  Value createWriteIndex(Value warpId, ArrayRef<unsigned> copyBits,
                         bool descending) const;

  SmallVector<Value> packSlots(ArrayRef<Scalars> slots);
  SmallVector<SmallVector<Scalars>> unpackSlots(ArrayRef<Value> words,
                                                ArrayRef<Scalars> slots);

  OpBuilder &builder;
  Location loc;
  const LinearLayout &layout;
  const Run &run;
  bool reverse;
  std::map<Owner, unsigned> uniform;
  unsigned holderMask = 0;
  Value isHolder;
};

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_LIB_CONVERSION_TOTALSEXCHANGE_H
