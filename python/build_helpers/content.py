"""What our package differs in from the upstream wheel: patched and added files, and metadata."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "third_party"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from fetch import WHEEL_LOCK

from build_helpers import patching

REPO = Path(__file__).resolve().parents[2]
UPSTREAM_VERSION: str = WHEEL_LOCK["version"]
# Counts our releases on one version of upstream's; CHANGELOG.md has an entry for each.
REVISION = 1
VERSION = f"{UPSTREAM_VERSION}+revscan.{REVISION}"
PATCH_DIR = REPO / "patches" / f"triton-{UPSTREAM_VERSION}"
EXTENSION = "triton/_C/libtriton_scan.so"
CHECKSUM = "triton/_C/libtriton_scan.sha256"
RECORD = "triton/_C/libtriton_scan.json"
UPSTREAM_DIST_INFO = f"triton-{UPSTREAM_VERSION}.dist-info"
DIST_INFO = f"triton-{VERSION}.dist-info"
OUR_LICENSE = "LICENSE.triton-scan"
NOTICE = f"""\
This is a modified build of triton {UPSTREAM_VERSION}. It is not published by Triton's authors. The
changes: scans (tl.associative_scan, tl.cumsum, tl.cumprod) are lowered by the extension
{EXTENSION}, which TRITON_NATIVE_SCAN=0 turns off. To return to the original: `pip install
triton=={UPSTREAM_VERSION} --force-reinstall`.
"""


class ContentError(Exception):
    """The package cannot be put together; the text says which file is wrong."""


def added_python() -> dict[str, Path]:
    """Return {path in the package: file} of the Python files that we add to triton."""
    root = REPO / "python" / "triton"
    files = sorted(p for p in root.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    return {f"triton/{p.relative_to(root).as_posix()}": p for p in files}


def changed_files(site: Path, extension: Path) -> dict[str, bytes]:
    """Return {path in the package: bytes} of every file of ours that is not metadata.

    site: the unpacked upstream wheel; extension: libtriton_scan.so, beside which the ABI gate left
    its record (without one, the package has none).  Raises patching.PatchError, or ContentError
    when an added file would replace one of upstream's or the record is of another extension.
    """
    files = patching.apply_all(PATCH_DIR, site)
    for path, source in added_python().items():
        if (site / path).exists():
            raise ContentError(f"{source} would replace upstream's {path}; write a patch instead")
        files[path] = source.read_bytes()
    if (site / EXTENSION).exists():
        raise ContentError(f"upstream has a {EXTENSION} of its own")
    files[EXTENSION] = extension.read_bytes()
    digest = hashlib.sha256(files[EXTENSION]).hexdigest()
    files[CHECKSUM] = (digest + "\n").encode()
    record = extension.with_suffix(".json")
    if record.is_file():
        files[RECORD] = record.read_bytes()
        if json.loads(files[RECORD])["extension_sha256"] != digest:
            raise ContentError(f"{record} is the record of another {extension.name}; build again")
    return files


def changed_metadata(site: Path) -> dict[str, bytes]:
    """Return {path below the .dist-info: bytes} of the metadata files that differ from upstream's.

    RECORD is not among them.  Upstream's licence stays, ours is added beside it.
    """
    upstream = site / UPSTREAM_DIST_INFO
    head, _, _ = upstream.joinpath("METADATA").read_text().partition("\n\n")
    lines = head.splitlines()
    if f"Version: {UPSTREAM_VERSION}" not in lines or "License-File: LICENSE" not in lines:
        raise ContentError(f"{upstream / 'METADATA'} is not as expected (Version, License-File)")
    lines[lines.index(f"Version: {UPSTREAM_VERSION}")] = f"Version: {VERSION}"
    lines.insert(lines.index("License-File: LICENSE") + 1, f"License-File: {OUR_LICENSE}")
    lines.append("Description-Content-Type: text/plain")
    scripts = "[console_scripts]\n"
    entry_points = upstream.joinpath("entry_points.txt").read_text()
    if scripts not in entry_points:
        raise ContentError(f"{upstream / 'entry_points.txt'} has no [console_scripts]")
    return {
        "METADATA": ("\n".join(lines) + "\n\n" + NOTICE).encode(),
        "entry_points.txt": entry_points.replace(
            scripts,
            scripts
            + "triton-scan-opt = triton.tools.scan_opt:main\n"
            + "triton-scan-report = triton.tools.scan_report:main\n",
        ).encode(),
        f"licenses/{OUR_LICENSE}": (REPO / "LICENSE").read_bytes(),
    }
