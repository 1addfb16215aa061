"""The wheel: its contents, the same bytes each time, installing it, and going back to upstream."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from build_helpers import content, patching, wheel
from build_helpers.environment import Environment, digest
from fetch import fetch_wheel

REPO = content.REPO
OURS = {
    "triton/_C/libtriton_scan.so",
    "triton/_C/libtriton_scan.sha256",
    "triton/_C/libtriton_scan.json",
    "triton/native_scan.py",
    "triton/language/native_flip.py",
    "triton/language/scan_checks.py",
    "triton/tools/scan_opt.py",
    "triton/tools/scan_report.py",
    "triton/tools/scan_selftest.py",
    "triton/tools/asm_counts.py",
}
OLD_INFO, NEW_INFO = "triton-3.9.0.dist-info/", f"{content.DIST_INFO}/"


@pytest.fixture(scope="module")
def upstream_wheel() -> Path:
    return fetch_wheel()


@pytest.fixture(scope="module")
def our_wheel(tmp_path_factory, upstream_wheel, upstream_site, extension) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    return wheel.write_wheel(upstream_wheel, upstream_site, extension, out)


def record_digest(data: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")


def test_name_has_upstreams_tags(our_wheel, upstream_wheel):
    assert our_wheel.name == upstream_wheel.name.replace("3.9.0", content.VERSION)


def test_contents(our_wheel, upstream_wheel):
    """Every upstream file is there, unchanged except for the patched ones; ours are added."""
    patched = {f"triton/{p}" for p in ("knobs.py", "language/core.py", "backends/amd/compiler.py")}
    patched |= {f"triton/runtime/{p}.py" for p in ("autotuner", "cache", "interpreter", "jit")}
    patched |= {"triton/backends/nvidia/compiler.py", "triton/language/standard.py"}
    patched |= {"triton/experimental/gluon/language/_semantic.py"}
    metadata = {NEW_INFO + name for name in ("METADATA", "RECORD", "entry_points.txt")}
    with zipfile.ZipFile(upstream_wheel) as old, zipfile.ZipFile(our_wheel) as new:
        before = {i.filename.replace(OLD_INFO, NEW_INFO): i for i in old.infolist()}
        after = {i.filename: i for i in new.infolist()}
        added = set(after) - set(before)
        assert set(before) <= set(after)
        assert added >= OURS | {NEW_INFO + "licenses/LICENSE.triton-scan"}
        assert added == {
            name
            for name in added
            if name in content.added_python()
            or name.startswith((NEW_INFO, "triton/_C/libtriton_scan"))
        }
        changed = {
            name
            for name, info in before.items()
            if (info.CRC, info.file_size) != (after[name].CRC, after[name].file_size)
        }
        assert changed == patched | metadata
        for name, info in before.items():
            if not name.endswith("/RECORD"):
                assert after[name].external_attr == info.external_attr, name
        assert new.read(NEW_INFO + "licenses/LICENSE") == old.read(OLD_INFO + "licenses/LICENSE")


def test_record_and_streams(our_wheel):
    """RECORD names every member with the right digest; every stream, copied or ours, is whole."""
    with zipfile.ZipFile(our_wheel) as archive:
        rows = {
            row[0]: row[1:]
            for row in csv.reader(io.StringIO(archive.read(NEW_INFO + "RECORD").decode()))
        }
        files = [i for i in archive.infolist() if not i.is_dir()]
        assert set(rows) == {i.filename for i in files}
        assert rows.pop(NEW_INFO + "RECORD") == ["", ""]
        for info in files:
            if info.filename != NEW_INFO + "RECORD":
                data = archive.read(info)  # checks the CRC too
                assert rows[info.filename] == [record_digest(data), str(len(data))], info.filename


def test_metadata(our_wheel):
    with zipfile.ZipFile(our_wheel) as archive:
        text = archive.read(NEW_INFO + "METADATA").decode()
        head, _, body = text.partition("\n\n")
        assert f"\nVersion: {content.VERSION}\n" in head
        assert "\nLicense-File: LICENSE\nLicense-File: LICENSE.triton-scan\n" in head
        assert "modified build of triton 3.9.0" in body
        scripts = archive.read(NEW_INFO + "entry_points.txt").decode()
        assert "triton-scan-opt = triton.tools.scan_opt:main" in scripts
        assert "triton-scan-report = triton.tools.scan_report:main" in scripts
        assert "proton = triton.profiler.proton:main" in scripts
        assert "nvidia = triton.backends.nvidia" in scripts


def test_same_bytes_again(tmp_path, our_wheel, upstream_wheel, upstream_site, extension):
    again = wheel.write_wheel(upstream_wheel, upstream_site, extension, tmp_path)
    assert digest(again) == digest(our_wheel)


def test_source_date_epoch_dates_our_files(
    tmp_path, monkeypatch, upstream_wheel, upstream_site, extension
):
    """Upstream's own files keep their dates; zip knows none before 1980."""
    for epoch, date in (("1700000000", (2023, 11, 14, 22, 13, 20)), ("0", (1980, 1, 1, 0, 0, 0))):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
        made = wheel.write_wheel(upstream_wheel, upstream_site, extension, tmp_path)
        with zipfile.ZipFile(made) as new, zipfile.ZipFile(upstream_wheel) as old:
            assert new.getinfo("triton/native_scan.py").date_time == date
            assert new.getinfo(NEW_INFO + "RECORD").date_time == date
            untouched = "triton/_C/libtriton.so"
            assert new.getinfo(untouched).date_time == old.getinfo(untouched).date_time
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(content.ContentError, match="SOURCE_DATE_EPOCH must be seconds since 1970"):
        wheel.write_wheel(upstream_wheel, upstream_site, extension, tmp_path)


