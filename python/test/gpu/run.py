"""Run the checks of this folder on the CUDA GPU: `python run.py`, or `make test-gpu`.

Prints a line for each failed check and a table, `point | checks | failed`.  The exit status is 1
if any check failed, and 2 if there is nothing to run on.  The data is random; --seed repeats a run.

Workers of their own compile and launch, so that a kernel that hangs or breaks the context ends its
worker and nothing else.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import queue
import secrets
import select
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
# Read when triton is imported.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

from gpu import checks, device  # noqa: E402

LIMIT = 90  # seconds for a check, its compilation included


def fresh_data(seed: int) -> None:
    """Make np.random.default_rng(k) depend on `seed`, too."""
    import numpy as np

    original = np.random.default_rng

    def default_rng(own=None):
        return original(own) if own is None else original([seed, own])

    np.random.default_rng = default_rng


def work(seed: int, simulate: bool) -> None:
    """Answer numbers of checks on stdin with [number, text, error or null] on stdout."""
    answers, sys.stdout = sys.stdout, sys.stderr
    fresh_data(seed)
    checks.prepare()
    if not simulate:
        device.install()
    found = checks.collect()
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        number = int(line)
        text, error = str(found[number]), None
        try:
            run, text = checks.resolve(found[number])
            run()
        except Exception as caught:
            trace = traceback.extract_tb(caught.__traceback__)[-1]
            first = str(caught).strip().splitlines() or [""]
            error = (
                f"{type(caught).__name__}: {first[0]} [{Path(trace.filename).name}:{trace.lineno}]"
            )
        print(json.dumps([number, text, error]), file=answers, flush=True)
        if error and "CUDA" in error:
            return  # the context may be broken


class Worker:
    """A process that runs checks one by one."""

    def __init__(self, seed: int, simulate: bool):
        command = [sys.executable, str(Path(__file__).resolve()), "--worker", f"--seed={seed}"]
        command += ["--simulator"] if simulate else []
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.is_ready = self.read(LIMIT) is not None

    def read(self, limit: float) -> str | None:
        """Return a line, or None where none comes in time."""
        ready, _, _ = select.select([self.process.stdout], [], [], limit)
        return self.process.stdout.readline() or None if ready else None

    def ask(self, number: int) -> tuple[str, str | None]:
        """Return the text and the error of a check; the worker has ended if it broke it."""
        try:
            self.process.stdin.write(f"{number}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return "", "the worker had ended"
        line = self.read(LIMIT)
        if line is None:
            status = self.process.poll()
            self.end()
            why = f"the process ended with {status}" if status else f"no result in {LIMIT} s"
            return "", why
        _, text, error = json.loads(line)
        return text, error

    def end(self) -> None:
        self.process.kill()
        self.process.wait()

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None


def supervise(options: argparse.Namespace, found: list, chosen: list[int]) -> list:
    """Run the chosen checks and return [(number, text, error)], as they end."""
    waiting: queue.SimpleQueue = queue.SimpleQueue()
    for number in chosen:
        waiting.put(number)
    results: list = []

    def drive() -> None:
        worker = None
        while True:
            try:
                number = waiting.get_nowait()
            except queue.Empty:
                break
            if worker is None or not worker.is_alive:
                worker = Worker(options.seed, options.simulator)
            text, error = worker.ask(number)
            text = text or str(found[number])
            results.append((number, text, error))
            if error:
                print(f"FAILED {found[number].point} | {text}: {error}", flush=True)
                if "CUDA" in error or not worker.is_alive:
                    worker.end()
        if worker:
            worker.end()

    threads = [threading.Thread(target=drive) for _ in range(options.processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def report(found: list, results: list) -> int:
    """Print the table and return the number of failed checks."""
    counts, failures = collections.Counter(), collections.Counter()
    for number, _, error in results:
        counts[found[number].point] += 1
        failures[found[number].point] += error is not None
    print("point | checks | failed")
    for point in checks.POINTS:
        if counts[point]:
            print(f"{point} | {counts[point]} | {failures[point]}")
    print(f"all | {counts.total()} | {failures.total()}")
    return failures.total()


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("only", nargs="*", help="points or names that contain one of these texts")
    parser.add_argument("--seed", type=int, help="of the data; default: a new one")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--simulator", action="store_true", help="run in the simulator instead")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only each Nth check")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.seed is None:
        options.seed = secrets.randbelow(1 << 31)
    if options.worker:
        work(options.seed, options.simulator)
        return 0
    start = time.monotonic()
    try:
        where = "the simulator" if options.simulator else device.require()
    except device.NoGpu as error:
        print(f"test-gpu: error: {error}", file=sys.stderr)
        return 2
    checks.prepare()
    found = checks.collect()
    chosen = [
        number
        for number, check in enumerate(found)
        if not options.only or any(part in str(tuple(check)) for part in options.only)
    ][:: options.every]
    print(f"{len(chosen)} checks on {where}, {options.processes} processes, seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="test-gpu-") as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        results = supervise(options, found, chosen)
    failed = report(found, results)
    print(f"{time.monotonic() - start:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
