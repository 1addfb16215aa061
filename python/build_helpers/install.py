"""Make .venv import the patched triton, up to date with the sources.

    .venv/bin/python python/build_helpers/install.py wheel      build the wheel and install it
    .venv/bin/python python/build_helpers/install.py overlay    build the overlay and import from it

Either way replaces the other: an installed wheel would hide the overlay.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import sysconfig
import zipfile
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "third_party"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from build_helpers import content, overlay, steps, wheel

SITE_PACKAGES = Path(sysconfig.get_path("purelib"))
PTH = SITE_PACKAGES / "triton_scan_overlay.pth"
MARKER = SITE_PACKAGES / "triton_scan_installed_wheel.sha256"


class InstallError(Exception):
    """The environment cannot be changed; the text says why."""


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-qq", *arguments]
    if subprocess.run(command).returncode:
        raise InstallError(f"`{' '.join(command)}` failed; its message is above")


def _wheel_installed() -> bool:
    return any(
        Path(d.locate_file("")) == SITE_PACKAGES for d in metadata.distributions(name="triton")
    )


def install_wheel() -> None:
    """Build the wheel and install it into the running environment unless it is there already."""
    path = wheel.build(content.REPO / "dist")
    with zipfile.ZipFile(path) as archive:
        record = hashlib.sha256(archive.read(f"{content.DIST_INFO}/RECORD")).hexdigest()
    PTH.unlink(missing_ok=True)
    if _wheel_installed() and MARKER.exists() and MARKER.read_text() == record:
        print(f"[install] {path.name} is installed already", flush=True)
        return
    print(f"[install] installing {path.name}", flush=True)
    MARKER.unlink(missing_ok=True)
    _pip("install", "--force-reinstall", "--no-deps", "--no-index", str(path))
    MARKER.write_text(record)


def install_overlay() -> None:
    """Build the overlay and let the running environment import triton from it."""
    path = overlay.build()
    if _wheel_installed():
        print("[install] removing the installed triton, which would hide the overlay", flush=True)
        MARKER.unlink(missing_ok=True)
        _pip("uninstall", "--yes", "triton")
    PTH.write_text(f"{path}\n")
    print(f"[install] {sys.executable} imports triton from {path}", flush=True)


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["wheel", "overlay"])
    if sys.prefix == sys.base_prefix:
        print(
            "install.py: run it with the Python of a virtual environment (`make demo`)",
            file=sys.stderr,
        )
        return 1
    try:
        {"wheel": install_wheel, "overlay": install_overlay}[parser.parse_args().what]()
    except (InstallError, *steps.FAILURES) as error:
        print(f"install.py: {steps.explain(error)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
