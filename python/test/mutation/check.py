"""Fuzzes whatever triton is imported until something fails, and prints what did, as JSON.

    python check.py SEED NUMBER_OF_PROGRAMS [--drop-barrier]

Values are checked with 32 lanes; programs for 64 lanes are only compiled.  Nothing is shrunk.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fuzz import runner
from fuzz.campaign import run_programs


def main(seed: int, number: int, drop_barrier: bool) -> None:
    """Print {"scans", "error", "text"}; error is null if all went well."""
    compile_program = runner.compile_program

    def without_barrier(program, last):
        ptx, metadata = compile_program(program, last)
        return re.sub(r"\n\s*bar\.sync[^\n]*", "\n", ptx), metadata

    if drop_barrier:
        runner.compile_program = without_barrier
    scans = 0

    def count(program):
        nonlocal scans
        scans += len(program.scans)

    error = text = None
    try:
        run_programs(seed, number, before=count, shrink=False)
        run_programs(
            seed,
            number // 5,
            before=count,
            check=lambda program: compile_program(program, "amdgcn"),
            shrink=False,
            lanes=64,
        )
    except Exception as failure:
        error = type(failure).__name__
        text = re.sub(r"\s+", " ", str(failure))
    print(json.dumps({"scans": scans, "error": error, "text": text}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), "--drop-barrier" in sys.argv)
