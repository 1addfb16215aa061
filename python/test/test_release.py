"""`make release`: its tags, its interpreters, what it refuses, and the version in one place."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
from build_helpers import content, release
from build_helpers.environment import Environment, EnvironmentProblem
from fetch import WHEEL_LOCK, running_python_tag

REPO = content.REPO


def test_the_version_is_written_in_one_place():
    """Elsewhere it is read from content.py; the newest entry of CHANGELOG.md is of this version."""
    assert re.fullmatch(r"\d+\.\d+\.\d+\+revscan\.[1-9]\d*", content.VERSION)
    assert content.VERSION.startswith(WHEEL_LOCK["version"])
    headings = re.findall(r"^## (\S+)", (REPO / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == content.VERSION
    assert len(set(headings)) == len(headings)


@pytest.mark.parametrize("name", ["README.md", "Makefile", "docs/install.md"])
def test_documents_name_the_present_version(name):
    found = set(re.findall(r"3\.9\.0\+revscan\.\d+", (REPO / name).read_text()))
    assert found == {content.VERSION}


def test_every_locked_wheel_has_a_tag():
    """abi3 wheels are built by the oldest Python that they are for."""
    assert release.locked_tags("x86_64") == ["cp311", "cp312", "cp314t"]
    assert release.locked_tags("aarch64") == release.locked_tags("x86_64")


def test_finds_the_running_python():
    found = release.find_python(running_python_tag())
    done = subprocess.run([found, "-c", release.WHICH_PYTHON], capture_output=True, text=True)
    assert done.stdout.strip() == running_python_tag()


def test_a_python_that_does_not_start_is_passed_over(tmp_path, monkeypatch):
    """Such as a shim of pyenv for a version that is not chosen."""
    shim = tmp_path / "python3.12"
    shim.write_text("#!/bin/sh\necho 'python3.12: command not found' >&2\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    assert release.find_python("cp312") is None
    real = tmp_path / "versions/3.12.9/bin/python3.12"
    real.parent.mkdir(parents=True)
    real.write_text("#!/bin/sh\necho cp312\n")
    real.chmod(0o755)
    assert release.find_python("cp312") == str(real)
    real.write_text("#!/bin/sh\necho cp312t\n")
    assert release.find_python("cp312") is None


def run_release(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    command = [sys.executable, release.__file__, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env={"HOME": "/nowhere"} | environment
    )


def test_missing_pythons_are_one_error(tmp_path):
    done = run_release(str(tmp_path / "dist"), "--tags", "cp311", "cp312", PATH=str(tmp_path))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "no python3.11, python3.12 with ensurepip" in line
    assert "make release TAGS='...'" in line
    assert not (tmp_path / "dist").exists()


def test_an_unknown_tag_is_one_error(tmp_path):
    done = run_release(str(tmp_path / "dist"), "--tags", "cp311", "cp310", PATH=str(tmp_path))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "no wheel for cp310 on" in line and "cp311, cp312, cp314t" in line


GOOD = {
    "problems": [],
    "versions": {"wheel": content.VERSION},
    "self-test": {"cases": [{"result": "right"}]},
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"problems": ["it is broken."]}, "scan_report: it is broken."),
        ({"versions": {"wheel": "3.9.0"}}, "the version installed is 3.9.0"),
        ({"self-test": {"cases": []}}, "the self-test ran no case"),
    ],
)
def test_a_wheel_with_a_bad_report_is_refused(change, words):
    release.check_report(GOOD)
    with pytest.raises(release.ReleaseError, match=re.escape(words)):
        release.check_report(GOOD | change)


def test_sums_are_sorted_and_right(tmp_path):
    made = []
    for name in ("b.whl", "a.whl"):
        path = tmp_path / name
        path.write_text(name)
        made.append(path)
    dist = tmp_path / "dist"
    sums = release.publish(made, dist)
    wanted = [f"{hashlib.sha256(n.encode()).hexdigest()}  {n}\n" for n in ("a.whl", "b.whl")]
    assert sums.read_text() == "".join(wanted)
    assert sorted(p.name for p in dist.iterdir()) == ["SHA256SUMS", "a.whl", "b.whl"]
    done = subprocess.run(["sha256sum", "--check", sums.name], cwd=dist, capture_output=True)
    assert done.returncode == 0


def test_differing_builds_are_refused(tmp_path, monkeypatch):
    """With --twice; both wheels are kept for comparison, and nothing is published."""
    monkeypatch.setattr(release, "WORK", tmp_path)
    monkeypatch.setattr(release, "fetch_wheel", lambda tag: tmp_path / "upstream.whl")

    def build(python: str, work: Path) -> Path:
        wheel = work / "x.whl"
        wheel.write_text(work.name)
        return wheel

    monkeypatch.setattr(release, "_build", build)
    with pytest.raises(release.ReleaseError, match=r"two builds of x\.whl differ"):
        release.make_one("cp311", sys.executable, True)
    assert sorted(p.parent.name for p in tmp_path.rglob("x.whl")) == ["first", "second"]


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> Environment:
    folder = tmp_path_factory.mktemp("environment")
    return Environment(folder / "venv", sys.executable, folder)


def test_environment_is_apart_from_the_users(environment):
    code = "import os; print(sorted(n for n in os.environ if n.startswith(('TRITON', 'PYTHON'))))"
    assert environment.run("-c", code).strip() == "['TRITON_CACHE_DIR']"


def test_environment_reports_a_failing_command(environment):
    with pytest.raises(EnvironmentProblem, match=r"(?s)`python -c .*no-such-thing"):
        environment.run("-c", "raise SystemExit('no-such-thing')")
