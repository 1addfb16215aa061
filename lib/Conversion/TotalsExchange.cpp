//===- TotalsExchange.cpp - Sharing totals between warps and CTAs ---------===//

#include "TotalsExchange.h"
#include "BitFields.h"
#include "StructCast.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "triton/Dialect/TritonGPU/IR/Dialect.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::triton::scan {

namespace {
/// Builds a layout basis by basis over out-dims whose sizes follow from them.
class LayoutBuilder {
public:
  LayoutBuilder(MLIRContext *ctx, ArrayRef<StringRef> inDims, unsigned rank)
      : ctx(ctx), rank(rank) {
    for (StringRef inDim : inDims)
      bases[StringAttr::get(ctx, inDim)] = {};
  }

  /// Appends the next bit of `inDim`; it moves nothing.
  void addZero(StringRef inDim) {
    bases[StringAttr::get(ctx, inDim)].push_back(std::vector<int32_t>(rank, 0));
  }

  /// Appends the next bit of `inDim`; it is bit `bit` of out-dim `dim`.
  void add(StringRef inDim, unsigned dim, unsigned bit) {
    addZero(inDim);
    bases[StringAttr::get(ctx, inDim)].back()[dim] = 1 << bit;
  }

  LinearLayout build() const {
    SmallVector<StringAttr> outDims;
    for (unsigned i = 0; i < rank; ++i)
      outDims.push_back(StringAttr::get(ctx, "dim" + Twine(i)));
    return LinearLayout(bases, outDims);
  }

private:
  MLIRContext *ctx;
  unsigned rank;
  LinearLayout::BasesT bases;
};
} // namespace

static constexpr StringRef distributedDims[] = {"register", "lane", "warp",
                                                "block"};

/// Returns the type of a tensor of words with `layout`.
static RankedTensorType tensorTypeOf(MLIRContext *ctx,
                                     const LinearLayout &layout) {
  SmallVector<int64_t> shape(layout.getOutDimSizes());
  return RankedTensorType::get(shape, IntegerType::get(ctx, 32),
                               gpu::LinearEncodingAttr::get(ctx, layout));
}

TotalsExchange::TotalsExchange(OpBuilder &builder, Location loc,
                               const LinearLayout &layout, const Run &run,
                               bool reverse)
    : builder(builder), loc(loc), layout(layout), run(run), reverse(reverse) {}

TotalsExchange::Role TotalsExchange::roleOf(Owner owner, unsigned bit) const {
  if (owner == run.owner && llvm::is_contained(run.bits, bit))
    return Role::Position;
  if (owner == Owner::Lane && (holderMask >> bit & 1))
    return Role::Holder;
  auto it = uniform.find(owner);
  if (it != uniform.end() && (it->second >> bit & 1))
    return Role::Copy;
  ArrayRef<int32_t> basis = layout.getBasis(
      StringAttr::get(builder.getContext(), dimNameOf(owner)), bit);
  bool isZero = llvm::all_of(basis, [](int32_t c) { return c == 0; });
  return isZero ? Role::Copy : Role::Row;
}

SmallVector<std::pair<unsigned, TotalsExchange::Role>>
TotalsExchange::rolesOf(Owner owner) const {
  SmallVector<std::pair<unsigned, Role>> roles;
  unsigned count = layout.getInDimSizeLog2(
      StringAttr::get(builder.getContext(), dimNameOf(owner)));
  for (unsigned bit = 0; bit < count; ++bit)
    roles.push_back({bit, roleOf(owner, bit)});
  return roles;
}

SmallVector<unsigned> TotalsExchange::idleLanes() const {
  SmallVector<unsigned> bits;
  for (auto [bit, role] : rolesOf(Owner::Lane))
    if (role != Role::Row)
      bits.push_back(bit);
  return bits;
}

SmallVector<Value> TotalsExchange::packSlots(ArrayRef<Scalars> slots) {
  WordPacking packing(ValueRange(slots.front()).getTypes());
  SmallVector<Value> words;
  for (const Scalars &slot : slots) {
    llvm::append_range(words, packing.pack(builder, loc, slot));
    // Each slot takes a power of two of words.
    while (words.size() % llvm::PowerOf2Ceil(packing.numWords()))
      words.push_back(words.back());
  }
  return words;
}

