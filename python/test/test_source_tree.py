"""The source base's sources: fetched without running them, patched whole or not at all."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO / "third_party"), str(REPO / "python")]

import fetch  # noqa: E402
from build_helpers import patching, source_build, source_tree, source_wheel, steps  # noqa: E402

FILES = {
    "LICENSE": "licence\n",
    "lib/A.cpp": "one\ntwo\n",
    "lib/Dialect/TritonMetal/M.cpp": "not ours\n",
    "setup.py": "raise SystemExit('was run')\n",
    "python/triton/__init__.py": "answer = 42\n",
}


def pack(path: Path, files: dict[str, str]) -> None:
    """Write a source archive as pip takes it."""
    name = path.name.removesuffix(".tar.gz")
    info = "Metadata-Version: 2.1\nName: triton-metal\nVersion: 3.3.0rc2\n"
    backend = '[build-system]\nrequires = ["nothing"]\nbuild-backend = "setuptools.build_meta"\n'
    with tarfile.open(path, "w:gz") as archive:
        for file, text in (files | {"PKG-INFO": info, "pyproject.toml": backend}).items():
            member = tarfile.TarInfo(f"{name}/{file}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))


def digests(files: dict[str, str]) -> dict[str, str]:
    """Return the lock's used_sha256 for an archive of `files`."""
    result = {}
    for entry in fetch.SOURCE_LOCK["used"]:
        lines = [
            f"{hashlib.sha256(text.encode()).hexdigest()}  {path}\n"
            for path, text in sorted(files.items())
            if f"{path}/".startswith(f"{entry}/") and "Metal" not in path
        ]
        result[entry] = hashlib.sha256("".join(lines).encode()).hexdigest()
    return result


