//===- OutlineScans.cpp - Scans that warp specialisation can place --------===//
//
// Upstream's passes that specialise warps stop at an op whose region has
// arguments, but for tt.reduce: they assert or reach llvm_unreachable. While
// they run, a scan is an elementwise op without a region, and the scan itself
// waits in a function of its own.
//
// On Hopper these passes may split a dot's accumulator, and what is computed
// from it, between two groups of warps. An elementwise op is split with its
// operand, which is right for a scan along another axis and wrong along the
// one that is split; loops are not specialised where that could happen.
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "triton-scan/Analysis/Flip.h"
#include "triton-scan/Transforms/Passes.h"
#include "triton/Dialect/TritonGPU/IR/Dialect.h"
#include "triton/Dialect/TritonNvidiaGPU/IR/Dialect.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallString.h"

namespace mlir::triton::scan {
namespace {

constexpr StringLiteral specializeAttr = "tt.warp_specialize";
constexpr StringLiteral outlinedPrefix = "triton_scan.outlined.";

/// Accumulators with this many rows are split between two groups of warps.
constexpr int64_t splitRows = 128;

bool splitsAccumulators(Operation *loop) {
  auto result = loop->walk([](nvidia_gpu::WarpGroupDotOp dot) {
    auto type = cast<RankedTensorType>(dot.getType());
    return type.getShape()[type.getRank() - 2] < splitRows
               ? WalkResult::advance()
               : WalkResult::interrupt();
  });
  return result.wasInterrupted();
}

/// Is the axis never the one that is split, which is that of the rows of an
/// accumulator?
bool keepsRowsApart(ScanOp scan) {
  return scan.getInputTypes().front().getRank() == 2 && scan.getAxis() == 1;
}

/// Are there ops after which rows are no longer the first axis?
bool permutesAxes(FuncOp function) {
  auto result = function.walk([](Operation *op) {
    return isa<TransOp, ReshapeOp, JoinOp, SplitOp>(op)
               ? WalkResult::interrupt()
               : WalkResult::advance();
  });
  return result.wasInterrupted();
}

/// Copies constants from outside into the region, and returns the other values
/// that it uses from there.
SmallVector<Value> isolate(ScanOp scan) {
  Block &body = scan.getCombineOp().front();
  llvm::SetVector<Value> captured;
  scan.getCombineOp().walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands()) {
      Value value = operand.get();
      if (scan.getCombineOp().isAncestor(value.getParentRegion()))
        continue;
      if (auto constant = value.getDefiningOp<arith::ConstantOp>())
        operand.set(
            OpBuilder::atBlockBegin(&body).clone(*constant)->getResult(0));
      else
        captured.insert(value);
    }
  });
  return captured.takeVector();
}

void outline(ScanOp scan, unsigned number) {
  auto module = scan->getParentOfType<ModuleOp>();
  SmallString<32> name;
  (outlinedPrefix + Twine(number)).toVector(name);

  SmallVector<Value> inputs(scan->getOperands());
  llvm::append_range(inputs, isolate(scan));
  OpBuilder builder(module.getContext());
  builder.setInsertionPointToEnd(module.getBody());
  auto function =
      FuncOp::create(builder, scan.getLoc(), name,
                     builder.getFunctionType(ValueRange(inputs).getTypes(),
                                             scan->getResultTypes()));
  function.setPrivate();
  Block *entry = function.addEntryBlock();
  builder.setInsertionPointToStart(entry);
  IRMapping mapping;
  mapping.map(inputs, entry->getArguments());
  Operation *copy = builder.clone(*scan, mapping);
  ReturnOp::create(builder, scan.getLoc(), copy->getResults());

  builder.setInsertionPoint(scan);
  auto opaque = ElementwiseInlineAsmOp::create(
      builder, scan.getLoc(), scan->getResultTypes(), name,
      /*constraints=*/"", /*pure=*/true, /*packed_element=*/1, inputs);
  opaque->setDiscardableAttrs(scan->getDiscardableAttrDictionary());
  scan.replaceAllUsesWith(opaque->getResults());
  scan.erase();
}

