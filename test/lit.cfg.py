# ruff: noqa: F821  (lit defines config and lit_config)
"""lit's configuration: tests are .mlir files with RUN lines over triton-scan-opt and FileCheck."""

import importlib.util
import os
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

config.substitutions += [
    ("triton-scan-opt", f"{sys.executable} -m triton.tools.scan_opt"),
    ("FileCheck", str(package / "FileCheck")),
]
# The passes are named on the command line; the rest of the pipeline uses the native lowering.
config.environment["TRITON_NATIVE_SCAN"] = "1"
config.environment["TRITON_DEFAULT_FP_FUSION"] = "1"
for name in ("PYTHONPATH", "HOME", "TRITON_CACHE_DIR"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
