//===- CheckScans.cpp - Refuses the scans that this Triton gets wrong -----===//

#include "triton-scan/Conversion/CheckScans.h"
#include "mlir/Pass/Pass.h"
#include "triton-scan/Compat.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;

namespace mlir::triton::scan {

namespace {

/// Is the axis split between several of `unit`, warps or CTAs ("block")?
bool crosses(ScanOp op, StringRef unit) {
  RankedTensorType type = op.getInputTypes().front();
  LinearLayout layout = linearLayoutOf(type);
  auto dim = StringAttr::get(type.getContext(), unit);
  for (int bit = 0; bit < layout.getInDimSizeLog2(dim); ++bit)
    if (layout.getBasis(dim, bit)[op.getAxis()] != 0)
      return true;
  return false;
}

/// Returns why the scan is refused, or an empty string.
std::string refusal(ScanOp op, bool hasPartitions) {
  std::string axis = std::to_string(op.getAxis());
  if (crosses(op, "block"))
    return "axis " + axis +
           " crosses CTAs, which cannot share totals on this target; "
           "use num_ctas=1";
  // This Triton has one number for the barriers of a function, but the warps
  // that call it wait at those of their partitions.
  if (hasPartitions && crosses(op, "warp") &&
      !op->getParentOfType<FuncOp>().isPublic())
    return "axis " + axis +
           " crosses warps, which cannot wait for each other in a function "
           "that is not inlined if the kernel specialises its warps; "
           "drop noinline";
  return "";
}

struct CheckScansPass : PassWrapper<CheckScansPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CheckScansPass)

  StringRef getArgument() const override { return "check-scans"; }
  StringRef getDescription() const override {
    return "refuse scans whose parts cannot be joined";
  }

  void runOnOperation() override {
    bool hasPartitions = false;
    getOperation().walk([&](gpu::WarpSpecializeOp) { hasPartitions = true; });
    getOperation().walk([&](ScanOp op) {
      std::string reason = refusal(op, hasPartitions);
      if (reason.empty())
        return WalkResult::advance();
      op.emitOpError("cannot be lowered: ") << reason;
      signalPassFailure();
      return WalkResult::interrupt();
    });
  }
};

} // namespace

std::unique_ptr<Pass> createCheckScansPass() {
  return std::make_unique<CheckScansPass>();
}

} // namespace mlir::triton::scan
