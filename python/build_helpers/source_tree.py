"""Triton's sources with our patches, in build/source/triton.

    python python/build_helpers/source_tree.py [--edit DIR | --refresh DIR]

brings them up to date and prints the directory.  --edit makes DIR a git repository with a commit
for each patch, named GROUP/NAME: why; amend them or add some, and --refresh rewrites patches/ from
these commits.

patches/source.series lists the patches in the order in which they apply.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "third_party"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from fetch import locked, source_dir, used_files

from build_helpers import patching, steps

REPO = Path(__file__).resolve().parents[2]
SERIES = REPO / "patches" / "source.series"
TREE = REPO / "build" / "source" / "triton"
# In a tree that is whole; CMake refuses one without it.
STAMP = ".complete"
_SUBJECT = re.compile(r"(?P<name>[a-z0-9-]+/[a-z0-9-]+): (?P<why>.+)", re.S)


def _contents() -> dict[str, bytes]:
    """Return {path: bytes} of the patched sources.  Raises fetch.FetchError or
    patching.PatchError."""
    files = {path: file.read_bytes() for path, file in used_files(source_dir()).items()}
    return files | patching.apply_series(SERIES, files.get)


def _stale(tree: Path, contents: dict[str, bytes]) -> tuple[list[Path], list[str]]:
    """Return the files of `tree` that are no sources, and the paths of the sources that are not
    there as they should be."""
    files = {p.relative_to(tree).as_posix(): p for p in tree.rglob("*") if p.is_file()}
    strays = [file for path, file in files.items() if path not in contents and path != STAMP]
    wrong = [p for p, data in contents.items() if p not in files or files[p].read_bytes() != data]
    return strays, wrong


@contextlib.contextmanager
def prepared(tree: Path = TREE) -> Iterator[Path]:
    """Bring `tree` up to date, hand it out and keep other processes from changing it meanwhile.

    Files that stay the same keep their times, so that only what changed is compiled again.  Raises
    fetch.FetchError or patching.PatchError before anything is written; an interrupted run leaves a
    tree without STAMP.
    """
    contents = _contents()
    tree.parent.mkdir(parents=True, exist_ok=True)
    lock, stamp = tree.parent / f".{tree.name}.lock", tree / STAMP
    while True:
        with locked(lock, shared=True):
            if stamp.is_file() and not any(_stale(tree, contents)):
                yield tree
                return
        with locked(lock):
            stamp.unlink(missing_ok=True)
            strays, wrong = _stale(tree, contents)
            for stray in strays:
                stray.unlink()
            for path in wrong:
                (tree / path).parent.mkdir(parents=True, exist_ok=True)
                (tree / path).write_bytes(contents[path])
            stamp.touch()


def prepare(tree: Path = TREE) -> Path:
    """Bring `tree` up to date and return it.  Raises like prepared."""
    with prepared(tree):
        return tree


def _git(folder: Path, *arguments: str) -> str:
    """Return what git prints.  Raises steps.BuildError if there is none, or it fails."""
    identity = ["-c", "user.name=patches", "-c", "user.email=patches@localhost"]
    # Neither hooks, signatures nor line ends of whoever runs it, nor the repository of a hook.
    environment = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *identity, *arguments], env=environment, capture_output=True
        )
    except FileNotFoundError:
        raise steps.BuildError("there is no git: install it.") from None
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip()
        raise steps.BuildError(f"git {arguments[0]} in {folder} failed: {words}")
    return done.stdout.decode()


def edit(folder: Path) -> None:
    """Make `folder` a git repository of the sources and our patches.

    Raises steps.BuildError if there is something already, or like prepared.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise steps.BuildError(f"{folder} is not empty: name a new directory.")
    source = source_dir()
    for path, file in used_files(source).items():
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

    Raises patching.PatchError if a commit is not named like a patch, two have one name, or one adds
    or removes a file; steps.BuildError if `folder` is not what edit made, or not committed.
    """
    if not (folder / ".git").exists():
        raise steps.BuildError(f"{folder} is no git repository: --edit makes one.")
    if left := _git(folder, "status", "--porcelain"):
        raise steps.BuildError(f"{folder} has changes that are in no commit:\n{left.rstrip()}")
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
        listed = _git(folder, "diff", "--no-renames", "--name-status", f"{commit}^", commit)
        for kind, path in (line.split("\t", 1) for line in listed.splitlines()):
            if kind != "M":
                raise patching.PatchError(
                    f"{match['name']} adds or removes {path}; a patch only changes files"
                )
            old, new = (_git(folder, "show", f"{rev}:{path}") for rev in (f"{commit}^", commit))
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
    except steps.FAILURES as error:
        print(f"source_tree.py: {steps.explain(error)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
