//===- CheckedTarget.h - The target that a module is lowered for *- C++ -*-===//

#ifndef TRITON_SCAN_LIB_CONVERSION_CHECKEDTARGET_H
#define TRITON_SCAN_LIB_CONVERSION_CHECKEDTARGET_H

#include "mlir/IR/Diagnostics.h"
#include "triton-scan/Compat.h"

namespace mlir::triton::scan {

/// Returns the target that `module` names in `ttg.target`. Without a known one,
/// or if its warps have other than `ttg.threads-per-warp` threads, says so in
/// the error that `refuse` begins, and returns null.
std::unique_ptr<TargetInfoBase>
checkedTargetOf(ModuleOp module,
                llvm::function_ref<InFlightDiagnostic()> refuse);

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_LIB_CONVERSION_CHECKEDTARGET_H
