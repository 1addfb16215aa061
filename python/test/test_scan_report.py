"""triton-scan-report: what it says of sound, broken and turned-off builds, and its exit status."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from triton.tools import scan_report, scan_selftest
from triton.tools.ptx_sim import run_kernel

REPORT = """
import sys
from triton.tools.scan_report import main
sys.exit(main(["--json", *sys.argv[1:], "--no-self-test"]))
"""


def report(done: subprocess.CompletedProcess) -> dict:
    assert done.stdout.startswith("{"), done.stdout + done.stderr
    return json.loads(done.stdout)


def run_module(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "triton.tools.scan_report", *arguments],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_a_sound_build():
    """The whole text, with the self-test in the simulator."""
    done = run_module(TRITON_INTERPRET="0")
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert lines[-1] == "no problem found"
    cases = [line for line in lines if line.endswith(": right")]
    assert len(cases) == 2 * len(scan_selftest.CASES)
    assert sum(" reverse:" in line for line in cases) == len(scan_selftest.CASES)
    for wanted in ("  available                  True", "  self_test                  passed"):
        assert wanted in lines
    assert any(line.startswith("  TRITON_INTERPRET ") for line in lines)


def test_off_is_a_note_and_not_a_problem():
    done = run_module("--no-self-test", "--json", TRITON_NATIVE_SCAN="0")
    assert done.returncode == 0
    result = report(done)
    assert result["extension"]["available"] is True
    assert result["extension"]["scans are lowered by"] == "upstream's code"
    assert result["settings"]["TRITON_NATIVE_SCAN"] == "0"
    (note,) = result["notes"]
    assert "turned off (TRITON_NATIVE_SCAN" in note
    assert "self-test" not in result


def test_the_interpreter_is_noted():
    result = report(run_module("--no-self-test", "--json", TRITON_INTERPRET="1"))
    assert any("TRITON_INTERPRET is set" in note for note in result["notes"])


def test_secrets_of_the_environment_are_not_printed():
    done = run_module("--no-self-test", TRITON_SECRET="s3cret", AWS_KEY="s3cret")
    assert "s3cret" not in done.stdout


def break_extension(tree: Path) -> str:
    (tree / "triton/_C/libtriton_scan.so").unlink()
    return "native lowering is not available, .*libtriton_scan.so does not exist. Reinstall"


def damage_extension(tree: Path) -> str:
    path = tree / "triton/_C/libtriton_scan.so"
    path.write_bytes(path.read_bytes()[:5000])
    return "native lowering is not available, .*is damaged"


def lose_record(tree: Path) -> str:
    (tree / "triton/_C/libtriton_scan.json").unlink()
    return "no record of the ABI gate in .*libtriton_scan.json"


def garble_record(tree: Path) -> str:
    (tree / "triton/_C/libtriton_scan.json").write_text('{"gate": 3}')
    return "no record of the ABI gate in .*KeyError"


def exchange_libtriton_record(tree: Path) -> str:
    path = tree / "triton/_C/libtriton_scan.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"libtriton_sha256": "0" * 64}))
    return "the extension was checked against another libtriton.so"


@pytest.mark.parametrize(
    "spoil",
    [break_extension, damage_extension, lose_record, garble_record, exchange_libtriton_record],
)
def test_what_is_wrong_is_said(run_python, make_overlay, extension, spoil):
    tree = make_overlay(extension)
    pattern = spoil(tree)
    done = run_python(REPORT, tree)
    assert done.returncode == 1, done.stderr
    problems = report(done)["problems"]
    assert any(re.search(pattern, problem) for problem in problems), problems


def test_a_missing_extension_keeps_the_self_test_from_running(monkeypatch):
    state = scan_report.native_scan.status()
    broken = type(state)(False, False, state.path, state.build, "it is broken")
    monkeypatch.setattr(scan_report.native_scan, "status", lambda: broken)
    result = scan_report.collect()
    assert result["self-test"] == {"device": None, "cases": [], "problem": "not run: it is broken"}
    (problem,) = result["problems"]
    assert "it is broken" in problem
    assert "not run: it is broken" in scan_report.text(result)


def fake_self_test(monkeypatch, code: str) -> dict:
    """Run collect() with another program as the self-test."""
    real = subprocess.run

    def run(command, **options):
        if command[-1] == "triton.tools.scan_selftest":
            command = [sys.executable, "-c", code]
        return real(command, **options)

    monkeypatch.setattr(scan_report.subprocess, "run", run)
    return scan_report.collect()


WRONG = """
print('{"device": "x"}')
print('{"case": "sum", "dtype": "int32", "shape": [1, 2], "axis": 1, "reverse": true, '
      '"num_warps": 1, "result": "1 of 2 values wrong, at 0 3 and not 4"}')
