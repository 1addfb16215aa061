//===- CheckCombines.cpp - Refuses combine functions that share work ------===//
//
// lower-scan refuses them too; before that, upstream's passes would already
// fail at a scan in a scan.
//
//===----------------------------------------------------------------------===//

#include "mlir/IR/BuiltinOps.h"
#include "triton-scan/Analysis/CombineRegion.h"
#include "triton-scan/Transforms/Passes.h"

namespace mlir::triton::scan {
namespace {

struct CheckCombinesPass
    : PassWrapper<CheckCombinesPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CheckCombinesPass)

  StringRef getArgument() const override { return "check-combines"; }
  StringRef getDescription() const override {
    return "refuse combine functions that take all threads";
  }

  void runOnOperation() override {
    auto result = getOperation().walk<WalkOrder::PreOrder>([](ScanOp op) {
      return failed(verifyCombineRegion(op)) ? WalkResult::interrupt()
                                             : WalkResult::advance();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> createCheckCombinesPass() {
  return std::make_unique<CheckCombinesPass>();
}

} // namespace mlir::triton::scan
