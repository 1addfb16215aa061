//===- WordPacking.h - Scalars of any width as 32-bit words -----*- C++ -*-===//

#ifndef TRITON_SCAN_LIB_CONVERSION_WORDPACKING_H
#define TRITON_SCAN_LIB_CONVERSION_WORDPACKING_H

#include "mlir/IR/Builders.h"

namespace mlir::triton::scan {

/// What moves between threads moves in 32-bit words, so that narrow scalars
/// share a word and operands of different types share one exchange.
///
/// Scalars of 64 bits take two words; narrower ones take the next free bits of
/// the current word, i1 a whole byte.
class WordPacking {
public:
  explicit WordPacking(TypeRange types);

  unsigned numWords() const { return words; }

  /// Returns numWords() values of type i32 that hold `scalars`.
  SmallVector<Value> pack(OpBuilder &builder, Location loc,
                          ValueRange scalars) const;

  /// The inverse of pack.
  SmallVector<Value> unpack(OpBuilder &builder, Location loc,
                            ValueRange words) const;

private:
  struct Slot {
    Type type;
    unsigned word;
    unsigned shift; // bits
  };
  SmallVector<Slot> slots;
  unsigned words = 0;
};

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_LIB_CONVERSION_WORDPACKING_H
