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

TotalsExchange::TotalsExchange(OpBuilder &builder, Location loc,
                               const LinearLayout &layout, ArrayRef<Run> runs,
                               bool reverse)
    : builder(builder), loc(loc), where(builder.getContext(), layout, runs),
      run(runs.back()), reverse(reverse) {}

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
  return gpu::LocalScatterOp::create(
      builder, loc, memory, packStruct(builder, loc, words, type),
      packStruct(builder, loc, indices, type),
      builder.getI32IntegerAttr(TotalsLayout::Index));
}

SmallVector<Value> TotalsExchange::read(Value memory, RankedTensorType type,
                                        unsigned firstWord,
                                        unsigned firstIndex) {
  auto memoryType = cast<gpu::MemDescType>(memory.getType());
  auto partType = gpu::MemDescType::get(
      type.getShape(), type.getElementType(), memoryType.getEncoding(),
      memoryType.getMemorySpace(), /*mutableMemory=*/true,
      memoryType.getAllocShape());
  SmallVector<int32_t> offsets(TotalsLayout::Rank, 0);
  offsets[TotalsLayout::Word] = firstWord;
  offsets[TotalsLayout::Index] = firstIndex;
  Value part =
      gpu::MemDescSubsliceOp::create(builder, loc, partType, memory, offsets);
  return unpackStruct(builder, loc,
                      gpu::LocalLoadOp::create(builder, loc, type, part));
}

unsigned TotalsExchange::numWriteIndexBits() const {
  return run.bits.size() + where.copyWarps().size() + (isHolder ? 1 : 0);
}

Value TotalsExchange::createWriteIndex(Value warpId, bool inDirection) const {
  SmallVector<unsigned> warpBits(run.bits);
  llvm::append_range(warpBits, where.copyWarps());
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

Operation *
TotalsExchange::acrossWarps(ArrayRef<Scalars> slots, Value warpId,
                            bool wantLast,
                            llvm::function_ref<void(ArrayRef<Scalars>)> use) {
  SmallVector<Value> words = packSlots(slots);
  unsigned wordsPerSlot = words.size() / slots.size();
  Value memory =
      allocate(where.memory(words.size(), wordsPerSlot, numWriteIndexBits()));
  Operation *written =
      write(memory, words, createWriteIndex(warpId, /*inDirection=*/true),
            where.writersType(words.size()));

  for (unsigned slot = 0; slot < slots.size(); ++slot) {
    SmallVector<Scalars> totals;
    unsigned end = wantLast ? run.size() : run.size() - 1;
    for (unsigned begin = 0, count; begin < end; begin += count) {
      // A tensor takes a power of two of positions, and a load up to four
      // words: the last total may come along, but not by a load of its own.
      count = llvm::PowerOf2Ceil(end - begin);
      if (count > end - begin && count * wordsPerSlot > 4)
        count /= 2;
      SmallVector<Value> own = read(memory, where.typeOf(wordsPerSlot, count),
                                    slot * wordsPerSlot, begin);
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
  llvm::append_range(sameRow, where.copyWarps());
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
  Value prefixMemory =
      allocate(where.memory(words.size(), wordsPerSlot, run.bits.size()));
  Value totalMemory =
      allocate(where.memory(words.size(), wordsPerSlot, numWriteIndexBits()));

  write(totalMemory, words, createWriteIndex(warpId, /*inDirection=*/false),
        where.writersType(words.size()));
  inLeader(warpId, [&] {
    RankedTensorType type = where.inLanesType(words.size(), lanes);
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
    result.before.push_back(readSlot(where.ownPositionType(wordsPerSlot), 0));
    if (wantTotal)
      result.total.push_back(readSlot(where.typeOf(wordsPerSlot, 1),
                                      reverse ? run.size() - 1 : 0));
  }
  return result;
}

TotalsExchange::Scalars TotalsExchange::scanThreadsInOneWarp(
    const Scalars &own, Value warpId, Operation *loop,
    llvm::function_ref<SmallVector<Scalars>(const LinearLayout &,
                                            ArrayRef<Scalars>)>
        scan) {
  awaitConversionsBefore(loop, builder);
  SmallVector<Value> words = packSlots(own);
  Value prefixMemory = allocate(where.rakedMemory(words.size()));
  Value totalMemory = allocate(where.rakedMemory(words.size()));
  auto store = [&](Value memory, ArrayRef<Value> words, RankedTensorType type) {
    gpu::LocalStoreOp::create(builder, loc,
                              packStruct(builder, loc, words, type), memory);
  };
  auto load = [&](Value memory, RankedTensorType type) {
    Value loaded = gpu::LocalLoadOp::create(builder, loc, type, memory);
    return unpackSlots(unpackStruct(builder, loc, loaded), own).front();
  };

  RankedTensorType ownType = where.ownPositionType(words.size());
  store(totalMemory, words, ownType);
  inLeader(warpId, [&] {
    RankedTensorType type = where.rakedType(words.size());
    SmallVector<Scalars> prefixes =
        scan(linearLayoutOf(where.rakedType(1)), load(totalMemory, type));
    SmallVector<Value> packed;
    for (const Scalars &prefix : prefixes)
      llvm::append_range(packed, packSlots(prefix));
    // From position by position to word by word.
    SmallVector<Value> byWord;
    for (unsigned i = 0; i < words.size(); ++i)
      for (unsigned j = 0; j < run.size(); ++j)
        byWord.push_back(packed[i + j * words.size()]);
    store(prefixMemory, byWord, type);
  });
  return load(prefixMemory, ownType).front();
}

#endif

SmallVector<SmallVector<TotalsExchange::Scalars>>
TotalsExchange::acrossBlocks(ArrayRef<Scalars> slots) {
  SmallVector<Value> words = packSlots(slots);
  Value totals =
      packStruct(builder, loc, words, where.ownPositionType(words.size()));
  Value converted = gpu::ConvertLayoutOp::create(
      builder, loc, where.typeOf(words.size(), run.size()), totals);
  auto result = unpackSlots(unpackStruct(builder, loc, converted), slots);
  if (reverse)
    for (SmallVector<Scalars> &positions : result)
      std::reverse(positions.begin(), positions.end());
  return result;
}

} // namespace mlir::triton::scan
