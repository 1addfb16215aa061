//===- ScanEmitter.cpp - A scan as scalar code for one thread -------------===//

#include "ScanEmitter.h"
#include "BitFields.h"
#include "Clusters.h"
#include "OrderByUse.h"
#include "TotalsExchange.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "triton-scan/Compat.h"
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

static Operation *innermostLoopOf(Operation *op) {
  Operation *parent = op->getParentOp();
  while (parent && !isa<scf::ForOp, scf::WhileOp>(parent))
    parent = parent->getParentOp();
  return parent;
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
  begin(runs);
  auto results = llvm::map_to_vector(
      scanRun(0, elements, Wanted::Through),
      [](const Carry &carry) { return carry.through.values; });
  if (!orderFrom)
    return results;

  SmallVector<Value> wanted;
  for (unsigned j = 0; j < results.size(); ++j)
    llvm::append_range(wanted, results[inOrder(j, results.size())]);
  orderByUse(orderFrom, op, wanted);
  return results;
}

SmallVector<Tuple> ScanEmitter::emitExclusive(ArrayRef<Run> runs,
                                              ArrayRef<Tuple> elements) {
  begin(runs);
  return llvm::map_to_vector(
      scanRun(0, elements, Wanted::Before),
      [](const Carry &carry) { return carry.before.values; });
}

unsigned ScanEmitter::threadsPerWarp() {
  return layout.getInDimSize(
      StringAttr::get(op.getContext(), dimNameOf(Owner::Lane)));
}

void ScanEmitter::begin(ArrayRef<Run> runs) {
  this->runs = runs;
  shuffle.emplace(rewriter, op.getLoc(), targetInfo, laneId, threadsPerWarp(),
                  shufflesReturnPredicates());
}

bool ScanEmitter::shufflesReturnPredicates() const {
  // The fold over the warps takes a predicate for each of them, and there are
  // seven.
  if (llvm::none_of(runs, [](const Run &r) { return r.owner == Owner::Warp; }))
    return false;
  // One comparison serves all slots; a predicate from the shuffle of each would
  // make ptxas finish a slot, loads included, before it begins the next.
  return llvm::all_of(llvm::seq<unsigned>(0, runs.size()), [&](unsigned run) {
    return runs[run].owner != Owner::Lane || slotsOf(run).size() == 1;
  });
}

SmallVector<unsigned> ScanEmitter::slotsOf(unsigned run) const {
  unsigned used = maskOf(runs.take_front(run), Owner::Register);
  SmallVector<unsigned> slots;
  unsigned count = numRegisters(layout);
  for (unsigned j = 0; j < count; ++j)
    if (unsigned slot = inOrder(j, count); !(slot & used))
      slots.push_back(slot);
  return slots;
}

SmallVector<ScanEmitter::Carry>
ScanEmitter::scanRun(unsigned run, ArrayRef<Tuple> totals, Wanted wanted) {
  if (run == runs.size())
    return llvm::map_to_vector(totals, [](const Tuple &total) {
      return Carry{Prefix::none(), Prefix::always(total)};
    });
  switch (runs[run].owner) {
  case Owner::Register:
    return scanRegisters(run, totals, wanted);
  case Owner::Lane:
    return scanLanes(run, totals, wanted);
  case Owner::Warp:
  case Owner::Block:
    return scanThreadGroups(run, totals, wanted);
  }
  llvm_unreachable("unknown owner of a run");
}

ScanEmitter::Carry ScanEmitter::complete(const Prefix &outer,
                                         llvm::function_ref<Prefix()> before,
                                         llvm::function_ref<Prefix()> through,
                                         Wanted wanted) {
  Carry carry;
  if (wanted == Wanted::Before)
    carry.before = combiner.join(outer, before());
  if (wanted == Wanted::Through || outer.isNone())
    carry.through = combiner.join(outer, through());
  return carry;
}

