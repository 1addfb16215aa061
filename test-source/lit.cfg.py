# ruff: noqa: F821  (lit defines config and lit_config)
"""lit's configuration for the tests that come with Triton's sources (`make test-source`).

The sources' own configuration is for the lit of their LLVM. left.json names the tests that fail
here and says of each why; python/build_helpers/source_test.py hands it to lit as --xfail, so that
one of them that passes is a failure.
"""

import os
import shutil
import sys
from pathlib import Path

import lit.formats

here = Path(__file__).resolve().parent
tools = Path(lit_config.params["tools"])
tree = here.parent / "build" / "source" / "triton"
llvm = Path(os.environ.get("LLVM_SYSPATH") or "/usr/lib/llvm-22") / "bin"
filecheck = shutil.which("FileCheck", path=llvm)
if filecheck is None:
    lit_config.fatal(f"there is no FileCheck in {llvm}: install llvm-22-tools")

config.name = "triton-source"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".ll"]
config.test_source_root = str(tree / "test")
config.test_exec_root = str(here.parent / "build" / "source" / "lit")
config.environment["FILECHECK_OPTS"] = "--enable-var-scope"
config.environment["PATH"] = os.pathsep.join([str(tools), str(llvm), os.environ["PATH"]])
config.substitutions += [("%PYTHON", sys.executable), ("FileCheck", filecheck)]
