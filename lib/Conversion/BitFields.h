//===- BitFields.h - Coordinates spread over an index's bits ----*- C++ -*-===//

#ifndef TRITON_SCAN_LIB_CONVERSION_BITFIELDS_H
#define TRITON_SCAN_LIB_CONVERSION_BITFIELDS_H

#include "mlir/IR/Builders.h"

namespace mlir::triton::scan {

/// Returns an index in which exactly the given bits are set.
unsigned maskOf(ArrayRef<unsigned> bits);

/// Moves bit i of `coord` to bit bits[i] of the result.
unsigned scatterBits(unsigned coord, ArrayRef<unsigned> bits);

/// The inverse: moves bit bits[i] of `index` to bit i of the result.
unsigned gatherBits(unsigned index, ArrayRef<unsigned> bits);

/// Emits the i32 in which bit to[i] is bit from[i] of the i32 `value`; all
/// other bits are 0. Neighbouring bits that stay neighbours move together.
Value moveBits(OpBuilder &builder, Location loc, Value value,
               ArrayRef<unsigned> from, ArrayRef<unsigned> to);

/// Emits an i32 constant.
Value constantI32(OpBuilder &builder, Location loc, int32_t value);

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_LIB_CONVERSION_BITFIELDS_H
