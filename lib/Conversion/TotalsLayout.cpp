//===- TotalsLayout.cpp - Where the totals of an exchange are -------------===//

#include "TotalsLayout.h"
#include "triton/Dialect/TritonGPU/IR/Dialect.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::triton::scan {

/// Builds a layout basis by basis over out-dims whose sizes follow from them.
class TotalsLayout::Builder {
public:
  Builder(MLIRContext *ctx, ArrayRef<StringRef> inDims) : ctx(ctx) {
    for (StringRef inDim : inDims)
      bases[StringAttr::get(ctx, inDim)] = {};
  }

  /// Appends the next bit of `inDim`; it moves nothing.
  void addZero(StringRef inDim) {
    bases[StringAttr::get(ctx, inDim)].push_back(std::vector<int32_t>(Rank, 0));
  }

  /// Appends the next bit of `inDim`; it is bit `bit` of out-dim `dim`.
  void add(StringRef inDim, Dim dim, unsigned bit) {
    addZero(inDim);
    alsoFlips(inDim, dim, bit);
  }

  /// Lets the last bit of `inDim` flip another bit as well.
  void alsoFlips(StringRef inDim, Dim dim, unsigned bit) {
    bases[StringAttr::get(ctx, inDim)].back()[dim] |= 1 << bit;
  }

  LinearLayout build() const {
    SmallVector<StringAttr> outDims;
    for (unsigned i = 0; i < Rank; ++i)
      outDims.push_back(StringAttr::get(ctx, "dim" + Twine(i)));
    return LinearLayout(bases, outDims);
  }

private:
  MLIRContext *ctx;
  LinearLayout::BasesT bases;
};

TotalsLayout::Role TotalsLayout::roleOf(Owner owner, unsigned bit) const {
  if (positionBitOf(owner, bit))
    return Role::Position;
  if (owner == Owner::Lane && (holderMask >> bit & 1))
    return Role::Holder;
  auto it = uniform.find(owner);
  if (it != uniform.end() && (it->second >> bit & 1))
    return Role::Copy;
  ArrayRef<int32_t> basis =
      layout.getBasis(StringAttr::get(ctx, dimNameOf(owner)), bit);
  bool isZero = llvm::all_of(basis, [](int32_t c) { return c == 0; });
  return isZero ? Role::Copy : Role::Row;
}

SmallVector<std::pair<unsigned, TotalsLayout::Role>>
TotalsLayout::rolesOf(Owner owner) const {
  SmallVector<std::pair<unsigned, Role>> roles;
  unsigned count =
      layout.getInDimSizeLog2(StringAttr::get(ctx, dimNameOf(owner)));
  for (unsigned bit = 0; bit < count; ++bit)
    roles.push_back({bit, roleOf(owner, bit)});
  return roles;
}

SmallVector<unsigned> TotalsLayout::idleLanes() const {
  SmallVector<unsigned> bits;
  for (auto [bit, role] : rolesOf(Owner::Lane))
    if (role != Role::Row)
      bits.push_back(bit);
  return bits;
}

SmallVector<unsigned> TotalsLayout::copyWarps() const {
  SmallVector<unsigned> bits;
  for (auto [bit, role] : rolesOf(Owner::Warp))
    if (role == Role::Copy)
      bits.push_back(bit);
  return bits;
}

std::optional<unsigned> TotalsLayout::positionBitOf(Owner owner,
                                                    unsigned bit) const {
  unsigned finer = 0;
  for (const Run &run : runs) {
    const unsigned *found = llvm::find(run.bits, bit);
    if (run.owner == owner && found != run.bits.end())
      return finer + (found - run.bits.begin());
    finer += run.bits.size();
  }
  return std::nullopt;
}

unsigned TotalsLayout::numPositionBits() const {
  unsigned count = 0;
  for (const Run &run : runs)
    count += run.bits.size();
  return count;
}

RankedTensorType TotalsLayout::typeOf(unsigned numWords, unsigned numIndices,
                                      IndexBitOf indexBitOf) const {
  Builder threads(ctx, {"register", "lane", "warp", "block"});
  for (unsigned i = 0, e = llvm::Log2_32(numIndices); i < e; ++i)
    threads.add("register", Index, i);
  for (unsigned i = 0, e = llvm::Log2_32(numWords); i < e; ++i)
    threads.add("register", Word, i);
  unsigned rowBits = 0;
  for (Owner owner : {Owner::Lane, Owner::Warp, Owner::Block})
    for (auto [bit, role] : rolesOf(owner)) {
      StringRef dim = dimNameOf(owner);
      if (role == Role::Row)
        threads.add(dim, Row, rowBits++);
      else if (std::optional<unsigned> index = indexBitOf(owner, bit))
        threads.add(dim, Index, *index);
      else
        threads.addZero(dim);
    }
  LinearLayout layout = threads.build();
  SmallVector<int64_t> shape(layout.getOutDimSizes());
  return RankedTensorType::get(shape, IntegerType::get(ctx, 32),
                               gpu::LinearEncodingAttr::get(ctx, layout));
}

