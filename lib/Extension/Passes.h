//===- Passes.h - The passes that exist only in the extension -------------===//

#ifndef TRITON_SCAN_LIB_EXTENSION_PASSES_H
#define TRITON_SCAN_LIB_EXTENSION_PASSES_H

#include <memory>

namespace mlir {
class Pass;
}

namespace mlir::triton::scan {

/// Derives the module's text with the accessors that the headers inline into
/// this extension, and fails where libtriton prints another text.
std::unique_ptr<Pass> createAbiSelfTestPass();

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_LIB_EXTENSION_PASSES_H
