"""Fetches what the builds stand on: the upstream Triton wheel and the LLVM/MLIR headers, or for the
source base Triton's sources.

    python third_party/fetch.py wheel --python-tag cp311     the wheel's path
    python third_party/fetch.py site --python-tag cp311      the directory it is unpacked in
    python third_party/fetch.py headers                      the include directories
    python third_party/fetch.py source                       the directory with Triton's sources

Downloads and unpacked directories live in the cache (`.cache/`, or TRITON_SCAN_CACHE_DIR).
Everything appears there by one rename once it is complete and verified, so an interrupted run
leaves nothing that a later one would take for whole. What is there already is not fetched again.
Progress goes to stderr, the answer to stdout.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
WHEEL_LOCK = json.loads((REPO / "third_party/triton-wheel.lock.json").read_text())
SOURCE_LOCK = json.loads((REPO / "third_party/triton-source.lock.json").read_text())
LLVM_LOCK = json.loads((REPO / "third_party/llvm-headers.lock.json").read_text())
INSTALLED_LLVM = Path(f"/usr/lib/llvm-{LLVM_LOCK['series'].split('.')[0]}")
KEYRINGS = [
    Path(f"/usr/share/keyrings/debian-archive-keyring.{end}") for end in ("gpg", "pgp", "asc")
]
WAY_OUT = (
    "Set LLVM_SYSPATH to an LLVM and MLIR install of commit "
    f"{LLVM_LOCK['libtriton_commit']}, from which libtriton was built."
)


class FetchError(RuntimeError):
    """Something could not be fetched or verified; the text says what and what to do."""


def say(text: str) -> None:
    """Writes one progress line."""
    print(f"[fetch] {text}", file=sys.stderr, flush=True)


def cache_dir() -> Path:
    """The cache directory; not created here."""
    return Path(os.environ.get("TRITON_SCAN_CACHE_DIR") or REPO / ".cache").absolute()


def running_python_tag() -> str:
    """The tag of the running interpreter: cp311, cp314t, ..."""
    threads = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    return f"cp{sys.version_info.major}{sys.version_info.minor}{threads}"


def locked_wheel(python_tag: str | None = None, machine: str | None = None) -> dict:
    """The lock's entry of the wheel for a Python (default: the running one) and a machine.

    Raises FetchError if upstream published none.
    """
    python_tag = python_tag or running_python_tag()
    machine = machine or platform.machine()
    parsed = re.fullmatch(r"cp3(\d+)(t?)", python_tag)
    mine = [e for e in WHEEL_LOCK["files"] if e["machine"] == machine]
    for entry in mine if parsed else []:
        if entry["abi"] == python_tag:
            return entry
        lowest = int(entry["python"].removeprefix("cp3"))
        if entry["abi"] == "abi3" and not parsed[2] and int(parsed[1]) >= lowest:
            return entry
    have = sorted(f"{e['python']}-{e['abi']}/{e['machine']}" for e in WHEEL_LOCK["files"])
    raise FetchError(
        f"triton {WHEEL_LOCK['version']} has no wheel for {python_tag} on {machine}; "
        f"there are: {', '.join(have)}. Use one of these Pythons."
    )


def sha256(path: Path) -> str:
    """The file's sha256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def locked(path: Path, shared: bool = False) -> Iterator[int]:
    """Holds the lock file `path`, alone or with others that share it; says when it has to wait.

    Gives its file descriptor: a process that inherits it holds the lock too.
    """
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"[lock] waiting for the process that holds {path}", file=sys.stderr, flush=True)
            fcntl.flock(lock, kind)
        yield lock.fileno()


@contextlib.contextmanager
def _workspace() -> Iterator[Path]:
    """A scratch directory in the cache, for one process at a time, gone afterwards.

    What an earlier, killed process left is removed first.
    """
    cache = cache_dir()
    cache.mkdir(parents=True, exist_ok=True)
    with locked(cache / "lock"):
        for left in cache.glob("tmp-*"):
            shutil.rmtree(left, ignore_errors=True)
        work = Path(tempfile.mkdtemp(prefix="tmp-", dir=cache))
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)