SmallVector<ScanEmitter::Carry>
ScanEmitter::scanRegisters(unsigned run, ArrayRef<Tuple> totals,
                           Wanted wanted) {
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

  SmallVector<Carry> outer = scanRun(run + 1, blockTotals, Wanted::Before);
  SmallVector<Carry> result(totals.size());
  for (unsigned slot : slotsOf(run + 1)) {
    for (unsigned j = 0; j < count; ++j)
      result[registerAt(slot, j)] = complete(
          outer[slot].before,
          [&] {
            return j == 0 ? Prefix::none()
                          : Prefix::always(inclusive[registerAt(slot, j - 1)]);
          },
          [&] { return Prefix::always(inclusive[registerAt(slot, j)]); },
          wanted);
    if (!outer[slot].through.isNone())
      result[registerAt(slot, count - 1)].through = outer[slot].through;
  }
  return result;
}

SmallVector<Tuple> ScanEmitter::scanWithinWarp(ArrayRef<Tuple> values,
                                               ArrayRef<unsigned> bits) {
  SmallVector<Tuple> inclusive(values.begin(), values.end());
  unsigned count = inclusive.size();
  for (unsigned i = 0; i < bits.size(); ++i)
    for (unsigned j = 0; j < count; ++j) {
      Tuple &own = inclusive[inOrder(j, count)];
      if (own.empty())
        continue;
      LaneShuffle::Result earlier =
          shuffle->fromEarlierHalf(own, bits.take_front(i + 1), reverse);
      own = combiner.combineIf(earlier.exists, earlier.scalars, own, own);
    }
  return inclusive;
}

SmallVector<ScanEmitter::Carry>
ScanEmitter::scanLanes(unsigned run, ArrayRef<Tuple> totals, Wanted wanted) {
  if (isRaked(run))
    return scanThreads(run, totals, wanted);
  ArrayRef<unsigned> bits = runs[run].bits;
  unsigned mask = maskOf(bits);
  unsigned first = reverse ? mask : 0;
  SmallVector<unsigned> slots = slotsOf(run);

  SmallVector<Tuple> slotTotals(totals.size());
  for (unsigned slot : slots)
    slotTotals[slot] = totals[slot];
  SmallVector<Tuple> inclusive = scanWithinWarp(slotTotals, bits);

  // The last lane holds the total. Between warps it goes through memory, to
  // which that lane writes it; otherwise every lane needs it.
  SmallVector<Tuple> blockTotals = inclusive;
  bool isLastLaneEnough =
      run + 1 == runs.size() || runs[run + 1].owner == Owner::Warp;
  if (!isLastLaneEnough)
    for (unsigned slot : slots)
      blockTotals[slot] =
          shuffle->fromField(inclusive[slot], mask, mask & ~first);
  SmallVector<Carry> outer = scanRun(run + 1, blockTotals, Wanted::Before);

  SmallVector<Carry> result(totals.size());
  for (unsigned slot : slots)
    result[slot] = complete(
        outer[slot].before,
        [&] {
          LaneShuffle::Result previous =
              shuffle->fromPredecessor(inclusive[slot], bits, reverse);
          return Prefix{previous.scalars, previous.exists};
        },
        [&] { return Prefix::always(inclusive[slot]); }, wanted);
  return result;
}

bool ScanEmitter::isRaked(unsigned run) {
  // On AMD the vector ALU moves most values between lanes.
  if (!hasLocalScatter || !isCuda(targetInfo) || run + 2 != runs.size() ||
      runs[run + 1].owner != Owner::Warp ||
      runs[run].size() != threadsPerWarp() || slotsOf(run).size() != 1)
    return false;
  unsigned numWarps = runs[run + 1].size();
  if (numWarps < minWarpsToRake || numWarps > maxWarpsToRake ||
      !innermostLoopOf(op))
    return false;
  unsigned wordsPerTotal = WordPacking(combiner.types()).numWords();
  unsigned wordsOfThread =
      std::max(numWarps, numRegisters(layout)) * wordsPerTotal;
  auto warpDim = StringAttr::get(op.getContext(), dimNameOf(Owner::Warp));
  unsigned numThreads = threadsPerWarp() * layout.getInDimSize(warpDim);
  unsigned wordsOfBuffer = numThreads * llvm::PowerOf2Ceil(wordsPerTotal);
  return wordsOfThread <= maxWordsToRake &&
         wordsOfBuffer <= maxSharedWordsToRake;
}

