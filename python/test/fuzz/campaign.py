"""Runs hypothesis over programs from a seed and counts the scans."""

from __future__ import annotations

from collections.abc import Callable

import hypothesis

from . import runner
from .drawing import draws_of
from .programs import Program, programs


def run_programs(
    seed: int,
    count: int,
    before: Callable[[Program], None] = lambda program: None,
    check: Callable[[Program], None] = runner.run,
    max_scans: int = 6,
    target: str = "cuda:90",
    shrink: bool = True,
    large_tensors: bool = True,
) -> int:
    """Check `count` random programs and return how many scans they had.

    before: called with each program before it is checked
    max_scans, target, large_tensors: of the programs, see programs()

    The first failure is shrunk and raised as the exception of the smallest program that fails,
    with the seed and the program's TTGIR as a note.
    """
    total = 0

    @hypothesis.seed(seed)
    @draws_of(count, shrink)
    @hypothesis.given(programs(max_scans, target, large_tensors))
    def check_one(program: Program) -> None:
        nonlocal total
        before(program)
        try:
            check(program)
        except Exception as error:
            error.add_note(f"seed {seed}, program:\n{program.describe()}")
            raise
        total += len(program.scans)

    check_one()
    return total
