"""Run every example and print a line for each: its verdict and how long it took.

    python examples/run_all.py [--simulator] [-v]     -v prints all that the examples print

The exit status is 1 if one of them did not pass.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import sys
import time
import traceback

EXAMPLES = (
    "reverse_cumsum",
    "linear_recurrence",
    "selective_scan",
    "gae",
    "segmented_sums",
    "logcumsumexp",
)


def run(name: str, arguments: list[str]) -> tuple[int, str]:
    """Return an example's exit status and what it printed, a traceback included."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        try:
            status = importlib.import_module(name).main(arguments)
        except Exception as error:
            traceback.print_exc(file=output)
            print(f"FAILED: {type(error).__name__}: {str(error).splitlines()[0]}")
            status = 1
    return status, output.getvalue()


def main(argv: list[str] | None = None) -> int:
    """Run them; returns the exit status."""
    arguments = sys.argv[1:] if argv is None else argv
    verbose = "-v" in arguments
    arguments = [a for a in arguments if a != "-v"]
    failed = 0
    for name in EXAMPLES:
        start = time.perf_counter()
        status, output = run(name, arguments)
        failed += status
        if verbose or status:
            print(output)
        seconds = time.perf_counter() - start
        print(f"{name:18} {output.splitlines()[-1]}, {seconds:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
