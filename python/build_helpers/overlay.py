"""Assemble build/overlay/<tag>/, a directory from which the patched triton can be imported.

    python python/build_helpers/overlay.py             builds the extension and the overlay, prints
    its path python python/build_helpers/overlay.py --pth FILE  also writes FILE (a .pth) with that
    path

It has hard links to the large files of the unpacked upstream wheel and copies of everything else,
so that an edited Python file never reaches the cache.  build/overlay/<tag> is a symbolic link that
is replaced once a complete new tree stands beside it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "third_party"))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "python"))

from fetch import locked, running_python_tag, unpack_wheel

from build_helpers import content, extension, patching, steps

OVERLAYS = content.REPO / "build" / "overlay"


def _place(source: Path, target: Path) -> None:
    """Copy small text, link the rest; copies keep the file's mode."""
    if source.suffix not in (".py", ".pyi"):
        try:
            os.link(source, target)
            return
        except OSError:  # another file system, or one without hard links
            target.symlink_to(source)
            return
    shutil.copy2(source, target)


def _write_tree(
    site: Path, changed: dict[str, bytes], metadata: dict[str, bytes], tree: Path
) -> None:
    files = {p.relative_to(site).as_posix(): p for p in site.rglob("*") if p.is_file()}
    for path, source in files.items():
        renamed = path.replace(content.UPSTREAM_DIST_INFO, content.DIST_INFO, 1)
        # Without a RECORD pip will not try to uninstall the tree.
        if path in changed or "__pycache__" in path or path.endswith(".dist-info/RECORD"):
            continue
        if renamed.removeprefix(f"{content.DIST_INFO}/") in metadata:
            continue
        target = tree / renamed
        target.parent.mkdir(parents=True, exist_ok=True)
        _place(source, target)
    ours = changed | {f"{content.DIST_INFO}/{name}": data for name, data in metadata.items()}
    for path, data in ours.items():
        target = tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def publish(link: Path, digest: str, write: Callable[[Path], None]) -> Path:
    """Make `link` a symbolic link to a complete tree and return it; its older trees go.

    digest: of all that `write` puts into the directory that it is given.
    """
    root, name = link.parent, link.name
    root.mkdir(parents=True, exist_ok=True)
    tree, staging = root / f".{name}-{digest[:16]}", root / f".{name}-staging"
    with locked(root / f".{name}.lock"):
        if not tree.is_dir():
            shutil.rmtree(staging, ignore_errors=True)
            write(staging)
            staging.rename(tree)
        if not link.is_symlink() or link.readlink() != Path(tree.name):
            fresh = root / f".{name}-link"
            fresh.unlink(missing_ok=True)
            fresh.symlink_to(tree.name)
            fresh.replace(link)
        # Not those of a link whose name goes on after this one's.
        own = re.compile(rf"\.{re.escape(name)}-([0-9a-f]{{16}}|staging)")
        for old in root.iterdir():
            if old != tree and own.fullmatch(old.name):
                shutil.rmtree(old, ignore_errors=True)
    return link


def assemble(site: Path, built_extension: Path, name: str, root: Path = OVERLAYS) -> Path:
    """Bring `root/name` up to date and return it.

    site: the unpacked upstream wheel.  Raises patching.PatchError or content.ContentError before
    anything is written; an interrupted run leaves the previous overlay in place.
    """
    changed = content.changed_files(site, built_extension)
    metadata = content.changed_metadata(site)
    digest = hashlib.sha256(str(site.resolve()).encode())
    for path, data in sorted((changed | metadata).items()):
        digest.update(f"\0{path}\0{hashlib.sha256(data).hexdigest()}".encode())
    return publish(
        root / name, digest.hexdigest(), lambda tree: _write_tree(site, changed, metadata, tree)
    )


def build(jobs: int | None = None) -> Path:
    """Build the extension for the running Python, assemble its overlay and return the overlay's
    path.

    Raises FetchError, BuildError, PatchError or ContentError.
    """
    site = unpack_wheel()
    built = extension.build_extension(site, build_directory(site), jobs=jobs)
    return assemble(site, built, running_python_tag())


def build_directory(site: Path) -> Path:
    """Return where the extension for an unpacked wheel is built, for the wheel and the overlay."""
    return content.REPO / "build" / "extension" / site.name


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--pth", type=Path, help="write this .pth file, which makes Python import the overlay"
    )
    parser.add_argument(
        "--refresh-patches",
        action="store_true",
        help="first rewrite patches/ from files edited in the overlay",
    )
    options = parser.parse_args()
    start = time.monotonic()
    try:
        if options.refresh_patches:
            edited = OVERLAYS / running_python_tag()
            for path in patching.refresh(content.PATCH_DIR, unpack_wheel(), edited):
                print(f"[overlay] rewrote {path}", file=sys.stderr)
        overlay = build()
    except steps.FAILURES as error:
        print(f"overlay.py: {steps.explain(error)}", file=sys.stderr)
        return 1
    if options.pth:
        options.pth.write_text(f"{overlay}\n")
    print(f"[overlay] {overlay} ({time.monotonic() - start:.1f} s)", file=sys.stderr)
    print(overlay)
    return 0


if __name__ == "__main__":
    sys.exit(main())
