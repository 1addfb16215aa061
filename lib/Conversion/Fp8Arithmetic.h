//===- Fp8Arithmetic.h - Combine regions that compute with fp8 --*- C++ -*-===//

#ifndef TRITON_SCAN_LIB_CONVERSION_FP8ARITHMETIC_H
#define TRITON_SCAN_LIB_CONVERSION_FP8ARITHMETIC_H

#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::triton::scan {

/// Makes each op of the combine region that computes with 8-bit floats do so
/// in f32, and rounds its result to nearest even: Triton lowers conversions of
/// these types only. The result is that of the op in the type's own arithmetic,
/// because f32 holds more than twice their digits.
void widenFp8Arithmetic(ScanOp op);

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_LIB_CONVERSION_FP8ARITHMETIC_H
