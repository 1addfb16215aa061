//===- LowerFlip.cpp - Replaces flips by code on registers ----------------===//
//
// An axis has 2^m positions, so that flipping it inverts all bits of the
// coordinate (n-1-i == i xor n-1), and with them the bits of the hardware index
// that hold them: an element comes from a register, lane, warp and CTA whose
// numbers differ from its own by constants.
//
//===----------------------------------------------------------------------===//

#include "BitFields.h"
#include "CheckedTarget.h"
#include "Clusters.h"
#include "LaneShuffle.h"
#include "StructCast.h"
#include "TotalsExchange.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "triton-scan/Analysis/Flip.h"
#include "triton-scan/Conversion/Passes.h"
#include "triton/Conversion/TritonGPUToLLVM/Utility.h"
#include "triton/Dialect/TritonGPU/IR/Dialect.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::triton::scan {
namespace {

/// What a pass through shared memory may take, in bytes: larger tensors go in
/// several, so that no flip is what makes a kernel exceed its shared memory.
constexpr unsigned maxExchangeBytes = 32 << 10;

class FlipEmitter {
public:
  FlipEmitter(ScanOp op, RewriterBase &rewriter, const LinearLayout &layout,
              ArrayRef<Run> runs, const TargetInfoBase &targetInfo)
      : loc(op.getLoc()), rewriter(rewriter), layout(layout),
        targetInfo(targetInfo) {
    for (const Run &run : runs)
      llvm::append_range(axisBits[run.owner], run.bits);
    std::tie(laneId, warpId) = getLaneAndWarpId(rewriter, loc);
  }

  // Input: a thread's elements in register order.
  // Output: the same of the flipped tensor.
  SmallVector<Value> flip(ArrayRef<Value> elements);

  /// What a thread has executed for the flips so far.
  struct Statistics {
    unsigned shuffles = 0;
    /// Passes through shared memory, or through that of the cluster.
    unsigned exchanges = 0;
  };
  Statistics statistics() const { return counts; }

private:
  SmallVector<Value> exchangeLanes(ArrayRef<Value> words);

  /// Reads from the thread of this CTA that holds the flipped position, which
  /// lies in another warp.
  SmallVector<Value> exchangeThreads(ArrayRef<Value> words);

  /// Reads from the same thread of the CTA that holds the flipped position.
  SmallVector<Value> exchangeBlocks(ArrayRef<Value> words);

  /// Calls `exchange` on as many words at a time as shared memory may take.
  SmallVector<Value> inParts(
      ArrayRef<Value> words,
      llvm::function_ref<SmallVector<Value>(ArrayRef<Value>)> exchange) const;

  unsigned sizeLog2(Owner owner) const {
    return layout.getInDimSizeLog2(
        StringAttr::get(rewriter.getContext(), dimNameOf(owner)));
  }