def _run(
    command: list[str],
    what: str,
    advice: str,
    cwd: Path | None = None,
    environment: dict[str, str] | None = None,
) -> str:
    """Runs a command and returns its stdout.

    Raises FetchError with its last words if it fails or is missing.
    """
    try:
        done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)
    except FileNotFoundError:
        raise FetchError(f"{what}: there is no {command[0]} on this machine. {advice}") from None
    if done.returncode:
        tool = command[2] if command[1] == "-m" else command[0]
        words = "; ".join((done.stderr or done.stdout).strip().splitlines()[-3:])
        raise FetchError(f"{what}: {tool} said: {words.rstrip('.')}. {advice}")
    return done.stdout


def fetch_wheel(python_tag: str | None = None, machine: str | None = None) -> Path:
    """The path of the verified upstream wheel, downloaded with pip unless the cache has it.

    Raises FetchError if it cannot be had or is not the locked file.
    """
    entry = locked_wheel(python_tag, machine)
    target = cache_dir() / "wheels" / entry["filename"]
    if target.exists() and sha256(target) == entry["sha256"]:
        return target
    with _workspace() as work:
        if target.exists():
            if sha256(target) == entry["sha256"]:  # by another process while this one waited
                return target
            say(f"{target} is damaged (wrong sha256), removed")
            target.unlink()
        say(f"downloading {entry['filename']} ({entry['size'] >> 20} MiB) with pip")
        python = re.fullmatch(r"cp3(\d+)", entry["python"])[1]
        platforms = entry["filename"].removesuffix(".whl").rsplit("-", 1)[1].split(".")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", "."]
        command += ["--disable-pip-version-check", "--only-binary", ":all:"]
        command += ["--implementation", "cp", "--python-version", f"3.{python}"]
        command += ["--abi", entry["abi"]]
        for name in platforms:
            command += ["--platform", name]
        command.append(f"{WHEEL_LOCK['name']}=={WHEEL_LOCK['version']}")
        advice = (
            "Check the network and pip's index, "
            f"or put {entry['filename']} into {target.parent} yourself."
        )
        _run(command, f"cannot download {entry['filename']}", advice, cwd=work)
        got = work / entry["filename"]
        if not got.exists():
            names = ", ".join(p.name for p in work.iterdir()) or "nothing"
            raise FetchError(f"pip downloaded {names} instead of {entry['filename']}. {advice}")
        digest = sha256(got)
        if digest != entry["sha256"]:
            raise FetchError(
                f"{entry['filename']} has sha256 {digest}, but {entry['sha256']} is locked in "
                "third_party/triton-wheel.lock.json; it was not kept. "
                "Check pip's index and any proxy."
            )
        target.parent.mkdir(exist_ok=True)
        got.rename(target)
    return target


def unpack_wheel(python_tag: str | None = None, machine: str | None = None) -> Path:
    """The directory that holds the upstream wheel's `triton/` and `triton-3.9.0.dist-info/`.

    Treat it as read-only: later runs take it as it is. Raises FetchError like fetch_wheel.
    """
    entry = locked_wheel(python_tag, machine)
    name = "-".join([WHEEL_LOCK["version"], entry["abi"], entry["machine"], entry["sha256"][:8]])
    target = cache_dir() / "site" / name
    if target.exists():
        return target
    wheel = fetch_wheel(python_tag, machine)
    with _workspace() as work:
        if target.exists():
            return target
        say(f"unpacking {wheel.name}")
        site = work / name
        site.mkdir()
        try:
            with zipfile.ZipFile(wheel) as archive:
                for info in archive.infolist():
                    path = Path(archive.extract(info, site))
                    mode = info.external_attr >> 16 & 0o777
                    if mode and path.is_file():
                        path.chmod(mode | 0o200)
        except OSError as error:
            raise FetchError(f"cannot unpack {wheel}: {error}. Free some disk space.") from None
        target.parent.mkdir(exist_ok=True)
        site.rename(target)
    return target


def headers_version(include_dirs: list[Path]) -> str | None:
    """LLVM's version as the headers state it (23.1.4); None if LLVM's or MLIR's are not there."""

    def find(name: str) -> Path | None:
        return next((d / name for d in include_dirs if (d / name).is_file()), None)

    config = find("llvm/Config/llvm-config.h")
    if not config or not find("mlir/IR/Operation.h") or not find("llvm/ADT/StringRef.h"):
        return None
    stated = re.search(r'#define LLVM_VERSION_STRING "([^"]*)"', config.read_text())
    return stated[1] if stated else None


