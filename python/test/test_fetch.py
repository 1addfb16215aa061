"""third_party/fetch.py: fetched once, verified, whole or not there at all."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPO / "third_party"))

import fetch  # noqa: E402

NAME = "triton-3.9.0-cp311-cp311-manylinux_2_28_x86_64.whl"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("TRITON_SCAN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("LLVM_SYSPATH", raising=False)
    monkeypatch.setattr(fetch, "INSTALLED_LLVM", Path("/usr/lib/llvm-not-installed"))
    return tmp_path / "cache"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a small wheel of the locked name, the only place where pip looks."""
    folder = tmp_path / "index"
    folder.mkdir()
    with zipfile.ZipFile(folder / NAME, "w") as wheel:
        wheel.writestr("triton/__init__.py", "answer = 42\n")
        wheel.writestr(zipfile.ZipInfo("triton/tool"), "#!/bin/sh\n")
        info = "triton-3.9.0.dist-info"
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\n")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: triton\nVersion: 3.9.0\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    lock(monkeypatch, sha256=fetch.sha256(folder / NAME))
    return folder


def lock(monkeypatch: pytest.MonkeyPatch, sha256: str) -> None:
    """Lock one small wheel."""
    entry = dict(filename=NAME, python="cp311", abi="cp311", machine="x86_64", size=1)
    files = [entry | {"sha256": sha256}]
    monkeypatch.setattr(fetch, "WHEEL_LOCK", {"name": "triton", "version": "3.9.0", "files": files})


def forbid_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every process that the fetch code would start an error: no network without one."""

    def forbidden(command, *_, **__):
        raise AssertionError(f"started {command}")

    monkeypatch.setattr(fetch.subprocess, "run", forbidden)
    monkeypatch.setattr(fetch.subprocess, "Popen", forbidden)


def contents(cache: Path) -> list[str]:
    """What is in the cache, but for the lock file."""
    return sorted(str(p.relative_to(cache)) for p in cache.rglob("*") if p.name != "lock")


# the wheel


def test_locks_name_every_python() -> None:
    """cp311 has a wheel, newer ones share the stable ABI's, free-threaded ones have their own."""
    abi = {t: fetch.locked_wheel(t, "x86_64")["abi"] for t in ("cp311", "cp312", "cp313", "cp314t")}
    assert abi == {"cp311": "cp311", "cp312": "abi3", "cp313": "abi3", "cp314t": "cp314t"}
    assert "aarch64" in fetch.locked_wheel("cp311", "aarch64")["filename"]
    for tag, machine in [("cp310", "x86_64"), ("cp313t", "x86_64"), ("cp311", "riscv64")]:
        with pytest.raises(
            fetch.FetchError, match=f"no wheel for {tag} on {machine}; there are: cp3"
        ):
            fetch.locked_wheel(tag, machine)


def test_second_run_fetches_nothing(cache: Path, index: Path, monkeypatch) -> None:
    """The first run downloads and unpacks with pip, the second starts no process."""
    site = fetch.unpack_wheel("cp311", "x86_64")
    assert (site / "triton/__init__.py").read_text() == "answer = 42\n"
    forbid_commands(monkeypatch)
    shutil.rmtree(index)
    assert fetch.fetch_wheel("cp311", "x86_64").name == NAME
    assert fetch.unpack_wheel("cp311", "x86_64") == site
    assert not [p for p in cache.iterdir() if p.name.startswith("tmp-")]


def test_refuses_another_sha256(cache: Path, index: Path, monkeypatch) -> None:
    """A downloaded file that is not the locked one is not kept."""
    lock(monkeypatch, sha256="0" * 64)
    with pytest.raises(fetch.FetchError, match=rf"{NAME} has sha256 .* but 0000.* is locked"):
        fetch.unpack_wheel("cp311", "x86_64")
    assert contents(cache) == []


def test_replaces_a_damaged_wheel(cache: Path, index: Path, capsys) -> None:
    """A cached wheel of which a byte changed is not used but fetched again."""
    wheel = fetch.fetch_wheel("cp311", "x86_64")
    whole = wheel.read_bytes()
    wheel.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert fetch.fetch_wheel("cp311", "x86_64").read_bytes() == whole
    assert "is damaged (wrong sha256), removed" in capsys.readouterr().err


