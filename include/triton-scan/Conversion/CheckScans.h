//===- CheckScans.h - Refuses the scans that a Triton gets wrong -*- C++
//-*-===//

#ifndef TRITON_SCAN_CONVERSION_CHECKSCANS_H
#define TRITON_SCAN_CONVERSION_CHECKSCANS_H

#include "mlir/Pass/Pass.h"

namespace mlir::triton::scan {

/// Creates the pass that runs before upstream's own lowering in the source
/// base. Fails with an error at the first scan whose axis crosses CTAs, which
/// that lowering would compile without an exchange between them.
std::unique_ptr<Pass> createCheckScansPass();

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_CONVERSION_CHECKSCANS_H