def _in_series(version: str) -> bool:
    return version.startswith(LLVM_LOCK["series"] + ".")


def llvm_include_dirs() -> list[Path]:
    """The include directories of LLVM and MLIR.

    LLVM_SYSPATH's, else the installed Debian ones, else fetched ones. Raises FetchError if
    LLVM_SYSPATH has no headers or the fetched ones are not of the locked series.
    """
    if named := os.environ.get("LLVM_SYSPATH"):
        dirs = [Path(named).absolute() / "include"]
        version = headers_version(dirs)
        if not version:
            raise FetchError(
                f"LLVM_SYSPATH={named} has no include/mlir and include/llvm. It must name an "
                f"install of LLVM and MLIR of commit {LLVM_LOCK['libtriton_commit']}; or unset it "
                "to use Debian's headers."
            )
        say(f"LLVM {version} headers of LLVM_SYSPATH={named}")
        return dirs
    dirs = [INSTALLED_LLVM / "include"]
    if version := headers_version(dirs):
        if _in_series(version):
            say(f"LLVM {version} headers of {INSTALLED_LLVM}")
            return dirs
        say(f"{INSTALLED_LLVM} has LLVM {version}, not {LLVM_LOCK['series']}: not used")
    root = fetch_headers()
    return [root / INSTALLED_LLVM.relative_to("/") / "include"]


def fetch_headers() -> Path:
    """The directory in which Debian's LLVM and MLIR headers are unpacked as under /.

    Fetched unless the cache has it. Raises FetchError if they cannot be had, are of another
    series, or differ from the locked file of the same version.
    """
    series, packages = LLVM_LOCK["series"], LLVM_LOCK["packages"]
    target = cache_dir() / f"llvm-headers-{series}"
    if target.exists():
        return target
    with _workspace() as work:
        if target.exists():
            return target
        debs = _download_debs(packages, work)
        root = work / "root"
        root.mkdir()
        for package, deb in debs.items():
            say(f"unpacking the headers of {package}")
            _unpack_headers(deb, root)
        include = root / INSTALLED_LLVM.relative_to("/") / "include"
        version = headers_version([include])
        if not version or not _in_series(version):
            raise FetchError(
                f"the fetched {' and '.join(packages)} hold headers of LLVM {version}, "
                f"not {series}. {WAY_OUT}"
            )
        root.rename(target)
    return target


def _debian_mirror() -> str:
    """The archive that this machine's own apt sources use for Debian."""
    what = "cannot fetch the LLVM headers"
    listed = _run(["apt-get", "indextargets", "--format", "$(REPO_URI)"], what, WAY_OUT)
    for uri in listed.splitlines():
        if re.search(r"/debian(\.list)?/?$", uri):
            return uri
    raise FetchError(f"{what}: apt's sources on this machine name no Debian archive. {WAY_OUT}")


