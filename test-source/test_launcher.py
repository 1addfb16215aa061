"""The launchers take every value of an integer argument's type."""

from __future__ import annotations

import ctypes
import importlib
import re

import numpy as np
import pytest


@pytest.mark.parametrize("backend", ["nvidia", "amd"])
@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("signed", [True, False])
def test_least_and_greatest_value(backend, bits, signed, tmp_path, monkeypatch):
    library = tmp_path / "libamdhip64.so"  # the launcher has its path in it
    library.touch()
    monkeypatch.setenv("TRITON_LIBHIP_PATH", str(library))
    driver = importlib.import_module(f"triton.backends.{backend}.driver")
    source = driver.make_launcher(*launcher_arguments(backend, f"{'i' if signed else 'u'}{bits}"))
    letters = re.search(r'PyArg_ParseTuple\(args, "(\w+)"', source).group(1)
    dtype = np.dtype(f"{'i' if signed else 'u'}{bits // 8}")
    for value in (np.iinfo(dtype).min, np.iinfo(dtype).max):
        parsed = np.zeros(1, dtype)
        assert ctypes.pythonapi.PyArg_ParseTuple(
            ctypes.py_object((int(value),)),
            letters[-1].encode(),
            parsed.ctypes.data_as(ctypes.c_void_p),
        )
        assert parsed[0] == value


def launcher_arguments(backend: str, kind: str) -> list:
    """What make_launcher takes for a kernel with one argument."""
    return [{}, {0: kind}] + ([64] if backend == "amd" else [])
