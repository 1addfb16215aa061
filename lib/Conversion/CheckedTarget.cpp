//===- CheckedTarget.cpp - The target that a module is lowered for --------===//

#include "CheckedTarget.h"

namespace mlir::triton::scan {

/// Of AMD's targets Triton compiles those before GFX10 for waves of 64 lanes,
/// the later ones for 32.
static int threadsPerWarpOf(StringRef target) {
  auto [backend, arch] = target.split(':');
  return backend == "hip" && !arch.starts_with("gfx1") ? 64 : 32;
}

std::unique_ptr<TargetInfoBase>
checkedTargetOf(ModuleOp module,
                llvm::function_ref<InFlightDiagnostic()> refuse) {
  auto name = module->getAttrOfType<StringAttr>(gpu::AttrTargetName);
  StringRef target = name ? name.getValue() : "";
  auto targetInfo = targetInfoOf(module);
  if (!targetInfo) {
    refuse() << "cannot be lowered: the module names no known target in its "
                "ttg.target attribute"
             << (name ? ": \"" + target.str() + "\"" : "");
    return nullptr;
  }
  int written = gpu::TritonGPUDialect::getThreadsPerWarp(module);
  if (int actual = threadsPerWarpOf(target); actual != written) {
    refuse() << "cannot be lowered: a warp of " << target << " has " << actual
             << " threads, but the module's ttg.threads-per-warp is " << written
             << "; write it and the layouts for " << actual;
    return nullptr;
  }
  return targetInfo;
}

} // namespace mlir::triton::scan
