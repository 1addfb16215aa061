//===- BitFields.cpp - Coordinates spread over the bits of an index -------===//

#include "BitFields.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::triton::scan {

Value constantI32(OpBuilder &builder, Location loc, int32_t value) {
  return LLVM::ConstantOp::create(builder, loc, builder.getI32Type(),
                                  builder.getI32IntegerAttr(value));
}

unsigned maskOf(ArrayRef<unsigned> bits) { return scatterBits(~0u, bits); }

unsigned scatterBits(unsigned coord, ArrayRef<unsigned> bits) {
  unsigned result = 0;
  for (auto [i, bit] : llvm::enumerate(bits))
    result |= ((coord >> i) & 1u) << bit;
  return result;
}

unsigned gatherBits(unsigned index, ArrayRef<unsigned> bits) {
  unsigned result = 0;
  for (auto [i, bit] : llvm::enumerate(bits))
    result |= ((index >> bit) & 1u) << i;
  return result;
}

Value moveBits(OpBuilder &builder, Location loc, Value value,
               ArrayRef<unsigned> from, ArrayRef<unsigned> to) {
  Value result;
  for (size_t begin = 0, end; begin < from.size(); begin = end) {
    end = begin + 1;
    while (end < from.size() && from[end] == from[end - 1] + 1 &&
           to[end] == to[end - 1] + 1)
      ++end;
    unsigned mask = maskOf(from.slice(begin, end - begin));
    Value field = LLVM::AndOp::create(builder, loc, value,
                                      constantI32(builder, loc, mask));
    if (to[begin] > from[begin])
      field = LLVM::ShlOp::create(
          builder, loc, field,
          constantI32(builder, loc, to[begin] - from[begin]));
    if (to[begin] < from[begin])
      field = LLVM::LShrOp::create(
          builder, loc, field,
          constantI32(builder, loc, from[begin] - to[begin]));
    result =
        result ? Value(LLVM::OrOp::create(builder, loc, result, field)) : field;
  }
  return result ? result : constantI32(builder, loc, 0);
}

} // namespace mlir::triton::scan
