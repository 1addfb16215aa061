"""Fresh virtual environments in which a wheel is installed, looked at and taken out again."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path


class EnvironmentProblem(Exception):
    """A command in the environment failed; the text has the command and its last lines."""


def digest(path: Path) -> str:
    """Return the sha256 of a file in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class Environment:
    """A new virtual environment of the interpreter `python` in `folder`, which must not exist.

    packages: a folder with wheels, which is all that install() takes from.  Triton's and Python's
    own variables of this process do not reach the environment's commands.
    """

    def __init__(self, folder: Path, python: str | Path, packages: Path) -> None:
        subprocess.run([python, "-m", "venv", str(folder)], check=True)
        self.folder, self.packages = folder, packages
        self.python = folder / "bin" / "python"
        self._variables = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("TRITON_", "PYTHON"))
        } | {"TRITON_CACHE_DIR": str(folder / "triton-cache")}

    def try_run(self, *arguments: str | Path) -> subprocess.CompletedProcess:
        """Run the environment's Python, apart from the user's settings; text is captured."""
        command = [str(self.python), "-I", *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, env=self._variables)

    def run(self, *arguments: str | Path) -> str:
        """As try_run, and return stdout.  Raises EnvironmentProblem if the exit status is not 0."""
        done = self.try_run(*arguments)
        if done.returncode:
            words = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
            raise EnvironmentProblem(f"`python {' '.join(map(str, arguments))}` failed:\n{words}")
        return done.stdout

    def pip(self, *arguments: str | Path) -> str:
        """Run pip and return its output.  Raises EnvironmentProblem."""
        return self.run("-m", "pip", "--disable-pip-version-check", *arguments)

    def install(self, *what: str | Path) -> None:
        """Install from `packages` alone.  Raises EnvironmentProblem."""
        self.pip("install", "--no-compile", "--no-index", "--find-links", self.packages, *what)

    def files(self) -> dict[str, str]:
        """Return {path: sha256} of all that belongs to triton."""
        (root,) = self.folder.glob("lib/python3*/site-packages")
        found = [*root.glob("triton/**/*"), *root.glob("triton-*/**/*")]
        return {
            str(p.relative_to(root)): digest(p)
            for p in found
            if p.is_file() and "__pycache__" not in p.parts
        }
