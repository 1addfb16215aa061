//===- LaneShuffle.h - Moving scalars between the lanes of a warp -*- C++
//-*-===//

#ifndef TRITON_SCAN_LIB_CONVERSION_LANESHUFFLE_H
#define TRITON_SCAN_LIB_CONVERSION_LANESHUFFLE_H

#include "WordPacking.h"
#include "mlir/IR/PatternMatch.h"
#include "triton/Conversion/TritonGPUToLLVM/TargetInfoBase.h"

namespace mlir::triton::scan {

/// Emits shuffles of scalars, packed into words. All lanes take part; every
/// source lane is in range.
class LaneShuffle {
public:
  LaneShuffle(RewriterBase &rewriter, Location loc,
              const TargetInfoBase &targetInfo, Value laneId,
              unsigned threadsPerWarp)
      : rewriter(rewriter), loc(loc), targetInfo(targetInfo), laneId(laneId),
        threadsPerWarp(threadsPerWarp) {}

  /// Reads from the lane whose index agrees with the reader's outside `mask`
  /// and with `source` inside it.
  SmallVector<Value> fromField(ValueRange scalars, unsigned mask,
                               unsigned source);

  /// Reads from lane `lane`, an i32; only its bits within the warp count.
  SmallVector<Value> fromLane(ValueRange scalars, Value lane);

  /// Reads from the previous lane in the direction, where a lane's position is
  /// held by `bits` of its index, finest first. The first lane reads anything.
  SmallVector<Value> fromPredecessor(ValueRange scalars,
                                     ArrayRef<unsigned> bits, bool reverse);

private:
  SmallVector<Value> shuffle(ValueRange scalars,
                             llvm::function_ref<Value(Value)> shuffleWord);

  RewriterBase &rewriter;
  Location loc;
  const TargetInfoBase &targetInfo;
  Value laneId;
  unsigned threadsPerWarp;
};

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_LIB_CONVERSION_LANESHUFFLE_H
