//===- ScanEmitter.cpp - A scan as scalar code for one thread -------------===//

#include "ScanEmitter.h"
#include "BitFields.h"
#include "TotalsExchange.h"
#include "triton/Conversion/TritonGPUToLLVM/Utility.h"

namespace mlir::triton::scan {

/// Returns the bits of `owner`'s index that the runs use up.
static unsigned maskOf(ArrayRef<Run> runs, Owner owner) {
  unsigned mask = 0;
  for (const Run &run : runs)
    if (run.owner == owner)
      mask |= maskOf(run.bits);
  return mask;
}

ScanEmitter::ScanEmitter(ScanOp op, RewriterBase &rewriter,
                         const LinearLayout &layout,
                         const TargetInfoBase &targetInfo)
    : op(op), reverse(op.getReverse()), rewriter(rewriter), layout(layout),
      targetInfo(targetInfo), combiner(op, rewriter) {
  std::tie(laneId, warpId) = getLaneAndWarpId(rewriter, op.getLoc());
}

SmallVector<Tuple> ScanEmitter::emit(ArrayRef<Run> runs,
                                     ArrayRef<Tuple> elements) {
  this->runs = runs;
  SmallVector<Prefix> prefixes = scanRun(0, elements, Bounds::Inclusive);
  return llvm::map_to_vector(
      prefixes, [](const Prefix &prefix) { return prefix.values; });
}

SmallVector<unsigned> ScanEmitter::slotsOf(unsigned run) const {
  StringAttr dim = StringAttr::get(rewriter.getContext(), "register");
  unsigned used = maskOf(runs.take_front(run), Owner::Register);
  SmallVector<unsigned> slots;
  for (unsigned slot = 0, e = layout.getInDimSize(dim); slot < e; ++slot)
    if (!(slot & used))
      slots.push_back(slot);
  return slots;
}

SmallVector<Prefix> ScanEmitter::scanRun(unsigned run, ArrayRef<Tuple> totals,
                                         Bounds bounds) {
  if (run == runs.size()) {
    if (bounds == Bounds::Inclusive)
      return llvm::map_to_vector(totals, Prefix::always);
    return SmallVector<Prefix>(totals.size(), Prefix::none());
  }
  switch (runs[run].owner) {
  case Owner::Register:
    return scanRegisters(run, totals, bounds);
  case Owner::Lane:
    return scanLanes(run, totals, bounds);
  case Owner::Warp:
  case Owner::Block:
    return scanThreadGroups(run, totals, bounds);
  }
  llvm_unreachable("unknown owner of a run");
}

SmallVector<Prefix> ScanEmitter::scanRegisters(unsigned run,
                                               ArrayRef<Tuple> totals,
                                               Bounds bounds) {
  ArrayRef<unsigned> bits = runs[run].bits;
  unsigned count = runs[run].size();
  auto registerAt = [&](unsigned slot, unsigned j) {
    return slot | scatterBits(inOrder(j, count), bits);
  };

  SmallVector<Tuple> inclusive(totals.size()), blockTotals(totals.size());
  for (unsigned slot : slotsOf(run + 1)) {
    Tuple sum = totals[registerAt(slot, 0)];
    inclusive[registerAt(slot, 0)] = sum;
    for (unsigned j = 1; j < count; ++j) {
      sum = combiner.combine(sum, totals[registerAt(slot, j)]);
      inclusive[registerAt(slot, j)] = sum;
    }
    blockTotals[slot] = sum;
  }

  SmallVector<Prefix> carries =
      scanRun(run + 1, blockTotals, Bounds::Exclusive);
  SmallVector<Prefix> result(totals.size());
  for (unsigned slot : slotsOf(run + 1))
    for (unsigned j = 0; j < count; ++j) {
      Prefix own = Prefix::none();
      if (bounds == Bounds::Inclusive)
        own = Prefix::always(inclusive[registerAt(slot, j)]);
      else if (j > 0)
        own = Prefix::always(inclusive[registerAt(slot, j - 1)]);
      result[registerAt(slot, j)] = combiner.join(carries[slot], own);
    }
  return result;
}

SmallVector<Prefix> ScanEmitter::scanLanes(unsigned run, ArrayRef<Tuple> totals,
                                           Bounds bounds) {
  Location loc = op.getLoc();
  ArrayRef<unsigned> bits = runs[run].bits;
  unsigned mask = maskOf(bits);
  unsigned first = reverse ? mask : 0, last = mask & ~first;
  LaneShuffle shuffle(
      rewriter, loc, targetInfo, laneId,
      1u << layout.getInDimSizeLog2(StringAttr::get(op.getContext(), "lane")));

  // Double the blocks bit by bit: the later half of each block takes in the
  // total of the earlier half, which that half's last lane holds (Sklansky,
  // "Conditional-Sum Addition Logic", 1960).
  SmallVector<Tuple> inclusive(totals.begin(), totals.end());
  for (unsigned i = 0; i < bits.size(); ++i) {
    unsigned bit = 1u << bits[i];
    unsigned blockMask = maskOf(bits.take_front(i + 1));
    unsigned source = blockMask & (last ^ bit);
    Value isLater = indexIs(laneId, bit, last & bit, LLVM::ICmpPredicate::eq);
    for (unsigned slot : slotsOf(run)) {
      Tuple &own = inclusive[slot];
      Tuple earlier = shuffle.fromField(own, blockMask, source);
      own = combiner.select(isLater, combiner.combine(earlier, own), own);
    }
  }

  // The last lane holds the total. Between warps it goes through memory, to
  // which that lane writes it; otherwise every lane needs it.
  SmallVector<Tuple> blockTotals = inclusive;
  bool isLastLaneEnough =
      run + 1 == runs.size() || runs[run + 1].owner == Owner::Warp;
  if (!isLastLaneEnough)
    for (unsigned slot : slotsOf(run))
      blockTotals[slot] = shuffle.fromField(inclusive[slot], mask, last);
  SmallVector<Prefix> carries =
      scanRun(run + 1, blockTotals, Bounds::Exclusive);

  Value isNotFirst = indexIs(laneId, mask, first, LLVM::ICmpPredicate::ne);
  SmallVector<Prefix> result(totals.size());
  for (unsigned slot : slotsOf(run)) {
    Prefix own = Prefix::always(inclusive[slot]);
    if (bounds == Bounds::Exclusive)
      own = {shuffle.fromPredecessor(inclusive[slot], bits, reverse),
             isNotFirst};
    result[slot] = combiner.join(carries[slot], own);
  }
  return result;
}

SmallVector<Prefix> ScanEmitter::scanThreadGroups(unsigned run,
                                                  ArrayRef<Tuple> totals,
                                                  Bounds bounds) {
  Location loc = op.getLoc();
  bool isCoarsest = run + 1 == runs.size();
  unsigned count = runs[run].size();
  SmallVector<unsigned> slots = slotsOf(run);
  SmallVector<Tuple> slotTotals =
      llvm::map_to_vector(slots, [&](unsigned slot) { return totals[slot]; });
  SmallVector<SmallVector<Tuple>> exchanged = exchangeTotals(run, slotTotals);

  // The threads after position j take in its total.
  Value position = positionIn(runs[run]);
  SmallVector<Value> isAfter;
  for (unsigned j = 0; j + 1 < count; ++j)
    isAfter.push_back(LLVM::ICmpOp::create(
        rewriter, loc,
        reverse ? LLVM::ICmpPredicate::ult : LLVM::ICmpPredicate::ugt, position,
        constantI32(rewriter, loc, inOrder(j, count))));

  SmallVector<Tuple> before(totals.size()), blockTotals(totals.size());
  for (auto [slot, groups] : llvm::zip_equal(slots, exchanged)) {
    Tuple sum = groups[0];
    before[slot] = sum;
    for (unsigned j = 1; j + 1 < count; ++j) {
      sum = combiner.combine(isCoarsest ? before[slot] : sum, groups[j]);
      before[slot] = combiner.select(isAfter[j], sum, before[slot]);
    }
    if (!isCoarsest)
      blockTotals[slot] = combiner.combine(sum, groups[count - 1]);
  }

  SmallVector<Prefix> carries =
      scanRun(run + 1, blockTotals, Bounds::Exclusive);
  SmallVector<Prefix> result(totals.size());
  for (unsigned slot : slots) {
    Prefix own = {before[slot], isAfter[0]};
    if (bounds == Bounds::Inclusive)
      own = combiner.join(own, Prefix::always(totals[slot]));
    result[slot] = combiner.join(carries[slot], own);
  }
  return result;
}

SmallVector<SmallVector<Tuple>>
ScanEmitter::exchangeTotals(unsigned run, ArrayRef<Tuple> slotTotals) {
  TotalsExchange exchange(rewriter, op.getLoc(), layout, runs[run], reverse);
  for (Owner owner : {Owner::Lane, Owner::Warp, Owner::Block})
    exchange.setUniform(owner, maskOf(runs.take_front(run), owner));
  if (runs[run].owner == Owner::Block)
    return exchange.acrossBlocks(slotTotals);

  // A lane run leaves its totals in its last lanes.
  if (run > 0 && runs[run - 1].owner == Owner::Lane) {
    unsigned mask = maskOf(runs[run - 1].bits);
    exchange.setHolders(mask, indexIs(laneId, mask, reverse ? 0 : mask,
                                      LLVM::ICmpPredicate::eq));
  }
  return exchange.acrossWarps(slotTotals, warpId);
}

Value ScanEmitter::positionIn(const Run &run) {
  Location loc = op.getLoc();
  Value index = run.owner == Owner::Warp
                    ? warpId
                    : targetInfo.getClusterCTAId(rewriter, loc);
  auto positionBits = llvm::to_vector(llvm::seq<unsigned>(0, run.bits.size()));
  return moveBits(rewriter, loc, index, run.bits, positionBits);
}

Value ScanEmitter::indexIs(Value index, unsigned mask, unsigned value,
                           LLVM::ICmpPredicate predicate) {
  Location loc = op.getLoc();
  Value masked = LLVM::AndOp::create(rewriter, loc, index,
                                     constantI32(rewriter, loc, mask));
  return LLVM::ICmpOp::create(rewriter, loc, predicate, masked,
                              constantI32(rewriter, loc, value));
}

} // namespace mlir::triton::scan
