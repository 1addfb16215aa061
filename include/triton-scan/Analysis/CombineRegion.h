//===- CombineRegion.h - What a combine function may do ---------*- C++ -*-===//

#ifndef TRITON_SCAN_ANALYSIS_COMBINEREGION_H
#define TRITON_SCAN_ANALYSIS_COMBINEREGION_H

#include "triton/Dialect/Triton/IR/Dialect.h"

namespace mlir::triton::scan {

/// May the region be executed where its result is not wanted, on values that
/// are no neighbours? Not if it prints, asserts, reads memory, or may not end.
bool canSpeculate(ScanOp op);

/// Fails, with an error at the scan, if its region or a function that it calls
/// contains what threads do together: other threads combine other values, and
/// some none at all.
LogicalResult verifyCombineRegion(ScanOp op);

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_ANALYSIS_COMBINEREGION_H