LogicalResult inlineBack(ElementwiseInlineAsmOp opaque, ScanOp scan) {
  auto type = cast<RankedTensorType>(opaque->getOperand(0).getType());
  unsigned axis = scan.getAxis();
  if (type.getShape()[axis] != scan.getInputTypes().front().getShape()[axis])
    return opaque->emitError(isFlip(scan) ? "tl.flip" : "'tt.scan' op")
           << " cannot be lowered: axis " << axis
           << " is split between groups of warps; use warp_specialize=False "
              "for the loop";
  OpBuilder builder(opaque);
  IRMapping mapping;
  mapping.map(scan->getBlock()->getArguments(), opaque->getOperands());
  Operation *copy = builder.clone(*scan, mapping);
  copy->setDiscardableAttrs(opaque->getDiscardableAttrDictionary());
  for (auto [result, old] :
       llvm::zip_equal(copy->getResults(), opaque->getResults()))
    result.setType(old.getType());
  copy->setLoc(opaque->getLoc());
  opaque->replaceAllUsesWith(copy->getResults());
  opaque->erase();
  return success();
}

struct OutlineScansPass
    : PassWrapper<OutlineScansPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(OutlineScansPass)

  explicit OutlineScansPass(bool remarks) : remarks(remarks) {}

  StringRef getArgument() const override { return "outline-scans"; }
  StringRef getDescription() const override {
    return "make scans opaque elementwise ops before warps are specialised";
  }

  void runOnOperation() override {
    SmallVector<ScanOp> scans;
    getOperation().walk([&](FuncOp function) {
      SmallVector<scf::ForOp> loops;
      bool splits = false;
      function.walk([&](scf::ForOp loop) {
        if (!loop->hasAttr(specializeAttr))
          return;
        loops.push_back(loop);
        splits |= splitsAccumulators(loop);
      });
      if (loops.empty())
        return;
      size_t before = scans.size();
      function.walk([&](ScanOp scan) { scans.push_back(scan); });
      ArrayRef<ScanOp> own = ArrayRef(scans).drop_front(before);
      if (!splits || own.empty())
        return;
      if (permutesAxes(function) || !llvm::all_of(own, keepsRowsApart))
        for (scf::ForOp loop : loops) {
          loop->removeAttr(specializeAttr);
          if (remarks)
            loop.emitRemark("the loop is pipelined and not warp-specialised, "
                            "which could split the axis of a scan or flip");
        }
    });
    for (auto [number, scan] : llvm::enumerate(scans))
      outline(scan, number);
  }

  bool remarks;
};

struct InlineScansPass : PassWrapper<InlineScansPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(InlineScansPass)

  StringRef getArgument() const override { return "inline-scans"; }
  StringRef getDescription() const override {
    return "put back the scans that outline-scans took out";
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SmallVector<ElementwiseInlineAsmOp> opaques;
    module.walk([&](ElementwiseInlineAsmOp op) {
      if (op.getAsmString().starts_with(outlinedPrefix))
        opaques.push_back(op);
    });
    for (ElementwiseInlineAsmOp opaque : opaques) {
      auto function = module.lookupSymbol<FuncOp>(opaque.getAsmString());
      ScanOp scan = *function.getOps<ScanOp>().begin();
      isolate(scan); // canonicalisation moves constants to the function
      if (failed(inlineBack(opaque, scan)))
        return signalPassFailure();
    }
    for (FuncOp function : llvm::make_early_inc_range(module.getOps<FuncOp>()))
      if (function.getName().starts_with(outlinedPrefix))
        function.erase();
  }
};

} // namespace

std::unique_ptr<Pass> createOutlineScansPass(bool remarks) {
  return std::make_unique<OutlineScansPass>(remarks);
}

std::unique_ptr<Pass> createInlineScansPass() {
  return std::make_unique<InlineScansPass>();
}

} // namespace mlir::triton::scan
