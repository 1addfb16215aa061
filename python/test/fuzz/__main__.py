"""Fuzz at length: `python -m fuzz NUMBER [--seed SEED]`, or `make fuzz N=NUMBER [SEED=SEED]`.

With --lanes 64 (LANES=64) AMD's lowering is evaluated step by step, else NVIDIA's PTX simulated.

Checks at least NUMBER scans and prints the seed and the running total.  The first failure stops
everything: its program is shrunk and printed as TTGIR, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import os
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CHUNK = 100  # programs


def work(seed: int, number: int, lanes: int, current: Path) -> None:
    """Check `number` scans and print the count of each chunk; chunks have seeds of their own.

    current: holds the program being checked, should the process die
    """
    from fuzz import runner
    from fuzz.campaign import run_programs

    check = runner.run if lanes == 32 else runner.run_steps
    done = chunk = 0
    while done < number:
        count = run_programs(
            seed + chunk,
            CHUNK,
            before=lambda program: current.write_text(program.describe()),
            check=check,
            lanes=lanes,
        )
        chunk += 1
        done += count
        print(count, flush=True)


def supervise(seed: int, number: int, processes: int, lanes: int) -> int:
    """Run the workers and return the exit status."""
    print(
        f"[fuzz] seed {seed}: {number} scans of {lanes} lanes in {processes} processes", flush=True
    )
    start = time.monotonic()
    total = 0
    with tempfile.TemporaryDirectory(prefix="fuzz-") as directory:
        workers = []
        for k in range(processes):
            current = Path(directory, f"current-{k}.mlir")
            # Far apart, so that chunks never have the same seed.
            share = -(-number // processes)
            arguments = [str(seed + k * 1_000_000), str(share), str(lanes), str(current)]
            command = [sys.executable, "-m", "fuzz", "--work", *arguments]
            log = Path(directory, f"errors-{k}")
            with log.open("w") as errors:
                process = subprocess.Popen(
                    command, stdout=subprocess.PIPE, stderr=errors, text=True
                )
            os.set_blocking(process.stdout.fileno(), False)
            workers.append((process, current, log))
        running = list(workers)
        while running:
            time.sleep(1)
            for worker in list(running):
                process, current, log = worker
                ended = process.poll() is not None
                counts = [int(line) for line in iter(process.stdout.readline, "")]
                total += sum(counts)
                if counts:
                    rate = total / (time.monotonic() - start)
                    print(f"[fuzz] seed {seed}: {total} scans, {rate:.1f}/s", flush=True)
                if not ended:
                    continue
                running.remove(worker)
                if process.returncode == 0:
                    continue
                print(f"[fuzz] seed {seed}: FAILED after {total} scans\n{log.read_text()}")
                if process.returncode < 0:
                    print(f"killed by signal {-process.returncode} in\n{current.read_text()}")
                for other, _, _ in running:
                    other.terminate()
                    other.wait()
                return 1
    print(f"[fuzz] seed {seed}: {total} scans, no mismatch, {time.monotonic() - start:.0f} s")
    return 0


def main() -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("number", type=int, nargs="?", default=20_000, help="of scans to check")
    parser.add_argument("--seed", type=int, help="default: a new one")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--lanes", type=int, choices=(32, 64), default=32)
    parser.add_argument("--work", nargs=4, metavar=("SEED", "NUMBER", "LANES", "FILE"))
    options = parser.parse_args()
    if options.work:
        seed, number, lanes, current = options.work
        work(int(seed), int(number), int(lanes), Path(current))
        return 0
    seed = secrets.randbelow(1 << 31) if options.seed is None else options.seed
    return supervise(seed, options.number, options.processes, options.lanes)


if __name__ == "__main__":
    sys.exit(main())