  Location loc;
  RewriterBase &rewriter;
  const LinearLayout &layout;
  const TargetInfoBase &targetInfo;
  Statistics counts;
  std::map<Owner, SmallVector<unsigned>> axisBits;
  Value laneId, warpId;
};

SmallVector<Value> FlipEmitter::flip(ArrayRef<Value> elements) {
  bool movesLanes = !axisBits[Owner::Lane].empty();
  bool movesWarps = !axisBits[Owner::Warp].empty();
  bool movesBlocks = !axisBits[Owner::Block].empty();
  unsigned inverted = maskOf(axisBits[Owner::Register]);
  SmallVector<Value> moved(elements);
  if (movesLanes || movesWarps || movesBlocks) {
    WordPacking packing(ValueRange(elements).getTypes());
    SmallVector<Value> words = packing.pack(rewriter, loc, elements);
    if (movesWarps)
      words = inParts(words, [&](auto part) { return exchangeThreads(part); });
    else if (movesLanes)
      words = exchangeLanes(words);
    if (movesBlocks)
      words = inParts(words, [&](auto part) { return exchangeBlocks(part); });
    // Four bytes that change places in their word: LLVM does not see it.
    constexpr unsigned withinWord = 3;
    if (elements.size() == words.size() * (withinWord + 1) &&
        (inverted & withinWord) == withinWord) {
      for (Value &word : words)
        word = LLVM::ByteSwapOp::create(rewriter, loc, word.getType(), word);
      inverted &= ~withinWord;
    }
    moved = packing.unpack(rewriter, loc, words);
  }
  return llvm::map_to_vector(llvm::seq<unsigned>(0, moved.size()),
                             [&](unsigned i) { return moved[i ^ inverted]; });
}

SmallVector<Value> FlipEmitter::inParts(
    ArrayRef<Value> words,
    llvm::function_ref<SmallVector<Value>(ArrayRef<Value>)> exchange) const {
  unsigned bytesPerWord = 4u << (sizeLog2(Owner::Lane) + sizeLog2(Owner::Warp));
  unsigned atOnce = std::max(maxExchangeBytes / bytesPerWord, 1u);
  SmallVector<Value> result;
  for (; !words.empty(); words = words.drop_front(atOnce)) {
    atOnce = std::min<unsigned>(atOnce, words.size());
    llvm::append_range(result, exchange(words.take_front(atOnce)));
  }
  return result;
}

SmallVector<Value> FlipEmitter::exchangeLanes(ArrayRef<Value> words) {
  unsigned inverted = maskOf(axisBits[Owner::Lane]);
  counts.shuffles += words.size();
  LaneShuffle shuffle(rewriter, loc, targetInfo, laneId,
                      1u << sizeLog2(Owner::Lane),
                      /*returnsPredicates=*/false);
  return shuffle.fromInverted(words, inverted);
}

SmallVector<Value> FlipEmitter::exchangeThreads(ArrayRef<Value> words) {
  ++counts.exchanges;
  MLIRContext *ctx = rewriter.getContext();
  unsigned laneBits = sizeLog2(Owner::Lane), warpBits = sizeLog2(Owner::Warp);
  unsigned blockBits = sizeLog2(Owner::Block);
  unsigned threads = 1u << (laneBits + warpBits);

  // A row for every thread, copies too: what a thread wrote, one thread reads.
  unsigned wordBits = llvm::Log2_32(words.size());
  auto thread = [](unsigned bit) -> std::vector<int32_t> {
    return {1 << bit, 0};
  };
  auto word = [](unsigned bit) -> std::vector<int32_t> {
    return {0, 1 << bit};
  };
  std::vector<std::vector<int32_t>> registers, lanes, warps, offsets;
  std::vector<std::vector<int32_t>> blocks(blockBits, {0, 0});
  for (unsigned i = 0; i < wordBits; ++i)
    registers.push_back(word(i));
  for (unsigned i = 0; i < laneBits; ++i)
    lanes.push_back(thread(i));
  for (unsigned i = 0; i < warpBits; ++i)
    warps.push_back(thread(laneBits + i));
  // Four words of a thread side by side, and then the threads: vectors without
  // bank conflicts.
  unsigned vectorBits = std::min(wordBits, 2u);
  for (unsigned i = 0; i < vectorBits; ++i)
    offsets.push_back(word(i));
  for (unsigned i = 0; i < laneBits + warpBits; ++i)
    offsets.push_back(thread(i));
  for (unsigned i = vectorBits; i < wordBits; ++i)
    offsets.push_back(word(i));

  auto named = [&](StringRef name) { return StringAttr::get(ctx, name); };
  SmallVector<StringAttr> dims{axisDimOf(ctx, 0), axisDimOf(ctx, 1)};
  LinearLayout distributed({{named("register"), registers},
                            {named("lane"), lanes},
                            {named("warp"), warps},
                            {named("block"), blocks}},
                           dims);
  LinearLayout memory({{named("offset"), offsets}, {named("block"), blocks}},
                      dims);

  int64_t shape[] = {threads, static_cast<int64_t>(words.size())};
  auto tensorType =
      RankedTensorType::get(shape, rewriter.getI32Type(),
                            gpu::LinearEncodingAttr::get(ctx, distributed));
  auto memoryType = gpu::MemDescType::get(
      shape, rewriter.getI32Type(),
      gpu::SharedLinearEncodingAttr::get(ctx, memory, /*layoutAlignment=*/16),
      gpu::SharedMemorySpaceAttr::get(ctx), /*mutableMemory=*/false);

  Value own = LLVM::OrOp::create(
      rewriter, loc, laneId,
      LLVM::ShlOp::create(rewriter, loc, warpId,
                          constantI32(rewriter, loc, laneBits)));
  unsigned inverted =
      maskOf(axisBits[Owner::Lane]) | maskOf(axisBits[Owner::Warp]) << laneBits;
  SmallVector<Value> source(
      words.size(), LLVM::XOrOp::create(rewriter, loc, own,
                                        constantI32(rewriter, loc, inverted)));
  Value buffer = gpu::LocalAllocOp::create(
      rewriter, loc, memoryType, packStruct(rewriter, loc, words, tensorType));
  constexpr unsigned threadAxis = 0;
  Value read =
      gpu::LocalGatherOp::create(rewriter, loc, tensorType, buffer,
                                 packStruct(rewriter, loc, source, tensorType),
                                 rewriter.getI32IntegerAttr(threadAxis));
  return unpackStruct(rewriter, loc, read);
}

SmallVector<Value> FlipEmitter::exchangeBlocks(ArrayRef<Value> words) {
  ++counts.exchanges;
  // Only ttg.convert_layout reaches other CTAs, and it knows no constants to
  // invert bits with: read the words of all positions and select.
  Run run{Owner::Block, axisBits[Owner::Block]};
  TotalsExchange exchange(rewriter, loc, layout, run, /*reverse=*/true);
  SmallVector<SmallVector<Value>> fromEnd =
      exchange.acrossBlocks({SmallVector<Value>(words)}).front();
  Value blockId = clusterBlockId(rewriter, loc);
  for (unsigned bit : llvm::reverse(run.bits)) {
    Value isUpper = LLVM::ICmpOp::create(
        rewriter, loc, LLVM::ICmpPredicate::ne,
        LLVM::AndOp::create(rewriter, loc, blockId,
                            constantI32(rewriter, loc, 1 << bit)),
        constantI32(rewriter, loc, 0));
    unsigned half = fromEnd.size() / 2;
    for (unsigned i = 0; i < half; ++i)
      for (auto [lower, upper] : llvm::zip_equal(fromEnd[i], fromEnd[half + i]))
        lower = LLVM::SelectOp::create(rewriter, loc, isUpper, upper, lower);
    fromEnd.truncate(half);
  }
  return fromEnd.front();
}

LogicalResult lowerFlip(ScanOp op, const TargetInfoBase &targetInfo,
                        bool remarks) {
  IRRewriter rewriter(op);
  Location loc = op.getLoc();
  RankedTensorType type = op.getInputTypes().front();
  LinearLayout layout = registerLayout(type);
  // tt.scan's verifier lets no layout pass of which an axis could not be split.
  std::optional<SmallVector<Run>> runs = planScan(layout, op.getAxis());
  if (!runs)
    return op.emitError("tl.flip cannot be lowered: no lane or register holds "
                        "bits of axis ")
           << op.getAxis() << " of " << type
           << " alone; TRITON_NATIVE_SCAN=0 selects upstream's tl.flip";
  if (crossesBlocks(*runs) && !targetInfo.isCuda())
    return op.emitError("tl.flip cannot be lowered: axis ")
           << op.getAxis()
           << " crosses CTAs, which cannot exchange elements on this target; "
              "use num_ctas=1";
  if (crossesBlocks(*runs))
    allowInlining(op);

  FlipEmitter emitter(op, rewriter, layout, *runs, targetInfo);
  SmallVector<Value> results;
  for (auto [operand, result] : llvm::zip_equal(op.getSrcs(), op.getResult()))
    results.push_back(
        packResult(rewriter, loc,
                   emitter.flip(unpackStruct(rewriter, loc, operand)), result));
  if (remarks) {
    InFlightDiagnostic remark = op.emitRemark("flip");
    describe(*remark.getUnderlyingDiagnostic(), op.getAxis(), type, *runs);
    remark << "; a thread executes " << emitter.statistics().shuffles
           << " shuffles, " << emitter.statistics().exchanges << " exchanges";
  }
  rewriter.replaceOp(op, results);
  return success();
}

struct LowerFlipPass : PassWrapper<LowerFlipPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerFlipPass)

  explicit LowerFlipPass(bool remarks) : remarks(remarks) {}

  StringRef getArgument() const override { return "lower-flip"; }
  StringRef getDescription() const override {
    return "replace the scans that stand for tl.flip by moves of registers";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry
        .insert<LLVM::LLVMDialect, NVVM::NVVMDialect, ROCDL::ROCDLDialect>();
  }

  void runOnOperation() override {
    SmallVector<ScanOp> flips;
    getOperation().walk([&](ScanOp op) {
      if (isFlip(op))
        flips.push_back(op);
    });
    if (flips.empty())
      return;
    auto targetInfo = checkedTargetOf(
        getOperation(), [&] { return flips.front().emitError("tl.flip "); });
    if (!targetInfo)
      return signalPassFailure();
    for (ScanOp op : flips)
      if (failed(lowerFlip(op, *targetInfo, remarks)))
        return signalPassFailure();
  }

  bool remarks;
};

} // namespace

std::unique_ptr<Pass> createLowerFlipPass(bool remarks) {
  return std::make_unique<LowerFlipPass>(remarks);
}

} // namespace mlir::triton::scan
