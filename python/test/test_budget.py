"""No change may make a benchmark's scan cost more: what one block executes, against budget.json.

The simulator counts for one block of each row of benchmarks/suites.py, in both directions, as the
benchmark compiles it.  After a change for the better, or of the suites:
`.venv/bin/python python/test/test_budget.py` writes the file anew.
"""

from __future__ import annotations

import json
import os
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "benchmarks"))

import suites  # noqa: E402
from scan_matrix import Case, assembly, lowered  # noqa: E402
from triton.tools.ptx_sim import Scratch, launch  # noqa: E402

BUDGET = HERE / "budget.json"
UPDATE = "run .venv/bin/python python/test/test_budget.py and commit budget.json"
# More than any of the kernels uses.
SHARED_BYTES = 128 * 1024
CLASSES = {
    "shuffles": ("shuffle",),
    "barriers": ("barrier",),
    "shared loads": ("shared_load", "ldmatrix"),
    "shared stores": ("shared_store", "stmatrix"),
}
ROWS = [*suites.SCAN, *suites.MEMORY]
KERNELS = [(row, mode) for row in ROWS for mode in suites.DIRECTIONS]


def name(row: suites.Row, mode: str) -> str:
    return f"{suites.key(row)}, {mode}"


def conversions(ttgir: str, rounds: int) -> int:
    """Layout conversions that a block executes; the only loop runs `rounds` times."""
    inside = "".join(re.findall(r"(?s)scf\.for .*?scf\.yield", ttgir))
    total, looped = (text.count("ttg.convert_layout") for text in (ttgir, inside))
    return total + (rounds - 1) * looped


def measured(row: suites.Row, mode: str) -> dict[str, int]:
    """What one block executes, in warp instructions; the result is checked too."""
    constants = row.constexprs(mode)
    reverse = constants.pop("REVERSE")
    case = Case(row.kernel, ("fp32",) * (row.inputs + 1), tuple(constants.items()), row.num_warps)
    rng = np.random.default_rng(row.block)
    inputs = [rng.uniform(0.5, 0.7, row.block).astype(np.float32) for _ in range(row.inputs)]
    out = np.full(row.block, np.nan, np.float32)
    stats = launch(
        assembly(case, reverse),
        1,
        [*inputs, out, Scratch(0), Scratch(0)],
        num_warps=row.num_warps,
        shared_bytes=SHARED_BYTES,
    )
    assert np.isfinite(out).all()
    counts = {kind: sum(stats.executed[c] for c in names) for kind, names in CLASSES.items()}
    return counts | {"conversions": conversions(lowered(case, reverse), constants.get("R", 1))}


def differences(budget: dict[str, int], counts: dict[str, int], sign: int) -> dict[str, tuple]:
    """{kind: (budget, count)} where the count is above (sign 1) or below (-1) the budget."""
    return {k: (budget[k], n) for k, n in counts.items() if (n - budget[k]) * sign > 0}


@pytest.fixture(scope="module")
def budget() -> dict[str, dict[str, int]]:
    return json.loads(BUDGET.read_text())


def test_budget_covers_the_suites(budget):
    assert list(budget) == [name(*kernel) for kernel in KERNELS], UPDATE


@pytest.mark.parametrize(("row", "mode"), KERNELS, ids=[name(*kernel) for kernel in KERNELS])
def test_within_budget(budget, row, mode):
    allowed, counts = budget[name(row, mode)], measured(row, mode)
    assert differences(allowed, counts, 1) == {}, "(budget, executed)"
    if saved := differences(allowed, counts, -1):
        warnings.warn(f"{name(row, mode)} costs less, {saved}: {UPDATE}", stacklevel=1)


def test_counting_sees_the_lowering():
    # What the row must cost at least, and what upstream's lowering of it costs more.
    row = next(r for r in suites.SCAN if str(r) == "add N=4096, 8 warps")
    constants = row.constexprs("forward")
    del constants["REVERSE"]
    case = Case(row.kernel, ("fp32", "fp32"), tuple(constants.items()), row.num_warps)
    x = np.ones(row.block, np.float32)
    arguments = [x, np.empty_like(x), Scratch(0), Scratch(0)]
    upstream = launch(
        assembly(case, False, native=False),
        1,
        arguments,
        num_warps=row.num_warps,
        shared_bytes=SHARED_BYTES,
    ).executed
    ours = measured(row, "forward")
    # A thread has 16 elements in chunks of 4: upstream scans each chunk across the warp.
    assert upstream["shuffle"] >= 4 * 5 * row.num_warps * suites.ROUNDS
    # The steps between the lanes of one warp.
    assert 5 * suites.ROUNDS <= ours["shuffles"] < upstream["shuffle"]
    # Warps have to wait for each other once a round.
    assert ours["barriers"] >= row.num_warps * suites.ROUNDS
    assert row.num_warps * suites.ROUNDS <= ours["shared loads"] < upstream["shared_load"]
    assert ours["shared stores"] > 0


def test_conversions_in_the_loop_count_each_round():
    text = "ttg.convert_layout\nscf.for %i {\nttg.convert_layout\nscf.yield\n}\nttg.convert_layout"
    assert conversions(text, 64) == 66


def test_excess_and_savings():
    assert differences({"shuffles": 5, "barriers": 1}, {"shuffles": 6, "barriers": 0}, 1) == {
        "shuffles": (5, 6)
    }
    assert differences({"shuffles": 5, "barriers": 1}, {"shuffles": 6, "barriers": 0}, -1) == {
        "barriers": (1, 0)
    }


if __name__ == "__main__":
    text = json.dumps({name(*kernel): measured(*kernel) for kernel in KERNELS}, indent=1)
    # One line a kernel.
    text = re.sub(
        r"\{\n  (.*?)\n \}", lambda m: "{" + re.sub(r"\n +", " ", m[1]) + "}", text, flags=re.S
    )
    BUDGET.write_text(text + "\n")
