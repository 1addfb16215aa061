//===- TotalsLayout.h - Where the totals of an exchange are -----*- C++ -*-===//

#ifndef TRITON_SCAN_LIB_CONVERSION_TOTALSLAYOUT_H
#define TRITON_SCAN_LIB_CONVERSION_TOTALSLAYOUT_H

#include "triton-scan/Analysis/ScanPlan.h"
#include <map>

namespace mlir::triton::scan {

/// Says which 32-bit words of the totals of an exchange each thread holds, and
/// where they are in shared memory.
///
/// The words are a tensor of three dims: the word's number, the row, and an
/// index, which begins with the position in the runs, their finest bit first.
/// Threads that differ in a bit of the scanned tensor's layout are in different
/// rows, unless that bit is a copy, or along it the totals agree already.
class TotalsLayout {
public:
  enum Dim : unsigned { Word, Row, Index, Rank };

  /// `layout`: of the scanned tensor. `runs`: whose totals are exchanged.
  TotalsLayout(MLIRContext *ctx, const LinearLayout &layout,
               llvm::ArrayRef<Run> runs)
      : ctx(ctx), layout(layout), runs(runs) {}

  /// Says that the totals agree along the bits `mask` of `owner`'s index.
  void setUniform(Owner owner, unsigned mask) { uniform[owner] = mask; }

  /// Says that, along the lane bits `mask`, one lane only holds the total.
  void setHolders(unsigned mask) { holderMask = mask; }

  /// Returns the lane bits that tell nothing about a total.
  llvm::SmallVector<unsigned> idleLanes() const;

  /// Returns the warp bits that are copies.
  llvm::SmallVector<unsigned> copyWarps() const;

  /// Returns the type of words of which each thread has `numWords` at each of
  /// the first `numIndices` indices.
  RankedTensorType typeOf(unsigned numWords, unsigned numIndices) const;

  /// Returns the type of words of which each thread has its position's.
  RankedTensorType ownPositionType(unsigned numWords) const;

  /// Returns the type of words that each thread writes at an index of its own.
  RankedTensorType writersType(unsigned numWords) const;

  /// Returns the type of words of which the lanes of one warp have a position
  /// each: bit i of it is lane bit lanes[i].
  RankedTensorType inLanesType(unsigned numWords,
                               llvm::ArrayRef<unsigned> lanes) const;

  /// Returns the type of words of which each lane of one warp has those of as
  /// many neighbouring positions as the coarsest run has.
  RankedTensorType rakedType(unsigned numWords) const;

  /// Returns the layout of memory for the words of all rows at all indices.
  /// `wordsPerSlot`: how many of the words make a total.
  LinearLayout memory(unsigned numWords, unsigned wordsPerSlot,
                      unsigned numIndexBits) const;

  /// The same in which the words of rakedType are side by side.
  LinearLayout rakedMemory(unsigned numWords) const;

private:
  /// What a bit of a thread's index says about the total that it holds: whose
  /// position it has, that another row is meant, whether it is the one to write
  /// it, or nothing.
  enum class Role { Position, Row, Holder, Copy };
  Role roleOf(Owner owner, unsigned bit) const;

  /// Returns the bits of `owner`'s index, with their roles.
  llvm::SmallVector<std::pair<unsigned, Role>> rolesOf(Owner owner) const;

  /// Returns the bit of the position that this bit of `owner`'s index holds.
  std::optional<unsigned> positionBitOf(Owner owner, unsigned bit) const;

  unsigned numPositionBits() const;

  /// As the public one; a bit of a thread's index that tells no row is the bit
  /// of the words' index that `indexBitOf` returns, if it does.
  using IndexBitOf =
      llvm::function_ref<std::optional<unsigned>(Owner owner, unsigned bit)>;
  RankedTensorType typeOf(unsigned numWords, unsigned numIndices,
                          IndexBitOf indexBitOf) const;

  /// Appends the bits of the rows to a layout of memory.
  class Builder;
  void addRows(Builder &memory) const;

  MLIRContext *ctx;
  const LinearLayout &layout;
  llvm::ArrayRef<Run> runs;
  std::map<Owner, unsigned> uniform;
  unsigned holderMask = 0;
};

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_LIB_CONVERSION_TOTALSLAYOUT_H
