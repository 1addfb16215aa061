"""Patches apply exactly or not at all, and say where they do not."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from build_helpers import content, patching

OLD = "a\nb\nc\nd\n"
NEW = "a\nB\nc\nnew\nd\n"


def write_patch(folder: Path, text: str, name: str = "x.patch") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    file = tmp_path / "site" / "triton" / "x.py"
    file.parent.mkdir(parents=True)
    file.write_text(OLD)
    return tmp_path / "site"


@pytest.fixture
def patch_text() -> str:
    return patching.make_patch("Why.", "triton/x.py", OLD, NEW)


def test_round_trip(tmp_path, tree, patch_text):
    write_patch(tmp_path, patch_text)
    assert patching.apply_all(tmp_path, tree) == {"triton/x.py": NEW.encode()}
    assert (tree / "triton/x.py").read_text() == OLD  # nothing is written


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", "first\n"),
        ("a\n", "top\na\n"),
        ("a\n", "a\nend\n"),
        ("a\nb\nc\n", "b\n"),
        ("a\nb\nc\n", "a\n1\n2\nc\n3\n"),
        ("a\na\na\na\n", "a\na\nx\na\na\n"),
    ],
)
def test_positions(tmp_path, old, new):
    path = write_patch(tmp_path, patching.make_patch("Why.", "f", old, new))
    assert patching.patched_text(patching.parse_patch(path), old) == new


def test_changed_old_line_names_patch_file_and_line(tmp_path, tree, patch_text):
    write_patch(tmp_path, patch_text)
    (tree / "triton/x.py").write_text("a\nother\nc\nd\n")
    with pytest.raises(
        patching.PatchError, match=r"x\.patch .*triton/x\.py, line 2: .*'b'.*'other'"
    ):
        patching.apply_all(tmp_path, tree)


def test_insertion_into_a_changed_file_is_refused(tmp_path, tree):
    write_patch(tmp_path, patching.make_patch("Why.", "triton/x.py", OLD, "a\nb\nnew\nc\nd\n"))
    (tree / "triton/x.py").write_text("other\nb\nc\nd\n")
    with pytest.raises(
        patching.PatchError, match=r"x\.patch .*triton/x\.py \(first hunk at line 3\)"
    ):
        patching.apply_all(tmp_path, tree)


def test_shorter_file_is_refused(tmp_path, tree, patch_text):
    write_patch(tmp_path, patch_text)
    (tree / "triton/x.py").write_text("a\n")
    with pytest.raises(patching.PatchError, match=r"line 2 of triton/x\.py.* 1 lines"):
        patching.apply_all(tmp_path, tree)


def test_missing_file_and_second_patch(tmp_path, tree, patch_text):
    write_patch(tmp_path, patch_text)
    write_patch(tmp_path, patch_text, "y.patch")
    with pytest.raises(patching.PatchError, match=r"y\.patch changes triton/x\.py, which another"):
        patching.apply_all(tmp_path, tree)
    (tmp_path / "y.patch").unlink()
    (tree / "triton/x.py").unlink()
    with pytest.raises(
        patching.PatchError, match=r"x\.patch changes triton/x\.py, which .* not have"
    ):
        patching.apply_all(tmp_path, tree)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda t: t.removeprefix("Why.\n"), "sentence on why"),
        (lambda t: t.replace("Base-SHA256", "Base"), "Base-SHA256"),
        (lambda t: t.replace("+++ b/triton/x.py\n", ""), r"\+\+\+ b/<file>"),
        (lambda t: t.replace("+B\n", ""), "1 old and 0 new lines"),
        (lambda t: t.replace("-b\n+B\n", "+B\n-b\n"), "removed line after"),
        (lambda t: t.replace("+B\n", "+B\n context\n"), "lines only"),
        (lambda t: t.split("@@")[0], "no hunk"),
    ],
)
def test_malformed_patch_names_its_line(tmp_path, patch_text, edit, message):
    path = write_patch(tmp_path, edit(patch_text))
    with pytest.raises(patching.PatchError, match=rf"x\.patch:\d+: .*{message}"):
        patching.parse_patch(path)


def test_refresh_keeps_the_reason(tmp_path, tree, patch_text):
    path = write_patch(tmp_path, patch_text)
    edited = tmp_path / "edited" / "triton" / "x.py"
    edited.parent.mkdir(parents=True)
    edited.write_text("a\nb\nc\nd\ne\n")
    assert patching.refresh(tmp_path, tree, tmp_path / "edited") == [path]
    assert path.read_text().startswith("Why.\n")
    assert patching.apply_all(tmp_path, tree)["triton/x.py"] == b"a\nb\nc\nd\ne\n"
    assert patching.refresh(tmp_path, tree, tmp_path / "edited") == []


def test_our_patches_apply_to_the_locked_wheel(upstream_site):
    patched = patching.apply_all(content.PATCH_DIR, upstream_site)
    assert "triton/knobs.py" in patched
    for path, data in patched.items():
        compile(data, path, "exec")
        old = (upstream_site / path).read_bytes()
        assert hashlib.sha256(old).digest() != hashlib.sha256(data).digest()


def test_our_patches_only_insert():
    for path in content.PATCH_DIR.glob("*.patch"):
        assert all(not hunk.old for hunk in patching.parse_patch(path).hunks), path
