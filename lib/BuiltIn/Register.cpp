//===- Register.cpp - The passes for triton-opt ---------------------------===//

#include "mlir/Pass/PassRegistry.h"
#include "triton-scan/Conversion/CheckScans.h"
#include "triton-scan/Conversion/Passes.h"
#include "triton-scan/Transforms/Passes.h"

namespace mlir::triton::scan {

void registerPasses() {
  registerPass(createCheckCombinesPass);
  registerPass(createCheckScansPass);
  registerPass(createChooseScanLayoutPass);
  registerPass([] { return createLowerScanPass(); });
}

} // namespace mlir::triton::scan
