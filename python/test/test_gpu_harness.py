"""The parts of gpu/ that need no GPU, with a torch that pretends to have one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from gpu import checks, device  # noqa: E402

TORCH = """
import numpy as np

class Tensor:
    def __init__(self, values):
        self.values = values
    def cuda(self):
        return Tensor(self.values.copy())
    def cpu(self):
        return self
    def numpy(self):
        return self.values.copy()
    def data_ptr(self):
        return self.values.__array_interface__["data"][0]

from_numpy = Tensor

class cuda:
    capability = {capability}
    is_available = staticmethod(lambda: {capability} is not None)
    get_device_name = staticmethod(lambda: "a GPU")
    get_device_capability = staticmethod(lambda: {capability})
"""


@pytest.fixture
def pretend(tmp_path, monkeypatch):
    """Return pretend(capability): put a torch in place whose GPU has it; None is no GPU."""

    def pretend(capability) -> Path:
        (tmp_path / "torch.py").write_text(TORCH.format(capability=capability))
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "torch", raising=False)
        return tmp_path

    yield pretend
    sys.modules.pop("torch", None)


@pytest.mark.parametrize(
    ("capability", "message"),
    [
        (None, "there is no CUDA GPU that PyTorch can use"),
        ((10, 0), "the checks are for compute capability 9.0, and this is a GPU"),
    ],
)
def test_one_line_without_a_fitting_gpu(pretend, monkeypatch, capability, message):
    monkeypatch.setenv("PYTHONPATH", str(pretend(capability)))
    command = [sys.executable, str(HERE / "gpu" / "run.py")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert f"test-gpu: error: {message}\n" in done.stderr
    assert done.stdout == ""


def test_one_line_without_pytorch(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("raise ImportError('not here')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    with pytest.raises(device.NoGpu, match=r"PyTorch is needed .*: not here"):
        device.require()


def test_stores_outside_of_a_buffer_are_found(pretend):
    pretend((9, 0))
    for at in (device.GUARD - 1, device.GUARD + 16):
        array = np.arange(4, dtype=np.int32)
        buffer = device._Buffer(array)
        buffer.memory.values[device.GUARD : device.GUARD + 4] = 0xFF
        buffer.fetch("in bounds")
        assert array.tolist() == [-1, 1, 2, 3]
        buffer.memory.values[at] ^= 1
        with pytest.raises(device.GuardError, match=f"byte {at - device.GUARD} of 16"):
            buffer.fetch("beside")


def test_stores_to_what_is_read_only_are_found(pretend):
    pretend((9, 0))
    array = np.arange(4, dtype=np.int32)
    array.flags.writeable = False
    buffer = device._Buffer(array)
    buffer.fetch("unchanged")
    buffer.memory.values[device.GUARD + 4] = 9
    with pytest.raises(device.GuardError, match="byte 4 of 16"):
        buffer.fetch("changed")
    assert array.tolist() == [0, 1, 2, 3]


def test_every_point_has_checks():
    checks.prepare()
    found = checks.collect()
    assert {check.point for check in found} == set(checks.POINTS)
    for point, patterns in checks.POINTS.items():
        for pattern in patterns:
            module = pattern.partition(".test_")[0].removesuffix(".*")
            assert any(c.point == point and c.module == module for c in found), pattern


LISTED = """
import sys
sys.path.insert(0, {folder!r})
from gpu import checks
checks.prepare()
print(*checks.collect(), sep="\\n")
"""


def test_the_checks_are_the_same_without_pytest(tmp_path):
    (tmp_path / "pytest.py").write_text("raise ImportError('not here')")
    texts = []
    for path in ("", str(tmp_path)):
        command = [sys.executable, "-c", LISTED.format(folder=str(HERE))]
        environment = {"PYTHONPATH": path, "PATH": "", "TRITON_DEFAULT_FP_FUSION": "1"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        texts.append(done.stdout)
    assert texts[0] == texts[1]
    assert texts[0].count("Check(") > 500