def test_damaged_wheel_without_network_is_refused(cache: Path, index: Path) -> None:
    """One message, and the damaged file is not left to be taken for whole."""
    wheel = fetch.fetch_wheel("cp311", "x86_64")
    wheel.write_bytes(b"no wheel")
    shutil.rmtree(index)
    with pytest.raises(fetch.FetchError, match=rf"cannot download {NAME}.*Check the network"):
        fetch.unpack_wheel("cp311", "x86_64")
    assert not wheel.exists()


def test_failed_unpack_leaves_nothing(cache: Path, index: Path, monkeypatch) -> None:
    """A full disk in the middle of unpacking: an error, no site, no scratch; then a good run."""
    extract = zipfile.ZipFile.extract

    def fail(self, member, path):
        if member.filename.endswith("METADATA"):
            raise OSError(28, "No space left on device")
        return extract(self, member, path)

    with monkeypatch.context() as patch:
        patch.setattr(zipfile.ZipFile, "extract", fail)
        with pytest.raises(fetch.FetchError, match=r"cannot unpack .*No space left"):
            fetch.unpack_wheel("cp311", "x86_64")
    assert contents(cache) == ["wheels", f"wheels/{NAME}"]
    assert (fetch.unpack_wheel("cp311", "x86_64") / "triton/tool").exists()


def test_killed_unpack_leaves_nothing_that_looks_whole(cache: Path, index: Path) -> None:
    """SIGKILL in the middle: no site; the next run clears the scratch and unpacks."""
    fetch.fetch_wheel("cp311", "x86_64")
    script = (
        f"import sys, time, zipfile; sys.path.insert(0, {str(REPO / 'third_party')!r})\n"
        f"import fetch; fetch.WHEEL_LOCK = {fetch.WHEEL_LOCK!r}\n"
        "extract = zipfile.ZipFile.extract\n"
        "def slow(*a):\n    extract(*a); print('one', flush=True); time.sleep(60)\n"
        "zipfile.ZipFile.extract = slow\n"
        "fetch.unpack_wheel('cp311', 'x86_64')\n"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"one\n"
        process.send_signal(signal.SIGKILL)
    assert [p for p in cache.iterdir() if p.name.startswith("tmp-")]
    assert not (cache / "site").exists()
    fetch.unpack_wheel("cp311", "x86_64")
    assert not [p for p in cache.iterdir() if p.name.startswith("tmp-")]


# the headers


def llvm_install(prefix: Path, version: str) -> Path:
    """A directory with the headers that tell an LLVM install and its version."""
    for name, text in {
        "llvm/Config/llvm-config.h": f'#define LLVM_VERSION_STRING "{version}"\n',
        "llvm/ADT/StringRef.h": "",
        "mlir/IR/Operation.h": "",
    }.items():
        (prefix / "include" / name).parent.mkdir(parents=True, exist_ok=True)
        (prefix / "include" / name).write_text(text)
    return prefix


def debs(folder: Path, version: str) -> dict[str, Path]:
    """Two real packages, as sid's are but small."""
    out = {}
    for package in fetch.LLVM_LOCK["packages"]:
        tree = folder / package
        upstream = version.split(":")[-1].split("-")[0]
        llvm_install(tree / "usr/lib/llvm-not-installed", upstream)
        (tree / "usr/lib/llvm-not-installed/lib").mkdir()
        (tree / "usr/lib/llvm-not-installed/lib/libHuge.a").write_text("not headers")
        (tree / "DEBIAN").mkdir()
        (tree / "DEBIAN/control").write_text(
            f"Package: {package}\nVersion: {version}\nArchitecture: amd64\n"
            "Maintainer: nobody <nobody@localhost>\nDescription: test\n"
        )
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, folder], check=True)
        (out[package],) = folder.glob(f"{package}_*.deb")
    return out


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """serve(version): let the apt commands succeed and give packages of that version."""

    def serve(version: str) -> None:
        packages = debs(tmp_path, version)
        run = subprocess.run

        def apt(command, *args, **kwargs):
            if command[0] != "apt-get":
                return run(command, *args, **kwargs)
            if "download" in command:
                for deb in packages.values():
                    shutil.copy(deb, kwargs["cwd"])
            text = "http://localhost/debian/\n" if "indextargets" in command else ""
            return subprocess.CompletedProcess(command, 0, text, "")

        monkeypatch.setattr(fetch.subprocess, "run", apt)

    return serve