"""


def test_a_missing_ptxas_is_named(monkeypatch):
    """The source base's package has none; every case fails for that one reason."""
    words = "Cannot find ptxas, which this build has not: set TRITON_PTXAS_PATH"

    class Nvidia:
        @property
        def ptxas(self):
            raise RuntimeError(words)

    monkeypatch.setattr(scan_report.triton.knobs, "nvidia", Nvidia())
    case = WRONG.replace("1 of 2 values wrong, at 0 3 and not 4", f"RuntimeError: {words}")
    result = fake_self_test(monkeypatch, case + case.split("\n", 2)[2])
    assert result["versions"]["ptxas"] == words
    assert result["problems"] == [
        f"the self-test failed: 2 of 2 cases wrong: RuntimeError: {words}."
    ]


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (WRONG, "the self-test failed: 1 of 1 cases wrong."),
        ("import os; os.abort()", "the self-test failed: the process was ended by signal 6."),
        ("raise SystemExit('no NumPy')", "the self-test failed: no NumPy."),
    ],
)
def test_a_failing_self_test_is_a_problem(monkeypatch, code, problem):
    result = fake_self_test(monkeypatch, code)
    assert result["problems"] == [problem]
    assert f"problem: {problem}" in scan_report.text(result)


class Altered:
    """A device that runs the cases in the simulator and alters one value."""

    def __init__(self, change: int) -> None:
        self.change, self.simulator = change, scan_selftest._Simulator()

    def run(self, case, inputs, reverse):
        values, lowering = self.simulator.run(case, inputs, reverse)
        values[5] += self.change
        return values, lowering


@pytest.mark.parametrize("case", scan_selftest.CASES, ids=lambda c: f"{c.title} {c.dtype}")
def test_cases_notice_wrong_values_and_the_other_direction(case):
    inputs = scan_selftest._inputs(case)
    assert scan_selftest._check(Altered(0), case, True) == "right"
    assert "1 of" in scan_selftest._check(Altered(1), case, True)
    if case.title != "argument order":  # that one gives the inputs themselves
        forward, reverse = (scan_selftest.expected(case, inputs, r) for r in (False, True))
        assert forward != reverse


def test_cases_notice_another_lowering():
    case = scan_selftest.CASES[1]
    with scan_report.triton.knobs.scan.scope():
        scan_report.triton.knobs.scan.native = False
        assert scan_selftest._check(Altered(0), case, True) == (
            "compiled with another lowering (off)"
        )


class FakeTensor:
    """What the self-test uses of a torch tensor, around a NumPy array."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def cpu(self) -> FakeTensor:
        return self

    def tolist(self) -> list:
        return self.array.tolist()


class FakeLauncher:
    """kernel[grid](...) as the JIT has it, run in the simulator."""

    def __init__(self, kernel) -> None:
        self.kernel = kernel

    def __getitem__(self, grid):
        def launch(*arguments, num_warps, **constexprs):
            arrays = [argument.array for argument in arguments]
            run_kernel(self.kernel, grid, arrays, constexprs, num_warps=num_warps)
            return SimpleNamespace(metadata=SimpleNamespace(native_scan="native-fake"))

        return launch


@pytest.fixture
def fake_torch(monkeypatch):
    """A torch that has a GPU."""
    cuda = SimpleNamespace(
        is_available=lambda: True,
        get_device_name=lambda: "NVIDIA H200",
        get_device_capability=lambda: (9, 0),
    )
    torch = SimpleNamespace(
        cuda=cuda,
        version=SimpleNamespace(cuda="13.0", hip=None),
        int32=np.int32,
        float32=np.float32,
        tensor=lambda values, dtype, device: FakeTensor(np.array(values, dtype)),
        zeros_like=lambda tensor: FakeTensor(np.zeros_like(tensor.array)),
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    return torch


def test_the_gpu_is_taken_where_torch_has_one(fake_torch):
    assert scan_report._gpu() == "NVIDIA H200, capability 9.0, CUDA 13.0"
    device = scan_selftest._device()
    assert device.name == "NVIDIA H200"
    for case in scan_selftest.CASES:
        if hasattr(fake_torch, case.dtype):
            launched = dataclasses.replace(case, kernel=FakeLauncher(case.kernel))
            assert scan_selftest._check(device, launched, True) == "right", case
    fake_torch.cuda.is_available = lambda: False
    assert scan_report._gpu() == "none that torch can use"
    assert isinstance(scan_selftest._device(), scan_selftest._Simulator)


def test_expected_is_the_fold():
    """By hand: a column of a 2-D array, and a recurrence from the right."""
    case = scan_selftest.Case("", None, scan_selftest._fold_sum, 1, "int32", (3, 2), 0, 1)
    assert scan_selftest.expected(case, [[1, 10, 2, 20, 3, 30]], True) == [6, 60, 5, 50, 3, 30]
    fold = scan_selftest._fold_recurrence
    case = scan_selftest.Case("", None, fold, 2, "int32", (1, 3), 1, 1)
    # h2 = 7, h1 = 3*7 + 5, h0 = 2*26 + 1
    assert scan_selftest.expected(case, [[2, 3, 9], [1, 5, 7]], True) == [53, 26, 7]
