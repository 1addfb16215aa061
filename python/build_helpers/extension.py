"""Builds libtriton_scan.so with CMake and Ninja against an unpacked upstream wheel.

    python python/build_helpers/extension.py BUILD_DIR [--site SITE]

prints the path of the checked extension.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(REPO / "third_party"))
sys.path.insert(0, str(REPO / "python"))

import fetch  # noqa: E402  (third_party is no package)

from build_helpers.steps import (  # noqa: E402
    FAILURES,
    BuildError,
    configure,
    default_jobs,
    explain,
    find_program,
    find_tool,
    run_step,
)


def find_compiler() -> str:
    """$CXX, else a g++; CMakeLists.txt checks its version. Raises BuildError if there is none."""
    if (named := os.environ.get("CXX")) and (found := find_program(named)):
        return found
    names = ["g++", "g++-12", "g++-13", "g++-14"]
    if not named and (found := next(filter(None, map(shutil.which, names)), None)):
        return found
    if named:
        raise BuildError(f"CXX={named} is no compiler on this machine; unset CXX to use g++.")
    raise BuildError("there is no g++; install g++ 12 or newer (Debian: apt-get install g++).")


def build_extension(
    site: Path,
    build_dir: Path,
    include_dirs: list[Path] | None = None,
    jobs: int | None = None,
    definitions: dict[str, str] | None = None,
) -> Path:
    """Builds, checks (ABI gate) and strips the extension; returns its path in `build_dir`.

    The gate's record is libtriton_scan.json beside it.

    site: directory with the unpacked upstream wheel, which the running Python can import
    include_dirs: LLVM's and MLIR's headers; found or fetched by default (fetch.llvm_include_dirs)
    jobs: parallel compilations; steps.default_jobs() by default
    definitions: further CMake variables; {"CMAKE_UNITY_BUILD": "OFF"} compiles file by file

    The running Python needs pyelftools. Raises BuildError or fetch.FetchError; then there is no
    libtriton_scan.so in `build_dir`, not even an older one.
    """
    site, build_dir = site.resolve(), build_dir.resolve()
    product = build_dir / "libtriton_scan.so"
    start = time.monotonic()
    build_dir.mkdir(parents=True, exist_ok=True)
    with fetch.locked(build_dir / "lock") as lock:  # two Ninjas in one directory spoil it
        try:
            include_dirs = include_dirs or fetch.llvm_include_dirs()
            _build(site, build_dir, include_dirs, jobs or default_jobs(), definitions or {}, lock)
        except (BuildError, fetch.FetchError):
            product.unlink(missing_ok=True)
            product.with_suffix(".json").unlink(missing_ok=True)
            raise
    print(f"[build] {product} ({time.monotonic() - start:.0f} s)", file=sys.stderr, flush=True)
    return product


def _build(
    site: Path,
    build_dir: Path,
    include_dirs: list[Path],
    jobs: int,
    definitions: dict[str, str],
    lock: int,
) -> None:
    settings = {
        "TRITON_SITE": str(site),
        "LLVM_INCLUDE_DIRS": ";".join(str(d.absolute()) for d in include_dirs),
        "Python3_EXECUTABLE": sys.executable,
        "CMAKE_MAKE_PROGRAM": find_tool("ninja"),
        "CMAKE_CXX_COMPILER": find_compiler(),
        # Most of the time goes into MLIR's headers: 50 s of processor time instead of 150.
        "CMAKE_UNITY_BUILD": "ON",
        **definitions,
    }
    log = build_dir / "build.log"
    log.write_text("")
    configure(build_dir, settings, log, "build", verdict="ABI gate")
    command = [find_tool("cmake"), "--build", str(build_dir), "--parallel", str(jobs)]
    run_step(command, log, "build", verdict="ABI gate", keep=(lock,))


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="Build libtriton_scan.so.")
    parser.add_argument("build_dir", type=Path)
    parser.add_argument("--site", type=Path, help="unpacked upstream wheel; default: fetched")
    parser.add_argument("--jobs", type=int)
    options = parser.parse_args()
    try:
        site = options.site or fetch.unpack_wheel()
        print(build_extension(site, options.build_dir, jobs=options.jobs))
    except FAILURES as error:
        print(f"extension.py: {explain(error)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