def _download_debs(packages: list[str], work: Path) -> dict[str, Path]:
    """Downloads with apt and checks the versions against the lock; returns the files by package.

    apt's configuration, lists and cache are all under `work`. It verifies Debian's signature and
    the hashes that this covers.
    """
    series, tested = LLVM_LOCK["series"], LLVM_LOCK["tested"]
    what = f"cannot fetch {' and '.join(packages)}"
    if not shutil.which("dpkg-deb"):
        raise FetchError(f"{what}: there is no dpkg-deb on this machine. {WAY_OUT}")
    mirror = _debian_mirror()
    keyring = next((k for k in KEYRINGS if k.exists()), None)
    if not keyring:
        raise FetchError(
            f"{what}: there is no {KEYRINGS[0]} (package debian-archive-keyring). {WAY_OUT}"
        )
    for folder in ("lists/partial", "cache/archives/partial", "debs"):
        (work / folder).mkdir(parents=True)
    (work / "status").touch()
    (work / "sources.list").write_text(
        f"deb [signed-by={keyring}] {mirror} {LLVM_LOCK['suite']} main\n"
    )
    (work / "apt.conf").write_text(
        f"""Dir::Etc::sourcelist "{work}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State::lists "{work}/lists";
Dir::State::status "{work}/status";
Dir::Cache "{work}/cache";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Retries "3";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
"""
    )
    apt = ["apt-get", "-q", "-c", str(work / "apt.conf")]
    advice = f"Check the network. {WAY_OUT}"
    say(f"reading the package list of Debian {LLVM_LOCK['suite']} (10 MiB) with a private apt")
    # Without this a failed download is a warning and the old list is used.
    _run([*apt, "-o", "APT::Update::Error-Mode=any", "update"], what, advice)
    say(f"downloading {' and '.join(packages)} (85 MiB)")
    _run([*apt, "download", *packages], what, advice, cwd=work / "debs")
    debs = {}
    for package in packages:
        (debs[package],) = (work / "debs").glob(f"{package}_*.deb")
        field = ["dpkg-deb", "--field", str(debs[package])]
        version = _run([*field, "Version"], what, WAY_OUT).strip()
        architecture = _run([*field, "Architecture"], what, WAY_OUT).strip()
        upstream = version.split(":")[-1]
        if not _in_series(upstream):
            raise FetchError(
                f"Debian {LLVM_LOCK['suite']} now has {package} {version}; triton "
                f"{WHEEL_LOCK['version']} needs LLVM series {series}. {WAY_OUT}"
            )
        locked = tested["sha256"].get(f"{package}_{architecture}")
        if version != tested["version"]:
            say(f"{package} {version} is not the tested {tested['version']}: the ABI gate decides")
        elif locked and sha256(debs[package]) != locked:
            raise FetchError(
                f"{package} {version} has not the sha256 locked in "
                f"third_party/llvm-headers.lock.json. {WAY_OUT}"
            )
    return debs


