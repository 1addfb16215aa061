"""Fuzzed kernels in Python: chains, products, pipelines and Gluon's layouts."""

from __future__ import annotations

import secrets
import sys

import hypothesis
import pytest
from fuzz import kernels
from fuzz.kernels import STEPS, draws, run_kernels
from interpreter_worker import Interpreter


@pytest.mark.parametrize("seed", [2026, None])
def test_kernels(seed: int | None, capsys: pytest.CaptureFixture[str]) -> None:
    """Kernels in Python, a share of them interpreted, too."""
    if seed is None:
        seed = secrets.randbelow(1 << 31)
        with capsys.disabled():
            print(f" [fuzz kernels' seed {seed}]", end=" ", file=sys.stderr, flush=True)
    with Interpreter() as interpreter:
        assert run_kernels(seed, 60, interpreter) == 60


@pytest.mark.parametrize("shape", [(1,), (1, 1), (8, 1)])
def test_found_flips_of_one_element(shape: tuple) -> None:
    """Upstream's code, which the interpreter runs, reshaped a tensor of one element to a scalar."""
    values = {
        "dtype": "int32", "shape": shape, "steps": (("flip", -1, False), ("flip", 0, False)),
        "num_warps": 1, "num_ctas": 1, "interpreted": True, "seed": 0,
    }  # fmt: skip
    with Interpreter() as interpreter:
        kernels._check_chain(interpreter, **values)


def test_kernels_vary() -> None:
    """Chains of all steps, in clusters and interpreted; products of all types for both
    capabilities; 2 to 4 stages; Gluon's layouts."""
    seen = set()

    @hypothesis.seed(4)
    @hypothesis.settings(max_examples=300, deadline=None, database=None)
    @hypothesis.given(draws)
    def note(draw):
        seen.add(draw.family)
        values = dict(draw.values)
        for name in ("num_ctas", "interpreted", "capability", "what", "stages"):
            seen.add((name, values.get(name)))
        seen.update(("step", step) for step, _, _ in values.get("steps", ()))

    note()
    wanted = {"chain", "line", "pipeline", "product"} | {("step", step) for step in STEPS}
    wanted |= {("num_ctas", n) for n in (1, 2, 4, 8)} | {("stages", n) for n in (2, 3, 4)}
    wanted |= {("capability", n) for n in (80, 90)} | {("interpreted", b) for b in (False, True)}
    wanted |= {("what", what) for what in ("sum", "pair", "flip", "both")}
    assert not wanted - seen
