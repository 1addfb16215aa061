"""Compiles Triton from source with the scan lowering inside: libtriton.so and triton-opt.

    python python/build_helpers/source_build.py [--check | --tools] [--assertions]

prints the directory with the products.  --check only configures and compiles our own files.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "third_party"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from fetch import FetchError, running_python_tag

from build_helpers import patching, source_tree
from build_helpers.steps import BuildError, find_tool, run_step

REPO = source_tree.REPO
# What the CMake targets make: our objects alone, libtriton.so, and the tools that tests run.
CHECK, LIBRARY, TOOLS = ["TritonScan"], ["triton"], ["triton", "triton-tools"]


def find_clang() -> tuple[str, str]:
    """Return the C and the C++ compiler: $CC and $CXX if both are set, else the clang beside the
    LLVM that CMake will find.  Raises BuildError if there is none."""
    if os.environ.get("CC") and os.environ.get("CXX"):
        return os.environ["CC"], os.environ["CXX"]
    root = Path(os.environ.get("LLVM_SYSPATH") or "/usr/lib/llvm-22")
    folders = os.pathsep.join([str(root / "bin"), os.environ.get("PATH", os.defpath)])
    for cc, cxx in (("clang", "clang++"), ("clang-22", "clang++-22")):
        found = shutil.which(cc, path=folders), shutil.which(cxx, path=folders)
        if all(found):
            return found[0], found[1]
    raise BuildError(
        "there is no clang for the source base: install clang-22 (Debian 12 or newer, or "
        "apt.llvm.org), or set CC and CXX."
    )


def build_directory(assertions: bool = False) -> Path:
    """Return where the running Python's products are built."""
    return (
        REPO / "build" / "source" / (running_python_tag() + ("-assertions" if assertions else ""))
    )


def build(targets: list[str], assertions: bool = False, jobs: int = 2) -> Path:
    """Bring the patched sources and `targets` up to date and return the directory of the products.

    The running Python needs pybind11.  Raises BuildError, fetch.FetchError or patching.PatchError.
    """
    start = time.monotonic()
    tree = source_tree.prepare()
    build_dir = build_directory(assertions)
    build_dir.mkdir(parents=True, exist_ok=True)
    cc, cxx = find_clang()
    settings = {
        "TRITON_BASE": "source",
        "TRITON_SOURCE": str(tree),
        "TRITON_ASSERTIONS": "ON" if assertions else "OFF",
        "Python3_EXECUTABLE": sys.executable,
        "CMAKE_MAKE_PROGRAM": find_tool("ninja"),
        "CMAKE_C_COMPILER": cc,
        "CMAKE_CXX_COMPILER": cxx,
    }
    log = build_dir / "build.log"
    with (build_dir / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        log.write_text("")
        defines = [f"-D{key}={value}" for key, value in settings.items()]
        cmake = find_tool("cmake")
        for command in (
            [cmake, "-G", "Ninja", "-S", str(REPO), "-B", str(build_dir), *defines],
            [cmake, "--build", str(build_dir), "--parallel", str(jobs), "--target", *targets],
        ):
            run_step(command, log, "source")
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
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    try:
        print(build(options.targets or LIBRARY, options.assertions, options.jobs))
    except (BuildError, FetchError, patching.PatchError) as error:
        print(f"source_build.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
