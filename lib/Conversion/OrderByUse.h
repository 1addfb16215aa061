//===- OrderByUse.h - Emitting values where they are needed -----*- C++ -*-===//

#ifndef TRITON_SCAN_LIB_CONVERSION_ORDERBYUSE_H
#define TRITON_SCAN_LIB_CONVERSION_ORDERBYUSE_H

#include "mlir/IR/Operation.h"

namespace mlir::triton::scan {

/// Reorders the operations between `begin` and `end`, both of one block and
/// neither moved: what the first of the `wanted` values needs comes first, then
/// what the second needs beyond that, and so on. ptxas mostly keeps to the
/// order it is given, and values that wait for their use take up registers.
///
/// The operations must not write to memory, and may read it in any order.
void orderByUse(Operation *begin, Operation *end, ArrayRef<Value> wanted);

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_LIB_CONVERSION_ORDERBYUSE_H
