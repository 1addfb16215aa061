//===- CheckScans.cpp - Refuses the scans that this Triton gets wrong -----===//

#include "triton-scan/Conversion/CheckScans.h"
#include "mlir/Pass/Pass.h"
#include "triton-scan/Compat.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

using namespace mlir;

namespace mlir::triton::scan {

namespace {

bool crossesBlocks(RankedTensorType type, unsigned axis) {
  LinearLayout layout = linearLayoutOf(type);
  auto block = StringAttr::get(type.getContext(), "block");
  for (int bit = 0; bit < layout.getInDimSizeLog2(block); ++bit)
    if (layout.getBasis(block, bit)[axis] != 0)
      return true;
  return false;
}

struct CheckScansPass : PassWrapper<CheckScansPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CheckScansPass)

  StringRef getArgument() const override { return "check-scans"; }
  StringRef getDescription() const override {
    return "refuse scans along an axis that crosses CTAs";
  }

  void runOnOperation() override {
    getOperation().walk([&](ScanOp op) {
      if (!crossesBlocks(op.getInputTypes().front(), op.getAxis()))
        return WalkResult::advance();
      op.emitOpError("cannot be lowered: axis ")
          << op.getAxis()
          << " crosses CTAs, which cannot share totals on this target; "
             "use num_ctas=1";
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
