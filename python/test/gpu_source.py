"""Checks a wheel of the source base on a GPU; run by hand, with the Python that the wheel is for.

    python3.12 python/test/gpu_source.py WHEEL [--tests UNIT] [--wheels DIR] [--seconds N]

WHEEL   what `make wheel-source` wrote; it is unpacked into a temporary directory, not installed
UNIT    python/test/unit of Triton's sources; their scan, reduce, dot and sort tests are run as well
DIR     wheels of pytest, pytest-xdist and hypothesis with their dependencies, where they are not
        installed

Needs torch, ptxas (on PATH, or TRITON_PTXAS_PATH) and a C compiler.  Prints one line of counts a
group, with a table for those of gpu/run.py, and exits with 1 if anything failed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

# Of upstream's tests, by file: what `pytest -k` selects.
UPSTREAM = {
    "language/test_core.py": "scan or cumsum or histogram or (reduce and not store) or sort or "
    "flip or (test_dot and not scaled and not proton)",
    "language/test_standard.py": "sort or flip or cumsum or maximum or swizzle",
}


def scans() -> tuple[int, int]:
    """Compare scans with torch; return how many were compared and how many were wrong."""
    import gpu_source_kernels as kernels

    return kernels.check_scans()


def other_kernels() -> tuple[int, int]:
    """Compare a matrix product and attention with torch; return (compared, wrong)."""
    import gpu_source_kernels as kernels

    return kernels.check_others()


def _unpack(wheels: list[Path], target: Path) -> None:
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(target)


def _suite(seconds: int) -> int:
    """Run gpu/run.py in a process of its own; return its exit status."""
    command = [sys.executable, str(Path(__file__).with_name("gpu") / "run.py")]
    command += ["--processes", str(min(os.cpu_count() or 2, 12))]
    try:
        return subprocess.run(command, timeout=seconds).returncode
    except subprocess.TimeoutExpired:
        print(f"gpu/run.py: not finished after {seconds} s", flush=True)
        return 1


def _pytest(unit: Path, name: str, selection: str, seconds: int) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "-n", str(min(os.cpu_count() or 2, 16))]
    command += ["-p", "no:cacheprovider", "--maxfail", "50", "-k", selection, str(unit / name)]
    try:
        done = subprocess.run(command, timeout=seconds, capture_output=True, text=True)
    except subprocess.TimeoutExpired as error:
        print(f"{name}: not finished after {seconds} s; {(error.stdout or b'')[-400:]!r}")
        return 1
    lines = done.stdout.strip().splitlines()
    print("\n".join(line[:300] for line in lines[-12:]))
    print(f"upstream {name}: {lines[-1] if lines else done.stderr[-600:]}", flush=True)
    return done.returncode


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--tests", type=Path)
    parser.add_argument("--wheels", type=Path)
    parser.add_argument("--seconds", type=int, default=400, help="limit for each group")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site"
        _unpack([options.wheel, *(options.wheels.glob("*.whl") if options.wheels else [])], site)
        os.environ["TRITON_CACHE_DIR"] = str(Path(folder) / "cache")
        os.environ["PYTHONPATH"] = str(site)
        sys.path.insert(0, str(site))
        import triton
        from triton import native_scan

        print(f"triton {triton.__version__} of {triton.__file__}; {native_scan.status()}")
        failed = 0
        for check in (scans, other_kernels):
            compared, wrong = check()
            failed += wrong
            print(f"{check.__name__}: {compared} compared, {wrong} wrong", flush=True)
        failed += _suite(options.seconds) != 0
        for name, selection in UPSTREAM.items() if options.tests else ():
            failed += _pytest(options.tests, name, selection, options.seconds) != 0
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