SmallVector<ScanEmitter::Carry>
ScanEmitter::scanThreads(unsigned run, ArrayRef<Tuple> totals, Wanted wanted) {
  ++exchanges;
  ArrayRef<Run> threads = runs.slice(run, 2);
  TotalsExchange exchange(rewriter, op.getLoc(), layout, threads, reverse);
  for (Owner owner : {Owner::Warp, Owner::Block})
    exchange.setUniform(owner, maskOf(runs.take_front(run), owner));
  unsigned slot = slotsOf(run).front();
  Tuple prefix = exchange.scanThreadsInOneWarp(
      totals[slot], warpId, innermostLoopOf(op),
      [&](const LinearLayout &tile, ArrayRef<Tuple> values) {
        // A lane of the leading warp has a register for each warp.
        auto registers =
            llvm::to_vector(llvm::seq<unsigned>(0, threads[1].bits.size()));
        Run runsOfTile[] = {{Owner::Register, registers}, threads[0]};
        ScanEmitter emitter(op, rewriter, tile, targetInfo);
        SmallVector<Tuple> prefixes = emitter.emitExclusive(runsOfTile, values);
        ofLeader = emitter.statistics();
        return prefixes;
      });

  auto isNotFirst = [&](Value index, const Run &run) {
    unsigned mask = maskOf(run.bits);
    return indexIs(index, mask, reverse ? mask : 0, LLVM::ICmpPredicate::ne);
  };
  Prefix before{prefix, LLVM::OrOp::create(rewriter, op.getLoc(),
                                           isNotFirst(laneId, threads[0]),
                                           isNotFirst(warpId, threads[1]))};
  SmallVector<Carry> result(totals.size());
  result[slot] = complete(
      Prefix::none(), [&] { return before; },
      [&] { return combiner.join(before, Prefix::always(totals[slot])); },
      wanted);
  return result;
}

SmallVector<ScanEmitter::Carry>
ScanEmitter::scanThreadGroups(unsigned run, ArrayRef<Tuple> totals,
                              Wanted wanted) {
  SmallVector<unsigned> slots = slotsOf(run);
  SmallVector<Tuple> slotTotals =
      llvm::map_to_vector(slots, [&](unsigned slot) { return totals[slot]; });
  Value position = positionIn(runs[run]);
  SmallVector<GroupPrefix> prefixes = exchangeTotals(run, position, slotTotals);

  SmallVector<Tuple> blockTotals(totals.size());
  for (auto [slot, prefix] : llvm::zip_equal(slots, prefixes))
    blockTotals[slot] = prefix.total;
  SmallVector<Carry> outer = scanRun(run + 1, blockTotals, Wanted::Before);

  Value isNotFirst = LLVM::ICmpOp::create(
      rewriter, op.getLoc(), LLVM::ICmpPredicate::ne, position,
      constantI32(rewriter, op.getLoc(), inOrder(0, runs[run].size())));
  SmallVector<Carry> result(totals.size());
  for (auto [slot, prefix] : llvm::zip_equal(slots, prefixes)) {
    Prefix before{prefix.before, isNotFirst};
    result[slot] = complete(
        outer[slot].before, [&] { return before; },
        [&] { return combiner.join(before, Prefix::always(totals[slot])); },
        wanted);
  }
  return result;
}

