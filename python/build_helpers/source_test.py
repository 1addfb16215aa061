"""Build the overlay of the source base and run every test that applies to it.

    .venv-source/bin/python python/build_helpers/source_test.py [--only lit-upstream|lit|pytest|...]
    .venv-source/bin/python python/build_helpers/source_test.py --assertions

The second one runs the lit tests with a build of its own, without NDEBUG.

lit-upstream    the lit tests that come with Triton's sources
lit             our lit tests through Python, and those that name passes only through triton-opt
pytest          our tests of numbers, programs and errors, with the simulator
pytest-upstream the Python tests of Triton's sources that launch no kernel

Kernels are assembled with the ptxas of the locked 3.9.0 wheel unless TRITON_PTXAS_PATH is set.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "third_party"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from fetch import cache_dir, unpack_wheel

from build_helpers import source_build, source_tree, source_wheel, steps

REPO = source_tree.REPO
# The tests of ours that speak of no other Triton and no extension.
OURS = (
    "test_numerics.py",
    "test_scan_programs.py",
    "test_scan_loops.py",
    "test_errors.py",
    "test_knobs.py",
    "test_noinline.py",
    "test_positions.py",
    "test_fuzz.py",
    "test_ptxas_faults.py",
    "test_ttgir.py",
    "test_key_files.py",
)
# What of them is left out, as pytest's -k selects it, and why.
LEFT_OUT = {
    "(cumsum or cumprod) and (int8 or int16)": "this Triton does not promote narrow integers",
    "cumsum_member": "this Triton cannot call x.cumsum(), a function, as a member",
    "constant-": "this Triton makes a tensor of a number that a combine function returns",
    "test_interpreter": "the interpreter is upstream's own",
    "functions_that_cross_ctas or InlinedWhereItCrossesCtas": "CTAs cannot share totals here",
    "only_neighbours and 512-2-2": "nor here",
}
# Of the sources' Python tests those that launch no kernel; some want a target and names of torch,
# which test-source/no_gpu.py stands in for.
UPSTREAM = (
    "test_knobs.py",
    "language/test_compile_only.py",
    "language/test_compile_errors.py",
    "runtime/test_subproc.py",
    "tools/test_irsource.py",
)
# What of them is left out, and why.
UPSTREAM_LEFT_OUT = {
    "test_knobs.py::test_nvidia_tool": "looks for ptxas in the package, which has none here",
}


def environment() -> dict[str, str]:
    """Return the environment of the tests: which tools kernels and launchers are made with, and a
    cache of their own."""
    result = dict(os.environ)
    result.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    if "TRITON_PTXAS_PATH" not in result:
        tools = unpack_wheel() / "triton" / "backends" / "nvidia" / "bin"
        result["TRITON_PTXAS_PATH"] = str(tools / "ptxas")
    llvm = Path(os.environ.get("LLVM_SYSPATH") or "/usr/lib/llvm-22")
    result.setdefault("TRITON_HIP_LLD_PATH", str(llvm / "bin" / "ld.lld"))
    result.setdefault("CC", str(llvm / "bin" / "clang"))
    result.setdefault("TRITON_CACHE_DIR", str(cache_dir() / "source-test-kernels"))
    own = [str(REPO / "python" / "test"), str(REPO / "test-source")]
    result["PYTHONPATH"] = os.pathsep.join([*own, *filter(None, [result.get("PYTHONPATH")])])
    return result


def more_than_passes() -> str:
    """Return a pattern of those of our lit tests that ask triton-scan-opt for more than passes."""
    options = ("--ptx", "--amdgcn", "--convert-to-llvm", "--target")
    tests = sorted((REPO / "test").rglob("*.mlir"))
    texts = {path: path.read_text() for path in tests}
    more = [path for path, text in texts.items() if any(option in text for option in options)]
    return "|".join(re.escape(path.relative_to(REPO / "test").as_posix()) for path in more)


def commands(binaries: Path) -> dict[str, list[list[str]]]:
    """Return the commands of each group of tests."""
    lit = [str(Path(sysconfig.get_path("scripts")) / "lit"), "-v", "-j2"]
    pytest = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile"]
    unit = source_tree.TREE / "python" / "test" / "unit"
    left, left_ours = (
        ";".join(json.loads((REPO / "test-source" / name).read_text()))
        for name in ("left.json", "left-ours.json")
    )
    return {
        "lit-upstream": [[*lit, f"-Dtools={binaries}", "--xfail", left, str(REPO / "test-source")]],
        "lit": [
            [*lit, "--xfail", left_ours, str(REPO / "test")],
            [
                *[*lit, f"-Dtriton-opt={binaries / 'triton-opt'}", "--xfail", left_ours],
                *["--filter-out", more_than_passes(), str(REPO / "test")],
            ],
        ],
        "pytest": [
            [*pytest, "-k", " and ".join(f"not ({names})" for names in LEFT_OUT)]
            + [str(REPO / "python/test" / name) for name in OURS],
            [*pytest, "-p", "conftest", str(REPO / "test-source")],
        ],
        "pytest-upstream": [
            [*pytest, "-p", "no_gpu", "--confcutdir", str(unit), "-c", os.devnull]
            + ["--rootdir", str(unit)]
            + [f"--deselect={name}" for name in UPSTREAM_LEFT_OUT]
            + [str(unit / name) for name in UPSTREAM]
        ],
    }


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", action="append", help="a group of tests; may be repeated")
    parser.add_argument("--assertions", action="store_true", help="lit on a build without NDEBUG")
    options = parser.parse_args()
    if sys.prefix == sys.base_prefix:
        print("source_test.py: run it with .venv-source (`make test-source`)", file=sys.stderr)
        return 1
    try:
        overlay = source_wheel.build_overlay(options.assertions)
        settings = environment()
    except steps.FAILURES as error:
        print(f"source_test.py: {steps.explain(error)}", file=sys.stderr)
        return 1
    if options.assertions:
        # Before what the venv imports otherwise.
        settings["PYTHONPATH"] = os.pathsep.join([str(overlay), settings["PYTHONPATH"]])
        settings["TRITON_CACHE_DIR"] += "-assertions"
    else:
        pth = Path(sysconfig.get_path("purelib")) / "triton_scan_overlay.pth"
        pth.write_text(f"{overlay}\n")
    groups = commands(source_build.build_directory(options.assertions) / "bin")
    if options.assertions:
        groups = {name: groups[name] for name in ("lit-upstream", "lit")}
    if unknown := set(options.only or []) - set(groups):
        parser.error(f"there is no group {sorted(unknown)[0]}; there are {', '.join(groups)}")
    failed = []
    for name, lines in groups.items():
        if options.only and name not in options.only:
            continue
        for command in lines:
            print(f"[test-source] {name}: {' '.join(command[1:])}", flush=True)
            if subprocess.run(command, cwd=REPO, env=settings).returncode:
                failed.append(name)
    if failed:
        print(f"[test-source] failed: {', '.join(dict.fromkeys(failed))}", flush=True)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
