//===- LaneShuffle.cpp - Moving scalars between the lanes of a warp -------===//

#include "LaneShuffle.h"
#include "BitFields.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace mlir::triton::scan {

/// Emits shfl.sync over the whole warp. `clamp` is the instruction's last
/// operand: bits 8 to 12 are the lane bits that the source keeps from the
/// reader, bits 0 to 4 bound the others (PTX ISA, shfl.sync).
static Value createShfl(OpBuilder &builder, Location loc, Value word,
                        NVVM::ShflKind kind, unsigned offset, unsigned clamp) {
  return NVVM::ShflOp::create(
      builder, loc, builder.getI32Type(), constantI32(builder, loc, -1), word,
      constantI32(builder, loc, offset), constantI32(builder, loc, clamp), kind,
      UnitAttr());
}

SmallVector<Value>
LaneShuffle::shuffle(ValueRange scalars,
                     llvm::function_ref<Value(Value)> shuffleWord) {
  WordPacking packing(scalars.getTypes());
  SmallVector<Value> words = packing.pack(rewriter, loc, scalars);
  for (Value &word : words)
    word = shuffleWord(word);
  return packing.unpack(rewriter, loc, words);
}

SmallVector<Value> LaneShuffle::fromLane(ValueRange scalars, Value lane) {
  return shuffle(scalars, [&](Value word) {
    return targetInfo.shuffleIdx(rewriter, loc, word, lane);
  });
}

SmallVector<Value> LaneShuffle::fromField(ValueRange scalars, unsigned mask,
                                          unsigned source) {
  unsigned kept = (threadsPerWarp - 1) & ~mask;
  if (targetInfo.isCuda())
    return shuffle(scalars, [&](Value word) {
      return createShfl(rewriter, loc, word, NVVM::ShflKind::idx, source,
                        kept << 8 | (threadsPerWarp - 1));
    });

  Value lane = LLVM::AndOp::create(rewriter, loc, laneId,
                                   constantI32(rewriter, loc, kept));
  lane = LLVM::OrOp::create(rewriter, loc, lane,
                            constantI32(rewriter, loc, source));
  return fromLane(scalars, lane);
}

SmallVector<Value> LaneShuffle::fromPredecessor(ValueRange scalars,
                                                ArrayRef<unsigned> bits,
                                                bool reverse) {
  bool contiguous =
      llvm::all_of(llvm::seq<size_t>(1, bits.size()),
                   [&](size_t i) { return bits[i] == bits[i - 1] + 1; });
  if (contiguous && targetInfo.isCuda())
    return shuffle(scalars, [&](Value word) {
      return reverse ? createShfl(rewriter, loc, word, NVVM::ShflKind::down,
                                  1u << bits.front(), threadsPerWarp - 1)
                     : createShfl(rewriter, loc, word, NVVM::ShflKind::up,
                                  1u << bits.front(), 0);
    });

  // Step the position that the bits hold; the first lane's wraps around.
  auto positionBits = llvm::to_vector(llvm::seq<unsigned>(0, bits.size()));
  Value position = moveBits(rewriter, loc, laneId, bits, positionBits);
  position = LLVM::AddOp::create(rewriter, loc, position,
                                 constantI32(rewriter, loc, reverse ? 1 : -1));
  Value others = LLVM::AndOp::create(
      rewriter, loc, laneId,
      constantI32(rewriter, loc, (threadsPerWarp - 1) & ~maskOf(bits)));
  Value lane =
      LLVM::OrOp::create(rewriter, loc, others,
                         moveBits(rewriter, loc, position, positionBits, bits));
  return fromLane(scalars, lane);
}

} // namespace mlir::triton::scan
