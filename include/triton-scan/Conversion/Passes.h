//===- Passes.h - The passes of the native scan lowering --------*- C++ -*-===//

#ifndef TRITON_SCAN_CONVERSION_PASSES_H
#define TRITON_SCAN_CONVERSION_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::triton::scan {

/// Creates the pass that replaces every tt.scan of a TTGIR module by code on
/// the registers of each thread, forward and reverse alike.
///
/// It runs before shared memory is allocated and before scf becomes cf (a
/// combine region has one block). Fails with an error at the scan's location
/// when the module has no known target, or its warps are not the target's.
///
/// With `remarks`, emits one remark a scan: the axis, the runs that it is split
/// into and what a thread executes for it.
std::unique_ptr<Pass> createLowerScanPass(bool remarks = false);

/// Creates the pass that replaces every scan that stands for a flip (see
/// Analysis/Flip.h) by moves of the registers of each thread.
///
/// It runs where the pass above does, before it. Fails with an error at the
/// flip's location in the same cases, and when the axis crosses CTAs that
/// cannot exchange elements.
///
/// With `remarks`, emits one remark a flip, such as that of a scan.
std::unique_ptr<Pass> createLowerFlipPass(bool remarks = false);

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_CONVERSION_PASSES_H
