"""Fuzz at length: `python -m fuzz NUMBER [--seed SEED]`, or `make fuzz N=NUMBER [SEED=SEED]`.

With --target hip:gfx942 (TARGET=hip:gfx942; or gfx90a, gfx950, gfx1100, gfx1200) AMD's lowering is
evaluated step by step, else NVIDIA's PTX is simulated.

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

from interpreter_worker import Interpreter

from .layouts import TARGETS

CHUNK = 100  # programs
KERNELS = 12  # for each chunk


def work(seed: int, number: int, target: str, current: Path, interpreter=None) -> None:
    """Check `number` scans and print the count of each chunk; chunks have seeds of their own.

    current: holds the program being checked, should the process die
    interpreter: what runs a share of the kernels, too
    """
    from triton import native_scan

    from fuzz import runner
    from fuzz.campaign import run_programs

    check = runner.run if target.startswith("cuda") else runner.run_steps
    done = chunk = 0
    while done < number:
        # The kernels use flips, clusters and Gluon, which the source base's Triton lacks.
        if check is runner.run and not native_scan.is_built_in():
            from fuzz.kernels import run_kernels

            done += run_kernels(
                seed + chunk, KERNELS, interpreter, lambda draw: current.write_text(str(draw))
            )
        count = run_programs(
            seed + chunk,
            CHUNK,
            before=lambda program: current.write_text(program.describe()),
            check=check,
            target=target,
        )
        chunk += 1
        done += count
        print(count, flush=True)


def supervise(seed: int, number: int, processes: int, target: str) -> int:
    """Run the workers and return the exit status."""
    print(f"[fuzz] seed {seed}: {number} scans for {target} in {processes} processes", flush=True)
    start = time.monotonic()
    total = 0
    with tempfile.TemporaryDirectory(prefix="fuzz-") as directory:
        workers = []
        for k in range(processes):
            current = Path(directory, f"current-{k}.mlir")
            # Far apart, so that chunks never have the same seed.
            share = -(-number // processes)
            arguments = [str(seed + k * 1_000_000), str(share), target, str(current)]
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
    parser.add_argument("--target", choices=tuple(TARGETS), default="cuda:90")
    parser.add_argument("--work", nargs=4, metavar=("SEED", "NUMBER", "TARGET", "FILE"))
    options = parser.parse_args()
    if options.work:
        seed, number, target, current = options.work
        with Interpreter() as interpreter:
            work(int(seed), int(number), target, Path(current), interpreter)
        return 0
    seed = secrets.randbelow(1 << 31) if options.seed is None else options.seed
    return supervise(seed, options.number, options.processes, options.target)


if __name__ == "__main__":
    sys.exit(main())
