"""Fuzzes whatever triton is imported until something fails, and prints what did, as JSON.

    python check.py SEED NUMBER_OF_PROGRAMS [--drop-barrier]

For AMD step by step, for NVIDIA in the simulator, for AMD by compiling them.  Nothing is shrunk.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from fuzz import lane_runs, runner
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
        # The simulator takes longer than steps, and the compiler may abort, so that comes last.
        for target in ("hip:gfx942", "hip:gfx950", "hip:gfx1100"):
            for reverse in (False, True):
                program = lane_runs.program(target, lane_runs.neighbouring(target), reverse)
                count(program)
                runner.run_steps(program)
            run_programs(seed, number // 4, count, runner.run_steps, shrink=False, target=target)
        run_programs(seed, number, count, shrink=False)
        for target in ("hip:gfx942", "hip:gfx1100"):
            run_programs(
                seed,
                number // 10,
                count,
                lambda program: compile_program(program, "amdgcn"),
                shrink=False,
                target=target,
            )
    except Exception as failure:
        error = type(failure).__name__
        text = re.sub(r"\s+", " ", str(failure))
    print(json.dumps({"scans": scans, "error": error, "text": text}))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), "--drop-barrier" in sys.argv)
