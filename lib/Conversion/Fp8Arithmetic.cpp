//===- Fp8Arithmetic.cpp - Combine regions that compute with fp8 ----------===//

#include "Fp8Arithmetic.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace mlir::triton::scan {

static bool isFp8(Type type) {
  return isa<FloatType>(type) && type.getIntOrFloatBitWidth() == 8;
}

/// Does this op look at the values of its operands, and not only move them?
static bool isArithmetic(Operation *op) {
  return isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
         !isa<arith::SelectOp, arith::BitcastOp, arith::ConstantOp>(op);
}

void widenFp8Arithmetic(ScanOp op) {
  SmallVector<Operation *> ops;
  op.getCombineOp().walk([&](Operation *inner) {
    if (isArithmetic(inner))
      ops.push_back(inner);
  });
  OpBuilder builder(op.getContext());
  Type f32 = builder.getF32Type();
  for (Operation *inner : ops) {
    Location loc = inner->getLoc();
    builder.setInsertionPoint(inner);
    for (OpOperand &operand : inner->getOpOperands())
      if (isFp8(operand.get().getType()))
        operand.set(FpToFpOp::create(builder, loc, f32, operand.get()));
    builder.setInsertionPointAfter(inner);
    for (OpResult result : inner->getResults()) {
      Type type = result.getType();
      if (!isFp8(type))
        continue;
      result.setType(f32);
      auto rounded = FpToFpOp::create(
          builder, loc, type, result,
          RoundingModeAttr::get(op.getContext(), RoundingMode::RTNE));
      result.replaceAllUsesExcept(rounded, rounded);
    }
  }
}

} // namespace mlir::triton::scan
