//===- TotalsExchange.h - Sharing totals between warps and CTAs -*- C++ -*-===//

#ifndef TRITON_SCAN_LIB_CONVERSION_TOTALSEXCHANGE_H
#define TRITON_SCAN_LIB_CONVERSION_TOTALSEXCHANGE_H

#include "TotalsLayout.h"
#include "WordPacking.h"

namespace mlir::triton::scan {

/// Lets every thread see the totals, or their prefixes, of all warps or all
/// CTAs of one run, or of all threads of a run of lanes and one of warps.
///
/// The totals travel in a tensor of 32-bit words through Triton's own ops, so
/// that allocation, barriers and clusters stay upstream's business: between
/// warps through ttg.local_scatter and ttg.local_load, between CTAs through
/// ttg.convert_layout. The number of barriers depends neither on the number of
/// slots nor on that of operands. TotalsLayout says which words are where.
class TotalsExchange {
public:
  /// One list of scalars, each of the same types.
  using Scalars = SmallVector<Value>;

  /// `runs`: one run of warps or CTAs; for scanThreadsInOneWarp, the run of all
  /// lanes before it.
  TotalsExchange(OpBuilder &builder, Location loc, const LinearLayout &layout,
                 ArrayRef<Run> runs, bool reverse);

  /// Says that the totals agree along the bits `mask` of `owner`'s index.
  void setUniform(Owner owner, unsigned mask) { where.setUniform(owner, mask); }

  /// Says that, along the lane bits `mask`, only the lanes in which the i1
  /// `isHolder` is true hold the total.
  void setHolders(unsigned mask, Value isHolder) {
    where.setHolders(mask);
    this->isHolder = isHolder;
  }

  /// Returns the lane bits that tell nothing about a total.
  SmallVector<unsigned> idleLanes() const { return where.idleLanes(); }

  // Input: the scalars of each slot, a power of two of slots.
  // Output: for each slot and each position in the direction, its scalars.
  SmallVector<SmallVector<Scalars>> acrossBlocks(ArrayRef<Scalars> slots);

  // As acrossBlocks; calls `use` for each slot with the positions' scalars, of
  // which the last position's may be missing unless asked for. What `use` emits
  // comes before the next slot is read, so that few registers are in use.
  // Returns the write after which the totals are read, or null.
  Operation *acrossWarps(ArrayRef<Scalars> slots, Value warpId, bool wantLast,
                         llvm::function_ref<void(ArrayRef<Scalars>)> use);

  /// The prefixes that end before this warp (anything in the first), and those
  /// that end with the last, by slot.
  struct Prefixes {
    SmallVector<Scalars> before, total;
  };

  // Input: the scalars of each slot; a function that makes inclusive prefixes,
  // by slot, of the totals by slot, one of whose positions is in each of the
  // `lanes`; the loop around the scan, or null.
  // Output: the prefixes; the total ones only if asked for.
  //
  // One warp for each row of the tensor scans the totals of all, two barriers
  // in all. The function emits into the branch that this warp takes.
  Prefixes scanInOneWarp(
      ArrayRef<Scalars> slots, Value warpId, Value laneId,
      ArrayRef<unsigned> lanes, bool wantTotal, Operation *loop,
      llvm::function_ref<SmallVector<Scalars>(ArrayRef<Scalars>)> scanLanes);

  // Input: this thread's scalars; a function that makes exclusive prefixes
  // (anything in the first) of the totals that a lane of the leading warp has
  // in its registers, in a tensor of the given layout; the loop.
  // Output: the prefix before this thread (anything in the first).
  //
  // "Raking": each lane of one warp for each row combines the totals of so many
  // neighbouring threads as there are warps, and only their totals are scanned
  // by shuffles (Merrill and Grimshaw, "Parallel Scan for Stream
  // Architectures", 2009). Two barriers in all.
  Scalars scanThreadsInOneWarp(
      const Scalars &own, Value warpId, Operation *loop,
      llvm::function_ref<SmallVector<Scalars>(const LinearLayout &layout,
                                              ArrayRef<Scalars> totals)>
          scan);

private:
  /// Allocates shared memory for words in `layout`.
  Value allocate(const LinearLayout &layout);

  /// Emits a barrier, and what `emit` emits for one warp of each row.
  void inLeader(Value warpId, llvm::function_ref<void()> emit);

  /// Writes this thread's words at `index`, an i32.
  Operation *write(Value memory, ArrayRef<Value> words, Value index,
                   RankedTensorType type);

  /// Reads the words of `type` from this word and index on.
  SmallVector<Value> read(Value memory, RankedTensorType type,
                          unsigned firstWord = 0, unsigned firstIndex = 0);

  /// Returns the index at which this thread writes its total, an i32: its
  /// position, counted in the direction if `inDirection`. Threads that hold no
  /// total write beside the totals, each warp to words of its own, because a
  /// store cannot be predicated here.
  Value createWriteIndex(Value warpId, bool inDirection) const;
  unsigned numWriteIndexBits() const;

  SmallVector<Value> packSlots(ArrayRef<Scalars> slots);
  SmallVector<SmallVector<Scalars>> unpackSlots(ArrayRef<Value> words,
                                                ArrayRef<Scalars> slots);

  OpBuilder &builder;
  Location loc;
  TotalsLayout where;
  const Run &run; // the coarsest
  bool reverse;
  Value isHolder;
};

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_LIB_CONVERSION_TOTALSEXCHANGE_H
