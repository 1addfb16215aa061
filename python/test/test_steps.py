"""What a failed build step says."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from build_helpers import steps


def prints(*lines, status):
    code = "\n".join([*(f"print({line!r})" for line in lines), f"raise SystemExit({status})"])
    return [sys.executable, "-c", code]


def test_the_first_error_is_named_where_another_job_prints_on(tmp_path):
    log = tmp_path / "log"
    lines = ["[1/2] one", "FAILED: one.o", "one.cpp:3: error: the cause", *["[2/2] two"] * 40]
    with pytest.raises(steps.BuildError) as raised:
        steps.run_step(prints(*lines, status=1), log, "build")
    words = str(raised.value).splitlines()
    assert words[:2] == ["FAILED: one.o", "one.cpp:3: error: the cause"]
    assert words[-1] == f"The whole log is in {log}."
    assert log.read_text().splitlines() == lines


def test_a_verdict_is_all_that_is_said(tmp_path):
    lines = ["[1/1] checking", "gate: two sizes differ", "FAILED: checked"]
    with pytest.raises(steps.BuildError) as raised:
        steps.run_step(prints(*lines, status=1), tmp_path / "log", "build", verdict="gate")
    assert str(raised.value) == "gate: two sizes differ"


def test_the_end_where_nothing_says_failed(tmp_path):
    with pytest.raises(steps.BuildError, match=r"^no space left\nThe whole log is in "):
        steps.run_step(prints("no space left", status=2), tmp_path / "log", "build")


def test_progress_is_shown_and_the_log_goes_on(tmp_path, capsys):
    log = tmp_path / "log"
    steps.run_step(prints("-- found it", "noise", status=0), log, "source")
    steps.run_step(prints("[1/1] done", status=0), log, "source")
    assert capsys.readouterr().err == "[source] -- found it\n[source] [1/1] done\n"
    assert log.read_text() == "-- found it\nnoise\n[1/1] done\n"


def test_a_missing_tool(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(steps.BuildError, match=r"there is no no-such-tool: .* pip install no-such"):
        steps.find_tool("no-such-tool")