def write(folder: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache."""
    monkeypatch.setenv("TRITON_SCAN_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("TRITON_SOURCE_DIR", raising=False)
    return tmp_path / "cache"


@pytest.fixture
def index(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a small archive of the locked name, the only place where pip looks."""
    folder = tmp_path / "index"
    folder.mkdir()
    archive = folder / fetch.SOURCE_LOCK["filename"]
    pack(archive, FILES)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setitem(fetch.SOURCE_LOCK, "sha256", fetch.sha256(archive))
    monkeypatch.setitem(fetch.SOURCE_LOCK, "used_sha256", digests(FILES))
    return folder


def test_fetches_without_running_setup(index: Path) -> None:
    """Only the files that are used come out, and the archive's setup.py is not run."""
    source = fetch.source_dir()
    files = {p.relative_to(source).as_posix() for p in source.rglob("*") if p.is_file()}
    assert files == {"LICENSE", "lib/A.cpp", "python/triton/__init__.py"}
    for path in index.iterdir():
        path.unlink()
    assert fetch.source_dir() == source  # nothing is fetched again


def test_refuses_another_sha256(index: Path, cache: Path, monkeypatch) -> None:
    monkeypatch.setitem(fetch.SOURCE_LOCK, "sha256", "0" * 64)
    with pytest.raises(fetch.FetchError, match=r"cannot download triton_metal.*TRITON_SOURCE_DIR"):
        fetch.source_dir()
    assert not (cache / "source").exists()


def test_replaces_a_damaged_archive(index: Path, cache: Path, capsys) -> None:
    archive = fetch.fetch_source()
    archive.write_bytes(b"damaged")
    assert fetch.sha256(fetch.fetch_source()) == fetch.SOURCE_LOCK["sha256"]
    assert "is damaged (wrong sha256), removed" in capsys.readouterr().err


def test_replaces_damaged_sources(index: Path, capsys) -> None:
    """What is unpacked already is compared with the lock, not taken because it is there."""
    source = fetch.source_dir()
    (source / "lib/A.cpp").write_text("damaged\n")
    (source / "python/triton/__init__.py").unlink()
    assert fetch.source_dir() == source
    assert (source / "lib/A.cpp").read_text() == FILES["lib/A.cpp"]
    assert (source / "python/triton/__init__.py").exists()
    assert "is damaged (lib, python/triton), removed" in capsys.readouterr().err


def test_an_archive_that_the_lock_does_not_describe(index: Path, monkeypatch) -> None:
    """Who moves the lock to other sources is told the new digests."""
    right = fetch.SOURCE_LOCK["used_sha256"]
    monkeypatch.setitem(fetch.SOURCE_LOCK, "used_sha256", right | {"lib": "0"})
    with pytest.raises(fetch.FetchError, match=rf"in lib\. .*{right['lib']}"):
        fetch.source_dir()


def test_a_checkout_must_hold_the_same_sources(cache: Path, tmp_path: Path, monkeypatch) -> None:
    """TRITON_SOURCE_DIR is taken if it holds the locked sources, whatever else is there; else one
    message says where it differs."""
    checkout = tmp_path / "checkout"
    monkeypatch.setenv("TRITON_SOURCE_DIR", str(checkout))
    with pytest.raises(fetch.FetchError, match=r"holds no Triton sources: there is no LICENSE\."):
        fetch.source_dir()
    files = FILES | {f"{name}/file": "" for name in fetch.SOURCE_LOCK["used"] if name != "LICENSE"}
    monkeypatch.setitem(fetch.SOURCE_LOCK, "used_sha256", digests(files))
    write(checkout, files | {"python/triton/__pycache__/x.pyc": "", "python/setup.py": "other\n"})
    assert fetch.source_dir() == checkout
    assert "python/triton/__pycache__/x.pyc" not in fetch.used_files(checkout)

    (checkout / "lib/A.cpp").write_text("damaged\n")
    (checkout / "test/file").unlink()
    (checkout / "bin/more.cpp").write_text("")
    with pytest.raises(fetch.FetchError, match=r"changed, missing or too many in bin, lib, test\."):
        fetch.source_dir()


def test_of_cudas_headers_only_the_one_that_is_included() -> None:
    """The longest entry decides; the others are NVIDIA's and of no use here."""
    folder = "third_party/nvidia/backend"
    assert fetch.is_used_source(f"{folder}/include/cuda.h")
    assert not fetch.is_used_source(f"{folder}/include/cupti.h")
    assert fetch.is_used_source(f"{folder}/driver.c")


def test_manifest_leaves_out_within_what_is_used() -> None:
    """Nothing is said to be left out that would not have been used."""
    used = tuple(fetch.SOURCE_LOCK["used"])
    for path in fetch.SOURCE_LOCK["left_out"]:
        assert any(path.startswith(f"{entry}/") for entry in used), path
        assert not fetch.is_used_source(path) and not fetch.is_used_source(f"{path}/file")
    for path in fetch.SOURCE_LOCK["used"]:
        assert fetch.is_used_source(path)


# the patches


@pytest.fixture
def series(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A series of two patches, the second on top of the first, for FILES."""
    folder = tmp_path / "patches"
    (folder / "source-x").mkdir(parents=True)
    old, new = FILES["lib/A.cpp"], "one\n2\n"
    first = patching.make_patch("Why.", "lib/A.cpp", old, new)
    licence = patching.make_patch("", "LICENSE", FILES["LICENSE"], "other\n").lstrip()
    why, _, section = first.partition("\n\n")
    (folder / "source-x/first.patch").write_text(f"{why}\n\n{licence}{section}")
    second = patching.make_patch("Because.", "lib/A.cpp", new, "zero\none\n2\n")
    (folder / "source-x/second.patch").write_text(second)
    (folder / "source.series").write_text("source-x/first.patch\nsource-x/second.patch\n")
    monkeypatch.setattr(source_tree, "SERIES", folder / "source.series")
    return folder


def test_a_patch_may_change_several_files_and_build_on_another(index, series, tmp_path) -> None:
    tree = source_tree.prepare(tmp_path / "tree")
    assert (tree / "lib/A.cpp").read_text() == "zero\none\n2\n"
    assert (tree / "LICENSE").read_text() == "other\n"
    assert (tree / "python/triton/__init__.py").read_text() == FILES["python/triton/__init__.py"]


def test_only_what_changed_is_written_again(index, series, tmp_path) -> None:
    """An older file keeps its time, a file that is not of the sources goes."""
    tree = source_tree.prepare(tmp_path / "tree")
    kept, stray = tree / "LICENSE", tree / "lib/stray.cpp"
    os.utime(kept, (1, 1))
    stray.write_text("")
    (series / "source.series").write_text("source-x/first.patch\n")
    source_tree.prepare(tree)
    assert kept.stat().st_mtime == 1 and not stray.exists()
    assert (tree / "lib/A.cpp").read_text() == "one\n2\n"


def test_a_patch_that_does_not_apply_leaves_the_tree_alone(index, series, tmp_path) -> None:
    tree = source_tree.prepare(tmp_path / "tree")
    before = {p: p.read_bytes() for p in tree.rglob("*") if p.is_file()}
    (series / "source.series").write_text("source-x/second.patch\n")
    with pytest.raises(
        patching.PatchError, match=r"second\.patch does not apply to lib/A\.cpp.*--edit"
    ):
        source_tree.prepare(tree)
    assert {p: p.read_bytes() for p in tree.rglob("*") if p.is_file()} == before
    (series / "source.series").write_text("source-x/third.patch\n")
    with pytest.raises(patching.PatchError, match=r"lists source-x/third\.patch, which does not"):
        source_tree.prepare(tree)


def test_a_damaged_tree_is_not_taken_for_whole(index, series, tmp_path) -> None:
    """A stamp says that all was written, not that it stayed."""
    tree = source_tree.prepare(tmp_path / "tree")
    (tree / "lib/A.cpp").write_text("")
    (tree / "LICENSE").unlink()
    source_tree.prepare(tree)
    assert (tree / "lib/A.cpp").read_text() == "zero\none\n2\n"
    assert (tree / "LICENSE").read_text() == "other\n"


def test_an_interrupted_update_is_not_taken_for_whole(index, series, tmp_path, monkeypatch) -> None:
    """Without its stamp CMake refuses a tree; the next run completes it."""
    tree = source_tree.prepare(tmp_path / "tree")
    (series / "source.series").write_text("source-x/first.patch\n")

    def fail(self, data):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError):
        patch.setattr(Path, "write_bytes", fail)
        source_tree.prepare(tree)
    assert not (tree / source_tree.STAMP).exists()
    source_tree.prepare(tree)
    assert (tree / source_tree.STAMP).exists()


def test_edit_and_refresh_round_trip(index, series, tmp_path) -> None:
    """A git repository with a commit for each patch gives the same patches back."""
    before = {p: p.read_text() for p in series.rglob("*.patch")}
    for text in before.values():
        assert not text.startswith("-")
    source_tree.edit(tmp_path / "edit")
    source_tree.refresh(tmp_path / "edit")
    assert {p: p.read_text() for p in series.rglob("*.patch")} == before


def test_edit_and_refresh_refuse_what_would_lose_something(index, series, tmp_path) -> None:
    """Neither a folder with files of its own, nor another repository, nor work in no commit."""
    patches = {p: p.read_text() for p in series.rglob("*.patch")}
    taken = tmp_path / "taken"
    write(taken, {"file": "mine\n"})
    with pytest.raises(steps.BuildError, match="taken is not empty: name a new directory"):
        source_tree.edit(taken)
    assert [p.name for p in taken.iterdir()] == ["file"]
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    with pytest.raises(steps.BuildError, match="taken is no git repository: --edit makes one"):
        source_tree.refresh(taken)

    folder = tmp_path / "edit"
    source_tree.edit(folder)
    (folder / "lib/A.cpp").write_text("not committed\n")
    with pytest.raises(steps.BuildError, match=r"changes that are in no commit:\n M lib/A\.cpp"):
        source_tree.refresh(folder)
    source_tree._git(folder, "mv", "-f", "LICENSE", "lib/B.cpp")
    source_tree._git(folder, "commit", "-qam", "x/third: Why.")
    with pytest.raises(patching.PatchError, match="x/third adds or removes LICENSE"):
        source_tree.refresh(folder)
    assert {p: p.read_text() for p in series.rglob("*.patch")} == patches


def test_edit_asks_nothing_of_the_users_git(index, series, tmp_path, monkeypatch) -> None:
    """A configuration that signs commits, or the repository of a hook, changes nothing."""
    write(tmp_path, {"config": "[commit]\ngpgsign = true\n[core]\nautocrlf = true\n"})
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    source_tree.edit(tmp_path / "edit")
    source_tree.refresh(tmp_path / "edit")


def test_our_series_lists_every_patch_once() -> None:
    lines = source_tree.SERIES.read_text().splitlines()
    folder = source_tree.SERIES.parent
    found = {p.relative_to(folder).as_posix() for p in folder.glob("source-*/*.patch")}
    assert len(lines) == len(set(lines)) and set(lines) == found


def test_our_patches_say_why_and_are_small() -> None:
    """Each has a sentence, and none replaces more of upstream than it must."""
    for path in source_tree.SERIES.parent.glob("source-*/*.patch"):
        why = path.read_text().partition("\n\n")[0]
        assert re.fullmatch(r"\S.{20,}\.", why, re.S), path
        for patch in patching.parse_series_patch(path):
            assert max(len(hunk.old) for hunk in patch.hunks) <= 15, (path, patch.target)


def test_left_lit_tests_have_reasons() -> None:
    """The lit tests of upstream's that fail are named one by one, each with its reason."""
    left = json.loads((REPO / "test-source/left.json").read_text())
    assert all(path.endswith((".mlir", ".ll")) and len(why) > 20 for path, why in left.items())


# the package


def test_package_has_entry_points_and_our_files(tmp_path: Path) -> None:
    """Backends come from third_party, our additions beside upstream's files, libtriton in _C."""
    tree = tmp_path / "tree"
    for path in (
        "LICENSE",
        "python/triton/__init__.py",
        "third_party/nvidia/backend/compiler.py",
        "third_party/amd/backend/compiler.py",
    ):
        (tree / path).parent.mkdir(parents=True, exist_ok=True)
        (tree / path).write_text(path)
    library = tmp_path / "libtriton.so"
    library.write_bytes(b"library")
    files = source_wheel.package_files(tree, library)
    assert files["triton/backends/nvidia/compiler.py"] == b"third_party/nvidia/backend/compiler.py"
    assert files["triton/_C/libtriton.so"] == b"library"
    assert "triton/native_scan.py" in files and "triton/language/native_flip.py" not in files
    entry_points = files[f"{source_wheel.DIST_INFO}/entry_points.txt"].decode()
    assert "[triton.backends]\namd = triton.backends.amd\nnvidia = triton.backends.nvidia\n" in (
        entry_points
    )
    first, second = (source_wheel.write_wheel(files, tmp_path / n) for n in ("one", "two"))
    digests = {hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in (first, second)}
    assert len(digests) == 1


def test_overlays_do_not_remove_each_other(tmp_path: Path) -> None:
    """The name of one begins like the other's; only a link's own older trees go."""
    plain, assertions = tmp_path / "cp311", tmp_path / "cp311-assertions"
    source_wheel.write_overlay({"triton/a.py": b"1"}, assertions)
    source_wheel.write_overlay({"triton/a.py": b"2"}, plain)
    source_wheel.write_overlay({"triton/a.py": b"3"}, plain)
    assert (assertions / "triton/a.py").read_bytes() == b"1"
    assert (plain / "triton/a.py").read_bytes() == b"3"
    assert len([p for p in tmp_path.iterdir() if p.is_dir() and not p.is_symlink()]) == 2


def configure(tmp_path: Path, monkeypatch, cc: str, cxx: str, llvm: Path) -> str:
    """Run CMake for the source base and return why it does not work."""
    write(tmp_path / "tree", {source_tree.STAMP: ""})
    monkeypatch.setenv("LLVM_SYSPATH", str(llvm))
    settings = {"TRITON_BASE": "source", "TRITON_SOURCE": str(tmp_path / "tree")}
    settings |= {"CMAKE_C_COMPILER": cc, "CMAKE_CXX_COMPILER": cxx}
    settings |= {"CMAKE_MAKE_PROGRAM": steps.find_tool("ninja")}
    (tmp_path / "build").mkdir(exist_ok=True)
    with pytest.raises(steps.BuildError) as raised:
        steps.configure(tmp_path / "build", settings, tmp_path / "log", "source")
    return " ".join(str(raised.value).split())


needs_clang = pytest.mark.skipif(not shutil.which("clang-22"), reason="there is no clang-22")


@pytest.mark.skipif(not shutil.which("gcc"), reason="there is no gcc")
def test_another_compiler_is_refused(tmp_path, monkeypatch) -> None:
    gcc, gxx = shutil.which("gcc"), shutil.which("g++")
    words = configure(tmp_path, monkeypatch, gcc, gxx, tmp_path)
    assert re.search(rf"compiled with clang, but the compiler is {gcc} \(GNU [0-9.]+\)", words)
    assert "Unset CC and CXX, or set them to clang and clang++" in words


@needs_clang
def test_what_an_llvm_lacks_is_named(tmp_path, monkeypatch) -> None:
    """No MLIR, half of it, another version, a part missing: each is said before compiling."""
    compilers = shutil.which("clang-22"), shutil.which("clang++-22")
    llvm = tmp_path / "llvm"

    def refused() -> str:
        return configure(tmp_path, monkeypatch, *compilers, llvm)

    llvm.mkdir()
    assert f"no MLIR 22 found: {llvm} has no lib/cmake/mlir/MLIRConfig.cmake" in refused()
    write(llvm, {"lib/cmake/mlir/MLIRConfig.cmake": ""})
    assert "no MLIR 22 found" in refused()
    write(llvm, {"lib/cmake/llvm/LLVMConfigVersion.cmake": 'set(PACKAGE_VERSION "21.1.8")'})
    assert "holds LLVM 21.1.8, but the patches were made for 22.1" in refused()
    write(llvm, {"lib/cmake/llvm/LLVMConfigVersion.cmake": 'set(PACKAGE_VERSION "22.1.8")'})
    words = refused()
    assert "lacks lib/libLLVMSupport.a. Install clang-22 lld-22" in words


@pytest.mark.parametrize(
    "cc, cxx, message",
    [
        (None, "clang++", "set both CC and CXX, to clang and clang"),
        ("true", None, "set both CC and CXX, to clang and clang"),
        ("true", "no-such-compiler", r"CXX=no-such-compiler is no compiler on this machine"),
        ("true -m64", "true", "options belong into CFLAGS and CXXFLAGS"),
    ],
)
def test_compilers_that_are_named_badly(monkeypatch, cc, cxx, message) -> None:
    for name, value in (("CC", cc), ("CXX", cxx)):
        monkeypatch.setenv(name, value) if value else monkeypatch.delenv(name, raising=False)
    with pytest.raises(steps.BuildError, match=message):
        source_build.find_clang()


def test_no_clang_is_one_message(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("LLVM_SYSPATH", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(steps.BuildError, match=r"install clang-22 .* or set CC and CXX"):
        source_build.find_clang()
