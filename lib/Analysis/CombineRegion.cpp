//===- CombineRegion.cpp - What a combine function may do -----------------===//

#include "triton-scan/Analysis/CombineRegion.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "triton/Dialect/TritonGPU/IR/Dialect.h"

namespace mlir::triton::scan {

bool canSpeculate(ScanOp op) {
  return llvm::all_of(op.getCombineOp().front().without_terminator(),
                      [](Operation &inner) { return isPure(&inner); });
}

/// Is `type` spread over threads? A tensor of one element is in each.
static bool isSpread(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? tensor.getNumElements() > 1 : isa<gpu::MemDescType>(type);
}

/// Returns what about this op all threads would have to do together, or null.
static const char *findShared(Operation *op) {
  if (isa<ScanOp>(op))
    return "scans";
  // The barrier is of another dialect in each Triton.
  if (op->getName().stripDialect() == "barrier")
    return "waits at a barrier";
  if (llvm::any_of(op->getOperandTypes(), isSpread) ||
      llvm::any_of(op->getResultTypes(), isSpread))
    return "computes with a block";
  return nullptr;
}

/// The same for `region` and the functions that it calls.
static const char *findShared(Region &region,
                              llvm::SmallPtrSetImpl<Region *> &visited) {
  if (!visited.insert(&region).second)
    return nullptr;
  const char *found = nullptr;
  region.walk<WalkOrder::PreOrder>([&](Operation *op) {
    found = findShared(op);
    if (auto call = dyn_cast<CallOp>(op))
      if (auto callee = SymbolTable::lookupNearestSymbolFrom<FuncOp>(
              op, call.getCalleeAttr()))
        found = findShared(callee.getBody(), visited);
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

LogicalResult verifyCombineRegion(ScanOp op) {
  llvm::SmallPtrSet<Region *, 4> visited;
  if (const char *shared = findShared(op.getCombineOp(), visited))
    return op.emitOpError("cannot be lowered: its combine function ")
           << shared
           << ", which takes all threads together; it may use scalars only";
  return success();
}

} // namespace mlir::triton::scan
