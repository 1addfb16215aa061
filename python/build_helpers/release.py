"""Build and check the wheels of a release, one for each upstream wheel locked for this machine.

    python python/build_helpers/release.py [--tags cp311 cp312 ...] [--twice] [DIST]

Each wheel is built from an empty build directory by a Python of its own version, then checked in a
fresh virtual environment: installed over upstream's triton, a kernel compiled for cuda:90,
triton.tools.scan_report with its self-test in the simulator, upstream's triton put back byte for
byte, and uninstalled.  Only when all have passed are the wheels put into DIST (default: dist/),
with SHA256SUMS.  --twice builds each wheel twice, in different directories, and compares the bytes.

SOURCE_DATE_EPOCH, if set, dates the changed files in the wheels; unset, they have upstream's dates.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "third_party"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from fetch import WHEEL_LOCK, FetchError, fetch_wheel

from build_helpers import content
from build_helpers.environment import Environment, EnvironmentProblem, digest

WORK = content.REPO / "build" / "release"
PINS = content.REPO / "python" / "requirements-test.txt"
BUILD_TOOLS = ("cmake", "ninja", "pyelftools", "setuptools")
WHICH_PYTHON = """\
import ensurepip, sys, sysconfig
threads = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
print(f"cp{sys.version_info.major}{sys.version_info.minor}{threads}")
"""
COMPILE = """\
import triton, triton.language as tl
from triton.backends.compiler import GPUTarget

