//===- LowerScan.cpp - Replaces tt.scan by code on registers --------------===//

#include "CheckedTarget.h"
#include "Clusters.h"
#include "Fp8Arithmetic.h"
#include "ScanEmitter.h"
#include "StructCast.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/LLVMIR/ROCDLDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "triton-scan/Analysis/CombineRegion.h"
#include "triton-scan/Compat.h"
#include "triton-scan/Conversion/Passes.h"

namespace mlir::triton::scan {
namespace {

/// Surrounds a scan by conversions to and from a layout that any axis of which
/// can be scanned.
void convertToBlocked(ScanOp op, RewriterBase &rewriter) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  RankedTensorType type = op.getInputTypes().front();
  auto module = op->getParentOfType<ModuleOp>();
  auto blocked = gpu::getDefaultBlockedEncoding(
      op.getContext(), type.getShape(), gpu::lookupNumWarps(op),
      gpu::TritonGPUDialect::getThreadsPerWarp(module), numCTAsOf(op));
  Location loc = op.getLoc();
  for (OpOperand &operand : op->getOpOperands()) {
    auto operandType = cast<RankedTensorType>(operand.get().getType());
    operand.set(gpu::ConvertLayoutOp::create(
        rewriter, loc, operandType.cloneWithEncoding(blocked), operand.get()));
  }
  rewriter.setInsertionPointAfter(op);
  for (OpResult result : op->getResults()) {
    auto resultType = cast<RankedTensorType>(result.getType());
    result.setType(resultType.cloneWithEncoding(blocked));
    auto converted =
        gpu::ConvertLayoutOp::create(rewriter, loc, resultType, result);
    rewriter.replaceAllUsesExcept(result, converted, converted);
  }
}

/// Says what a scan has become.
void emitRemark(ScanOp op, ArrayRef<Run> runs,
                ScanEmitter::Statistics statistics) {
  InFlightDiagnostic remark = op.emitRemark();
  remark << (op.getReverse() ? "reverse" : "forward") << " scan";
  describe(*remark.getUnderlyingDiagnostic(), op.getAxis(),
           op.getInputTypes().front(), runs);
  remark << "; a thread executes " << statistics.shuffles << " shuffles, "
         << statistics.exchanges << " exchanges, " << statistics.combines
         << " combines";
}

LogicalResult lowerScan(ScanOp op, const TargetInfoBase &targetInfo,
                        bool remarks) {
  IRRewriter rewriter(op);
  Location loc = op.getLoc();
  if (failed(verifyCombineRegion(op)))
    return failure();
  widenFp8Arithmetic(op);

  LinearLayout layout = registerLayout(op.getInputTypes().front());
  std::optional<SmallVector<Run>> runs = planScan(layout, op.getAxis());
  if (!runs) {
    convertToBlocked(op, rewriter);
    layout = registerLayout(op.getInputTypes().front());
    runs = planScan(layout, op.getAxis());
  }
  if (!runs)
    return op.emitOpError("cannot be lowered: no layout is known that splits "
                          "axis ")
           << op.getAxis() << " of " << op.getInputTypes().front()
           << " into bits; TRITON_NATIVE_SCAN=0 selects upstream's lowering";

  if (crossesBlocks(*runs) && !(convertsAcrossBlocks && isCuda(targetInfo)))
    return op.emitOpError("cannot be lowered: axis ")
           << op.getAxis()
           << " crosses CTAs, which cannot share totals on this target; "
              "use num_ctas=1";
  if (crossesBlocks(*runs))
    allowInlining(op);

  SmallVector<Tuple> elements(numRegisters(layout));
  for (Value operand : op.getSrcs())
    for (auto [element, value] :
         llvm::zip_equal(elements, unpackStruct(rewriter, loc, operand)))
      element.push_back(value);

  ScanEmitter emitter(op, rewriter, layout, targetInfo);
  elements = emitter.emit(*runs, elements);
  if (remarks)
    emitRemark(op, *runs, emitter.statistics());

  SmallVector<Value> results;
  for (auto [i, result] : llvm::enumerate(op->getResults())) {
    results.push_back(packResult(
        rewriter, loc,
        llvm::map_to_vector(elements, [i = i](Tuple &t) { return t[i]; }),
        result));
  }
  rewriter.replaceOp(op, results);
  return success();
}

struct LowerScanPass : PassWrapper<LowerScanPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerScanPass)

  explicit LowerScanPass(bool remarks) : remarks(remarks) {}

  StringRef getArgument() const override { return "lower-scan"; }
  StringRef getDescription() const override {
    return "replace tt.scan by code on the registers of each thread";
  }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry
        .insert<LLVM::LLVMDialect, NVVM::NVVMDialect, ROCDL::ROCDLDialect>();
  }

  void runOnOperation() override {
    // From outside in: a combine function that scans is refused as a whole.
    SmallVector<ScanOp> scans;
    getOperation().walk<WalkOrder::PreOrder>(
        [&](ScanOp op) { scans.push_back(op); });
    if (scans.empty())
      return;
    auto targetInfo = checkedTargetOf(
        getOperation(), [&] { return scans.front().emitOpError(); });
    if (!targetInfo)
      return signalPassFailure();
    for (ScanOp op : scans)
      if (failed(lowerScan(op, *targetInfo, remarks)))
        return signalPassFailure();
  }

  bool remarks;
};

} // namespace

std::unique_ptr<Pass> createLowerScanPass(bool remarks) {
  return std::make_unique<LowerScanPass>(remarks);
}

} // namespace mlir::triton::scan
