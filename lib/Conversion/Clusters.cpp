//===- Clusters.cpp - Scans and flips that cross CTAs ---------------------===//

#include "Clusters.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::triton::scan {

bool crossesBlocks(ArrayRef<Run> runs) {
  return llvm::any_of(runs,
                      [](const Run &run) { return run.owner == Owner::Block; });
}

void allowInlining(Operation *op) {
  if (op->getParentOfType<FuncOp>().isPublic())
    return;
  auto module = op->getParentOfType<ModuleOp>();
  module.walk([](FuncOp function) { function->removeAttr("noinline"); });
}

Value clusterBlockId(OpBuilder &builder, Location loc) {
  // Not Triton's nvg.cluster_id: a function with one is never inlined.
  return NVVM::ClusterId::create(builder, loc, builder.getI32Type());
}

} // namespace mlir::triton::scan
