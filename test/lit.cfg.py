# ruff: noqa: F821  (lit defines config and lit_config)
"""lit's configuration: tests are .mlir files with RUN lines over triton-scan-opt and FileCheck."""

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import lit.formats

config.name = "triton-scan"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.test_source_root = str(Path(__file__).parent)
config.test_exec_root = str(Path(__file__).parent.parent / "build" / "lit")

spec = importlib.util.find_spec("triton")
if spec is None or not (Path(spec.origin).parent / "tools" / "scan_opt.py").is_file():
    lit_config.fatal("this Python does not import the patched triton; run `make lit`")
package = Path(spec.origin).parent

# Which base the triton is of: only the wheel has an extension.
is_wheel = (package / "_C" / "libtriton_scan.so").is_file()
config.available_features.add("wheel-base" if is_wheel else "source-base")
llvm = Path(os.environ.get("LLVM_SYSPATH") or "/usr/lib/llvm-22") / "bin"
filecheck = package / "FileCheck" if is_wheel else shutil.which("FileCheck", path=llvm)
if filecheck is None:
    lit_config.fatal(f"there is no FileCheck in {llvm}: install llvm-22-tools")
scan_opt = f"{sys.executable} -m triton.tools.scan_opt"
if triton_opt := lit_config.params.get("triton-opt"):
    # The source base's C++ tool, which has the passes and nothing after them: source_test.py
    # leaves out the tests that ask for more.
    scan_opt = triton_opt
config.substitutions += [
    # A prefix for FileCheck, and a script for sed that writes attributes as that Triton does.
    ("%base", "WHEEL" if is_wheel else "SOURCE"),
    ("%older", os.devnull if is_wheel else str(Path(__file__).with_name("older.sed"))),
    ("triton-scan-opt", scan_opt),
    ("FileCheck", str(filecheck)),
]
# The passes are named on the command line; the rest of the pipeline uses the native lowering.
config.environment["TRITON_NATIVE_SCAN"] = "1"
config.environment["TRITON_DEFAULT_FP_FUSION"] = "1"
for name in ("PYTHONPATH", "HOME", "TRITON_CACHE_DIR"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
