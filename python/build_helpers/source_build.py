"""Compiles Triton from source with the scan lowering inside: libtriton.so and triton-opt.

    python python/build_helpers/source_build.py [--check | --tools] [--assertions]

prints the directory with the products.  --check only configures and compiles our own files.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "third_party"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from fetch import locked, running_python_tag

from build_helpers import source_tree, steps

REPO = source_tree.REPO
# What the CMake targets make: our objects alone, libtriton.so, and the tools that tests run.
CHECK, LIBRARY, TOOLS = ["TritonScan"], ["triton"], ["triton", "triton-tools"]


def find_clang() -> tuple[str, str]:
    """Return the C and the C++ compiler: $CC and $CXX if both are set, else the clang beside the
    LLVM that CMake will find; cmake/TritonSource.cmake checks what they are.  Raises BuildError if
    there are none."""
    named = os.environ.get("CC"), os.environ.get("CXX")
    if all(named):
        found = steps.find_program(named[0]), steps.find_program(named[1])
        if not all(found):
            raise steps.BuildError(
                f"CC={named[0]} or CXX={named[1]} is no compiler on this machine; unset both to "
                "use clang-22."
            )
        return found
    if any(named):
        raise steps.BuildError("set both CC and CXX, to clang and clang++, or neither.")
    root = Path(os.environ.get("LLVM_SYSPATH") or "/usr/lib/llvm-22")
    folders = os.pathsep.join([str(root / "bin"), os.environ.get("PATH", os.defpath)])
    for cc, cxx in (("clang", "clang++"), ("clang-22", "clang++-22")):
        found = shutil.which(cc, path=folders), shutil.which(cxx, path=folders)
        if all(found):
            return found[0], found[1]
    raise steps.BuildError(
        "there is no clang for the source base: install clang-22 (Debian 12 or newer, or "
        "apt.llvm.org), or set CC and CXX."
    )


def build_directory(assertions: bool = False) -> Path:
    """Return where the running Python's products are built."""
    return (
        REPO / "build" / "source" / (running_python_tag() + ("-assertions" if assertions else ""))
    )


def build(
    tree: Path, targets: list[str], assertions: bool = False, jobs: int | None = None
) -> Path:
    """Bring `targets` up to date with the patched sources `tree` and return the directory of the
    products.

    jobs: parallel compilations; steps.default_jobs() by default.

    The running Python needs pybind11.  Raises BuildError.
    """
    start = time.monotonic()
    jobs = jobs or steps.default_jobs()
    build_dir = build_directory(assertions)
    build_dir.mkdir(parents=True, exist_ok=True)
    cc, cxx = find_clang()
    settings = {
        "TRITON_BASE": "source",
        "TRITON_SOURCE": str(tree),
        "TRITON_ASSERTIONS": "ON" if assertions else "OFF",
        "Python3_EXECUTABLE": sys.executable,
        "CMAKE_MAKE_PROGRAM": steps.find_tool("ninja"),
        "CMAKE_C_COMPILER": cc,
        "CMAKE_CXX_COMPILER": cxx,
    }
    log = build_dir / "build.log"
    with locked(build_dir / "lock") as lock:  # two Ninjas in one directory spoil it
        log.write_text("")
        steps.configure(build_dir, settings, log, "source")
        command = [steps.find_tool("cmake"), "--build", str(build_dir), "--parallel", str(jobs)]
        steps.run_step([*command, "--target", *targets], log, "source", keep=(lock,))
    seconds = time.monotonic() - start
    print(f"[source] {' and '.join(targets)} ({seconds:.0f} s)", file=sys.stderr, flush=True)
    return build_dir / "bin"


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", dest="targets", action="store_const", const=CHECK)
    what.add_argument("--tools", dest="targets", action="store_const", const=TOOLS)
    parser.add_argument("--assertions", action="store_true")
    parser.add_argument("--jobs", type=int)
    options = parser.parse_args()
    try:
        with source_tree.prepared() as tree:
            print(build(tree, options.targets or LIBRARY, options.assertions, options.jobs))
    except steps.FAILURES as error:
        print(f"source_build.py: {steps.explain(error)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
