//===- Prefix.h - Partial results of a scan and how they join ---*- C++ -*-===//

#ifndef TRITON_SCAN_LIB_CONVERSION_PREFIX_H
#define TRITON_SCAN_LIB_CONVERSION_PREFIX_H

#include "mlir/IR/Builders.h"
#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::triton::scan {

/// One scalar for each operand of the scan, of the operands' LLVM types.
using Tuple = SmallVector<Value>;

/// The combination of the elements before some point. It may be empty, for
/// all threads or for those in which `valid` (an i1) is false; a combine
/// region has no identity element that could stand for that.
struct Prefix {
  Tuple values;
  Value valid;

  static Prefix none() { return {}; }
  static Prefix always(Tuple values) { return {std::move(values), Value()}; }

  bool isNone() const { return values.empty(); }
  bool isAlways() const { return !isNone() && !valid; }
};

/// Emits the combine region of a scan at the builder's insertion point.
class Combiner {
public:
  Combiner(ScanOp op, OpBuilder &builder);

  /// The LLVM types in which the operands' elements travel, one an operand.
  TypeRange types() const { return scalarTypes; }

  /// Returns fn(earlier, later), in the order of the scan's direction.
  Tuple combine(ValueRange earlier, ValueRange later);

  /// Returns `condition ? ifTrue : ifFalse` for each operand.
  Tuple select(Value condition, ValueRange ifTrue, ValueRange ifFalse);

  /// Returns `condition ? fn(earlier, later) : otherwise`, without executing a
  /// function that has effects where the condition is false.
  Tuple combineIf(Value condition, ValueRange earlier, ValueRange later,
                  ValueRange otherwise);

  /// Joins two neighbouring prefixes, either of which may be empty.
  Prefix join(const Prefix &earlier, const Prefix &later);

  /// How often the combine region was emitted.
  unsigned numCombines() const { return combines; }

private:
  ScanOp op;
  OpBuilder &builder;
  SmallVector<Type> scalarTypes;
  bool speculates;
  unsigned combines = 0;
};

/// Returns the LLVM type that holds one element of type `type` in a register.
Type getScalarType(Type type);

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_LIB_CONVERSION_PREFIX_H
