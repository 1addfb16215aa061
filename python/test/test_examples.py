"""The examples, in the simulator: every one passes, at lengths around its tile, and can fail."""

from __future__ import annotations

import math
import subprocess
import sys

import linear_recurrence
import numpy as np
import pytest
import reverse_cumsum
import run_all
import runner
import selective_scan
from conftest import REPO


@pytest.mark.parametrize("name", run_all.EXAMPLES)
def test_example(name, capsys):
    """By default an example checks the lengths 0, 1, a tile, one more, and three tiles less one."""
    status, output = run_all.run(name, ["--simulator"])
    assert status == 0, output
    lines = output.splitlines()
    assert lines[1] == "running in the PTX simulator"
    assert lines[-1].startswith("passed: largest error ")
    checked = [int(line[6:].split(",")[0]) for line in lines if ", errors: " in line]
    tile = runner.SIMULATED_BLOCK
    assert checked == [0, 1, tile, tile + 1, 3 * tile - 1, 4 * tile + 17]


def test_run_all_lists_every_example():
    support = {"run_all", "runner"}
    files = {path.stem for path in (REPO / "examples").glob("*.py")} - support
    assert files == set(run_all.EXAMPLES)


def test_as_a_program():
    """An example is a file to run from anywhere; --lengths chooses what is checked."""
    command = [sys.executable, str(REPO / "examples" / "reverse_cumsum.py")]
    done = subprocess.run(
        [*command, "--simulator", "--lengths", "7"], capture_output=True, text=True, cwd="/"
    )
    assert done.returncode == 0, done.stderr
    assert "length     7, errors: y " in done.stdout
    assert done.stderr == ""


def run_main(got: list[float], capsys) -> tuple[int, str]:
    def check(place, length, block):
        yield "first", np.array(got), np.array([1.0, 2.0, 4.0])
        yield "second", np.ones(3), np.ones(3) * (1 + 1e-6)

    status = runner.main("", check, None, 1, argv=["--simulator", "--lengths", "3", "4"])
    return status, capsys.readouterr().out.splitlines()[-1]


def test_a_wrong_value_fails(capsys):
    passed = "passed: largest error 1.0e-06 (second, length 3), allowed 1e-05"
    assert run_main([1, 2, 4], capsys) == (0, passed)
    failed = "FAILED: largest error 5.0e-01 (first, length 3), allowed 1e-05"
    assert run_main([1, 2, 2], capsys) == (1, failed)
    # A NaN is not forgotten over the numbers that follow.
    failed = "FAILED: largest error inf (first, length 3), allowed 1e-05"
    assert run_main([1, math.nan, 4], capsys) == (1, failed)


@pytest.mark.parametrize(
    ("got", "expected", "error"),
    [
        ([1.5, 1], [1, 1], 0.5),
        ([7, 1], [7, 0], 1 / math.sqrt(49 / 2)),  # 0 is measured against the root mean square
        ([0.25], [0], 0.25),
        ([-math.inf, 1], [-math.inf, 1], 0),
        ([0, 1], [-math.inf, 1], math.inf),
        ([math.inf, 1], [1, 1], math.inf),
        ([math.nan, 1], [math.nan, 1], math.inf),
        ([1, 1, 1], [1, 1], math.inf),
        ([], [], 0),
    ],
)
def test_error(got, expected, error):
    assert math.isclose(runner.error(np.array(got), np.array(expected)), error)


def test_gradients_of_the_reference():
    """They are right to float64's last digits, and None and integers have none."""
    place = runner.Place(simulator=True)
    x, n = np.array([[0.5, -2.0], [3.0, 0.25]]), np.array([1, 2])

    def power(xp, x, y, n, absent):
        return xp.exp(x * y), (x * x * n).sum(-1)

    cotangents = [np.array([[1.0, 2.0], [-1.0, 4.0]]), np.array([10.0, 100.0])]
    results, (dx, dy) = place.reference_gradients(power, [x, -x, n, None], cotangents)
    np.testing.assert_allclose(results[0], np.exp(-x * x), rtol=1e-15)
    slope = cotangents[0] * np.exp(-x * x)
    np.testing.assert_allclose(dy, slope * x, rtol=1e-14)
    np.testing.assert_allclose(dx, -slope * x + 2 * x * n * cotangents[1][:, None], rtol=1e-14)


@pytest.mark.parametrize(
    "dtype",
    ["float16", "float32", *(["bfloat16"] if runner.torch else [])],  # numpy has none
)
def test_dtypes(dtype):
    """Half precision is summed in fp32 and rounded once."""
    exact = np.full((2, 130), 1 + 2.0**-7)
    exact[:, -1] = 300
    x = runner.Place(simulator=True).put(exact)
    expected = runner.Place(simulator=True).put(np.cumsum(exact[:, ::-1], -1)[:, ::-1].copy())
    if runner.torch:
        x, expected = x.to(getattr(runner.torch, dtype)), expected.to(getattr(runner.torch, dtype))
    else:
        x, expected = x.astype(dtype), expected.astype(dtype)
    got = reverse_cumsum.Cumsum.apply(x, True, 64)
    assert got.dtype == expected.dtype
    assert bool((got == expected).all())


def test_selective_scan_in_half_precision():
    """fp16 results and gradients are those of the rounded inputs, computed in fp32."""
    place = runner.Place(simulator=True)
    *arrays, dy, dlast = selective_scan.inputs(1, 2, 4, 70)
    half = {0, 1, 3, 4, 7}  # u, delta, B, C, z
    arrays = [x.astype(np.float16) if k in half else x for k, x in enumerate(arrays)]
    dy = dy.astype(np.float16)
    compared = list(selective_scan.compare(place, arrays, (dy, dlast), True, (64, 2), ""))
    assert {name for name, got, _ in compared if got.dtype == np.float16} == {
        *("y", "du", "ddelta", "dB", "dC", "dz")
    }
    for name, got, expected in compared:
        assert runner.error(got, expected) < (1e-3 if got.dtype == np.float16 else 1e-5), name


def test_bad_arguments():
    recurrence = linear_recurrence.linear_recurrence
    a, b = np.ones((2, 5), np.float32), np.ones((2, 4), np.float32)
    with pytest.raises(ValueError, match=r"b has the shape \(2, 4\), expected \(2, 5\)"):
        recurrence(a, b)
    with pytest.raises(ValueError, match=r"h0 has the shape \(2, 5\), expected \(2,\)"):
        recurrence(a, a, a)
    with pytest.raises(TypeError, match="a is float64, expected float16 or bfloat16 or float32"):
        recurrence(a.astype(np.float64), a)
    u, states = np.ones((1, 2, 5), np.float32), np.ones((2, 3), np.float32)
    with pytest.raises(ValueError, match="A has 3 states a channel; the number must be a power"):
        selective_scan.selective_scan(u, u, states, u, u, states[:, 0])