SmallVector<SmallVector<TotalsExchange::Scalars>>
TotalsExchange::unpackSlots(ArrayRef<Value> words, ArrayRef<Scalars> slots) {
  // A word's number is its position in the run, then its number in the source.
  WordPacking packing(ValueRange(slots.front()).getTypes());
  unsigned stride = llvm::PowerOf2Ceil(packing.numWords());
  unsigned numPositions = words.size() / (stride * slots.size());
  SmallVector<SmallVector<Scalars>> result(slots.size());
  for (auto [slot, positions] : llvm::enumerate(result))
    for (unsigned position = 0; position < numPositions; ++position) {
      SmallVector<Value> own;
      for (unsigned i = 0; i < packing.numWords(); ++i)
        own.push_back(words[position + (slot * stride + i) * numPositions]);
      positions.push_back(packing.unpack(builder, loc, own));
    }
  return result;
}

#ifdef TRITON_SCAN_SOURCE_BASE

SmallVector<SmallVector<TotalsExchange::Scalars>>
TotalsExchange::acrossWarps(ArrayRef<Scalars> slots, Value warpId,
                            ArrayRef<unsigned> lanes) {
  assert(lanes.empty() && "takes ttg.local_scatter");
  return acrossBlocks(slots);
}

#else

SmallVector<SmallVector<TotalsExchange::Scalars>>
TotalsExchange::acrossWarps(ArrayRef<Scalars> slots, Value warpId,
                            ArrayRef<unsigned> lanes) {
  // Memory has three dims: the word's number, the row, and the write index.
  // The write index is the position in the direction for the threads that
  // hold a total; the others write beside it, each warp to words of its own,
  // because a store cannot be predicated here.
  enum : unsigned { Word, Row, Index, Rank };
  MLIRContext *ctx = builder.getContext();
  SmallVector<Value> words = packSlots(slots);
  unsigned wordBits = llvm::Log2_32(words.size());
  unsigned positionBits = run.bits.size();

  LayoutBuilder source(ctx, distributedDims, Rank);
  LayoutBuilder destination(ctx, distributedDims, Rank);
  LayoutBuilder memory(ctx, {"offset", "block"}, Rank);
  unsigned sourceIndexBits = 0, rowBits = 0, laneAndWarpRowBits = 0;
  SmallVector<unsigned> copyBits;

  for (unsigned i = 0; i < wordBits; ++i)
    source.add("register", Word, i);
  if (lanes.empty())
    for (unsigned i = 0; i < positionBits; ++i)
      destination.add("register", Index, i);
  for (unsigned i = 0; i < wordBits; ++i)
    destination.add("register", Word, i);
  for (Owner owner : {Owner::Lane, Owner::Warp, Owner::Block}) {
    StringRef dim = dimNameOf(owner);
    for (auto [bit, role] : rolesOf(owner)) {
      if (role == Role::Row) {
        source.add(dim, Row, rowBits);
        destination.add(dim, Row, rowBits);
        if (owner == Owner::Block)
          memory.add(dim, Row, rowBits);
        ++rowBits;
        continue;
      }
      const unsigned *lane = llvm::find(lanes, bit);
      if (owner == Owner::Lane && lane != lanes.end())
        destination.add(dim, Index, lane - lanes.begin());
      else
        destination.addZero(dim);
      if (owner == Owner::Block)
        memory.addZero(dim);
      if (role == Role::Copy && owner == Owner::Warp)
        copyBits.push_back(bit);
      if (role == Role::Copy && owner != Owner::Warp)
        source.addZero(dim);
      else
        source.add(dim, Index, sourceIndexBits++);
    }
    if (owner == Owner::Warp)
      laneAndWarpRowBits = rowBits;
  }

  // Loads of up to four words, then the rows side by side.
  unsigned nearWordBits =
      std::min(wordBits, positionBits < 2 ? 2 - positionBits : 0);
  for (unsigned i = 0; i < positionBits; ++i)
    memory.add("offset", Index, i);
  for (unsigned i = 0; i < nearWordBits; ++i)
    memory.add("offset", Word, i);
  for (unsigned i = 0; i < laneAndWarpRowBits; ++i)
    memory.add("offset", Row, i);
  for (unsigned i = nearWordBits; i < wordBits; ++i)
    memory.add("offset", Word, i);
  unsigned indexBits = positionBits + copyBits.size() + (isHolder ? 1 : 0);
  for (unsigned i = positionBits; i < indexBits; ++i)
    memory.add("offset", Index, i);

  RankedTensorType sourceType = tensorTypeOf(ctx, source.build());
  RankedTensorType destinationType = tensorTypeOf(ctx, destination.build());
  LinearLayout memoryLayout = memory.build();
  SmallVector<int64_t> memoryShape(memoryLayout.getOutDimSizes());
  auto encoding = gpu::SharedLinearEncodingAttr::get(ctx, memoryLayout,
                                                     /*layoutAlignment=*/16);
  auto space = gpu::SharedMemorySpaceAttr::get(ctx);
  auto memoryType =
      gpu::MemDescType::get(memoryShape, builder.getI32Type(), encoding, space,
                            /*mutableMemory=*/true);
  auto readType = gpu::MemDescType::get(destinationType.getShape(),
                                        builder.getI32Type(), encoding, space,
                                        /*mutableMemory=*/true, memoryShape);

  Value index = createWriteIndex(warpId, copyBits, reverse && lanes.empty());
  SmallVector<Value> indices(words.size(), index);
  Value buffer = gpu::LocalAllocOp::create(builder, loc, memoryType);
  gpu::LocalScatterOp::create(builder, loc, buffer,
                              packStruct(builder, loc, words, sourceType),
                              packStruct(builder, loc, indices, sourceType),
                              builder.getI32IntegerAttr(Index));
  Value totals = gpu::MemDescSubsliceOp::create(builder, loc, readType, buffer,
                                                SmallVector<int32_t>(Rank, 0));
  Value loaded =
      gpu::LocalLoadOp::create(builder, loc, destinationType, totals);
  return unpackSlots(unpackStruct(builder, loc, loaded), slots);
}

