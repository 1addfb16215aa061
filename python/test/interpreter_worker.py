"""Runs kernels in Triton's interpreter, in a process of its own.

Triton reads TRITON_INTERPRET when a function is decorated, so kernels that are also compiled need
two processes.  This one reads pickled requests from stdin and answers on stdout; see Interpreter.
"""

from __future__ import annotations

import importlib
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

HERE = Path(__file__).resolve().parent


class Named(NamedTuple):
    """A function of the kernel's module, by name, which is how functions reach the worker."""

    name: str


class Request(NamedTuple):
    """One launch.  Arrays travel as (array, Triton's name of the dtype)."""

    module: str
    kernel: str
    grid: tuple
    arguments: list
    constexprs: dict


class HostTensor:
    """What the interpreter asks of a tensor, over a NumPy array (torch is not needed)."""

    def __init__(self, array: np.ndarray, dtype: str):
        self.array, self.dtype = array, dtype

    def data_ptr(self) -> int:
        return self.array.__array_interface__["data"][0]

    def untyped_storage(self) -> HostTensor:
        return self

    cpu = untyped_storage

    def new_empty(self, *_, **__) -> HostTensor:
        return HostTensor(self.array, self.dtype)

    def set_(self, *_) -> None:
        """The copy on the host shares the array already."""

    copy_ = set_

    def storage_offset(self) -> int:
        return 0

    def size(self) -> tuple:
        return self.array.shape

    stride = size


class Interpreter:
    """A worker process.  Use as a context manager."""

    def __enter__(self) -> Interpreter:
        self.process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"TRITON_INTERPRET": "1"},
        )
        return self

    def __exit__(self, *_) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=60)

    def run(self, request: Request) -> list:
        """Return the arrays among the arguments as the kernel left them.

        Raises RuntimeError with the text of what the kernel raised.
        """
        pickle.dump(tuple(request), self.process.stdin)
        self.process.stdin.flush()
        arrays, error = pickle.load(self.process.stdout)
        if error:
            raise RuntimeError(error)
        return arrays


def _launch(request: Request) -> list:
    module = importlib.import_module(request.module)
    tensors = [HostTensor(a[0], a[1]) if isinstance(a, tuple) else a for a in request.arguments]
    constexprs = {
        # A Named comes as that of another module; plain tuples are constexprs.
        name: getattr(module, value.name) if hasattr(value, "_fields") else value
        for name, value in request.constexprs.items()
    }
    getattr(module, request.kernel)[request.grid](*tensors, **constexprs)
    return [t.array for t in tensors if isinstance(t, HostTensor)]


def main() -> None:
    """Answer requests until stdin ends."""
    answers, sys.stdout = sys.stdout.buffer, sys.stderr
    sys.path[:0] = [str(HERE), str(HERE.parent.parent / "examples" / "demo")]
    while True:
        try:
            request = Request(*pickle.load(sys.stdin.buffer))
        except EOFError:
            return
        try:
            answer = _launch(request), None
        except Exception as error:  # goes to the test that asked
            answer = None, f"{type(error).__name__}: {error}"
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    main()