def _unpack_headers(deb: Path, root: Path) -> None:
    """Unpacks the include directories only: the packages also hold 700 MiB of static libraries."""
    command = ["dpkg-deb", "--fsys-tarfile", str(deb)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as source:
        with tarfile.open(fileobj=source.stdout, mode="r|") as archive:
            # Python 3.11.2, Debian 12's, has no such filter.
            archive.extraction_filter = getattr(tarfile, "tar_filter", None)
            for member in archive:
                if "include" in Path(member.name).parts:
                    archive.extract(member, root)
        source.stdout.read()
    if source.returncode:
        raise FetchError(f"dpkg-deb cannot unpack {deb.name}. {WAY_OUT}")


def fetch_source() -> Path:
    """The path of the verified archive of Triton's sources, downloaded with pip unless the cache
    has it.

    Raises FetchError if it cannot be had or is not the locked file.
    """
    lock = SOURCE_LOCK
    target = cache_dir() / "source" / lock["filename"]
    if target.exists() and sha256(target) == lock["sha256"]:
        return target
    with _workspace() as work:
        if target.exists():
            if sha256(target) == lock["sha256"]:  # by another process while this one waited
                return target
            say(f"{target} is damaged (wrong sha256), removed")
            target.unlink()
        say(f"downloading {lock['filename']} ({lock['size'] >> 20} MiB) with pip")
        # pip asks every source archive for its metadata, which would run the archive's setup.py:
        # answered by third_party/sdist_metadata instead. The hash is checked before.
        wanted = f"{lock['name']}=={lock['version']}"
        (work / "requirements.txt").write_text(f"{wanted} --hash=sha256:{lock['sha256']}\n")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", "."]
        command += ["--disable-pip-version-check", "--no-binary", ":all:", "--no-build-isolation"]
        command += ["--require-hashes", "-r", "requirements.txt"]
        advice = (
            "Check the network and pip's index, set TRITON_SOURCE_DIR to a checkout of the same "
            f"sources, or put {lock['filename']} into {target.parent} yourself."
        )
        environment = os.environ | {"PYTHONPATH": str(REPO / "third_party/sdist_metadata")}
        what = f"cannot download {lock['filename']}"
        _run(command, what, advice, cwd=work, environment=environment)
        got = work / lock["filename"]
        if not got.exists() or sha256(got) != lock["sha256"]:
            raise FetchError(f"{what}: pip left no file with the locked sha256. {advice}")
        target.parent.mkdir(exist_ok=True)
        got.rename(target)
    return target


def is_used_source(path: str) -> bool:
    """Does the source base use this file, a path relative to the root of Triton's sources?

    The longest entry of the lock that it is or is below decides.
    """

    def longest(entries: dict[str, str]) -> int:
        found = [e for e in entries if path == e or path.startswith(e + "/")]
        return max(map(len, found), default=0)

    if "__pycache__" in path.split("/"):  # what running a checkout leaves
        return False
    return longest(SOURCE_LOCK["used"]) > longest(SOURCE_LOCK["left_out"])


def used_files(source: Path) -> dict[str, Path]:
    """{path relative to `source`: file} of the files that the source base uses."""
    files = ((p.relative_to(source).as_posix(), p) for p in source.rglob("*") if p.is_file())
    return {path: file for path, file in sorted(files) if is_used_source(path)}


def used_digests(source: Path) -> dict[str, str]:
    """A digest of the names and bytes of the used files below each entry of the lock's `used`."""
    files = used_files(source)
    digests = {}
    for entry in SOURCE_LOCK["used"]:
        lines = [
            f"{sha256(file)}  {path}\n"
            for path, file in files.items()
            if path == entry or path.startswith(entry + "/")
        ]
        digests[entry] = hashlib.sha256("".join(lines).encode()).hexdigest()
    return digests


def _differing(source: Path) -> str:
    """Which entries of the lock's `used` are not what is locked; empty if all are."""
    digests, locked_ones = used_digests(source), SOURCE_LOCK["used_sha256"]
    return ", ".join(entry for entry in digests if digests[entry] != locked_ones[entry])


def source_dir() -> Path:
    """The directory with Triton's sources: TRITON_SOURCE_DIR, else the locked ones, unpacked.

    Treat it as read-only. Raises FetchError if TRITON_SOURCE_DIR holds others, or like
    fetch_source.
    """
    lock = SOURCE_LOCK
    if named := os.environ.get("TRITON_SOURCE_DIR"):
        missing = [name for name in lock["used"] if not (Path(named) / name).exists()]
        if missing:
            raise FetchError(
                f"TRITON_SOURCE_DIR={named} holds no Triton sources: there is no {missing[0]}. "
                f"It must name the unpacked {lock['filename']} or a checkout of the same sources; "
                "or unset it."
            )
        if differing := _differing(Path(named)):
            raise FetchError(
                f"TRITON_SOURCE_DIR={named} does not hold the files of {lock['filename']}, for "
                f"which the patches were made: a file is changed, missing or too many in "
                f"{differing}. Restore it, or unset TRITON_SOURCE_DIR; changes of your own go into "
                "patches/ (docs/source-base.md)."
            )
        return Path(named).absolute()
    target = cache_dir() / "source" / f"{lock['version']}-{lock['sha256'][:8]}"
    if target.exists() and not _differing(target):
        return target
    archive_path = fetch_source()
    with _workspace() as work:
        if target.exists():
            if not (differing := _differing(target)):  # by another process while this one waited
                return target
            say(f"{target} is damaged ({differing}), removed")
            shutil.rmtree(target)
        say(f"unpacking {archive_path.name}")
        root = work / "root"
        root.mkdir()
        try:
            with tarfile.open(archive_path) as archive:
                archive.extraction_filter = getattr(tarfile, "data_filter", None)
                for member in archive:
                    _, _, path = member.name.partition("/")
                    if member.isfile() and is_used_source(path):
                        member.name = path
                        archive.extract(member, root)
        except OSError as error:
            raise FetchError(
                f"cannot unpack {archive_path}: {error}. Free some disk space."
            ) from None
        if differing := _differing(root):
            raise FetchError(
                f"{lock['filename']} is not what used_sha256 in "
                f"third_party/triton-source.lock.json says, in {differing}. If the lock was "
                f"changed: {json.dumps(used_digests(root))}"
            )
        root.rename(target)
    return target


def main(arguments: list[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="fetch.py", description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["wheel", "site", "headers", "source"])
    parser.add_argument("--python-tag", help="cp311, cp314t, ...; default: the running Python's")
    parser.add_argument("--machine", help="x86_64 or aarch64; default: this machine")
    options = parser.parse_args(arguments)
    try:
        if options.what == "headers":
            print(*llvm_include_dirs(), sep="\n")
        elif options.what == "source":
            print(source_dir())
        else:
            get = {"wheel": fetch_wheel, "site": unpack_wheel}[options.what]
            print(get(options.python_tag, options.machine))
    except (FetchError, OSError) as error:
        print(f"fetch.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
