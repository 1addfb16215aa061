//===- WordPacking.cpp - Scalars of any width as 32-bit words -------------===//

#include "WordPacking.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::triton::scan {

static constexpr unsigned wordBits = 32;

/// Width of a scalar LLVM type in bits; pointers are 64 bits wide.
static unsigned getBitWidth(Type type) {
  return isa<LLVM::LLVMPointerType>(type) ? 64 : type.getIntOrFloatBitWidth();
}

static Value createShift(OpBuilder &builder, Location loc, Value value,
                         unsigned bits, bool left) {
  if (bits == 0)
    return value;
  Value amount =
      LLVM::ConstantOp::create(builder, loc, value.getType(),
                               builder.getIntegerAttr(value.getType(), bits));
  if (left)
    return LLVM::ShlOp::create(builder, loc, value, amount);
  return LLVM::LShrOp::create(builder, loc, value, amount);
}

/// Returns the bits of `scalar` as an integer of the same width.
static Value toInteger(OpBuilder &builder, Location loc, Value scalar) {
  Type type = scalar.getType();
  Type integer = builder.getIntegerType(getBitWidth(type));
  if (type == integer)
    return scalar;
  if (isa<LLVM::LLVMPointerType>(type))
    return LLVM::PtrToIntOp::create(builder, loc, integer, scalar);
  return LLVM::BitcastOp::create(builder, loc, integer, scalar);
}

/// The inverse of toInteger.
static Value fromInteger(OpBuilder &builder, Location loc, Value integer,
                         Type type) {
  if (integer.getType() == type)
    return integer;
  if (isa<LLVM::LLVMPointerType>(type))
    return LLVM::IntToPtrOp::create(builder, loc, type, integer);
  return LLVM::BitcastOp::create(builder, loc, type, integer);
}

WordPacking::WordPacking(TypeRange types) {
  unsigned used = wordBits;
  for (Type type : types) {
    unsigned width = llvm::alignTo(getBitWidth(type), 8);
    if (width >= wordBits) {
      slots.push_back({type, words, 0});
      words += width / wordBits;
      used = wordBits;
      continue;
    }
    if (used + width > wordBits) {
      ++words;
      used = 0;
    }
    slots.push_back({type, words - 1, used});
    used += width;
  }
}

SmallVector<Value> WordPacking::pack(OpBuilder &builder, Location loc,
                                     ValueRange scalars) const {
  Type i32 = builder.getI32Type();
  SmallVector<Value> result(words);
  for (auto [slot, scalar] : llvm::zip_equal(slots, scalars)) {
    Value bits = toInteger(builder, loc, scalar);
    unsigned width = getBitWidth(slot.type);
    if (width > wordBits) {
      for (unsigned i = 0; i * wordBits < width; ++i) {
        Value part = createShift(builder, loc, bits, i * wordBits,
                                 /*left=*/false);
        result[slot.word + i] = LLVM::TruncOp::create(builder, loc, i32, part);
      }
      continue;
    }
    if (width < wordBits)
      bits = LLVM::ZExtOp::create(builder, loc, i32, bits);
    bits = createShift(builder, loc, bits, slot.shift, /*left=*/true);
    Value &word = result[slot.word];
    word = word ? Value(LLVM::OrOp::create(builder, loc, word, bits)) : bits;
  }
  return result;
}

SmallVector<Value> WordPacking::unpack(OpBuilder &builder, Location loc,
                                       ValueRange words) const {
  SmallVector<Value> result;
  for (const Slot &slot : slots) {
    unsigned width = getBitWidth(slot.type);
    Type integer = builder.getIntegerType(width);
    Value bits;
    if (width > wordBits) {
      for (unsigned i = 0; i * wordBits < width; ++i) {
        Value part =
            LLVM::ZExtOp::create(builder, loc, integer, words[slot.word + i]);
        part = createShift(builder, loc, part, i * wordBits, /*left=*/true);
        bits =
            bits ? Value(LLVM::OrOp::create(builder, loc, bits, part)) : part;
      }
    } else {
      bits = createShift(builder, loc, words[slot.word], slot.shift,
                         /*left=*/false);
      if (width < wordBits)
        bits = LLVM::TruncOp::create(builder, loc, integer, bits);
    }
    result.push_back(fromInteger(builder, loc, bits, slot.type));
  }
  return result;
}

} // namespace mlir::triton::scan
