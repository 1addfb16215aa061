"""Checks a wheel of the source base on a GPU; run by hand, with the Python that the wheel is for.

    python3.12 python/test/gpu_source.py WHEEL [--tests UNIT] [--wheels DIR] [--logs DIR]
                                               [--seconds N] [--only GROUP ...]

WHEEL   what `make wheel-source` wrote; it is unpacked into a temporary directory, not installed
UNIT    python/test/unit of Triton's sources (build/source/triton has them), whose tests run as well
--wheels DIR   wheels of pytest 8.4 (pytest-forked 1.6 knows no later one), pytest-xdist,
               pytest-forked, py and hypothesis with all dependencies, where they are missing
--logs DIR     keeps pytest's output of each group
--seconds N    for each group, 400 unless told; one that takes longer is ended, and has failed
GROUP          scans, others (a matrix product, attention), suite (gpu/run.py), upstream-*; without
               --only all of them

Needs torch, ptxas (on PATH, or TRITON_PTXAS_PATH) and a C compiler.  Prints one line of counts a
group, with a table for those of gpu/run.py and the names of upstream's tests that failed, and
exits with 1 if anything failed, but for what PRINTING explains.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

OURS = "scan or cumsum or histogram or reduc or sort or flip or (test_dot and not scaled)"

LANGUAGE = ["language/test_core.py", "language/test_standard.py"]
# Of upstream's tests, by group: the files, and options of pytest.
UPSTREAM = {
    "upstream": (LANGUAGE, ["-k", OURS]),
    "upstream-products": (
        [
            "language/test_matmul.py",
            "language/test_pipeliner.py",
            "language/test_block_pointer.py",
            "cuda/test_flashattention.py",
            "cuda/test_gemm.py",
            "cuda/test_gemm_fusion.py",
            "cuda/test_mixed_io.py",
            "cuda/test_tensor_descriptor.py",
        ],
        [],
    ),
    "upstream-rest": (LANGUAGE, ["-k", f"not ({OURS})"]),
    "upstream-others": (
        [
            "test_perf_warning.py",
            "runtime",
            "tools",
            "cuda/test_tma_descriptor.py",
            "cuda/test_tma_store_gemm.py",
            "language/test_annotations.py",
            "language/test_compile_errors.py",
            "language/test_compile_only.py",
            "language/test_conversions.py",
            "language/test_decorator.py",
            "language/test_libdevice.py",
            "language/test_line_info.py",
            "language/test_mxfp.py",
            "language/test_random.py",
            "language/test_reproducer.py",
            "language/test_subprocess.py",
            "language/test_tuple.py",
            "language/test_warp_specialization.py",
        ],
        [],
    ),
    # A device's assertion ends all that its process does there.
    "upstream-assertions": (["test_debug.py"], ["--forked"]),
}
TESTS_FAILED = 1  # pytest's exit status, if it is for no other reason
# What fails of them by what it prints, and why.
PRINTING = {
    "test_tl_range_num_stages": "looks for 'wait_group 6', where LLVM 22 writes a tab before the 6",
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


def suite(seconds: int) -> int:
    """Run gpu/run.py in a process of its own; return its exit status."""
    command = [sys.executable, str(Path(__file__).with_name("gpu") / "run.py")]
    command += ["--processes", str(min(os.cpu_count() or 2, 12))]
    try:
        return subprocess.run(command, timeout=seconds).returncode
    except subprocess.TimeoutExpired:
        print(f"gpu/run.py: not finished after {seconds} s", flush=True)
        return 1


def upstream(name: str, unit: Path, logs: Path, seconds: int) -> int:
    """Run a group of upstream's tests; return 0 if none but those of PRINTING failed."""
    files, options = UPSTREAM[name]
    command = [sys.executable, "-m", "pytest", "-v", "-rfE", "--tb=short", "-p", "no:cacheprovider"]
    command += ["-n", str(min(os.cpu_count() or 2, 16)), *options]
    command += [str(unit / file) for file in files]
    log = logs / f"{name}.log"
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            print(f"{name}: not finished after {seconds} s", flush=True)
            process.send_signal(signal.SIGINT)  # pytest still writes its summary
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    lines = log.read_text(errors="replace").strip().splitlines()
    failed = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
    reasons = [PRINTING.get(line.split(" - ")[0].split("::")[-1]) for line in failed]
    for line, reason in zip(failed, reasons, strict=True):
        print(f"{line[:300]}{f' ({reason})' if reason else ''}")
    print(f"{name}: {lines[-1] if lines else 'no output'}", flush=True)
    if process.returncode == TESTS_FAILED and failed and all(reasons):
        return 0
    return process.returncode


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    groups = {"scans": scans, "others": other_kernels, "suite": suite} | UPSTREAM
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--tests", type=Path)
    parser.add_argument("--wheels", type=Path)
    parser.add_argument("--logs", type=Path)
    parser.add_argument("--seconds", type=int, default=400, help="limit for each group")
    parser.add_argument("--only", nargs="+", choices=groups)
    options = parser.parse_args()
    if options.only and not options.tests and (needs := UPSTREAM.keys() & options.only):
        parser.error(f"{sorted(needs)[0]} needs --tests")
    chosen = options.only or [name for name in groups if options.tests or name not in UPSTREAM]
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder) / "site"
        logs = options.logs or Path(folder)
        logs.mkdir(parents=True, exist_ok=True)
        _unpack([options.wheel, *(options.wheels.glob("*.whl") if options.wheels else [])], site)
        os.environ["TRITON_CACHE_DIR"] = str(Path(folder) / "cache")
        os.environ["PYTHONPATH"] = str(site)
        sys.path.insert(0, str(site))
        import triton
        from triton import native_scan

        print(f"triton {triton.__version__} of {triton.__file__}; {native_scan.status()}")
        failed = 0
        for name in chosen:
            if name in UPSTREAM:
                failed += upstream(name, options.tests, logs, options.seconds) != 0
            elif name == "suite":
                failed += suite(options.seconds) != 0
            else:
                compared, wrong = groups[name]()
                failed += wrong
                print(f"{name}: {compared} compared, {wrong} wrong", flush=True)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
