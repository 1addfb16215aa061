"""Triton's sources with our patches, in build/source/triton.

    python python/build_helpers/source_tree.py [--edit DIR | --refresh DIR]

brings them up to date and prints the directory.  --edit makes DIR a git repository with a commit
for each patch, named GROUP/NAME: why; amend them or add some, and --refresh rewrites patches/ from
these commits.

patches/source.series lists the patches in the order in which they apply.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "third_party"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from fetch import FetchError, is_used_source, source_dir

from build_helpers import patching

REPO = Path(__file__).resolve().parents[2]
SERIES = REPO / "patches" / "source.series"
TREE = REPO / "build" / "source" / "triton"
# In a tree that is whole: the digest of what it was made from.
STAMP = ".complete"
_SUBJECT = re.compile(r"(?P<name>[a-z0-9-]+/[a-z0-9-]+): (?P<why>.+)", re.S)


def used_files(source: Path) -> dict[str, Path]:
    """Return {path relative to `source`: file} of the files that the source base uses."""
    files = ((p.relative_to(source).as_posix(), p) for p in source.rglob("*") if p.is_file())
    return {path: file for path, file in sorted(files) if is_used_source(path)}


def patched_files(source: Path) -> dict[str, bytes]:
    """Return {path: bytes} of the files that our patches change.  Raises patching.PatchError."""
    files = used_files(source)

    def read(path: str) -> bytes | None:
        return files[path].read_bytes() if path in files else None

    return patching.apply_series(SERIES, read)


def prepare(tree: Path = TREE) -> Path:
    """Bring `tree` up to date and return it.

    Files that stay the same keep their times, so that only what changed is compiled again.  Raises
    fetch.FetchError or patching.PatchError before anything is written; an interrupted run leaves a
    tree without STAMP, which CMake refuses.
    """
    source = source_dir()
    files, patched = used_files(source), patched_files(source)
    contents = {path: patched.get(path) or file.read_bytes() for path, file in files.items()}
    digest = hashlib.sha256()
    for path, data in contents.items():
        digest.update(f"{path}\0{hashlib.sha256(data).hexdigest()}\0".encode())
    tree.parent.mkdir(parents=True, exist_ok=True)
    with (tree.parent / f".{tree.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp = tree / STAMP
        if stamp.is_file() and stamp.read_text() == digest.hexdigest():
            return tree
        stamp.unlink(missing_ok=True)
        for old in [p for p in tree.rglob("*") if p.is_file()]:
            if old.relative_to(tree).as_posix() not in contents:
                old.unlink()
        for path, data in contents.items():
            target = tree / path
            if target.is_file() and target.read_bytes() == data:
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        stamp.write_text(digest.hexdigest())
    return tree


def _git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=patches", "-c", "user.email=patches@localhost"]
    return subprocess.run(
        ["git", "-C", str(folder), *identity, *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout


def edit(folder: Path) -> None:
    """Make `folder`, which must not exist, a git repository of the sources and our patches."""
    source = source_dir()
    files = used_files(source)
    for path, file in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, folder / path)
    _git(folder, "init", "-q")
    _git(folder, "add", "-Af", ".")
    _git(folder, "commit", "-qm", "upstream")
    for line in SERIES.read_text().splitlines():
        path = SERIES.parent / line
        for patch in patching.parse_series_patch(path):
            target = folder / patch.target
            target.write_bytes(patching.patched_text(patch, target.read_bytes().decode()).encode())
        name = line.removeprefix("source-").removesuffix(".patch")
        why = " ".join(path.read_text().partition("\n\n")[0].split())
        _git(folder, "commit", "-qam", f"{name}: {why}")


def _wrapped(text: str, width: int = 100) -> str:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(lines)


def refresh(folder: Path) -> None:
    """Rewrite patches/source-* and the series from the commits of `folder` after the first.

    Raises patching.PatchError if a commit is not named like a patch or two have one name.
    """
    series: dict[str, str] = {}
    commits = _git(folder, "log", "--reverse", "--format=%H").split()[1:]
    for commit in commits:
        subject = _git(folder, "log", "-1", "--format=%B", commit).strip()
        match = _SUBJECT.fullmatch(subject)
        if not match:
            raise patching.PatchError(
                f"commit {commit[:8]} is not named GROUP/NAME: why, but {subject}"
            )
        name = f"source-{match['name']}.patch"
        if name in series:
            raise patching.PatchError(f"two commits are named {match['name']}; squash them")
        text = _wrapped(match["why"]) + "\n\n"
        for path in _git(folder, "diff", "--name-only", f"{commit}^", commit).splitlines():
            old, new = (
                subprocess.run(
                    ["git", "-C", str(folder), "show", f"{rev}:{path}"], check=True, stdout=-1
                ).stdout.decode()
                for rev in (f"{commit}^", commit)
            )
            text += patching.make_patch("", path, old, new).lstrip()
        series[name] = text
    for old in SERIES.parent.glob("source-*/*.patch"):
        if old.relative_to(SERIES.parent).as_posix() not in series:
            old.unlink()
    for name, text in series.items():
        path = SERIES.parent / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    SERIES.write_text("".join(f"{name}\n" for name in series))


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--edit", type=Path, metavar="DIR")
    group.add_argument("--refresh", type=Path, metavar="DIR")
    options = parser.parse_args()
    try:
        if options.edit:
            edit(options.edit)
        elif options.refresh:
            refresh(options.refresh)
        else:
            print(prepare())
    except (FetchError, patching.PatchError) as error:
        print(f"source_tree.py: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
