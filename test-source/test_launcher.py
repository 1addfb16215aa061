"""The launchers hand every value of an integer argument's type to the driver, and refuse others.

The driver is a library of ours, which keeps what it is to launch.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
import triton
from triton.runtime.build import _build

DRIVERS = {
    "nvidia": """
int cuGetErrorString(int e, const char **s) { *s = "error"; return 0; }
int cuCtxGetCurrent(void **context) { *context = launched_value; return 0; }
int cuDeviceGet(int *device, int n) { return 0; }
int cuDevicePrimaryCtxRetain(void **context, int device) { return 0; }
int cuCtxSetCurrent(void *context) { return 0; }
int cuPointerGetAttribute(void *value, int attribute, void *pointer) { return 0; }
int cuLaunchKernelEx(void *config, void *f, void **arguments, void **extra) {
  return keep(arguments);
}
""",
    "amd": """
const char *hipGetErrorString(int e) { return "error"; }
int hipModuleLaunchCooperativeKernel(void) { return 1; }
int hipPointerGetAttribute(void *value, int attribute, void *pointer) { return 0; }
int hipModuleLaunchKernel(void *f, int x, int y, int z, int bx, int by, int bz, int shared,
                          void *stream, void **arguments, void **extra) {
  return keep(arguments);
}
""",
}
KEEP = """
#include <string.h>
char launched_value[8];
int launched_size;
static int keep(void **arguments) { memcpy(launched_value, arguments[0], launched_size); return 0; }
"""
SONAMES = {"nvidia": "libcuda.so.1", "amd": "libamdhip64.so"}
INCLUDE = Path(triton.__file__).parent / "backends"
TYPES = [f"{sign}{bits}" for sign in "iu" for bits in (8, 16, 32, 64)]


@pytest.fixture(scope="module", params=DRIVERS)
def launch(request, tmp_path_factory):
    """A function that launches with one argument of a type; returns what the driver got."""
    name, folder = request.param, tmp_path_factory.mktemp("launcher")
    loaded = load_driver(KEEP + DRIVERS[name], folder / SONAMES[name])
    modules = {}

    def run(kind: str, value: object) -> np.generic:
        dtype = dtype_of(kind)
        if kind not in modules:
            modules[kind] = launcher(name, kind, folder)
        ctypes.c_int.in_dll(loaded, "launched_size").value = dtype.itemsize
        metadata, rest = (4, 1, 0, 1, 1, 1), (None, None, None)
        if name == "nvidia":
            modules[kind].launch(1, 1, 1, 0, 0, False, False, None, metadata, *rest, value)
        else:
            modules[kind].launch(False, 1, 1, 1, 0, 0, metadata, *rest, value)
        return np.frombuffer((ctypes.c_char * 8).in_dll(loaded, "launched_value"), dtype, 1)[0]

    return run


def dtype_of(kind: str) -> np.dtype:
    """NumPy counts bytes."""
    return np.dtype(f"{kind[0]}{int(kind[1:]) // 8}")


def load_driver(source: str, library: Path) -> ctypes.CDLL:
    """Compile a driver and load it: who opens one of its name later gets this one."""
    library.with_suffix(".c").write_text(source)
    compiler = [os.environ.get("CC", "cc"), "-shared", "-fPIC"]
    # Each driver with its own variables, although the names are the same.
    compiler += [f"-Wl,-soname,{library.name}", "-Wl,-Bsymbolic"]
    subprocess.run([*compiler, library.with_suffix(".c"), "-o", library], check=True)
    return ctypes.CDLL(str(library), ctypes.RTLD_GLOBAL)


def launcher(backend: str, kind: str, folder: Path):
    """Compile the launcher of a kernel with one argument, and load it."""
    driver = importlib.import_module(f"triton.backends.{backend}.driver")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_LIBHIP_PATH", str(folder / SONAMES["amd"]))
        source = driver.make_launcher({}, {0: kind}, *([64] if backend == "amd" else []))
    below = folder / kind
    below.mkdir()
    (below / "main.c").write_text(source)
    include = str(INCLUDE / backend / "include")
    path = _build("__triton_launcher", str(below / "main.c"), str(below), [], [include], [])
    spec = importlib.util.spec_from_file_location("__triton_launcher", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("kind", TYPES)
def test_least_and_greatest_value(launch, kind):
    limits = np.iinfo(dtype_of(kind))
    for value in (limits.min, 0, 1, limits.max):
        assert launch(kind, int(value)) == value


@pytest.mark.parametrize("value", [-129, -1000, 256, 300, 2**31, -(2**70), 2**70])
def test_values_that_are_no_bytes(launch, value):
    with pytest.raises(OverflowError):
        launch("i8", value)


@pytest.mark.parametrize("value", [1.0, "1", None])
def test_values_that_are_no_integers(launch, value):
    with pytest.raises(TypeError):
        launch("i8", value)


def test_signed_byte_may_be_written_unsigned(launch):
    assert launch("i8", 200) == 200 - 256
