//===- TotalsExchange.cpp - Sharing totals between warps and CTAs ---------===//

#include "TotalsExchange.h"
#include "BitFields.h"
#include "StructCast.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "triton-scan/Compat.h"
#include "triton/Dialect/TritonGPU/IR/Dialect.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::triton::scan {

/// Builds a layout basis by basis over out-dims whose sizes follow from them.
class TotalsExchange::LayoutBuilder {
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
    alsoFlips(inDim, dim, bit);
  }

  /// Lets the last bit of `inDim` flip another bit as well.
  void alsoFlips(StringRef inDim, unsigned dim, unsigned bit) {
    bases[StringAttr::get(ctx, inDim)].back()[dim] |= 1 << bit;
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

TotalsExchange::TotalsExchange(OpBuilder &builder, Location loc,
                               const LinearLayout &layout, ArrayRef<Run> runs,
                               bool reverse)
    : builder(builder), loc(loc), layout(layout), runs(runs), run(runs.back()),
      reverse(reverse) {}

TotalsExchange::Role TotalsExchange::roleOf(Owner owner, unsigned bit) const {
  if (positionBitOf(owner, bit))
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

SmallVector<unsigned> TotalsExchange::copyWarps() const {
  SmallVector<unsigned> bits;
  for (auto [bit, role] : rolesOf(Owner::Warp))
    if (role == Role::Copy)
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

std::optional<unsigned> TotalsExchange::positionBitOf(Owner owner,
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

unsigned TotalsExchange::numPositionBits() const {
  unsigned count = 0;
  for (const Run &run : runs)
    count += run.bits.size();
  return count;
}

RankedTensorType TotalsExchange::typeOf(unsigned numWords, unsigned numIndices,
                                        IndexBitOf indexBitOf) const {
  MLIRContext *ctx = builder.getContext();
  LayoutBuilder threads(ctx, {"register", "lane", "warp", "block"}, Rank);
  for (unsigned i = 0, e = llvm::Log2_32(numIndices); i < e; ++i)
    threads.add("register", Index, i);
  for (unsigned i = 0, e = llvm::Log2_32(numWords); i < e; ++i)
    threads.add("register", Word, i);
  unsigned rowBits = 0;
  for (Owner owner : {Owner::Lane, Owner::Warp, Owner::Block})
    for (auto [bit, role] : rolesOf(owner)) {
      StringRef dim = dimNameOf(owner);
      if (role == Role::Row) {
        threads.add(dim, Row, rowBits++);
        continue;
      }
      std::optional<unsigned> index;
      if (indexBitOf)
        index = indexBitOf(owner, bit);
      if (index)
        threads.add(dim, Index, *index);
      else
        threads.addZero(dim);
    }
  LinearLayout layout = threads.build();
  SmallVector<int64_t> shape(layout.getOutDimSizes());
  return RankedTensorType::get(shape, builder.getI32Type(),
                               gpu::LinearEncodingAttr::get(ctx, layout));
}

RankedTensorType TotalsExchange::ownPositionType(unsigned numWords) const {
  return typeOf(numWords, 1, [&](Owner owner, unsigned bit) {
    return positionBitOf(owner, bit);
  });
}

#ifdef TRITON_SCAN_SOURCE_BASE

Operation *
TotalsExchange::acrossWarps(ArrayRef<Scalars> slots, Value warpId,
                            bool wantLast,
                            llvm::function_ref<void(ArrayRef<Scalars>)> use) {
  SmallVector<SmallVector<Scalars>> totals = acrossBlocks(slots);
  for (ArrayRef<Scalars> positions : totals)
    use(positions);
  return nullptr;
}

TotalsExchange::Prefixes TotalsExchange::scanInOneWarp(
    ArrayRef<Scalars> slots, Value warpId, Value laneId,
    ArrayRef<unsigned> lanes, bool wantTotal, Operation *loop,
    llvm::function_ref<SmallVector<Scalars>(ArrayRef<Scalars>)> scanLanes) {
  llvm_unreachable("takes ttg.local_scatter");
}

TotalsExchange::Scalars TotalsExchange::scanThreadsInOneWarp(
    const Scalars &own, Value warpId, Operation *loop,
    llvm::function_ref<SmallVector<Scalars>(const LinearLayout &,
                                            ArrayRef<Scalars>)>
        scan) {
  llvm_unreachable("takes ttg.local_scatter");
}

#else

void TotalsExchange::addRows(LayoutBuilder &memory) const {
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

Value TotalsExchange::allocate(unsigned numWords, unsigned wordsPerSlot,
                               unsigned numIndexBits) {
  MLIRContext *ctx = builder.getContext();
  LayoutBuilder memory(ctx, {"offset", "block"}, Rank);
  auto add = [&](Dim dim, unsigned begin, unsigned end) {
    for (unsigned bit = begin; bit < end; ++bit)
      memory.add("offset", dim, bit);
  };
  // Four words side by side for one load: those of a total, then those of the
  // next positions. Then the rows, so that the lanes use different banks.
  unsigned numWordBits = llvm::Log2_32(numWords);
  unsigned nearWordBits = std::min(llvm::Log2_32(wordsPerSlot), 2u);
  unsigned nearIndexBits =
      std::min<unsigned>(run.bits.size(), 2 - nearWordBits);
  add(Word, 0, nearWordBits);
  add(Index, 0, nearIndexBits);
  addRows(memory);
  add(Index, nearIndexBits, run.bits.size());
  add(Word, nearWordBits, numWordBits);
  add(Index, run.bits.size(), numIndexBits);

  return allocate(memory.build());
}

Value TotalsExchange::allocate(const LinearLayout &layout) {
  SmallVector<int64_t> shape(layout.getOutDimSizes());
  MLIRContext *ctx = builder.getContext();
  auto type = gpu::MemDescType::get(
      shape, builder.getI32Type(),
      gpu::SharedLinearEncodingAttr::get(ctx, layout, /*layoutAlignment=*/16),
      gpu::SharedMemorySpaceAttr::get(ctx), /*mutableMemory=*/true);
  return gpu::LocalAllocOp::create(builder, loc, type);
}

Operation *TotalsExchange::write(Value memory, ArrayRef<Value> words,
                                 Value index, RankedTensorType type) {
  SmallVector<Value> indices(words.size(), index);
  return gpu::LocalScatterOp::create(builder, loc, memory,
                                     packStruct(builder, loc, words, type),
                                     packStruct(builder, loc, indices, type),
                                     builder.getI32IntegerAttr(Index));
}

SmallVector<Value> TotalsExchange::read(Value memory, RankedTensorType type,
                                        unsigned firstWord,
                                        unsigned firstIndex) {
  auto memoryType = cast<gpu::MemDescType>(memory.getType());
  auto partType = gpu::MemDescType::get(
      type.getShape(), type.getElementType(), memoryType.getEncoding(),
      memoryType.getMemorySpace(), /*mutableMemory=*/true,
      memoryType.getAllocShape());
  SmallVector<int32_t> offsets(Rank, 0);
  offsets[Word] = firstWord;
  offsets[Index] = firstIndex;
  Value part =
      gpu::MemDescSubsliceOp::create(builder, loc, partType, memory, offsets);
  return unpackStruct(builder, loc,
                      gpu::LocalLoadOp::create(builder, loc, type, part));
}

unsigned TotalsExchange::numWriteIndexBits() const {
  return run.bits.size() + copyWarps().size() + (isHolder ? 1 : 0);
}

Value TotalsExchange::createWriteIndex(Value warpId, bool inDirection) const {
  SmallVector<unsigned> warpBits(run.bits);
  llvm::append_range(warpBits, copyWarps());
  auto indexBits = llvm::to_vector(llvm::seq<unsigned>(0, warpBits.size()));
  Value index = moveBits(builder, loc, warpId, warpBits, indexBits);
  if (inDirection && reverse)
    index = LLVM::XOrOp::create(builder, loc, index,
                                constantI32(builder, loc, run.size() - 1));
  if (!isHolder)
    return index;

  // Beside the totals, and at the next position: in another bank. Not a select:
  // LLVM would fold it for some lanes, so for one direction only.
  Value isOther = LLVM::ICmpOp::create(
      builder, loc, LLVM::ICmpPredicate::ne, isHolder,
      LLVM::ConstantOp::create(builder, loc, builder.getI1Type(),
                               builder.getBoolAttr(true)));
  Value beside = LLVM::MulOp::create(
      builder, loc,
      LLVM::ZExtOp::create(builder, loc, builder.getI32Type(), isOther),
      constantI32(builder, loc, 1 << warpBits.size() | 1));
  return LLVM::XOrOp::create(builder, loc, index, beside);
}

RankedTensorType TotalsExchange::writersType(unsigned numWords) const {
  // Only the size of the index matters; each thread names its own.
  unsigned numBits = 0;
  return typeOf(numWords, 1, [&](Owner owner, unsigned bit) {
    bool isDistinct = owner == Owner::Warp || roleOf(owner, bit) != Role::Copy;
    return isDistinct ? std::optional(numBits++) : std::nullopt;
  });
}

Operation *
TotalsExchange::acrossWarps(ArrayRef<Scalars> slots, Value warpId,
                            bool wantLast,
                            llvm::function_ref<void(ArrayRef<Scalars>)> use) {
  SmallVector<Value> words = packSlots(slots);
  unsigned wordsPerSlot = words.size() / slots.size();
  Value memory = allocate(words.size(), wordsPerSlot, numWriteIndexBits());
  Operation *written =
      write(memory, words, createWriteIndex(warpId, /*inDirection=*/true),
            writersType(words.size()));

  for (unsigned slot = 0; slot < slots.size(); ++slot) {
    SmallVector<Scalars> totals;
    unsigned end = wantLast ? run.size() : run.size() - 1;
    for (unsigned begin = 0, count; begin < end; begin += count) {
      // A tensor takes a power of two of positions, and a load up to four
      // words: the last total may come along, but not by a load of its own.
      count = llvm::PowerOf2Ceil(end - begin);
      if (count > end - begin && count * wordsPerSlot > 4)
        count /= 2;
      SmallVector<Value> own =
          read(memory, typeOf(wordsPerSlot, count), slot * wordsPerSlot, begin);
      llvm::append_range(totals, unpackSlots(own, slots.take_front()).front());
    }
    use(totals);
  }
  return written;
}

/// Puts a barrier before `loop` if it starts with converted values. Otherwise
/// the loop's first write to shared memory has to wait for the conversions to
/// be read, and does so in each round.
static void awaitConversionsBefore(Operation *loop, OpBuilder &builder) {
  if (isa_and_nonnull<gpu::BarrierOp>(loop->getPrevNode()) ||
      llvm::none_of(loop->getOperands(), [](Value init) {
        return isa_and_nonnull<gpu::ConvertLayoutOp>(init.getDefiningOp());
      }))
    return;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(loop);
  gpu::BarrierOp::create(builder, loop->getLoc(), gpu::AddrSpace::Local);
}

void TotalsExchange::inLeader(Value warpId, llvm::function_ref<void()> emit) {
  // Here, for in the branch it would wait for ever.
  gpu::BarrierOp::create(builder, loc, gpu::AddrSpace::Local);
  SmallVector<unsigned> sameRow(run.bits);
  llvm::append_range(sameRow, copyWarps());
  Value isFirstOfRow = LLVM::ICmpOp::create(
      builder, loc, LLVM::ICmpPredicate::eq,
      LLVM::AndOp::create(builder, loc, warpId,
                          constantI32(builder, loc, maskOf(sameRow))),
      constantI32(builder, loc, 0));
  auto branch = scf::IfOp::create(builder, loc, isFirstOfRow,
                                  /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  emit();
}

TotalsExchange::Prefixes TotalsExchange::scanInOneWarp(
    ArrayRef<Scalars> slots, Value warpId, Value laneId,
    ArrayRef<unsigned> lanes, bool wantTotal, Operation *loop,
    llvm::function_ref<SmallVector<Scalars>(ArrayRef<Scalars>)> scanLanes) {
  if (loop)
    awaitConversionsBefore(loop, builder);
  SmallVector<Value> words = packSlots(slots);
  unsigned wordsPerSlot = words.size() / slots.size();
  // Both live to the end: what one round reads, the next may not overwrite
  // without a third barrier.
  Value prefixMemory = allocate(words.size(), wordsPerSlot, run.bits.size());
  Value totalMemory = allocate(words.size(), wordsPerSlot, numWriteIndexBits());

  write(totalMemory, words, createWriteIndex(warpId, /*inDirection=*/false),
        writersType(words.size()));
  inLeader(warpId, [&] {
    RankedTensorType type =
        typeOf(words.size(), 1, [&](Owner owner, unsigned bit) {
          const unsigned *lane = llvm::find(lanes, bit);
          bool isPosition = owner == Owner::Lane && lane != lanes.end();
          return isPosition ? std::optional<unsigned>(lane - lanes.begin())
                            : std::nullopt;
        });
    SmallVector<Scalars> totals = llvm::map_to_vector(
        unpackSlots(read(totalMemory, type), slots),
        [](ArrayRef<Scalars> positions) { return positions.front(); });
    // Where the next position will look for it; the last one's is the total.
    auto positionBits =
        llvm::to_vector(llvm::seq<unsigned>(0, run.bits.size()));
    Value next = LLVM::AddOp::create(
        builder, loc, moveBits(builder, loc, laneId, lanes, positionBits),
        constantI32(builder, loc, reverse ? -1 : 1));
    next = LLVM::AndOp::create(builder, loc, next,
                               constantI32(builder, loc, run.size() - 1));
    write(prefixMemory, packSlots(scanLanes(totals)), next, type);
  });

  Prefixes result;
  for (unsigned slot = 0; slot < slots.size(); ++slot) {
    auto readSlot = [&](RankedTensorType type, unsigned firstIndex) {
      SmallVector<Value> own =
          read(prefixMemory, type, slot * wordsPerSlot, firstIndex);
      return unpackSlots(own, slots.take_front()).front().front();
    };
    result.before.push_back(readSlot(ownPositionType(wordsPerSlot), 0));
    if (wantTotal)
      result.total.push_back(
          readSlot(typeOf(wordsPerSlot, 1), reverse ? run.size() - 1 : 0));
  }
  return result;
}

Value TotalsExchange::allocateForRaking(unsigned numWords, unsigned numNear) {
  MLIRContext *ctx = builder.getContext();
  LayoutBuilder memory(ctx, {"offset", "block"}, Rank);
  SmallVector<std::pair<Dim, unsigned>> near;
  for (unsigned bit = 0, e = llvm::Log2_32(numWords); bit < e; ++bit)
    near.push_back({Word, bit});
  for (unsigned bit = 0, e = llvm::Log2_32(numNear); bit < e; ++bit)
    near.push_back({Index, bit});
  for (auto [dim, bit] : near)
    memory.add("offset", dim, bit);

  // A lane reads its words by loads of four, eight lanes at a time; these are
  // to use all 32 banks. Where a lane has 2^n such loads, eight lanes would
  // meet in 8/2^n places: every further lane bit permutes the loads.
  unsigned nearIndexBits = llvm::Log2_32(numNear);
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
  return allocate(memory.build());
}

TotalsExchange::Scalars TotalsExchange::scanThreadsInOneWarp(
    const Scalars &own, Value warpId, Operation *loop,
    llvm::function_ref<SmallVector<Scalars>(const LinearLayout &,
                                            ArrayRef<Scalars>)>
        scan) {
  awaitConversionsBefore(loop, builder);
  SmallVector<Value> words = packSlots(own);
  unsigned numNear = run.size();
  Value prefixMemory = allocateForRaking(words.size(), numNear);
  Value totalMemory = allocateForRaking(words.size(), numNear);
  auto store = [&](Value memory, ArrayRef<Value> words, RankedTensorType type) {
    gpu::LocalStoreOp::create(builder, loc,
                              packStruct(builder, loc, words, type), memory);
  };
  auto load = [&](Value memory, RankedTensorType type) {
    Value loaded = gpu::LocalLoadOp::create(builder, loc, type, memory);
    return unpackSlots(unpackStruct(builder, loc, loaded), own).front();
  };

  RankedTensorType ownType = ownPositionType(words.size());
  store(totalMemory, words, ownType);
  inLeader(warpId, [&] {
    auto typeOfWords = [&](unsigned numWords) {
      return typeOf(numWords, numNear,
                    [&](Owner owner, unsigned bit) -> std::optional<unsigned> {
                      if (owner != Owner::Lane)
                        return std::nullopt;
                      return *positionBitOf(owner, bit) + run.bits.size();
                    });
    };
    RankedTensorType type = typeOfWords(words.size());
    SmallVector<Scalars> prefixes =
        scan(linearLayoutOf(typeOfWords(1)), load(totalMemory, type));
    SmallVector<Value> packed;
    for (const Scalars &prefix : prefixes)
      llvm::append_range(packed, packSlots(prefix));
    // From position by position to word by word.
    SmallVector<Value> byWord;
    for (unsigned i = 0; i < words.size(); ++i)
      for (unsigned j = 0; j < numNear; ++j)
        byWord.push_back(packed[i + j * words.size()]);
    store(prefixMemory, byWord, type);
  });
  return load(prefixMemory, ownType).front();
}

#endif

SmallVector<SmallVector<TotalsExchange::Scalars>>
TotalsExchange::acrossBlocks(ArrayRef<Scalars> slots) {
  SmallVector<Value> words = packSlots(slots);
  Value totals = packStruct(builder, loc, words, ownPositionType(words.size()));
  Value converted = gpu::ConvertLayoutOp::create(
      builder, loc, typeOf(words.size(), run.size()), totals);
  auto result = unpackSlots(unpackStruct(builder, loc, converted), slots);
  if (reverse)
    for (SmallVector<Scalars> &positions : result)
      std::reverse(positions.begin(), positions.end());
  return result;
}

} // namespace mlir::triton::scan