@triton.jit
def kernel(x, out, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(out + i, tl.cumsum(tl.load(x + i), 0, reverse=True))

signature = {"x": "*fp32", "out": "*fp32", "N": "constexpr"}
source = triton.compiler.ASTSource(kernel, signature=signature, constexprs={"N": 1024})
compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
assert compiled.metadata.native_scan.startswith("native-"), compiled.metadata.native_scan
assert compiled.asm["cubin"]
"""


class ReleaseError(Exception):
    """The release cannot be made; the text says why and what to do."""


def say(text: str) -> None:
    """Write one progress line."""
    print(f"[release] {text}", file=sys.stderr, flush=True)


def tag_of(entry: dict) -> str:
    """Return the tag of the Python that builds a locked wheel: cp311, cp314t, ..."""
    return entry["python"] if entry["abi"] == "abi3" else entry["abi"]


def locked_tags(machine: str | None = None) -> list[str]:
    """Return the tags of the wheels that upstream has for a machine (default: this one)."""
    machine = machine or platform.machine()
    return [tag_of(entry) for entry in WHEEL_LOCK["files"] if entry["machine"] == machine]


def find_python(tag: str) -> str | None:
    """Return the path of a CPython with this tag that can make virtual environments.

    Looks on PATH, then among pyenv's ($PYENV_ROOT, else ~/.pyenv), newest first.
    """
    digits = tag.removeprefix("cp3")
    name = f"python3.{digits}"
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    versions = root.glob(f"versions/3.{digits.rstrip('t')}.*/bin/{name}")
    candidates = [shutil.which(name), *sorted(map(str, versions), reverse=True)]
    for candidate in filter(None, candidates):
        done = subprocess.run([candidate, "-c", WHICH_PYTHON], capture_output=True, text=True)
        if done.returncode == 0 and done.stdout.strip() == tag:
            return candidate
    return None


def find_pythons(tags: list[str]) -> dict[str, str]:
    """Return {tag: interpreter}.  Raises ReleaseError, naming every tag that has none."""
    known = locked_tags()
    if unknown := [tag for tag in tags if tag not in known]:
        raise ReleaseError(
            f"triton {content.UPSTREAM_VERSION} has no wheel for {', '.join(unknown)} on "
            f"{platform.machine()}; there are: {', '.join(known)}"
        )
    pythons = {tag: find_python(tag) for tag in tags}
    if missing := [tag for tag, python in pythons.items() if python is None]:
        names = ", ".join(f"python3.{tag.removeprefix('cp3')}" for tag in missing)
        rest = " ".join(tag for tag in tags if tag not in missing) or "..."
        raise ReleaseError(
            f"no {names} with ensurepip on PATH or under pyenv, for the wheel(s) "
            f"{', '.join(missing)}. Install it, or leave them out: make release TAGS='{rest}'"
        )
    return pythons


def _build(python: str, work: Path) -> Path:
    """Build a wheel from an empty build directory in `work`; return its path."""
    tools = Environment(work / "tools", python, work)
    tools.pip("install", "-q", "-c", PINS, *BUILD_TOOLS)
    helper = Path(__file__).with_name("wheel.py")
    command = [tools.python, helper, work / "wheel", "--build-dir", work / "extension"]
    if subprocess.run(command, stdout=subprocess.DEVNULL).returncode:
        raise ReleaseError("the wheel could not be built; the reason is above")
    (wheel,) = (work / "wheel").glob("*.whl")
    return wheel


def check_report(report: dict) -> None:
    """Raise ReleaseError unless scan_report found the extension, its record and right values."""
    if report["problems"]:
        raise ReleaseError(f"scan_report: {' '.join(report['problems'])}")
    if report["versions"]["wheel"] != content.VERSION:
        raise ReleaseError(f"the version installed is {report['versions']['wheel']}")
    if not report["self-test"]["cases"]:
        raise ReleaseError("the self-test ran no case")


def check_wheel(python: str, wheel: Path, upstream: Path, work: Path) -> dict:
    """Install a wheel over upstream's and go back, in a fresh environment; return scan_report's
    report.

    Raises ReleaseError or EnvironmentProblem.
    """
    packages = work / "packages"
    packages.mkdir()
    (packages / upstream.name).symlink_to(upstream)
    environment = Environment(work / "venv", python, packages)
    environment.pip("install", "-q", "-c", PINS, "numpy")
    upstream_triton = f"triton=={content.UPSTREAM_VERSION}"
    environment.install(upstream_triton)
    before = environment.files()

    environment.install(wheel)
    environment.pip("check")
    script = work / "compile.py"  # triton reads a kernel's source from its file
    script.write_text(COMPILE)
    environment.run(script)
    done = environment.try_run("-m", "triton.tools.scan_report", "--json")
    if not done.stdout.startswith("{"):
        raise ReleaseError(f"scan_report printed no report: {done.stderr.strip()[-500:]}")
    report = json.loads(done.stdout)
    check_report(report)

    environment.install(upstream_triton, "--force-reinstall")
    if environment.files() != before:
        raise ReleaseError("going back to upstream's triton left or lost files")
    environment.install(wheel)
    environment.pip("uninstall", "-q", "-y", "triton")
    if left := environment.files():
        raise ReleaseError(f"uninstalling left {', '.join(sorted(left)[:5])}")
    return report


def make_one(tag: str, python: str, twice: bool) -> Path:
    """Build and check the wheel of one tag below WORK; return its path.

    Raises FetchError, ReleaseError or EnvironmentProblem.
    """
    work = WORK / tag
    shutil.rmtree(work, ignore_errors=True)
    start = time.monotonic()
    upstream = fetch_wheel(tag)
    (work / "first").mkdir(parents=True)
    wheel = _build(python, work / "first")
    say(f"{wheel.name} built ({time.monotonic() - start:.0f} s, {wheel.stat().st_size:,} bytes)")
    if twice:
        (work / "second").mkdir()
        again = _build(python, work / "second")
        if digest(again) != digest(wheel):
            raise ReleaseError(f"two builds of {wheel.name} differ; both are kept in {work}")
        shutil.rmtree(work / "second")
        say(f"{wheel.name} built again: the same bytes ({time.monotonic() - start:.0f} s)")
    with tempfile.TemporaryDirectory(dir=work) as scratch:
        report = check_wheel(python, wheel, upstream, Path(scratch))
    test = report["self-test"]
    say(
        f"{wheel.name} checked on Python {report['versions']['python']}: {len(test['cases'])} "
        f"cases right on {test['device']}, back to upstream's, uninstalled "
        f"({time.monotonic() - start:.0f} s)"
    )
    return wheel


def publish(wheels: list[Path], dist: Path) -> Path:
    """Move the wheels into `dist` and write its SHA256SUMS, sorted by name; return that file's
    path."""
    dist.mkdir(parents=True, exist_ok=True)
    lines = [f"{digest(wheel)}  {wheel.name}\n" for wheel in sorted(wheels, key=lambda w: w.name)]
    for wheel in wheels:
        staging = dist / f".{wheel.name}"
        shutil.move(wheel, staging)
        staging.replace(dist / wheel.name)
    sums = dist / "SHA256SUMS"
    sums.write_text("".join(lines))
    return sums


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dist", type=Path, nargs="?", default=content.REPO / "dist")
    parser.add_argument("--tags", nargs="+", default=locked_tags(), help="default: %(default)s")
    parser.add_argument("--twice", action="store_true", help="build twice and compare the bytes")
    options = parser.parse_args()
    try:
        pythons = find_pythons(options.tags)
        say(f"{content.VERSION} for {', '.join(f'{t} ({p})' for t, p in pythons.items())}")
        wheels = [make_one(tag, python, options.twice) for tag, python in pythons.items()]
        sums = publish(wheels, options.dist)
    except (FetchError, ReleaseError, EnvironmentProblem, content.ContentError) as error:
        print(f"release.py: {error}", file=sys.stderr)
        return 1
    shutil.rmtree(WORK)
    print(sums)
    return 0


if __name__ == "__main__":
    sys.exit(main())
