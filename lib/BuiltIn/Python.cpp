//===- Python.cpp - libtriton.native_scan, the passes for Python ----------===//
//
// The source base's counterpart of Extension/Plugin.cpp. libtriton's module
// calls init_triton_native_scan as it does for each backend.
//
//===----------------------------------------------------------------------===//

#include "../Support/ErrorReport.h"
#include "mlir/Pass/PassManager.h"
#include "triton-scan/Conversion/CheckScans.h"
#include "triton-scan/Conversion/Passes.h"
#include "triton-scan/Transforms/Passes.h"
#include "triton/Dialect/TritonGPU/IR/Dialect.h"
#include <pybind11/pybind11.h>

namespace py = pybind11;
using namespace mlir;

static void add(PassManager &pm, std::unique_ptr<Pass> pass) {
  triton::scan::keepFirstError(pm);
  pm.addPass(std::move(pass));
}

void init_triton_native_scan(py::module &&m) {
  m.doc() = "The native lowering of scans";
  m.def("add_check_combines", [](PassManager &pm) {
    add(pm, triton::scan::createCheckCombinesPass());
  });
  m.def("add_check_scans",
        [](PassManager &pm) { add(pm, triton::scan::createCheckScansPass()); });
  m.def("add_choose_scan_layout", [](PassManager &pm) {
    add(pm, triton::scan::createChooseScanLayoutPass());
  });
  m.def(
      "add_lower_scan",
      [](PassManager &pm, bool remarks) {
        add(pm, triton::scan::createLowerScanPass(remarks));
      },
      py::arg("pm"), py::arg("remarks") = false);
  m.def("set_target", [](ModuleOp module, const std::string &target) {
    module->setAttr(triton::gpu::AttrTargetName,
                    StringAttr::get(module.getContext(), target));
  });
  m.def(
      "take_error",
      []() -> py::object {
        const char *text = triton::scan::takeFirstError();
        return text ? py::object(py::str(text)) : py::none();
      },
      "Returns, once, the first error that a pass reported on this thread.");
}
