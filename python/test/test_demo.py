"""The demo: its table, its references, and that it notices wrong values."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from types import SimpleNamespace

import demo
import numpy as np
import pytest
from kernels import EXAMPLES
from simulator import Simulator

ROW = re.compile(
    r"^(?P<kernel>.{20}) (?P<scan>forward|reverse) +(?P<warps>\d+)"
    r" +(?P<ours>\d+) / +(?P<theirs>\d+) .* (?P<values>right)$"
)


def run_demo(**environment: str) -> subprocess.CompletedProcess:
    command = [sys.executable, demo.__file__]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True)


def test_table():
    done = run_demo()
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [m for line in done.stdout.splitlines() if (m := ROW.match(line))]
    assert [row["kernel"].strip() for row in rows[::2]] == [e.title for e in EXAMPLES]
    for forward, reverse in zip(rows[::2], rows[1::2], strict=True):
        assert (forward["scan"], reverse["scan"]) == ("forward", "reverse")
        assert forward["ours"] == reverse["ours"]
        assert int(reverse["ours"]) < int(reverse["theirs"])


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda e: e.title)
@pytest.mark.parametrize("reverse", [False, True])
def test_wrong_values_are_noticed(example, reverse):
    """A device that writes right values passes; one wrong element does not."""
    inputs = example.inputs(np.random.default_rng(0))
    expected = example.expected(inputs, reverse)

    def check(change: float) -> str:
        def run(compiled, given, outputs):
            for output, values in zip(outputs, expected, strict=True):
                output[...] = values
            outputs[-1].flat[3] += change

        return demo.check_values(example, None, reverse, SimpleNamespace(run=run))

    assert check(0) == "right"
    assert check(8) == "WRONG at 3"


def test_the_simulator_runs_what_is_compiled():
    """The kernel of one direction is wrong in the other."""
    example, simulator = EXAMPLES[0], Simulator()
    compiled = demo.compile_example(example, True, True, simulator.capability)
    assert demo.check_values(example, compiled, True, simulator) == "right"
    assert demo.check_values(example, compiled, False, simulator).startswith("WRONG at ")


def test_directions_differ():
    """The first element of a forward scan and the last of a reverse one are the inputs' own."""
    for example in EXAMPLES[:3]:
        inputs = example.inputs(np.random.default_rng(0))
        forward, reverse = (example.expected(inputs, r)[-1] for r in (False, True))
        first, last = (np.take(inputs[-1], i, example.axis) for i in (0, -1))
        np.testing.assert_array_equal(np.take(forward, 0, example.axis), first)
        np.testing.assert_array_equal(np.take(reverse, -1, example.axis), last)
