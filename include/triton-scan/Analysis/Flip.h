//===- Flip.h - Scans that stand for tl.flip --------------------*- C++ -*-===//

#ifndef TRITON_SCAN_ANALYSIS_FLIP_H
#define TRITON_SCAN_ANALYSIS_FLIP_H

#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::triton::scan {

/// Is `op` a flip of its operands along its axis?
///
/// tl.flip travels as a tt.scan, forward, whose region returns what pure calls
/// of "triton_scan_flip" of the library "triton_scan" make of its arguments.
/// A scan is what upstream's passes take for an op that depends on positions
/// along an axis and has one layout in and out. Bare extern_elementwise would
/// not do: the warp-specialisation passes split elementwise ops along an axis,
/// which leaves each half flipped in itself.
bool isFlip(ScanOp op);

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_ANALYSIS_FLIP_H
