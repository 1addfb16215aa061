//===- TargetInfo.cpp - The targets of the Triton that is compiled here ---===//

#include "amd/lib/TritonAMDGPUToLLVM/TargetInfo.h"
#include "amd/include/TritonAMDGPUToLLVM/TargetUtils.h"
#include "nvidia/lib/TritonNVIDIAGPUToLLVM/TargetInfo.h"
#include "triton-scan/Compat.h"

namespace mlir::triton::scan {

// The lowering asks nothing that depends on it.
static constexpr int anyPtxVersion = 80;

std::unique_ptr<TargetInfoBase> targetInfoOf(ModuleOp module) {
  auto target = module->getAttrOfType<StringAttr>(gpu::AttrTargetName);
  if (!target)
    return nullptr;
  auto [backend, arch] = target.getValue().split(':');
  unsigned capability;
  if (backend == "cuda" && !arch.getAsInteger(10, capability))
    return std::make_unique<NVIDIA::TargetInfo>(capability, anyPtxVersion);
  if (backend == "hip" && AMD::deduceISAFamily(arch) != AMD::ISAFamily::Unknown)
    return std::make_unique<AMD::TargetInfo>(arch.str());
  return nullptr;
}

bool isCuda(const TargetInfoBase &targetInfo) {
  return dynamic_cast<const NVIDIA::TargetInfo *>(&targetInfo);
}

} // namespace mlir::triton::scan
