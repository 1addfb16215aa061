//===- ErrorReport.h - Hands a pass's diagnostic to Python ----------------===//
//
// libtriton prints diagnostics to stderr and raises an exception that says no
// more than that the pass manager failed. This keeps the first error so that
// the exception which the user sees can say what was wrong.
//
//===----------------------------------------------------------------------===//

#ifndef TRITON_SCAN_LIB_SUPPORT_ERRORREPORT_H
#define TRITON_SCAN_LIB_SUPPORT_ERRORREPORT_H

namespace mlir {
class PassManager;
}

namespace mlir::triton::scan {

/// Remembers, for the running thread, the first error of the passes that are
/// run by `pm`. The diagnostics are still printed.
void keepFirstError(PassManager &pm);

/// Returns the first error since the last call on this thread, or null. The
/// text lives until the next call.
const char *takeFirstError();

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_LIB_SUPPORT_ERRORREPORT_H
