"""Runs the steps of a build, CMake and Ninja for both bases, and says what went wrong."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path


class BuildError(RuntimeError):
    """Nothing can be built; the text says why and what to do."""


def find_tool(name: str) -> str:
    """The path of a build tool: the running Python's own (PyPI's cmake and ninja), else PATH's.

    Raises BuildError if there is none.
    """
    beside = str(Path(sys.executable).parent)
    path = os.pathsep.join([beside, os.environ.get("PATH", os.defpath)])
    if found := shutil.which(name, path=path):
        return found
    raise BuildError(f"there is no {name}: `{sys.executable} -m pip install {name}` brings it.")


def run_step(command: list[str], log: Path, name: str, verdict: str | None = None) -> None:
    """Run a step, show its progress under `name` and add its lines to `log`.

    verdict: how lines begin that say by themselves why the step failed

    Raises BuildError with the decisive lines if it fails.
    """
    lines = []
    with (
        log.open("a") as file,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
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
    # With two jobs the first error is not among the last lines.
    first = (i for i, line in enumerate(lines) if "CMake Error" in line or "FAILED:" in line)
    start = next(first, max(0, len(lines) - 30))
    words = "".join(lines[start : start + 30]).strip()
    raise BuildError(f"{words}\nThe whole log is in {log}.")
