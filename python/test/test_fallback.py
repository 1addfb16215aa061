"""Without a usable extension import works, one warning says why, and upstream lowers scans."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

PROGRAM = """
import json, warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import triton, triton.language as tl
    at_import = len(caught)
    from triton import native_scan
    from triton.backends.compiler import GPUTarget

    @triton.jit
    def kernel(x, out, N: tl.constexpr):
        i = tl.arange(0, N)
        tl.store(out + i, tl.cumsum(tl.load(x + i), 0, reverse=True))

    signature = {"x": "*fp32", "out": "*fp32", "N": "constexpr"}
    flipped = []
    for n in (128, 256):
        source = triton.compiler.ASTSource(kernel, signature=signature, constexprs={"N": n})
        compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32))
        flipped.append("shfl.sync.bfly" in compiled.asm["ptx"])
    texts = [str(w.message) for w in caught if "scan" in str(w.message)]
print(json.dumps({
    "at_import": at_import, "warnings": texts, "flipped": flipped, "key": native_scan.cache_key(),
    "reason": native_scan.status().reason, "metadata": compiled.metadata.native_scan,
}))
"""

PLUGIN = """
#include <stddef.h>
#include <stdint.h>
extern void {undefined}(void);
struct pass {{ const char *name, *version; void *add, *reg; }};
struct info {{ uint32_t api; const char *name, *version; struct pass *passes; size_t num_passes;
  void *dialects; size_t num_dialects; void *ops; size_t num_ops; const char *triton; }};
struct info *{entry}(void) {{
  static struct pass passes[] = {{ {{ "{name}", "1", 0, 0 }} }};
  static struct info info = {{ {api}, "x", "1", passes, 1, 0, 0, 0, 0, "{triton}" }};
  {call}
  return &info;
}}
"""
GOOD = {
    "undefined": "unused",
    "entry": "tritonGetPluginInfo",
    "name": "lower_scan",
    "api": "2",
    "triton": "3.9.0",
    "call": "",
}


def build_plugin(folder: Path, **changes: str) -> Path:
    """Compile a plugin that differs from a right one in `changes`."""
    source, library = folder / "plugin.c", folder / "plugin.so"
    source.write_text(PLUGIN.format(**GOOD | changes))
    compiler = shutil.which("gcc") or shutil.which("g++") or shutil.which("g++-12")
    subprocess.run(
        [compiler, "-x", "c", "-shared", "-fPIC", str(source), "-o", str(library)], check=True
    )
    return library


def text_file(folder: Path, extension: Path) -> Path:
    path = folder / "text.so"
    path.write_text("not a library\n" * 100)
    return path


def other_triton(folder: Path, extension: Path) -> Path:
    path = folder / "other.so"
    data = extension.read_bytes()
    assert data.count(b"\0" + b"3.9.0" + b"\0") == 1
    path.write_bytes(data.replace(b"\0" + b"3.9.0" + b"\0", b"\0" + b"3.9.1" + b"\0"))
    return path


CASES = {
    "text": (text_file, "invalid ELF header|too short"),
    "other triton": (other_triton, "was built for Triton 3.9.1, this is 3.9.0"),
    "no entry": (
        lambda f, e: build_plugin(f, entry="somethingElse"),
        "no Triton extension .no tritonGetPluginInfo",
    ),
    "other API": (lambda f, e: build_plugin(f, api="1"), "plugin API version 1, this Triton has 2"),
    "no pass": (
        lambda f, e: build_plugin(f, name="other"),
        "lacks the pass check_combines .*other",
    ),
    "undefined symbol": (
        lambda f, e: build_plugin(f, undefined="_ZN4mlir7missingEv", call="_ZN4mlir7missingEv();"),
        "undefined symbol: _ZN4mlir7missingEv",
    ),
}


def check_falls_back(done: subprocess.CompletedProcess, reason: str) -> None:
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["at_import"] == 0
    assert len(report["warnings"]) == 1, report["warnings"]
    assert_matches(report["warnings"][0], rf"cannot be loaded, so upstream's is used: .*({reason})")
    assert_matches(report["reason"], reason)
    assert report["flipped"] == [True, True]
    assert report["key"] == report["metadata"] == "unavailable"


def assert_matches(text: str, pattern: str) -> None:
    assert re.search(pattern, text), text


@pytest.mark.parametrize("case", CASES)
def test_unusable_extension(run_python, make_overlay, extension, tmp_path, case):
    make, reason = CASES[case]
    check_falls_back(run_python(PROGRAM, make_overlay(make(tmp_path, extension))), reason)


def test_missing_extension(run_python, make_overlay, extension):
    path = make_overlay(extension)
    (path / "triton/_C/libtriton_scan.so").unlink()
    check_falls_back(run_python(PROGRAM, path), "libtriton_scan.so does not exist")


@pytest.mark.parametrize("damage", ["truncated", "bit flipped"])
def test_damaged_extension(run_python, make_overlay, extension, damage):
    path = make_overlay(extension)
    file = path / "triton/_C/libtriton_scan.so"
    data = bytearray(file.read_bytes())
    if damage == "truncated":
        del data[5000:]
    else:
        data[len(data) // 2] ^= 1
    file.write_bytes(data)
    check_falls_back(run_python(PROGRAM, path), "is damaged")


def test_missing_checksum(run_python, make_overlay, extension):
    path = make_overlay(extension)
    (path / "triton/_C/libtriton_scan.sha256").unlink()
    check_falls_back(run_python(PROGRAM, path), "the sha256 of the extension, does not exist")


def test_no_warning_when_turned_off(run_python, make_overlay, extension):
    path = make_overlay(extension)
    (path / "triton/_C/libtriton_scan.so").unlink()
    done = run_python(PROGRAM, path, TRITON_NATIVE_SCAN="0")
    report = json.loads(done.stdout)
    assert report["warnings"] == []
    assert report["flipped"] == [True, True]
    assert report["key"] == "off"


def test_usable_extension(run_python, make_overlay, extension):
    report = json.loads(run_python(PROGRAM, make_overlay(extension)).stdout)
    assert report["warnings"] == []
    assert report["reason"] is None
    assert report["flipped"] == [False, False]
