"""The package of the source base: Triton's Python with our patches, and our own libtriton.so.

python python/build_helpers/source_wheel.py [DIST]     builds it and writes the wheel
python python/build_helpers/source_wheel.py --overlay  builds it and the tools, and lays it out in
build/source/overlay/<tag>, from which the running Python can import it
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import io
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "third_party"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from fetch import SOURCE_LOCK, running_python_tag

from build_helpers import content, overlay, source_build, source_tree, steps

# Upstream's own version of the sources, our revision, and whose LLVM it is.
VERSION = f"3.3.0+revscan.{content.REVISION}.llvm22"
DIST_INFO = f"triton-{VERSION}.dist-info"
OVERLAYS = source_tree.REPO / "build" / "source" / "overlay"
# What is of no use to this Triton: its flips and its interpreter are upstream's.
OMITTED = (
    "triton/language/native_flip.py",
    "triton/runtime/interpreter_floats.py",
    "triton/runtime/interpreter_scan.py",
)
BACKENDS = ("amd", "nvidia")
# Zip archives cannot be older; every file has this date, so that the bytes depend on the inputs.
_DATE = (1980, 1, 1, 0, 0, 0)
_NOTICE = f"""\
Triton built from source ({SOURCE_LOCK["upstream"]}) against a distribution's LLVM 22, with a
lowering of scans that costs the same in both directions. It is not published by Triton's authors.
cuda.h and libdevice.10.bc are NVIDIA's, under NVIDIA's licence. NVIDIA's ptxas is not in it: it is
looked for on PATH, or set TRITON_PTXAS_PATH.
"""


def _tag() -> str:
    python = running_python_tag()
    return f"{python}-{python}-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"


def package_files(tree: Path, library: Path) -> dict[str, bytes]:
    """Return {path: bytes} of the package and its metadata, RECORD not among them.

    tree: the patched sources; library: libtriton.so, stripped.  Raises content.ContentError when a
    file of ours would replace one of upstream's.
    """
    files: dict[str, bytes] = {}

    def add_below(root: Path, prefix: str) -> None:
        for path in sorted(root.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                files[f"{prefix}/{path.relative_to(root).as_posix()}"] = path.read_bytes()

    add_below(tree / "python" / "triton", "triton")
    for backend in BACKENDS:
        add_below(tree / "third_party" / backend / "backend", f"triton/backends/{backend}")
    for path, source in content.added_python().items():
        if path in files:
            raise content.ContentError(f"{source} would replace upstream's {path}")
        if path not in OMITTED:
            files[path] = source.read_bytes()
    files["triton/_C/libtriton.so"] = library.read_bytes()
    metadata = [
        "Metadata-Version: 2.4",
        "Name: triton",
        f"Version: {VERSION}",
        "Summary: Triton from source, with native scans in both directions",
        "License-Expression: MIT",
        "License-File: LICENSE",
        f"License-File: {content.OUR_LICENSE}",
        f"Requires-Python: =={sys.version_info.major}.{sys.version_info.minor}.*",
        "Description-Content-Type: text/plain",
    ]
    scripts = (
        "triton-scan-opt = triton.tools.scan_opt:main\n"
        "triton-scan-report = triton.tools.scan_report:main\n"
    )
    backends = "".join(f"{name} = triton.backends.{name}\n" for name in BACKENDS)
    wheel = f"Wheel-Version: 1.0\nGenerator: triton-scan\nRoot-Is-Purelib: false\nTag: {_tag()}\n"
    texts = {
        "METADATA": "\n".join(metadata) + "\n\n" + _NOTICE,
        "WHEEL": wheel,
        "entry_points.txt": f"[console_scripts]\n{scripts}\n[triton.backends]\n{backends}",
    }
    files |= {f"{DIST_INFO}/{name}": text.encode() for name, text in texts.items()}
    files[f"{DIST_INFO}/licenses/LICENSE"] = (tree / "LICENSE").read_bytes()
    ours = (content.REPO / "LICENSE").read_bytes()
    files[f"{DIST_INFO}/licenses/{content.OUR_LICENSE}"] = ours
    return files


def _built_files(targets: list[str], assertions: bool = False) -> dict[str, bytes]:
    with source_tree.prepared() as tree, tempfile.TemporaryDirectory() as folder:
        binaries = source_build.build(tree, targets, assertions)
        stripped = Path(folder) / "libtriton.so"
        # What libtriton.so exports is one function; 80 MB of its bytes are symbols.
        if not (strip := shutil.which("strip")):
            raise steps.BuildError("there is no strip: install binutils.")
        command = [strip, "--strip-all", "-o", str(stripped), str(binaries / "libtriton.so")]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise steps.BuildError(f"strip failed: {done.stderr.strip()}")
        return package_files(tree, stripped)


def write_wheel(files: dict[str, bytes], out_dir: Path) -> Path:
    """Write the wheel into `out_dir` and return its path; it appears only when it is complete."""
    target = out_dir / f"triton-{VERSION}-{_tag()}.whl"
    rows = []
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append((path, f"sha256={digest}", len(data)))
    record = io.StringIO()
    csv.writer(record, lineterminator="\n").writerows([*rows, (f"{DIST_INFO}/RECORD", "", "")])
    members = files | {f"{DIST_INFO}/RECORD": record.getvalue().encode()}
    out_dir.mkdir(parents=True, exist_ok=True)
    handle, staging = tempfile.mkstemp(prefix=".triton-", suffix=".whl", dir=out_dir)
    try:
        with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w") as archive:
            for path, data in members.items():
                info = zipfile.ZipInfo(path, _DATE)
                info.external_attr = 0o100644 << 16
                info.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(info, data)
        Path(staging).chmod(0o644)
        Path(staging).replace(target)
    finally:
        Path(staging).unlink(missing_ok=True)
    return target


def write_overlay(files: dict[str, bytes], target: Path) -> Path:
    """Lay the package out as `target`, a symbolic link that is replaced when all is there."""

    def write(tree: Path) -> None:
        for path, data in files.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_bytes(data)

    digest = hashlib.sha256()
    for path, data in sorted(files.items()):
        digest.update(f"{path}\0{hashlib.sha256(data).hexdigest()}\0".encode())
    return overlay.publish(target, digest.hexdigest(), write)


def build(out_dir: Path) -> Path:
    """Build libtriton.so for the running Python and write the wheel; return the wheel's path.

    Raises FetchError, BuildError, PatchError or ContentError.
    """
    return write_wheel(_built_files(source_build.LIBRARY), out_dir)


def build_overlay(assertions: bool = False) -> Path:
    """Build libtriton.so and the tools and bring the overlay up to date; return its path.

    With `assertions` it is another one.  Raises like build.
    """
    files = _built_files(source_build.TOOLS, assertions)
    return write_overlay(files, OVERLAYS / source_build.build_directory(assertions).name)


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("dist", type=Path, nargs="?", default=content.REPO / "dist")
    parser.add_argument("--overlay", action="store_true")
    options = parser.parse_args()
    start = time.monotonic()
    try:
        path = build_overlay() if options.overlay else build(options.dist)
    except steps.FAILURES as error:
        print(f"source_wheel.py: {steps.explain(error)}", file=sys.stderr)
        return 1
    print(f"[source] {time.monotonic() - start:.0f} s", file=sys.stderr)
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