RankedTensorType TotalsLayout::typeOf(unsigned numWords,
                                      unsigned numIndices) const {
  return typeOf(numWords, numIndices,
                [](Owner, unsigned) { return std::optional<unsigned>(); });
}

RankedTensorType TotalsLayout::ownPositionType(unsigned numWords) const {
  return typeOf(numWords, 1, [&](Owner owner, unsigned bit) {
    return positionBitOf(owner, bit);
  });
}

RankedTensorType TotalsLayout::writersType(unsigned numWords) const {
  // Only the size of the index matters; each thread names its own.
  unsigned numBits = 0;
  return typeOf(numWords, 1, [&](Owner owner, unsigned bit) {
    bool isDistinct = owner == Owner::Warp || roleOf(owner, bit) != Role::Copy;
    return isDistinct ? std::optional(numBits++) : std::nullopt;
  });
}

RankedTensorType TotalsLayout::inLanesType(unsigned numWords,
                                           ArrayRef<unsigned> lanes) const {
  return typeOf(numWords, 1, [&](Owner owner, unsigned bit) {
    const unsigned *lane = llvm::find(lanes, bit);
    bool isPosition = owner == Owner::Lane && lane != lanes.end();
    return isPosition ? std::optional<unsigned>(lane - lanes.begin())
                      : std::nullopt;
  });
}

RankedTensorType TotalsLayout::rakedType(unsigned numWords) const {
  const Run &coarsest = runs.back();
  return typeOf(numWords, coarsest.size(),
                [&](Owner owner, unsigned bit) -> std::optional<unsigned> {
                  if (owner != Owner::Lane)
                    return std::nullopt;
                  return *positionBitOf(owner, bit) + coarsest.bits.size();
                });
}

void TotalsLayout::addRows(Builder &memory) const {
  unsigned rowBits = 0;
  for (Owner owner : {Owner::Lane, Owner::Warp, Owner::Block})
    for (auto [bit, role] : rolesOf(owner)) {
      StringRef dim = owner == Owner::Block ? "block" : "offset";
      if (role == Role::Row)
        memory.add(dim, Row, rowBits++);
      else if (owner == Owner::Block)
        memory.addZero(dim);
    }
}

LinearLayout TotalsLayout::memory(unsigned numWords, unsigned wordsPerSlot,
                                  unsigned numIndexBits) const {
  Builder memory(ctx, {"offset", "block"});
  auto add = [&](Dim dim, unsigned begin, unsigned end) {
    for (unsigned bit = begin; bit < end; ++bit)
      memory.add("offset", dim, bit);
  };
  // Four words side by side for one load: those of a total, then those of the
  // next positions. Then the rows, so that the lanes use different banks.
  unsigned nearWordBits = std::min(llvm::Log2_32(wordsPerSlot), 2u);
  unsigned nearIndexBits =
      std::min<unsigned>(numPositionBits(), 2 - nearWordBits);
  add(Word, 0, nearWordBits);
  add(Index, 0, nearIndexBits);
  addRows(memory);
  add(Index, nearIndexBits, numPositionBits());
  add(Word, nearWordBits, llvm::Log2_32(numWords));
  add(Index, numPositionBits(), numIndexBits);
  return memory.build();
}

LinearLayout TotalsLayout::rakedMemory(unsigned numWords) const {
  Builder memory(ctx, {"offset", "block"});
  unsigned nearIndexBits = runs.back().bits.size();
  SmallVector<std::pair<Dim, unsigned>> near;
  for (unsigned bit = 0, e = llvm::Log2_32(numWords); bit < e; ++bit)
    near.push_back({Word, bit});
  for (unsigned bit = 0; bit < nearIndexBits; ++bit)
    near.push_back({Index, bit});
  for (auto [dim, bit] : near)
    memory.add("offset", dim, bit);

  // A lane reads its words by loads of four, eight lanes at a time; these are
  // to use all 32 banks. Where a lane has 2^n such loads, eight lanes would
  // meet in 8/2^n places: every further lane bit permutes the loads.
  unsigned numLoadBits = near.size() > 2 ? near.size() - 2 : 0;
  unsigned distinct = numLoadBits < 3 ? 3 - numLoadBits : 0;
  for (unsigned bit = nearIndexBits; bit < numPositionBits(); ++bit) {
    memory.add("offset", Index, bit);
    unsigned lane = bit - nearIndexBits;
    if (lane < distinct || lane >= 3)
      continue;
    auto [dim, permuted] = near[2 + lane - distinct];
    memory.alsoFlips("offset", dim, permuted);
  }
  addRows(memory);
  return memory.build();
}

} // namespace mlir::triton::scan
