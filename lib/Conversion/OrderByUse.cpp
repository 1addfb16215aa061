//===- OrderByUse.cpp - Emitting values where they are needed -------------===//

#include "OrderByUse.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::triton::scan {

/// Returns the operations whose results `op` or its regions use.
static SmallVector<Operation *> definitionsFor(Operation *op) {
  SmallVector<Operation *> definitions;
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (Operation *definition = operand.getDefiningOp())
        definitions.push_back(definition);
  });
  return definitions;
}

void orderByUse(Operation *begin, Operation *end, ArrayRef<Value> wanted) {
  // In their order so far, for those that no wanted value needs.
  llvm::SetVector<Operation *> pending;
  for (Operation *op = begin->getNextNode(); op != end; op = op->getNextNode())
    pending.insert(op);
  SmallVector<Operation *> roots;
  for (Value value : wanted)
    if (Operation *op = value.getDefiningOp())
      roots.push_back(op);
  llvm::append_range(roots, pending);

  // Depth first; an operation is on the stack until its operands are placed.
  llvm::DenseSet<Operation *> placed;
  for (Operation *root : roots) {
    SmallVector<Operation *> stack{root};
    while (!stack.empty()) {
      Operation *op = stack.back();
      if (!pending.contains(op) || placed.contains(op)) {
        stack.pop_back();
        continue;
      }
      size_t depth = stack.size();
      SmallVector<Operation *> definitions = definitionsFor(op);
      for (Operation *definition : llvm::reverse(definitions))
        if (pending.contains(definition) && !placed.contains(definition))
          stack.push_back(definition);
      if (stack.size() > depth)
        continue;
      op->moveBefore(end);
      placed.insert(op);
      stack.pop_back();
    }
  }
}

} // namespace mlir::triton::scan
