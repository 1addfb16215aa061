"""That `make mutants` still applies to lib/; it is too long to be run here."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutation.mutations import MUTATIONS, Mutation, fault

LIB = Path(__file__).resolve().parents[2] / "lib"


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_mutation_applies(mutation: Mutation) -> None:
    assert fault(mutation, (LIB / mutation.file).read_text()) is None
    assert mutation.new != mutation.old


def test_a_stale_mutation_is_told() -> None:
    text = fault(Mutation("carry", "A.cpp", "a + b", "a"), "a + b; a + b")
    assert text.startswith("'carry': lib/A.cpp has 2 times 'a + b', not once; ")


def test_every_mutation_was_caught() -> None:
    """README.md is what the last `make mutants` has written."""
    lines = (Path(__file__).parent / "mutation" / "README.md").read_text().splitlines()
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in lines if line[:2] == "| "}
    assert not {mutation.name for mutation in MUTATIONS} - set(rows)
    assert not [line for line in lines if "NOT CAUGHT" in line]
