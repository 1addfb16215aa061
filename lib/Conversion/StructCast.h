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

/// The same for what replaces `result`, an op's tensor. Triton's AxisInfo gives
/// a cast the rank of the struct and, for AMD, asserts that ranks agree where
/// blocks meet: where `result` is handed to another block, a conversion to the
/// same layout, which costs no instruction, keeps the cast away from there.
Value packResult(OpBuilder &builder, Location loc, ValueRange elements,
                 Value result);

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_LIB_CONVERSION_STRUCTCAST_H
