//===- ScanCost.cpp - What a scan costs in a layout -----------------------===//

#include "triton-scan/Analysis/ScanCost.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::triton::scan {

// Issue slots; see the header. A barrier is charged for the time in which few
// warps of a CTA have anything to issue.
static constexpr int64_t wordThroughSharedUnit = 4;
static constexpr int64_t barrier = 100;
static constexpr int64_t clusterBarrier = 1000;

// Triton converts so many words of a thread between two barriers.
static constexpr int64_t wordsPerPass = 8;

int64_t costOfScan(llvm::ArrayRef<Run> runs, ScanWork work) {
  int64_t words = work.wordsPerElement;
  int64_t combine = work.opsPerCombine;
  int64_t maskedCombine = combine + words;
  int64_t moveElement = words * wordThroughSharedUnit;

  int64_t cost = 0;
  int64_t slots = work.numRegisters;
  for (auto [i, run] : llvm::enumerate(runs)) {
    bool isFinest = i == 0, isCoarsest = i + 1 == runs.size();
    switch (run.owner) {
    case Owner::Register:
      // A walk, and a carry to every element unless nothing goes before.
      cost += slots * combine * (isCoarsest ? 1 : 2);
      slots /= run.size();
      break;
    case Owner::Lane:
      cost += slots * run.bits.size() * (moveElement + maskedCombine);
      if (!isFinest) // the predecessor's prefix
        cost += slots * moveElement;
      if (!isCoarsest)
        cost += slots * (moveElement + maskedCombine);
      break;
    case Owner::Warp:
      cost += 2 * barrier + slots * moveElement;
      cost += slots * run.size() * (words + maskedCombine);
      break;
    case Owner::Block:
      cost += 2 * clusterBarrier + slots * run.size() * maskedCombine;
      break;
    }
  }
  return cost;
}

int64_t costOfFlip(llvm::ArrayRef<Run> runs, unsigned numRegisters,
                   unsigned wordsPerElement) {
  int64_t words = int64_t(numRegisters) * wordsPerElement;
  bool movesLanes = false, movesWarps = false;
  int64_t cost = 0;
  for (const Run &run : runs) {
    movesLanes |= run.owner == Owner::Lane;
    movesWarps |= run.owner == Owner::Warp;
    if (run.owner == Owner::Block)
      cost +=
          2 * clusterBarrier + words * (1 + run.size()) * wordThroughSharedUnit;
  }
  // Lanes go along with the warps.
  if (movesWarps)
    cost += costOfConversion(numRegisters, wordsPerElement);
  else if (movesLanes)
    cost += words * wordThroughSharedUnit;
  return cost;
}

int64_t costOfConversion(unsigned numRegisters, unsigned wordsPerElement) {
  int64_t words = int64_t(numRegisters) * wordsPerElement;
  return 2 * llvm::divideCeil(words, wordsPerPass) * barrier +
         2 * words * wordThroughSharedUnit;
}

std::optional<LinearLayout> layoutForScan(const LinearLayout &layout,
                                          unsigned axis) {
  MLIRContext *ctx = (*layout.getOutDimNames().begin()).getContext();
  StringAttr axisDim = axisDimOf(ctx, axis);
  auto outDims = llvm::to_vector(layout.getOutDimNames());
  StringAttr blockDim = StringAttr::get(ctx, dimNameOf(Owner::Block));

  // The coordinate bits, the axis' first, that are not spread over CTAs.
  llvm::SmallVector<std::vector<int32_t>> bases;
  std::stable_sort(outDims.begin(), outDims.end(),
                   [&](StringAttr a, StringAttr b) {
                     return (a == axisDim) > (b == axisDim);
                   });
  auto blockBases = layout.getBases().find(blockDim)->second;
  for (StringAttr dim : outDims)
    for (int bit = 0, e = layout.getOutDimSizeLog2(dim); bit < e; ++bit) {
      std::vector<int32_t> basis(outDims.size(), 0);
      basis[layout.getOutDimIndex(dim)] = 1 << bit;
      if (!llvm::is_contained(blockBases, basis))
        bases.push_back(basis);
    }

  LinearLayout::BasesT result;
  llvm::ArrayRef<std::vector<int32_t>> rest(bases);
  for (Owner owner : {Owner::Register, Owner::Lane, Owner::Warp}) {
    StringAttr inDim = StringAttr::get(ctx, dimNameOf(owner));
    unsigned count = layout.getInDimSizeLog2(inDim);
    auto taken = rest.take_front(count);
    rest = rest.drop_front(taken.size());
    result[inDim] = taken.vec();
    result[inDim].resize(count, std::vector<int32_t>(outDims.size(), 0));
  }
  result[blockDim] = blockBases;
  if (!rest.empty())
    return std::nullopt;
  llvm::SmallVector<std::pair<StringAttr, int32_t>> sizes;
  for (StringAttr dim : layout.getOutDimNames())
    sizes.push_back({dim, layout.getOutDimSize(dim)});
  LinearLayout found(result, sizes, /*requireSurjective=*/false);
  return found.isSurjective() ? std::optional(found) : std::nullopt;
}

} // namespace mlir::triton::scan
