//===- LaneShuffle.h - Moving scalars between the lanes of a warp -*- C++
//-*-===//

#ifndef TRITON_SCAN_LIB_CONVERSION_LANESHUFFLE_H
#define TRITON_SCAN_LIB_CONVERSION_LANESHUFFLE_H

#include "AmdLaneMoves.h"
#include "WordPacking.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/PatternMatch.h"
#include "triton/Conversion/TritonGPUToLLVM/TargetInfoBase.h"
#include <map>

namespace mlir::triton::scan {

/// Emits shuffles of scalars, packed into words. All lanes take part; every
/// source lane is in range.
///
/// A lane's position in a run is held by some `bits` of its index, finest
/// first.
///
/// Where the lanes read from is known, AMD's vector ALU may do it without
/// ds_bpermute (AmdLaneMoves.h).
///
/// On NVIDIA, a shuffle from a neighbour can return whether that exists, which
/// slows it and saves a predicate that would have to be kept.
class LaneShuffle {
public:
  /// What a lane has read, and an i1: does the lane it asks for exist?
  struct Result {
    SmallVector<Value> scalars;
    Value exists;
  };

  LaneShuffle(RewriterBase &rewriter, Location loc,
              const TargetInfoBase &targetInfo, Value laneId,
              unsigned threadsPerWarp, bool returnsPredicates);

  /// Reads from lane `lane`, an i32; only its bits within the warp count.
  SmallVector<Value> fromLane(ValueRange scalars, Value lane);

  /// Reads from the lane whose index agrees with the reader's outside `mask`
  /// and with `source` inside it.
  SmallVector<Value> fromField(ValueRange scalars, unsigned mask,
                               unsigned source);

  /// Reads from the lane whose index differs from the reader's in the bits
  /// `mask`.
  SmallVector<Value> fromInverted(ValueRange scalars, unsigned mask);

  /// Reads from the previous lane in the direction; the first has none.
  Result fromPredecessor(ValueRange scalars, ArrayRef<unsigned> bits,
                         bool reverse);

  /// In the blocks of 2^bits.size() lanes, reads from the last lane of the half
  /// that comes earlier in the direction; that half has none before it.
  Result fromEarlierHalf(ValueRange scalars, ArrayRef<unsigned> bits,
                         bool reverse);

  /// How many moves of a word between lanes were emitted.
  unsigned numShuffles() const { return shuffles; }

private:
  SmallVector<Value> shuffle(ValueRange scalars,
                             llvm::function_ref<Value(Value)> shuffleWord,
                             unsigned movesPerWord = 1);

  /// Reads from the lanes that `sourceOf` names by AMD's lane moves, or returns
  /// nullopt if there are none for it.
  std::optional<SmallVector<Value>> shuffleBySources(
      ValueRange scalars,
      llvm::function_ref<std::optional<unsigned>(unsigned)> sourceOf);

  /// The same where only the lanes that `isUsed` names need what they read.
  SmallVector<Value> fromField(ValueRange scalars, unsigned mask,
                               unsigned source,
                               llvm::function_ref<bool(unsigned)> isUsed);

  /// Reads from the lane `distance` before this one, in reverse after it, if it
  /// agrees with this one outside `mask`. NVIDIA only.
  Result fromDistance(ValueRange scalars, unsigned distance, unsigned mask,
                      bool reverse);

  /// Returns laneId & mask.
  Value field(unsigned mask);

  /// Returns an i1 that compares laneId & mask with `value`.
  Value fieldIs(LLVM::ICmpPredicate predicate, unsigned mask, unsigned value);

  RewriterBase &rewriter;
  Location loc;
  const TargetInfoBase &targetInfo;
  Value laneId;
  unsigned threadsPerWarp;
  bool returnsPredicates;
  std::optional<AmdLaneMoves> amdMoves;
  std::map<LaneSources, std::optional<LaneMovePlan>> plans; // found so far
  unsigned shuffles = 0;
};

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_LIB_CONVERSION_LANESHUFFLE_H