def test_failing_patch_leaves_no_wheel(
    tmp_path, monkeypatch, upstream_wheel, upstream_site, extension
):
    broken = tmp_path / "patches"
    broken.mkdir()
    for path in content.PATCH_DIR.glob("*.patch"):
        (broken / path.name).write_text(
            path.read_text().replace("Base-SHA256: ", "Base-SHA256: 00")[:-2]
        )
    monkeypatch.setattr(content, "PATCH_DIR", broken)
    with pytest.raises(patching.PatchError):
        wheel.write_wheel(upstream_wheel, upstream_site, extension, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_front_end_builds_the_same_wheel(tmp_path, our_wheel):
    """`python -m build --wheel` gives the same files, and the same bytes each time."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir"]
    first, second = tmp_path / "first", tmp_path / "second"
    for out in (first, second):
        done = subprocess.run([*command, str(out), str(REPO)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    # Python started in the root would take one for an installed triton.
    assert not list(REPO.glob("*.egg-info"))
    (built,) = first.iterdir()
    assert built.name == our_wheel.name
    assert digest(built) == digest(second / built.name)
    with zipfile.ZipFile(built) as a, zipfile.ZipFile(our_wheel) as b:
        assert a.namelist() == b.namelist()


def test_editable_install_is_refused():
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--no-build-isolation",
            "--no-deps",
            "-e",
            str(REPO),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    assert "cannot be installed as editable: use `make overlay`" in done.stdout + done.stderr


INSPECT = """
import json, triton
from importlib import metadata
report = {"version": metadata.version("triton"), "file": triton.__file__}
try:
    from triton import native_scan
    report["reason"] = native_scan.status().reason
    report["available"] = native_scan.status().available
except ImportError:
    report["available"] = None
print(json.dumps(report))
"""


def dependent_wheel(folder: Path) -> Path:
    """Write a small package that needs triton~=3.9.0, as torch does."""
    path, info = folder / "needs_triton-1.0-py3-none-any.whl", "needs_triton-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("needs_triton.py", "")
        text = "Metadata-Version: 2.1\nName: needs-triton\nVersion: 1.0\n"
        text += "Requires-Dist: triton~=3.9.0\n"
        archive.writestr(f"{info}/METADATA", text)
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        names = ["needs_triton.py", f"{info}/METADATA", f"{info}/WHEEL", f"{info}/RECORD"]
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in names))
    return path


def test_install_over_upstream_and_back(tmp_path, our_wheel, upstream_wheel):
    packages = tmp_path / "packages"
    packages.mkdir()
    (packages / upstream_wheel.name).symlink_to(upstream_wheel)
    environment = Environment(tmp_path / "venv", sys.executable, packages)

    def inspect() -> dict:
        return json.loads(environment.run("-c", INSPECT))

    environment.install("triton==3.9.0", dependent_wheel(tmp_path))
    assert inspect() | {"file": ""} == {
        "version": "3.9.0",
        "file": "",
        "available": None,
    }
    upstream_files = environment.files()

    environment.install(our_wheel)
    report = inspect()
    assert (report["version"], report["available"], report["reason"]) == (
        content.VERSION,
        True,
        None,
    )
    assert Path(report["file"]).is_relative_to(tmp_path)
    assert set(environment.files()) >= OURS
    assert not [name for name in environment.files() if name.startswith(OLD_INFO)]
    assert "No broken requirements" in environment.pip("check")
    done = subprocess.run(
        [environment.python.with_name("triton-scan-opt"), "--help"], capture_output=True
    )
    assert done.returncode == 0

    environment.install("triton==3.9.0", "--force-reinstall")
    assert inspect()["available"] is None
    assert environment.files() == upstream_files
    assert not environment.python.with_name("triton-scan-opt").exists()
    assert "No broken requirements" in environment.pip("check")
