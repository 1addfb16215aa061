"""What a failed build step says."""

import errno
import fcntl
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPO / "third_party"), str(REPO / "python")]

import fetch  # noqa: E402
from build_helpers import steps  # noqa: E402


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


def test_our_own_words_in_cmake_are_all_that_is_said(tmp_path):
    """Unwrapped, and without where in our CMake files they are."""
    lines = [
        "CMake Error at cmake/A.cmake:18 (message):",
        "  the compiler is",
        "  g++.  Use clang.",
    ]
    lines += ["Call Stack (most recent call first):", "  CMakeLists.txt:35 (include)", "", "-- Bad"]
    with pytest.raises(steps.BuildError) as raised:
        steps.run_step(prints(*lines, status=1), tmp_path / "log", "build")
    assert str(raised.value) == "the compiler is g++. Use clang."
    # CMake's own stay as they are: they quote what compilers printed.
    lines[0] = "CMake Error at /usr/share/cmake/Modules/A.cmake:18 (message):"
    with pytest.raises(steps.BuildError, match=r"  the compiler is\n  g\+\+\.  Use"):
        steps.run_step(prints(*lines, status=1), tmp_path / "log", "build")


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


def test_what_cmake_would_remember_is_forgotten_when_it_changes(tmp_path, monkeypatch, capsys):
    """Compilers, LLVM, flags: a directory that was made with others is made anew, else kept."""
    monkeypatch.setattr(steps, "run_step", lambda *_: (tmp_path / "CMakeCache.txt").touch())
    monkeypatch.setattr(steps, "find_tool", lambda name: name)
    settings = {"CMAKE_CXX_COMPILER": sys.executable}
    product, log, lock = tmp_path / "lib/a.o", tmp_path / "build.log", tmp_path / "lock"
    for file in (log, lock):
        file.touch()

    def is_kept():
        product.parent.mkdir(exist_ok=True)
        product.touch()
        steps.configure(tmp_path, settings, log, "build")
        assert log.exists() and lock.exists()
        return product.exists()

    assert is_kept()  # nothing was configured before
    assert is_kept()
    for name in ("LLVM_SYSPATH", "CFLAGS", "CXXFLAGS", "LDFLAGS"):
        monkeypatch.setenv(name, "other")
        assert not is_kept()
        assert "are others than before: all is built anew" in capsys.readouterr().err
        assert is_kept()
    settings["CMAKE_CXX_COMPILER"] = "/usr/bin/env"
    assert not is_kept()
    assert is_kept()
    (tmp_path / "told.json").write_text("{")  # interrupted
    assert not is_kept()
    monkeypatch.setattr(steps, "REPO", tmp_path)  # moved
    assert not is_kept()


def test_a_build_of_something_else_stays(tmp_path):
    (tmp_path / "CMakeCache.txt").write_text("")
    with pytest.raises(steps.BuildError, match="has a build of something else: name another"):
        steps.configure(tmp_path, {}, tmp_path / "log", "build")
    assert (tmp_path / "CMakeCache.txt").exists()


def test_an_older_build_of_ours_is_built_anew(tmp_path, monkeypatch):
    """One of before what was told to CMake was recorded."""
    (tmp_path / "CMakeCache.txt").write_text("CMAKE_PROJECT_NAME:STATIC=triton-scan\n")
    monkeypatch.setattr(steps, "run_step", lambda *_: None)
    steps.configure(tmp_path, {}, tmp_path / "log", "build")
    assert not (tmp_path / "CMakeCache.txt").exists()


def test_max_jobs(monkeypatch):
    monkeypatch.setenv("MAX_JOBS", "3")
    assert steps.default_jobs() == 3
    for wrong in ("0", "two", "-1"):
        monkeypatch.setenv("MAX_JOBS", wrong)
        with pytest.raises(steps.BuildError, match="MAX_JOBS must be a number of processes"):
            steps.default_jobs()
    monkeypatch.delenv("MAX_JOBS")
    assert steps.default_jobs() >= 1


def test_a_place_that_cannot_be_written_is_explained():
    words = steps.explain(OSError(errno.EROFS, "Read-only file system", "/src/build"))
    assert words.startswith("[Errno 30] Read-only file system: '/src/build'. Builds write into ")
    assert steps.explain(steps.BuildError("why")) == "why"


def test_compilers_of_a_killed_build_keep_its_lock(tmp_path):
    """The next build must not start a second Ninja beside the first."""
    compiler = (
        f"import pathlib, time; pathlib.Path({str(tmp_path / 'on')!r}).touch(); time.sleep(1)"
    )
    build = f"""
import sys
from pathlib import Path
sys.path[:0] = {[str(REPO / "third_party"), str(REPO / "python")]!r}
import fetch
from build_helpers import steps
with fetch.locked(Path({str(tmp_path / "lock")!r})) as lock:
    command = [sys.executable, "-c", {compiler!r}]
    steps.run_step(command, Path({str(tmp_path / "log")!r}), "build", keep=(lock,))
"""
    process = subprocess.Popen([sys.executable, "-c", build])
    while not (tmp_path / "on").exists():
        time.sleep(0.01)
    process.kill()
    process.wait()
    with (tmp_path / "lock").open("w") as file:
        with pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(file, fcntl.LOCK_EX)


def test_who_waits_for_another_build_is_told(tmp_path, capsys):
    order = []

    def other():
        with fetch.locked(tmp_path / "lock"):
            order.append("other")

    with fetch.locked(tmp_path / "lock"):
        thread = threading.Thread(target=other)
        thread.start()
        while "waiting for the process" not in capsys.readouterr().err:
            time.sleep(0.01)
        order.append("this")
    thread.join()
    assert order == ["this", "other"]
    with fetch.locked(tmp_path / "lock", shared=True), fetch.locked(tmp_path / "lock", shared=True):
        assert not capsys.readouterr().err
