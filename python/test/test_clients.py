"""benchmarks/clients: which configurations are tried, and when results count as wrong.

What needs torch or the clients themselves runs on a GPU, or by run.py --simulate.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import triton
import triton.language as tl
from triton.runtime.autotuner import Autotuner, Config

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(scope="module", autouse=True)
def modules():
    """The modules under test; their names are too common to stay on the path."""
    added = [str(BENCHMARKS), str(BENCHMARKS / "clients")]
    sys.path[:0] = added
    import table
    import tuning

    yield table, tuning
    for folder in added:
        sys.path.remove(folder)


@triton.jit
def _product(a, b):
    return a * b


@triton.jit
def _running_product(x):
    return tl.associative_scan(x, 0, _product)


@triton.jit
def scanning(x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(x + i, _running_product(tl.load(x + i)))


@triton.jit
def copying(x, cumsum_of_x, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(cumsum_of_x + i, tl.sum(tl.load(x + i)) * 0 + tl.load(x + i))


def test_a_scan_is_found_in_a_callee_and_not_in_names(modules):
    _, tuning = modules
    assert tuning.has_scan(scanning)
    assert not tuning.has_scan(copying)


@pytest.mark.parametrize(
    ("count", "limit", "chosen"),
    [(3, 4, [0, 1, 2]), (8, 2, [2, 6]), (9, 1, [4]), (4, 4, [0, 1, 2, 3])],
)
def test_configurations_are_spread_out(modules, count, limit, chosen):
    _, tuning = modules
    assert tuning.spread_out(list(range(count)), limit) == chosen


class Tuner(Autotuner):
    """Runs nothing; a configuration's time is its N."""

    def _bench(self, *args, config, **meta):
        self.tried.append(config.kwargs["N"])
        return [float(config.kwargs["N"])] * 3


class Launch:
    """Stands for the kernel that the autotuner launches."""

    def __init__(self, kernel):
        self.kernel, self.fn = kernel, kernel
        self.launched = []

    def run(self, *args, N, **options):
        self.launched.append(N)


def _tuner(kernel) -> tuple[Tuner, Launch]:
    configs = [Config({"N": 1 << k}) for k in range(8)]
    tuner = Tuner(kernel, kernel.arg_names, configs, ["x"], None, None)
    tuner.fn, tuner.tried = Launch(kernel), []
    return tuner, tuner.fn


def test_the_second_side_takes_what_the_first_chose(modules, monkeypatch):
    _, tuning = modules
    monkeypatch.setattr(Autotuner, "run", Autotuner.run)  # puts back what install() replaces
    monkeypatch.setattr(Autotuner, "prune_configs", Autotuner.prune_configs)

    with pytest.MonkeyPatch.context() as first_side:
        first_side.setattr(Autotuner, "run", Autotuner.run)
        first_side.setattr(Autotuner, "prune_configs", Autotuner.prune_configs)
        first = tuning.Tuning(scans=4, others=2)
        first.install()
        scan, scan_launch = _tuner(scanning)
        other, other_launch = _tuner(copying)
        scan.run(7)
        other.run(7, 0)
        assert scan.tried == [2, 8, 32, 128] and scan_launch.launched == [2]
        assert other.tried == [4, 64] and other_launch.launched == [4]
        assert len(first.chosen) == 2

    second = tuning.Tuning(scans=4, others=2)
    second.install()
    second.give(dict.fromkeys(first.chosen, str(Config({"N": 16}))))
    tuner, launch = _tuner(scanning)
    tuner.run(7)
    assert tuner.tried == [] and launch.launched == [16] and second.missing == []
    tuner.run(8)  # a key that the first side never met
    assert tuner.tried == [2, 8, 32, 128] and launch.launched == [16, 2]
    assert second.missing == ["scanning(x=8)"]


def _entry(native: float, upstream: float, bitwise: bool = False, **more) -> dict:
    sides = {
        side: {"ms": ms, "timer": "graph", "kernels": {"k": True, "other": False}}
        for side, ms in (("native", [1.0, 1.1, 0.9]), ("upstream", [2.0, 2.2, 1.8]))
    }
    return {
        "case": "client: op, group",
        "tolerance": 1e-3,
        "group": "group",
        "knob": True,
        "errors": {"native": {"y": native}, "upstream": {"y": upstream}},
        "bitwise": {"y": bitwise},
        "apart": {"y": 3e-5},
        **sides,
        **more,
    }


@pytest.mark.parametrize(
    ("native", "upstream", "is_wrong"),
    [
        (1e-4, 1e-4, False),
        (1.2e-4, 1e-4, False),
        (1e-7, 1e-9, False),  # roundings
        (2e-4, 1e-4, True),  # clearly worse than upstream's
        (2e-3, 2e-3, True),  # neither is right
        (float("inf"), 1e-4, True),
        (float("inf"), float("inf"), True),
    ],
)
def test_wrong_results_are_noticed(modules, native, upstream, is_wrong):
    table, _ = modules
    entry = _entry(native, upstream)
    assert bool(table.wrong(entry)) == is_wrong == table.failed(entry)
    assert ("WRONG" in table.agreement(entry)) == is_wrong


def test_the_tables(modules):
    table, _ = modules
    entry = _entry(1e-4, 1e-4, bitwise=True)
    entry["native"]["microseconds"] = {"k": 10.0, "other": 30.0}
    entry["upstream"]["microseconds"] = {"k": 60.0, "other": 30.0}
    failed = {"case": "client: absent", "error": "ModuleNotFoundError: No module named 'absent'"}
    results = {
        "date": "2026-11-30T20:00:00+00:00",
        "commit": "abc",
        "packages": ["client-1.0"],
        "versions": {"native": {"gpu": "G", "torch": "T", "python": "P", "triton": "3"}},
        "cases": [entry, failed | {"knob": True, "group": "", "tolerance": 0}],
    }
    text = table.markdown(results)
    assert "client-1.0" in text and "commit abc" in text
    row = "| client: op, group | bitwise equal | 1.0e-04 / 1.0e-04 | 2.000 / 1.000 | 2.000 | 20.0% "
    assert row + "| 60 (67%) / 10 (25%) |" in text
    assert "| client: absent | not run: ModuleNotFoundError: No module named 'absent' |" in text
    assert "1 timed cases that use Triton: geometric mean 2.000" in text
    assert "| group | 2.000 / 1.000 |" in text
