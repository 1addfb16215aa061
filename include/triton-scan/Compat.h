//===- Compat.h - Where the two Tritons' APIs differ ------------*- C++ -*-===//
//
// The lowering is built into two Tritons: as an extension of release 3.9 (the
// wheel base), and into the sources of May 2025, between 3.3 and 3.4 (the
// source base, where TRITON_SCAN_SOURCE_BASE is defined).
//
//===----------------------------------------------------------------------===//

#ifndef TRITON_SCAN_COMPAT_H
#define TRITON_SCAN_COMPAT_H

#include "triton/Conversion/TritonGPUToLLVM/TargetInfoBase.h"
#include "triton/Dialect/TritonGPU/IR/Dialect.h"
#include "triton/Dialect/TritonGPU/IR/LinearLayoutConversions.h"
#include <memory>

namespace mlir::triton::scan {

#ifdef TRITON_SCAN_SOURCE_BASE

/// Has Triton ttg.local_scatter and ttg.local_gather?
constexpr bool hasLocalScatter = false;

/// Does the struct of a thread's registers hold those, too, that only repeat
/// elements?
constexpr bool structHoldsCopies = true;

/// Does ttg.convert_layout reach other CTAs of a cluster?
constexpr bool convertsAcrossBlocks = false;

/// Returns the target that `module` names, or null. Defined in lib/BuiltIn.
std::unique_ptr<TargetInfoBase> targetInfoOf(ModuleOp module);

bool isCuda(const TargetInfoBase &targetInfo);

inline LinearLayout linearLayoutOf(RankedTensorType type) {
  return gpu::toLinearLayout(type.getShape(), type.getEncoding());
}

inline int numCTAsOf(Operation *op) {
  return gpu::TritonGPUDialect::getNumCTAs(op->getParentOfType<ModuleOp>());
}

#else

constexpr bool hasLocalScatter = true;
constexpr bool structHoldsCopies = false;
constexpr bool convertsAcrossBlocks = true;

inline std::unique_ptr<TargetInfoBase> targetInfoOf(ModuleOp module) {
  auto target = module->getAttrOfType<StringAttr>(gpu::AttrTargetName);
  if (!target)
    return nullptr;
  // Triton converts what follows the colon without a check.
  auto [backend, arch] = target.getValue().split(':');
  unsigned capability;
  bool isTarget =
      backend == "cuda"
          ? !arch.getAsInteger(10, capability)
          : backend == "hip" && arch.starts_with("gfx") && arch != "gfx";
  return isTarget ? TargetInfoBase::fromModuleOp(module) : nullptr;
}

inline bool isCuda(const TargetInfoBase &targetInfo) {
  return targetInfo.isCuda();
}

inline LinearLayout linearLayoutOf(RankedTensorType type) {
  return gpu::toLinearLayout(type);
}

inline int numCTAsOf(Operation *op) { return gpu::lookupNumCTAs(op); }

#endif

} // namespace mlir::triton::scan

#endif // TRITON_SCAN_COMPAT_H
