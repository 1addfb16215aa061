"""triton-scan-report: what a bug report about scans needs, as plain text to paste.

    python -m triton.tools.scan_report                  everything, with the self-test
    python -m triton.tools.scan_report --no-self-test   in a second or two
    python -m triton.tools.scan_report --json           the same as JSON

It prints the versions, whether the extension with the native lowering is loaded, what the ABI gate
compared when it was built, the settings that matter, and the self-test: small kernels in both
directions (triton.tools.scan_selftest), on the GPU where torch has one and else in the simulator.
Nothing else is read from the machine, and nothing is sent.  Exit status 1 if anything is wrong; the
native lowering being turned off is not.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import warnings
from importlib import metadata
from pathlib import Path

import triton
from triton import native_scan

# Nothing else of the environment is printed: it may hold secrets.
VARIABLES = (
    "TRITON_NATIVE_SCAN",
    "TRITON_NATIVE_SCAN_REMARKS",
    "TRITON_ALWAYS_COMPILE",
    "TRITON_BACKENDS_IN_TREE",
    "TRITON_CACHE_DIR",
    "TRITON_DEFAULT_FP_FUSION",
    "TRITON_DISABLE_LINE_INFO",
    "TRITON_INTERPRET",
    "TRITON_KERNEL_OVERRIDE",
    "TRITON_OVERRIDE_ARCH",
    "TRITON_PLUGIN_PATHS",
    "TRITON_PTXAS_PATH",
    "CUDA_VISIBLE_DEVICES",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "PYTHONPATH",
)
RECORD_PATH = native_scan.EXTENSION_PATH.with_suffix(".json")
LIBTRITON = native_scan.EXTENSION_PATH.with_name("libtriton.so")
SELF_TEST_SECONDS = 600


def _digest(path: Path) -> str | None:
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def versions() -> dict:
    """Return the versions of everything that takes part; None for what is not installed."""
    return {
        "triton": triton.__version__,
        "wheel": _version("triton"),
        "installed in": str(Path(triton.__file__).parent),
        "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "platform": f"{platform.platform()} {platform.machine()}",
        "numpy": _version("numpy"),
        "torch": _version("torch"),
        "gpu": _gpu(),
        "ptxas": _ptxas(),
    }


def _ptxas() -> str:
    try:
        tool = triton.knobs.nvidia.ptxas
    except RuntimeError as error:  # the source base's package has none
        return str(error)
    return f"{tool.version}, {tool.path}"


def _gpu() -> str:
    try:
        import torch
    except Exception as error:  # not installed, or broken in its own way
        return f"not looked for, torch cannot be imported: {error}"
    if not torch.cuda.is_available():
        return "none that torch can use"
    runtime = f"CUDA {torch.version.cuda}" if torch.version.cuda else f"HIP {torch.version.hip}"
    major, minor = torch.cuda.get_device_capability()
    return f"{torch.cuda.get_device_name()}, capability {major}.{minor}, {runtime}"


def _lowering() -> str:
    return "libtriton.so itself" if native_scan.is_built_in() else "the extension"


def extension() -> dict:
    """Return the state of the extension; `reason` says why it cannot be loaded."""
    state = native_scan.status()
    return {
        "file": str(state.path),
        "sha256": _digest(state.path),
        "build": state.build,
        "available": state.available,
        "reason": state.reason,
        "scans are lowered by": _lowering() if state.enabled else "upstream's code",
    }


def abi_gate() -> dict:
    """Return what the ABI gate recorded when the extension was built, and whether it holds here.

    `problem` is None if the record is of this extension and this libtriton.so, or if there is no
    extension because the lowering was compiled with Triton.
    """
    if native_scan.is_built_in():
        return {"problem": None, "not needed": "the lowering was compiled with Triton itself"}
    try:
        record = json.loads(RECORD_PATH.read_text())
        of_extension, of_libtriton = record["extension_sha256"], record["libtriton_sha256"]
        gate = record["gate"]
        seen = {
            "symbols": gate["symbols"],
            "vtables": len(gate["vtables"]),
            "self_test": gate["self_test"],
            "llvm_headers": record["llvm_headers"],
            "compilers": record["compilers"],
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        words = f"{type(error).__name__}: {error}"
        return {"problem": f"no record of the ABI gate in {RECORD_PATH} ({words})"}
    problem = None
    if of_extension != _digest(native_scan.EXTENSION_PATH):
        problem = f"{RECORD_PATH.name} is the record of another {native_scan.EXTENSION_PATH.name}"
    elif of_libtriton != _digest(LIBTRITON):
        problem = f"the extension was checked against another {LIBTRITON.name} than this one"
    return {"problem": problem, **seen}


def settings() -> dict:
    """Return the knobs of scans, and those of VARIABLES that are set."""
    knobs = {f"triton.knobs.scan.{name}": value for name, value in triton.knobs.scan.knobs.items()}
    return knobs | {name: os.environ[name] for name in VARIABLES if name in os.environ}


def self_test() -> dict:
    """Run the self-test in a process of its own, which a broken extension may end.

    The knob is turned on and interpretation off for it, and the cache is its own.  Returns
    {"device", "cases", "problem"}; `problem` is None if every case is right.
    """
    state = native_scan.status()
    if not state.available:
        return {"device": None, "cases": [], "problem": f"not run: {state.reason}"}
    with tempfile.TemporaryDirectory() as cache:
        unset = ("TRITON_INTERPRET", "TRITON_NATIVE_SCAN_REMARKS", "TRITON_KERNEL_OVERRIDE")
        environment = {k: v for k, v in os.environ.items() if k not in unset}
        environment |= {"TRITON_NATIVE_SCAN": "1", "TRITON_CACHE_DIR": cache}
        command = [sys.executable, "-m", "triton.tools.scan_selftest"]
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=SELF_TEST_SECONDS
            )
        except subprocess.TimeoutExpired:
            words = f"still running after {SELF_TEST_SECONDS} s"
            return {"device": None, "cases": [], "problem": words}
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    device, cases = (lines[0]["device"], lines[1:]) if lines else (None, [])
    wrong = [case["result"] for case in cases if case["result"] != "right"]
    problem = f"{len(wrong)} of {len(cases)} cases wrong" if wrong else None
    if len(wrong) > 1 and len(set(wrong)) == 1:  # one cause, ptxas missing for instance
        problem += f": {wrong[0]}"
    if done.returncode < 0:
        problem = f"the process was ended by signal {-done.returncode}"
    elif problem is None and done.returncode:
        words = done.stderr.strip().splitlines()
        problem = words[-1] if words else f"exit status {done.returncode}"
    return {"device": device, "cases": cases, "problem": problem}


def collect(with_self_test: bool = True) -> dict:
    """Return the whole report: sections, and `problems`, a list of sentences, empty if all is well.

    `notes` are sentences on what is unusual without being wrong.
    """
    report = {
        "versions": versions(),
        "extension": extension(),
        "abi gate": abi_gate(),
        "settings": settings(),
    }
    problems, notes = [], []
    if not report["extension"]["available"]:
        problems.append(
            "the native lowering is not available, scans go through upstream's: "
            f"{report['extension']['reason']}. Reinstall this build of triton."
        )
    elif not triton.knobs.scan.native:
        notes.append(
            "the native lowering is turned off (TRITON_NATIVE_SCAN or triton.knobs.scan.native): "
            "scans go through upstream's lowering; the self-test turns it on for itself."
        )
    if problem := report["abi gate"]["problem"]:
        problems.append(f"{problem}.")
    if report["versions"]["wheel"] is None:
        problems.append("triton is imported from a folder without metadata, not from a wheel.")
    if triton.knobs.runtime.interpret:
        notes.append("TRITON_INTERPRET is set: kernels are interpreted, no lowering is used.")
    if with_self_test:
        report["self-test"] = self_test()
        # An extension that cannot be loaded is among the problems already.
        if (problem := report["self-test"]["problem"]) and report["extension"]["available"]:
            problems.append(f"the self-test failed: {problem}.")
    return report | {"notes": notes, "problems": problems}


def _case_line(case: dict) -> str:
    shape = "x".join(map(str, case["shape"]))
    direction = "reverse" if case["reverse"] else "forward"
    return (
        f"{case['case']:15}{case['dtype']:9}{shape:>7}, axis {case['axis']}, "
        f"{case['num_warps']} warps, {direction}: {case['result']}"
    )


def text(report: dict) -> str:
    """Return the report as plain text."""
    lines = []
    for title in ("versions", "extension", "abi gate", "settings"):
        lines.append(title)
        for name, value in report[title].items():
            value = ", ".join(value) if isinstance(value, list) else value
            lines.append(f"  {name:27}{'none' if value is None else value}")
    if test := report.get("self-test"):
        lines.append(f"self-test on {test['device'] or 'no device'}")
        lines += [f"  {_case_line(case)}" for case in test["cases"]]
        lines.append(f"  {test['problem'] or 'all right'}")
    lines += [f"note: {sentence}" for sentence in report["notes"]]
    lines += [f"problem: {sentence}" for sentence in report["problems"]]
    if not report["problems"]:
        lines.append("no problem found")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="triton-scan-report",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--no-self-test", action="store_true", help="leave the self-test out")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")  # what they say is in the report
    report = collect(not options.no_self_test)
    print(json.dumps(report, indent=1) if options.json else text(report))
    return 1 if report["problems"] else 0


if __name__ == "__main__":
    sys.exit(main())