def test_newer_revision_of_the_series(cache: Path, serve, monkeypatch, capsys) -> None:
    """It is taken, with a line that says so; only headers are unpacked; once."""
    serve("1:23.1.99-1")
    (include,) = fetch.llvm_include_dirs()
    assert fetch.headers_version([include]) == "23.1.99"
    assert not list(cache.rglob("*.a")) and not list(cache.rglob("*.deb"))
    assert "libmlir-23-dev 1:23.1.99-1 is not the tested" in capsys.readouterr().err
    forbid_commands(monkeypatch)
    assert fetch.llvm_include_dirs() == [include]


@pytest.mark.parametrize("version", ["1:23.2.0-1", "1:24.1.0-1", "1:23.10.0-1"])
def test_refuses_another_series(cache: Path, serve, version: str) -> None:
    """One error that names the version, the series and the way out; nothing kept."""
    serve(version)
    with pytest.raises(fetch.FetchError, match=f"{version}.*series 23.1.*LLVM_SYSPATH.*b010a18d2b"):
        fetch.llvm_include_dirs()
    assert contents(cache) == []


def test_refuses_another_file_of_the_locked_version(cache: Path, serve) -> None:
    """The version that was tested must be the file that was tested."""
    serve(fetch.LLVM_LOCK["tested"]["version"])
    with pytest.raises(fetch.FetchError, match="not the sha256 locked"):
        fetch.llvm_include_dirs()
    assert contents(cache) == []


def test_no_apt_names_the_way_out(cache: Path, tmp_path: Path, monkeypatch) -> None:
    """On a machine without Debian's tools: which one is missing, and LLVM_SYSPATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(fetch.FetchError, match=r"no dpkg-deb on this machine\. Set LLVM_SYSPATH"):
        fetch.llvm_include_dirs()
    assert contents(cache) == []


def test_offline_is_one_error(cache: Path, monkeypatch) -> None:
    """apt with an archive that does not answer: its words and LLVM_SYSPATH; nothing kept."""
    monkeypatch.setattr(fetch, "_debian_mirror", lambda: "http://127.0.0.1:9/debian")
    start = time.monotonic()
    with pytest.raises(
        fetch.FetchError, match=r"cannot fetch libmlir-23-dev .*apt-get.*LLVM_SYSPATH"
    ):
        fetch.llvm_include_dirs()
    assert contents(cache) == []
    assert time.monotonic() - start < 30


def test_order_of_preference(cache: Path, tmp_path: Path, monkeypatch) -> None:
    """LLVM_SYSPATH, then an installed LLVM of the series; neither starts a process."""
    forbid_commands(monkeypatch)
    installed = llvm_install(tmp_path / "installed", "23.1.2")
    monkeypatch.setattr(fetch, "INSTALLED_LLVM", installed)
    assert fetch.llvm_include_dirs() == [installed / "include"]
    named = llvm_install(tmp_path / "named", "24.0.0git")
    monkeypatch.setenv("LLVM_SYSPATH", str(named))
    assert fetch.llvm_include_dirs() == [named / "include"]
    monkeypatch.setenv("LLVM_SYSPATH", str(tmp_path / "nowhere"))
    with pytest.raises(fetch.FetchError, match=r"LLVM_SYSPATH=.*nowhere has no include/mlir"):
        fetch.llvm_include_dirs()


def test_installed_llvm_of_another_series_is_not_used(
    cache: Path, tmp_path: Path, monkeypatch
) -> None:
    """The fetched headers are taken instead."""
    monkeypatch.setattr(fetch, "INSTALLED_LLVM", llvm_install(tmp_path / "usr", "23.0.1"))
    monkeypatch.setattr(fetch, "fetch_headers", lambda: tmp_path / "fetched")
    (include,) = fetch.llvm_include_dirs()
    assert include.is_relative_to(tmp_path / "fetched")


def test_command_line(cache: Path, index: Path, capsys) -> None:
    """The answer alone on stdout; errors as one line and status 1."""
    assert fetch.main(["wheel", "--python-tag", "cp311", "--machine", "x86_64"]) == 0
    out = Path(capsys.readouterr().out.strip())
    assert hashlib.sha256(out.read_bytes()).hexdigest() == fetch.WHEEL_LOCK["files"][0]["sha256"]
    assert fetch.main(["site", "--python-tag", "cp27"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
