//===- StructCast.cpp - A tensor as the registers of one thread -----------===//

#include "StructCast.h"
#include "Prefix.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "triton-scan/Analysis/ScanPlan.h"
#include "triton-scan/Compat.h"

namespace mlir::triton::scan {

// Triton's own conversion turns tensors into such structs, so that the casts
// fold away when it meets them.
static LLVM::LLVMStructType structTypeOf(RankedTensorType type,
                                         unsigned count) {
  SmallVector<Type> elements(count, getScalarType(type.getElementType()));
  return LLVM::LLVMStructType::getLiteral(type.getContext(), elements);
}

/// Returns, for each register of the struct, the number of its element among
/// those without copies.
static SmallVector<unsigned> elementsOfStruct(RankedTensorType type) {
  LinearLayout layout =
      structHoldsCopies ? linearLayoutOf(type) : registerLayout(type);
  StringAttr dim = StringAttr::get(type.getContext(), "register");
  SmallVector<unsigned> kept;
  for (int bit = 0, e = layout.getInDimSizeLog2(dim); bit < e; ++bit)
    if (llvm::any_of(layout.getBasis(dim, bit),
                     [](int32_t coord) { return coord != 0; }))
      kept.push_back(bit);
  SmallVector<unsigned> elements;
  for (int i = 0, e = layout.getInDimSize(dim); i < e; ++i) {
    unsigned element = 0;
    for (auto [j, bit] : llvm::enumerate(kept))
      element |= (i >> bit & 1) << j;
    elements.push_back(element);
  }
  return elements;
}

SmallVector<Value> unpackStruct(OpBuilder &builder, Location loc,
                                Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<unsigned> numbers = elementsOfStruct(type);
  Value value = UnrealizedConversionCastOp::create(
                    builder, loc, structTypeOf(type, numbers.size()), tensor)
                    .getResult(0);
  SmallVector<Value> elements(numRegisters(registerLayout(type)));
  for (auto [i, number] : llvm::enumerate(numbers))
    if (!elements[number])
      elements[number] = LLVM::ExtractValueOp::create(builder, loc, value, i);
  return elements;
}

Value packStruct(OpBuilder &builder, Location loc, ValueRange elements,
                 RankedTensorType type) {
  SmallVector<unsigned> numbers = elementsOfStruct(type);
  Value value =
      LLVM::UndefOp::create(builder, loc, structTypeOf(type, numbers.size()));
  for (auto [i, number] : llvm::enumerate(numbers))
    value = LLVM::InsertValueOp::create(builder, loc, value, elements[number],
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
