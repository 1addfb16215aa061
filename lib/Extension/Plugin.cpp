//===- Plugin.cpp - The entry through which libtriton loads the extension -===//

#include "../Support/ErrorReport.h"
#include "Passes.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "triton-scan/Conversion/Passes.h"
#include "triton-scan/Transforms/Passes.h"
#include "triton/Tools/PluginUtils.h"

using namespace mlir;

static void addAbiSelfTest(PassManager *pm, const std::vector<std::string> &) {
  triton::scan::keepFirstError(*pm);
  pm->addPass(triton::scan::createAbiSelfTestPass());
}

static void addCheckCombines(PassManager *pm,
                             const std::vector<std::string> &) {
  triton::scan::keepFirstError(*pm);
  pm->addPass(triton::scan::createCheckCombinesPass());
}

static void registerCheckCombines() {
  registerPass(triton::scan::createCheckCombinesPass);
}

static void addChooseScanLayout(PassManager *pm,
                                const std::vector<std::string> &) {
  triton::scan::keepFirstError(*pm);
  pm->addPass(triton::scan::createChooseScanLayoutPass());
}

static void registerChooseScanLayout() {
  registerPass(triton::scan::createChooseScanLayoutPass);
}

// Takes one optional argument, "remarks".
static void addOutlineScans(PassManager *pm,
                            const std::vector<std::string> &args) {
  triton::scan::keepFirstError(*pm);
  bool remarks = llvm::is_contained(args, "remarks");
  pm->addPass(triton::scan::createOutlineScansPass(remarks));
}

static void registerOutlineScans() {
  registerPass([] { return triton::scan::createOutlineScansPass(); });
}

static void addInlineScans(PassManager *pm, const std::vector<std::string> &) {
  triton::scan::keepFirstError(*pm);
  pm->addPass(triton::scan::createInlineScansPass());
}

static void registerInlineScans() {
  registerPass(triton::scan::createInlineScansPass);
}

// Takes one optional argument, "remarks".
static void addLowerFlip(PassManager *pm,
                         const std::vector<std::string> &args) {
  triton::scan::keepFirstError(*pm);
  bool remarks = llvm::is_contained(args, "remarks");
  pm->addPass(triton::scan::createLowerFlipPass(remarks));
}

static void registerLowerFlip() {
  registerPass([] { return triton::scan::createLowerFlipPass(); });
}

// Takes one optional argument, "remarks".
static void addLowerScan(PassManager *pm,
                         const std::vector<std::string> &args) {
  triton::scan::keepFirstError(*pm);
  bool remarks = llvm::is_contained(args, "remarks");
  pm->addPass(triton::scan::createLowerScanPass(remarks));
}

static void registerLowerScan() {
  registerPass([] { return triton::scan::createLowerScanPass(); });
}

static void registerAbiSelfTest() {
  registerPass(triton::scan::createAbiSelfTestPass);
}

/// See triton::scan::takeFirstError.
TRITON_PLUGIN_API const char *tritonScanTakeError() {
  return triton::scan::takeFirstError();
}

TRITON_PLUGIN_API triton::plugin::PluginInfo *tritonGetPluginInfo() {
  static triton::plugin::PassInfo passes[] = {
      {"check_combines", "1", addCheckCombines, registerCheckCombines},
      {"choose_scan_layout", "1", addChooseScanLayout,
       registerChooseScanLayout},
      {"inline_scans", "1", addInlineScans, registerInlineScans},
      {"lower_flip", "1", addLowerFlip, registerLowerFlip},
      {"lower_scan", "1", addLowerScan, registerLowerScan},
      {"outline_scans", "1", addOutlineScans, registerOutlineScans},
      {"scan_abi_selftest", "1", addAbiSelfTest, registerAbiSelfTest},
  };
  static triton::plugin::PluginInfo info = {
      TRITON_PLUGIN_API_VERSION, "triton-scan",     "1",           passes,
      std::size(passes),
      /*dialects=*/nullptr,      /*numDialects=*/0,
      /*ops=*/nullptr,           /*numOps=*/0,      TRITON_VERSION};
  return &info;
}
