//===- StructCast.h - A tensor as the registers of one thread ---*- C++ -*-===//

#ifndef TRITON_SCAN_LIB_CONVERSION_STRUCTCAST_H
#define TRITON_SCAN_LIB_CONVERSION_STRUCTCAST_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::triton::scan {

/// Returns the elements that a thread holds of `tensor`, in register order.
SmallVector<Value> unpackStruct(OpBuilder &builder, Location loc, Value tensor);

/// Returns a tensor of type `type` of which each thread holds `elements`.
Value packStruct(OpBuilder &builder, Location loc, ValueRange elements,
                 RankedTensorType type);

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_LIB_CONVERSION_STRUCTCAST_H
