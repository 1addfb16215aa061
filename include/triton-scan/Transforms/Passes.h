//===- Passes.h - Passes over TTGIR before the scans are lowered -*- C++
//-*-===//

#ifndef TRITON_SCAN_TRANSFORMS_PASSES_H
#define TRITON_SCAN_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::triton::scan {

/// Creates the pass that gives scans, and the elementwise ops and loop-carried
/// values around them, the layout in which they cost least, the conversions at
/// the border included; see ScanCost.h for the costs.
std::unique_ptr<Pass> createChooseScanLayoutPass();

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_TRANSFORMS_PASSES_H
