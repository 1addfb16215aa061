//===- LaneShuffle.cpp - Moving scalars between the lanes of a warp -------===//

#include "LaneShuffle.h"
#include "BitFields.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "triton-scan/Compat.h"

namespace mlir::triton::scan {

/// Emits shfl.sync over the whole warp. The instruction's last operand holds
/// in bits 8 to 12 the lane bits that the source shares with the reader, and
/// in bits 0 to 4 a bound on the others (PTX ISA, shfl.sync). `result` is i32,
/// or the pair of that and the instruction's predicate.
///
/// The lane is named in the instruction: from a register, the shuffle takes
/// longer (benchmarks/NOTES.md).
static Value createShfl(OpBuilder &builder, Location loc, Type result,
                        NVVM::ShflKind kind, Value word, unsigned lane,
                        unsigned shared, unsigned bound) {
  bool wantsPredicate = isa<LLVM::LLVMStructType>(result);
  return NVVM::ShflOp::create(
      builder, loc, result, constantI32(builder, loc, -1), word,
      constantI32(builder, loc, lane),
      constantI32(builder, loc, shared << 8 | bound), kind,
      wantsPredicate ? builder.getUnitAttr() : UnitAttr());
}

static bool areContiguous(ArrayRef<unsigned> bits) {
  return bits.back() - bits.front() + 1 == bits.size() && llvm::is_sorted(bits);
}

LaneShuffle::LaneShuffle(RewriterBase &rewriter, Location loc,
                         const TargetInfoBase &targetInfo, Value laneId,
                         unsigned threadsPerWarp, bool returnsPredicates)
    : rewriter(rewriter), loc(loc), targetInfo(targetInfo), laneId(laneId),
      threadsPerWarp(threadsPerWarp), returnsPredicates(returnsPredicates),
      amdMoves(AmdLaneMoves::forModule(
          laneId.getParentRegion()->getParentOfType<ModuleOp>(),
          threadsPerWarp)) {}

SmallVector<Value>
LaneShuffle::shuffle(ValueRange scalars,
                     llvm::function_ref<Value(Value)> shuffleWord,
                     unsigned movesPerWord) {
  WordPacking packing(scalars.getTypes());
  SmallVector<Value> words = packing.pack(rewriter, loc, scalars);
  shuffles += words.size() * movesPerWord;
  for (Value &word : words)
    word = shuffleWord(word);
  return packing.unpack(rewriter, loc, words);
}

std::optional<SmallVector<Value>> LaneShuffle::shuffleBySources(
    ValueRange scalars,
    llvm::function_ref<std::optional<unsigned>(unsigned)> sourceOf) {
  if (!amdMoves)
    return std::nullopt;
  LaneSources sources;
  for (unsigned lane = 0; lane < threadsPerWarp; ++lane)
    sources.push_back(sourceOf(lane));
  auto [known, isNew] = plans.try_emplace(sources);
  std::optional<LaneMovePlan> &plan = known->second;
  if (isNew)
    plan = amdMoves->find(sources);
  if (!plan)
    return std::nullopt;
  return shuffle(
      scalars,
      [&](Value word) {
        return AmdLaneMoves::emit(rewriter, loc, *plan, word);
      },
      plan->numMoves());
}

SmallVector<Value> LaneShuffle::fromLane(ValueRange scalars, Value lane) {
  return shuffle(scalars, [&](Value word) {
    return targetInfo.shuffleIdx(rewriter, loc, word, lane);
  });
}

SmallVector<Value> LaneShuffle::fromField(ValueRange scalars, unsigned mask,
                                          unsigned source) {
  return fromField(scalars, mask, source, [](unsigned) { return true; });
}

SmallVector<Value>
LaneShuffle::fromField(ValueRange scalars, unsigned mask, unsigned source,
                       llvm::function_ref<bool(unsigned)> isUsed) {
  unsigned kept = (threadsPerWarp - 1) & ~mask;
  if (isCuda(targetInfo))
    return shuffle(scalars, [&](Value word) {
      return createShfl(rewriter, loc, word.getType(), NVVM::ShflKind::idx,
                        word, source, kept, threadsPerWarp - 1);
    });
  auto sourceOf = [&](unsigned lane) -> std::optional<unsigned> {
    if (!isUsed(lane))
      return std::nullopt;
    return (lane & kept) | source;
  };
  if (auto moved = shuffleBySources(scalars, sourceOf))
    return *moved;
  Value lane = LLVM::OrOp::create(rewriter, loc, field(kept),
                                  constantI32(rewriter, loc, source));
  return fromLane(scalars, lane);
}

SmallVector<Value> LaneShuffle::fromInverted(ValueRange scalars,
                                             unsigned mask) {
  if (auto moved =
          shuffleBySources(scalars, [&](unsigned lane) { return lane ^ mask; }))
    return *moved;
  return shuffle(scalars, [&](Value word) {
    return targetInfo.shuffleXor(rewriter, loc, word, mask);
  });
}

LaneShuffle::Result LaneShuffle::fromDistance(ValueRange scalars,
                                              unsigned distance, unsigned mask,
                                              bool reverse) {
  auto kind = reverse ? NVVM::ShflKind::down : NVVM::ShflKind::up;
  unsigned shared = (threadsPerWarp - 1) & ~mask;
  unsigned bound = reverse ? threadsPerWarp - 1 : 0;
  Type i32 = rewriter.getI32Type();
  Value exists;
  if (!returnsPredicates) {
    exists = fieldIs(LLVM::ICmpPredicate::ne, mask, reverse ? mask : 0);
    shared = 0;
  }
  auto read = shuffle(scalars, [&](Value word) -> Value {
    if (exists)
      return createShfl(rewriter, loc, i32, kind, word, distance, shared,
                        bound);
    auto pair = LLVM::LLVMStructType::getLiteral(rewriter.getContext(),
                                                 {i32, rewriter.getI1Type()});
    Value both =
        createShfl(rewriter, loc, pair, kind, word, distance, shared, bound);
    exists = LLVM::ExtractValueOp::create(rewriter, loc, both, 1);
    return LLVM::ExtractValueOp::create(rewriter, loc, both, 0);
  });
  return {read, exists};
}

LaneShuffle::Result LaneShuffle::fromEarlierHalf(ValueRange scalars,
                                                 ArrayRef<unsigned> bits,
                                                 bool reverse) {
  unsigned bit = 1u << bits.back();
  unsigned mask = maskOf(bits), finer = mask & ~bit;
  if (returnsPredicates && finer == 0 && isCuda(targetInfo))
    return fromDistance(scalars, bit, mask, reverse);
  Value isLater = fieldIs(
      reverse ? LLVM::ICmpPredicate::eq : LLVM::ICmpPredicate::ne, bit, 0);
  auto isUsed = [&](unsigned lane) { return ((lane & bit) == 0) == reverse; };
  return {fromField(scalars, mask, reverse ? bit : finer, isUsed), isLater};
}

LaneShuffle::Result LaneShuffle::fromPredecessor(ValueRange scalars,
                                                 ArrayRef<unsigned> bits,
                                                 bool reverse) {
  unsigned mask = maskOf(bits);
  if (areContiguous(bits) && isCuda(targetInfo))
    return fromDistance(scalars, 1u << bits.front(), mask, reverse);

  Value exists = fieldIs(LLVM::ICmpPredicate::ne, mask, reverse ? mask : 0);
  auto sourceOf = [&](unsigned lane) -> std::optional<unsigned> {
    if ((lane & mask) == (reverse ? mask : 0))
      return std::nullopt;
    unsigned position = gatherBits(lane, bits) + (reverse ? 1 : -1);
    return (lane & ~mask) | scatterBits(position, bits);
  };
  if (auto moved = shuffleBySources(scalars, sourceOf))
    return {*moved, exists};

  // Step the position that the bits hold; the first lane's wraps around.
  auto positionBits = llvm::to_vector(llvm::seq<unsigned>(0, bits.size()));
  Value position = moveBits(rewriter, loc, laneId, bits, positionBits);
  position = LLVM::AddOp::create(rewriter, loc, position,
                                 constantI32(rewriter, loc, reverse ? 1 : -1));
  Value lane =
      LLVM::OrOp::create(rewriter, loc, field((threadsPerWarp - 1) & ~mask),
                         moveBits(rewriter, loc, position, positionBits, bits));
  return {fromLane(scalars, lane), exists};
}

Value LaneShuffle::field(unsigned mask) {
  return LLVM::AndOp::create(rewriter, loc, laneId,
                             constantI32(rewriter, loc, mask));
}

Value LaneShuffle::fieldIs(LLVM::ICmpPredicate predicate, unsigned mask,
                           unsigned value) {
  Value own = field(mask); // before the constant, whatever the compiler
  return LLVM::ICmpOp::create(rewriter, loc, predicate, own,
                              constantI32(rewriter, loc, value));
}

} // namespace mlir::triton::scan
