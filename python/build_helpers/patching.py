"""Apply and write the zero-context diffs of patches/ against the Python files of the upstream
wheel.

A patch file is: a paragraph that says why, a line `Base-SHA256: <hex>` with the digest of the
unpatched file, and a unified diff without context lines of exactly that one file.  Nothing is
fuzzy: the file's digest and every removed line must agree, at the line number that the hunk names.
"""

from __future__ import annotations

import difflib
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_BASE = re.compile(r"^Base-SHA256: ([0-9a-f]{64})$")


class PatchError(Exception):
    """A patch that is malformed or does not apply; the text names patch, file and line."""


@dataclass(frozen=True)
class Hunk:
    """Replace `old` by `new`; `start` is the 0-based index of the first line concerned."""

    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True)
class Patch:
    """One parsed patch file; `target` is the file's path relative to the wheel's root."""

    name: str
    target: str
    base_sha256: str
    hunks: tuple[Hunk, ...]


def parse_patch(path: Path) -> Patch:
    """Parse one patch file.  Raises PatchError when it is not in the form described above."""
    return _parse(path.read_text(encoding="utf-8").splitlines(keepends=True), path)


def parse_series_patch(path: Path) -> list[Patch]:
    """Parse a patch file that may change several files: the paragraph, and then for each file the
    line with its digest and its diff.  Raises PatchError like parse_patch."""
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    starts = [i for i, line in enumerate(lines) if line.startswith("Base-SHA256:")]
    if not starts:
        return [_parse(lines, path)]
    sections = zip(starts, [*starts[1:], len(lines)], strict=True)
    return [
        _parse(lines[: starts[0]] + lines[begin:end], path, begin - starts[0])
        for begin, end in sections
    ]


def _parse(lines: list[str], path: Path, skipped: int = 0) -> Patch:
    """Parse a patch to one file; `skipped` lines of the file were left out of its middle."""

    def fail(index: int, what: str) -> PatchError:
        return PatchError(f"{path}:{index + 1 + skipped}: {what}")

    base = target = None
    index = 0
    while index < len(lines) and not lines[index].startswith("@@"):
        line = lines[index].rstrip("\n")
        if match := _BASE.match(line):
            base = match.group(1)
        elif line.startswith("+++ "):
            if target is not None:
                raise fail(index, "a second file; a patch changes exactly one")
            target = line.removeprefix("+++ ").split("\t")[0].removeprefix("b/")
        index += 1
    if not lines or not lines[0].strip() or lines[0].startswith(("---", "diff", "Base-SHA256")):
        raise fail(0, "the first line must be a sentence on why the patch exists")
    if base is None or target is None:
        raise fail(0, "needs a line 'Base-SHA256: <hex>' and a line '+++ b/<file>'")

    hunks = []
    while index < len(lines):
        match = _HUNK.match(lines[index])
        if not match:
            raise fail(index, "expected a hunk header '@@ -line,count +line,count @@'")
        start, old_count, _, new_count = (1 if g is None else int(g) for g in match.groups())
        header, index = index, index + 1
        old: list[str] = []
        new: list[str] = []
        while index < len(lines) and not lines[index].startswith("@@"):
            kind, text = lines[index][0], lines[index][1:]
            if kind not in "+-":
                raise fail(
                    index, f"a hunk of a zero-context diff has + and - lines only, not {kind!r}"
                )
            if kind == "-" and new:
                raise fail(index, "a removed line after an added one")
            (old if kind == "-" else new).append(text)
            index += 1
        if (len(old), len(new)) != (old_count, new_count):
            raise fail(
                header, f"the hunk has {len(old)} old and {len(new)} new lines, not what it says"
            )
        # With no old lines, `start` names the line *after which* the new ones go.
        hunks.append(Hunk(start - 1 if old else start, tuple(old), tuple(new)))
    if not hunks:
        raise fail(0, "has no hunk")
    return Patch(path.name, target, base, tuple(hunks))


