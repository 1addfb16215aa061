"""Fixtures for all tests, which need a Python that imports the patched triton (`make pytest`)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

# Read when triton is imported; without it triton warns at the first compilation.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
REPO = Path(__file__).resolve().parent.parent.parent
for folder in ("third_party", "python", "examples", "examples/demo"):
    sys.path.insert(0, str(REPO / folder))

import triton  # noqa: E402
from triton.backends.compiler import GPUTarget  # noqa: E402

CUDA_90 = GPUTarget("cuda", 90, 32)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Refuse to test upstream's triton by mistake."""
    if not hasattr(triton.knobs, "scan"):
        raise pytest.UsageError(
            f"{triton.__file__} is not the patched triton; run the tests with `make pytest`"
        )


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the compilation cache that the tests of a session share."""
    return tmp_path_factory.mktemp("triton-cache")


@pytest.fixture(autouse=True)
def _no_user_state(session_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the user's cache and settings out of the tests."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(session_cache))
    for name in ("TRITON_NATIVE_SCAN", "TRITON_ALWAYS_COMPILE", "TRITON_INTERPRET"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def compile_kernel() -> Callable:
    """Return compile_kernel(fn, signature, constexprs, target=sm_90, native=True, **options).

    It compiles without a GPU and returns triton's CompiledKernel, whose `asm` is a dict with the
    text of every stage (ttir, ttgir, llir, ptx or amdgcn).  `native` chooses the lowering of scans.
    """

    def compile_kernel(fn, signature, constexprs=None, target=CUDA_90, native=True, **options):
        source = triton.compiler.ASTSource(fn, signature=signature, constexprs=constexprs)
        with triton.knobs.scan.scope():
            triton.knobs.scan.native = native
            return triton.compile(source, target=target, options=options)

    return compile_kernel


@pytest.fixture(scope="session")
def extension() -> Path:
    """Return the extension of the triton under test."""
    return Path(triton.__file__).parent / "_C" / "libtriton_scan.so"


@pytest.fixture(scope="session")
def upstream_site() -> Path:
    """Return the directory with the unpacked upstream wheel."""
    from fetch import unpack_wheel

    return unpack_wheel()


@pytest.fixture
def make_overlay(tmp_path: Path, upstream_site: Path) -> Callable[[Path], Path]:
    """Return make_overlay(extension), which gives a directory with a patched triton of its own."""
    from build_helpers import overlay

    return lambda built: overlay.assemble(upstream_site, built, "overlay", tmp_path / "overlays")


@pytest.fixture
def run_python(tmp_path: Path) -> Callable:
    """Return run_python(code, path, **environment): run code in a process that imports from `path`.

    The environment has a compilation cache of the test's own.  Returns the CompletedProcess with
    text.
    """

    def run_python(code: str, path: Path, **environment: str) -> subprocess.CompletedProcess:
        script = tmp_path / "script.py"  # triton reads kernels' sources from a file
        script.write_text(code)
        settings = {"PYTHONPATH": str(path), "TRITON_CACHE_DIR": str(tmp_path / "cache")}
        return subprocess.run(
            [sys.executable, str(script)],
            env=os.environ | settings | environment,
            capture_output=True,
            text=True,
            timeout=300,
        )

    return run_python
