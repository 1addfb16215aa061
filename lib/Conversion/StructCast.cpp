//===- StructCast.cpp - A tensor as the registers of one thread -----------===//

#include "StructCast.h"
#include "Prefix.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "triton-scan/Analysis/ScanPlan.h"
#include "triton/Dialect/Triton/IR/Dialect.h"
#include "triton/Dialect/TritonGPU/IR/Dialect.h"

namespace mlir::triton::scan {

// Triton's own conversion turns tensors into such structs, so that the casts
// fold away when it meets them.
static LLVM::LLVMStructType structTypeOf(RankedTensorType type) {
  MLIRContext *ctx = type.getContext();
  unsigned count = numRegisters(registerLayout(type));
  SmallVector<Type> elements(count, getScalarType(type.getElementType()));
  return LLVM::LLVMStructType::getLiteral(ctx, elements);
}

SmallVector<Value> unpackStruct(OpBuilder &builder, Location loc,
                                Value tensor) {
  auto type = structTypeOf(cast<RankedTensorType>(tensor.getType()));
  Value value = UnrealizedConversionCastOp::create(builder, loc, type, tensor)
                    .getResult(0);
  SmallVector<Value> elements;
  for (unsigned i = 0, e = type.getBody().size(); i < e; ++i)
    elements.push_back(LLVM::ExtractValueOp::create(builder, loc, value, i));
  return elements;
}

Value packStruct(OpBuilder &builder, Location loc, ValueRange elements,
                 RankedTensorType type) {
  Value value = LLVM::UndefOp::create(builder, loc, structTypeOf(type));
  for (auto [i, element] : llvm::enumerate(elements))
    value = LLVM::InsertValueOp::create(builder, loc, value, element,
                                        ArrayRef<int64_t>{int64_t(i)});
  return UnrealizedConversionCastOp::create(builder, loc, type, value)
      .getResult(0);
}

/// Is `value` handed to another block of its function as it is?
static bool leavesBlock(Value value) {
  return llvm::any_of(value.getUsers(), [](Operation *user) {
    return user->getNumRegions() != 0 ||
           (user == user->getBlock()->getTerminator() && !isa<ReturnOp>(user));
  });
}

Value packResult(OpBuilder &builder, Location loc, ValueRange elements,
                 Value result) {
  auto type = cast<RankedTensorType>(result.getType());
  Value packed = packStruct(builder, loc, elements, type);
  if (type.getRank() > 1 && leavesBlock(result))
    packed = gpu::ConvertLayoutOp::create(builder, loc, type, packed);
  return packed;
}

} // namespace mlir::triton::scan