def patched_text(patch: Patch, text: str) -> str:
    """Return `text` with every hunk applied.  Raises PatchError naming the line that differs."""
    lines = text.splitlines(keepends=True)
    result: list[str] = []
    position = 0
    for hunk in patch.hunks:
        end = hunk.start + len(hunk.old)
        if hunk.start < position or end > len(lines):
            raise PatchError(
                f"patch {patch.name}: a hunk for line {hunk.start + 1} of {patch.target}, which is "
                f"out of order or beyond the file's {len(lines)} lines"
            )
        for offset, expected in enumerate(hunk.old):
            found = lines[hunk.start + offset]
            if found != expected:
                raise PatchError(
                    f"patch {patch.name} does not apply to {patch.target}, line "
                    f"{hunk.start + offset + 1}: expected {expected.rstrip()!r}, "
                    f"found {found.rstrip()!r}"
                )
        result += lines[position : hunk.start]
        result += hunk.new
        position = end
    digest = hashlib.sha256(text.encode()).hexdigest()
    if digest != patch.base_sha256:
        first = patch.hunks[0].start + 1
        raise PatchError(
            f"patch {patch.name} does not apply to {patch.target} (first hunk at line {first}): "
            f"the file has sha256 {digest}, the patch was made for {patch.base_sha256}"
        )
    return "".join(result + lines[position:])


def apply_all(patch_dir: Path, tree: Path) -> dict[str, bytes]:
    """Apply every *.patch of `patch_dir` to the files under `tree`, in memory.

    Returns {path relative to tree: patched bytes}; nothing is written, so a failing patch leaves
    nothing half-patched.  Raises PatchError, also when two patches change one file or a file is
    missing.
    """
    paths = sorted(patch_dir.glob("*.patch"))
    if not paths:
        raise PatchError(f"no *.patch in {patch_dir}")
    patched: dict[str, bytes] = {}
    for path in paths:
        patch = parse_patch(path)
        if patch.target in patched:
            raise PatchError(
                f"patch {patch.name} changes {patch.target}, which another patch changes too"
            )
        file = tree / patch.target
        if not file.is_file():
            raise PatchError(
                f"patch {patch.name} changes {patch.target}, which {tree} does not have"
            )
        patched[patch.target] = patched_text(patch, file.read_bytes().decode()).encode()
    return patched


def apply_series(series: Path, read: Callable[[str], bytes | None]) -> dict[str, bytes]:
    """Apply the patches that the file `series` lists, one path relative to it a line, in memory.

    read: returns the bytes of an unpatched file, None if there is none.  Returns {path: patched
    bytes}.  Raises PatchError, then nothing is patched.
    """
    patched: dict[str, bytes] = {}
    for line in series.read_text(encoding="utf-8").splitlines():
        if not (series.parent / line).is_file():
            raise PatchError(f"{series} lists {line}, which does not exist")
        for patch in parse_series_patch(series.parent / line):
            data = patched.get(patch.target)
            if data is None and (data := read(patch.target)) is None:
                raise PatchError(f"patch {line} changes {patch.target}, which does not exist")
            try:
                patched[patch.target] = patched_text(patch, data.decode()).encode()
            except PatchError as error:
                raise PatchError(
                    f"{error}. Patches apply on top of each other in the order of {series.name}, "
                    f"{line} is one of them: restore what was changed there, or make the change "
                    "with source_tree.py --edit and --refresh (docs/source-base.md)."
                ) from None
    return patched


def make_patch(why: str, target: str, old: str, new: str) -> str:
    """Return the text of a patch that turns `old` into `new`; `why` is its first paragraph."""
    base = hashlib.sha256(old.encode()).hexdigest()
    diff = difflib.unified_diff(
        old.splitlines(keepends=True),
        new.splitlines(keepends=True),
        f"a/{target}",
        f"b/{target}",
        n=0,
    )
    return f"{why.strip()}\n\nBase-SHA256: {base}\n" + "".join(diff)


def refresh(patch_dir: Path, old_tree: Path, new_tree: Path) -> list[Path]:
    """Rewrite every patch of `patch_dir` from the edited files under `new_tree`, keeping its first
    paragraph.  Returns the patch files that changed."""
    changed = []
    for path in sorted(patch_dir.glob("*.patch")):
        text = path.read_text(encoding="utf-8")
        target = parse_patch(path).target
        why = text.split("\nBase-SHA256:")[0]
        old, new = ((tree / target).read_text(encoding="utf-8") for tree in (old_tree, new_tree))
        if (fresh := make_patch(why, target, old, new)) != text:
            path.write_text(fresh, encoding="utf-8")
            changed.append(path)
    return changed
