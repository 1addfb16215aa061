//===- Passes.h - Passes over TTGIR before the scans are lowered -*- C++
//-*-===//

#ifndef TRITON_SCAN_TRANSFORMS_PASSES_H
#define TRITON_SCAN_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::triton::scan {

/// Creates the pass that fails, with an error, at the first scan whose combine
/// function contains what all threads have to do together.
std::unique_ptr<Pass> createCheckCombinesPass();

/// Creates the pass that gives scans, and the elementwise ops and loop-carried
/// values around them, the layout in which they cost least, the conversions at
/// the border included; see ScanCost.h for the costs.
std::unique_ptr<Pass> createChooseScanLayoutPass();

/// Creates the pass that replaces the scans, and the flips, of functions with
/// loops to be warp-specialised by opaque elementwise ops, so that upstream's
/// passes can place them. Loops whose scans these passes would split along
/// their axis are marked as not to be specialised; with `remarks`, a remark at
/// each says so.
std::unique_ptr<Pass> createOutlineScansPass(bool remarks = false);

/// Creates the pass that puts these scans back. Fails with an error at a scan
/// that was split along its axis nevertheless.
std::unique_ptr<Pass> createInlineScansPass();

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_TRANSFORMS_PASSES_H
