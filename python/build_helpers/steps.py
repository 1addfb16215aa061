"""Runs the steps of a build, CMake and Ninja for both bases, and says what went wrong."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "third_party"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from fetch import REPO, FetchError, cache_dir

from build_helpers.content import ContentError
from build_helpers.patching import PatchError

# What CMake reads in its first run in a directory, and not again.
_READ_ONCE = ("LLVM_SYSPATH", "CFLAGS", "CXXFLAGS", "LDFLAGS")


class BuildError(RuntimeError):
    """Nothing can be built; the text says why and what to do."""


# What a build may end with; explain() has the words.
FAILURES = (FetchError, BuildError, PatchError, ContentError, OSError)


def explain(error: Exception) -> str:
    """Return what to tell whose build ended with one of FAILURES."""
    cannot_write = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT)
    if not isinstance(error, OSError) or error.errno not in cannot_write:
        return str(error)
    return (
        f"{error}. Builds write into {REPO / 'build'} and {cache_dir()} "
        "(TRITON_SCAN_CACHE_DIR names another): both must be writable and have space."
    )


def default_jobs() -> int:
    """Return how many compilers to run at once: MAX_JOBS, else one for each processor and each
    1.5 GiB of memory, whichever is less.  Raises BuildError if MAX_JOBS is no number."""
    if named := os.environ.get("MAX_JOBS"):
        if not named.isdecimal() or not int(named):
            raise BuildError(f"MAX_JOBS must be a number of processes, 1 or more, not {named!r}.")
        return int(named)
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(len(os.sched_getaffinity(0)), memory // (3 << 29)))


def find_program(name: str) -> str | None:
    """Return the path of a compiler that $CC or $CXX names, None if there is none.

    Raises BuildError if the name has options, which CMake would take for a part of it.
    """
    if found := shutil.which(name):
        return found
    if len(words := name.split()) > 1 and shutil.which(words[0]):
        raise BuildError(
            f"CC and CXX must name a compiler alone, not {name!r}: options belong into CFLAGS and "
            "CXXFLAGS, and ccache is used anyway if it is installed."
        )
    return None


def find_tool(name: str) -> str:
    """The path of a build tool: the running Python's own (PyPI's cmake and ninja), else PATH's.

    Raises BuildError if there is none.
    """
    beside = str(Path(sys.executable).parent)
    path = os.pathsep.join([beside, os.environ.get("PATH", os.defpath)])
    if found := shutil.which(name, path=path):
        return found
    raise BuildError(f"there is no {name}: `{sys.executable} -m pip install {name}` brings it.")


def run_step(
    command: list[str],
    log: Path,
    name: str,
    verdict: str | None = None,
    keep: tuple[int, ...] = (),
) -> None:
    """Run a step, show its progress under `name` and add its lines to `log`.

    verdict: how lines begin that say by themselves why the step failed
    keep: file descriptors that the step inherits; with a lock's, the next build waits for the
        compilers of one that was killed

    Raises BuildError with the decisive lines if it fails.
    """
    lines = []
    with (
        log.open("a", buffering=1) as file,
        subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            pass_fds=keep,
        ) as process,
    ):
        for line in process.stdout:
            lines.append(line)
            file.write(line)
            if line.startswith(("[", "-- ")):  # Ninja's and CMake's progress
                print(f"[{name}] {line}", end="", file=sys.stderr, flush=True)
    if not process.returncode:
        return
    if verdict and (words := "".join(line for line in lines if line.startswith(verdict))):
        raise BuildError(words.strip())
    text = "".join(lines)
    if own := re.search(
        r"^CMake Error at (?:cmake/\S+|CMakeLists\S+) \(message\):\n(.+?)\nCall Stack",
        text,
        re.M | re.S,
    ):
        raise BuildError(" ".join(own[1].split()))  # says by itself what to do
    # With two jobs the first error is not among the last lines.
    first = (i for i, line in enumerate(lines) if "CMake Error" in line or "FAILED:" in line)
    start = next(first, max(0, len(lines) - 30))
    words = "".join(lines[start : start + 30]).strip()
    raise BuildError(f"{words}\nThe whole log is in {log}.")


def configure(
    build_dir: Path, settings: dict[str, str], log: Path, name: str, verdict: str | None = None
) -> None:
    """Run CMake in `build_dir` with `settings`, the compilers among them.

    CMake keeps what it found in its first run. If that would be another today, or the checkout was
    moved, all of the build is made anew.  Raises BuildError like run_step, and if `build_dir` has a
    build of somebody else's.
    """
    told = {key: os.environ.get(key, "") for key in _READ_ONCE}
    told |= {"checkout": str(REPO), "build": str(build_dir)}
    told["python"] = sysconfig.get_path("include")
    told["ccache"] = shutil.which("ccache") or ""
    for key in ("CMAKE_C_COMPILER", "CMAKE_CXX_COMPILER"):
        if compiler := settings.get(key):
            done = subprocess.run([compiler, "--version"], capture_output=True, text=True)
            told[key] = f"{compiler}\n{done.stdout}"
    record, words = build_dir / "told.json", json.dumps(told, indent=1)
    cache = build_dir / "CMakeCache.txt"
    if cache.exists() and (not record.exists() or record.read_text() != words):
        ours = "CMAKE_PROJECT_NAME:STATIC=triton-scan\n"
        if not record.exists() and ours not in cache.read_text():
            raise BuildError(f"{build_dir} has a build of something else: name another directory.")
        print(
            f"[{name}] compiler, LLVM, flags, ccache or directory are others than before: "
            "all is built anew",
            file=sys.stderr,
        )
        for old in build_dir.iterdir():
            if old.is_dir():
                shutil.rmtree(old)
            elif old.name not in ("lock", log.name):
                old.unlink()
    record.write_text(words)
    defines = [f"-D{key}={value}" for key, value in settings.items()]
    command = [find_tool("cmake"), "-G", "Ninja", "-S", str(REPO), "-B", str(build_dir), *defines]
    run_step(command, log, name, verdict)
