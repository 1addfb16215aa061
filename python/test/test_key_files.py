"""triton_key(), which is in every cache key, is made of all files of ours that compile kernels."""

from __future__ import annotations

import builtins
import io
import sys
from pathlib import Path

import pytest
import triton
from triton import native_scan

OURS = Path(__file__).resolve().parents[1] / "triton"
PACKAGE = Path(triton.__file__).parent
# These compile nothing.
OTHERS = ("tools", "runtime")
FILES = [path.relative_to(OURS) for path in sorted(OURS.rglob("*.py"))]
COMPILING = [path for path in FILES if path.parts[0] not in OTHERS]


@pytest.fixture(scope="module")
def read_for_the_key():
    """The files that triton_key() reads when it is called first."""
    for name in ("triton.runtime.cache", "triton.compiler.compiler"):
        if function := getattr(sys.modules[name], "triton_key", None):
            break
    opened = set()

    def recording(file, *arguments, real=builtins.open, **settings):
        opened.add(Path(file).resolve())
        return real(file, *arguments, **settings)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builtins, "open", recording)
        patch.setattr(io, "open", recording)
        native_scan.build_hash.__wrapped__()
        function.__wrapped__()
    return opened


def test_files_are_known():
    assert {"native_scan.py", "ptxas_faults.py", "scan_checks.py"} <= {p.name for p in COMPILING}


@pytest.mark.parametrize("path", COMPILING, ids=str)
def test_file_is_in_the_key(path, read_for_the_key):
    if not (PACKAGE / path).exists():
        assert native_scan.is_built_in() and path.name == "native_flip.py"
        return
    assert (PACKAGE / path).resolve() in read_for_the_key