Value TotalsExchange::createWriteIndex(Value warpId,
                                       ArrayRef<unsigned> copyBits,
                                       bool descending) const {
  SmallVector<unsigned> warpBits(run.bits);
  llvm::append_range(warpBits, copyBits);
  auto indexBits = llvm::to_vector(llvm::seq<unsigned>(0, warpBits.size()));
  Value index = moveBits(builder, loc, warpId, warpBits, indexBits);
  if (descending)
    index = LLVM::XOrOp::create(builder, loc, index,
                                constantI32(builder, loc, run.size() - 1));
  if (!isHolder)
    return index;

  // Not a select: LLVM would fold it for some lanes, so for one direction only.
  Value isOther = LLVM::ICmpOp::create(
      builder, loc, LLVM::ICmpPredicate::ne, isHolder,
      LLVM::ConstantOp::create(builder, loc, builder.getI1Type(),
                               builder.getBoolAttr(true)));
  Value beside = LLVM::ShlOp::create(
      builder, loc,
      LLVM::ZExtOp::create(builder, loc, builder.getI32Type(), isOther),
      constantI32(builder, loc, warpBits.size()));
  return LLVM::OrOp::create(builder, loc, index, beside);
}

#endif

SmallVector<SmallVector<TotalsExchange::Scalars>>
TotalsExchange::acrossBlocks(ArrayRef<Scalars> slots) {
  enum : unsigned { Word };
  MLIRContext *ctx = builder.getContext();
  SmallVector<Value> words = packSlots(slots);
  unsigned numBits = llvm::Log2_32(words.size());
  unsigned positionBits = run.bits.size();

  // The words are numbered by their number in the source, then the position,
  // then the rows; a thread ends up with the words of all positions.
  LayoutBuilder source(ctx, distributedDims, 1);
  LayoutBuilder destination(ctx, distributedDims, 1);
  for (unsigned i = 0; i < positionBits; ++i)
    destination.add("register", Word, numBits + i);
  for (unsigned i = 0; i < numBits; ++i) {
    source.add("register", Word, i);
    destination.add("register", Word, i);
  }
  unsigned firstPosition = numBits;
  numBits += positionBits;
  for (Owner owner : {Owner::Lane, Owner::Warp, Owner::Block}) {
    StringRef dim = dimNameOf(owner);
    for (auto [bit, role] : rolesOf(owner)) {
      if (role == Role::Row) {
        source.add(dim, Word, numBits);
        destination.add(dim, Word, numBits++);
        continue;
      }
      destination.addZero(dim);
      if (role == Role::Position)
        source.add(dim, Word,
                   firstPosition +
                       (llvm::find(run.bits, bit) - run.bits.begin()));
      else
        source.addZero(dim);
    }
  }

  Value converted = gpu::ConvertLayoutOp::create(
      builder, loc, tensorTypeOf(ctx, destination.build()),
      packStruct(builder, loc, words, tensorTypeOf(ctx, source.build())));
  auto result = unpackSlots(unpackStruct(builder, loc, converted), slots);
  if (reverse)
    for (SmallVector<Scalars> &positions : result)
      std::reverse(positions.begin(), positions.end());
  return result;
}

} // namespace mlir::triton::scan
