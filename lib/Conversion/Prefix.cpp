//===- Prefix.cpp - Partial results of a scan and how they join -----------===//

#include "Prefix.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "triton-scan/Analysis/CombineRegion.h"

namespace mlir::triton::scan {

Type getScalarType(Type type) {
  MLIRContext *ctx = type.getContext();
  if (auto ptr = dyn_cast<PointerType>(type))
    return LLVM::LLVMPointerType::get(
        ctx, static_cast<unsigned>(ptr.getAddressSpace()));
  // LLVM has no type for the 8-bit floats; Triton keeps them in integers.
  if (isa<FloatType>(type) && type.getIntOrFloatBitWidth() <= 8)
    return IntegerType::get(ctx, 8);
  return type;
}

/// Reinterprets `value` as `type`; folds away when both are the same.
static Value castTo(OpBuilder &builder, Location loc, Value value, Type type) {
  if (value.getType() == type)
    return value;
  return UnrealizedConversionCastOp::create(builder, loc, type, value)
      .getResult(0);
}

Combiner::Combiner(ScanOp op, OpBuilder &builder)
    : op(op), builder(builder), speculates(canSpeculate(op)) {
  for (Type type : op.getElementTypes())
    scalarTypes.push_back(getScalarType(type));
}

Tuple Combiner::combine(ValueRange earlier, ValueRange later) {
  ++combines;
  Location loc = op.getLoc();
  Block &region = op.getCombineOp().front();
  IRMapping mapping;
  unsigned arg = 0;
  for (ValueRange side : {earlier, later})
    for (Value value : side) {
      BlockArgument param = region.getArgument(arg++);
      mapping.map(param, castTo(builder, loc, value, param.getType()));
    }
  for (Operation &inner : region.without_terminator())
    builder.clone(inner, mapping);

  Tuple results;
  for (auto [value, type] :
       llvm::zip_equal(region.getTerminator()->getOperands(), scalarTypes))
    results.push_back(
        castTo(builder, loc, mapping.lookupOrDefault(value), type));
  return results;
}

Tuple Combiner::select(Value condition, ValueRange ifTrue, ValueRange ifFalse) {
  Tuple results;
  for (auto [a, b] : llvm::zip_equal(ifTrue, ifFalse))
    results.push_back(a == b ? a
                             : Value(LLVM::SelectOp::create(
                                   builder, op.getLoc(), condition, a, b)));
  return results;
}

Tuple Combiner::combineIf(Value condition, ValueRange earlier, ValueRange later,
                          ValueRange otherwise) {
  if (speculates)
    return select(condition, combine(earlier, later), otherwise);
  Location loc = op.getLoc();
  auto branch = scf::IfOp::create(builder, loc, TypeRange(scalarTypes),
                                  condition, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(builder, loc, combine(earlier, later));
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, loc, otherwise);
  return Tuple(branch.getResults());
}

Prefix Combiner::join(const Prefix &earlier, const Prefix &later) {
  if (earlier.isNone())
    return later;
  if (later.isNone())
    return earlier;
  if (earlier.isAlways() && later.isAlways())
    return Prefix::always(combine(earlier.values, later.values));
  if (later.isAlways())
    return Prefix::always(
        combineIf(earlier.valid, earlier.values, later.values, later.values));
  if (earlier.isAlways())
    return Prefix::always(
        combineIf(later.valid, earlier.values, later.values, earlier.values));
  Tuple values;
  if (speculates) {
    values =
        combineIf(earlier.valid, earlier.values, later.values, later.values);
    values = select(later.valid, values, earlier.values);
  } else {
    Location loc = op.getLoc();
    Tuple either = select(later.valid, later.values, earlier.values);
    values =
        combineIf(LLVM::AndOp::create(builder, loc, earlier.valid, later.valid),
                  earlier.values, later.values, either);
  }
  return {values,
          LLVM::OrOp::create(builder, op.getLoc(), earlier.valid, later.valid)};
}

} // namespace mlir::triton::scan