SmallVector<ScanEmitter::GroupPrefix>
ScanEmitter::exchangeTotals(unsigned run, Value position,
                            ArrayRef<Tuple> slotTotals) {
  ++exchanges;
  TotalsExchange exchange(rewriter, op.getLoc(), layout, runs.slice(run, 1),
                          reverse);
  for (Owner owner : {Owner::Lane, Owner::Warp, Owner::Block})
    exchange.setUniform(owner, maskOf(runs.take_front(run), owner));
  bool isCoarsest = run + 1 == runs.size();
  SmallVector<GroupPrefix> result;
  orderFrom = nullptr;
  if (runs[run].owner == Owner::Block) {
    SmallVector<SmallVector<Tuple>> slots = exchange.acrossBlocks(slotTotals);
    SmallVector<Value> isAfter = comesAfter(runs[run], position);
    for (ArrayRef<Tuple> totals : slots)
      result.push_back(foldGroups(totals, isAfter, !isCoarsest));
    return result;
  }

  // A lane run leaves its totals in its last lanes.
  SmallVector<Tuple> spread(slotTotals);
  if (run > 0 && runs[run - 1].owner == Owner::Lane) {
    unsigned mask = maskOf(runs[run - 1].bits);
    if (hasLocalScatter)
      exchange.setHolders(mask, indexIs(laneId, mask, reverse ? 0 : mask,
                                        LLVM::ICmpPredicate::eq));
    else
      for (Tuple &total : spread)
        total = shuffle->fromField(total, mask, reverse ? 0 : mask);
  }
  // Folding costs each thread a step a warp. To scan the totals in one warp
  // takes a second barrier, which a loop has in any case.
  unsigned positionBits = runs[run].bits.size();
  SmallVector<unsigned> lanes = exchange.idleLanes();
  Operation *loop = innermostLoopOf(op);
  unsigned minGroups = loop ? minGroupsToScanInLoop : minGroupsToScan;
  if (!hasLocalScatter || runs[run].size() < minGroups ||
      lanes.size() < positionBits) {
    SmallVector<Value> isAfter = comesAfter(runs[run], position);
    Operation *written = exchange.acrossWarps(
        spread, warpId, !isCoarsest, [&](ArrayRef<Tuple> totals) {
          result.push_back(foldGroups(totals, isAfter, !isCoarsest));
        });
    if (slotTotals.size() > 1)
      orderFrom = written;
    return result;
  }
  lanes.truncate(positionBits);
  TotalsExchange::Prefixes prefixes = exchange.scanInOneWarp(
      spread, warpId, laneId, lanes, !isCoarsest, loop,
      [&](ArrayRef<Tuple> totals) { return scanWithinWarp(totals, lanes); });
  for (auto [slot, before] : llvm::enumerate(prefixes.before))
    result.push_back({before, isCoarsest ? Tuple() : prefixes.total[slot]});
  return result;
}

SmallVector<Value> ScanEmitter::comesAfter(const Run &run, Value position) {
  Location loc = op.getLoc();
  // Counted in the direction, so that both compare with the same numbers.
  if (reverse)
    position = LLVM::XOrOp::create(rewriter, loc, position,
                                   constantI32(rewriter, loc, run.size() - 1));
  return llvm::map_to_vector(
      llvm::seq<unsigned>(0, run.size() - 1), [&](unsigned j) -> Value {
        return LLVM::ICmpOp::create(rewriter, loc, LLVM::ICmpPredicate::ugt,
                                    position, constantI32(rewriter, loc, j));
      });
}

ScanEmitter::GroupPrefix ScanEmitter::foldGroups(ArrayRef<Tuple> totals,
                                                 ArrayRef<Value> isAfter,
                                                 bool wantTotal) {
  Tuple before = totals[0], sum = before;
  for (unsigned j = 1; j < isAfter.size(); ++j) {
    if (!wantTotal) {
      before = combiner.combineIf(isAfter[j], before, totals[j], before);
      continue;
    }
    sum = combiner.combine(sum, totals[j]);
    before = combiner.select(isAfter[j], sum, before);
  }
  if (wantTotal)
    sum = combiner.combine(sum, totals[isAfter.size()]);
  return {before, sum};
}

Value ScanEmitter::positionIn(const Run &run) {
  Location loc = op.getLoc();
  Value index =
      run.owner == Owner::Warp ? warpId : clusterBlockId(rewriter, loc);
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
