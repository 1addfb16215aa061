"""Who is measured, and the processes that measure them (worker.py)."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
CUB_ALGORITHMS = ("warp_scans", "raking", "raking_memoize")
OURS, UPSTREAM, OTHER, TORCH = "ours", "upstream", "other", "torch"
# Settings of the patched triton that another one must not see.
PRIVATE = (
    "PYTHONPATH",
    "TRITON_BACKENDS_IN_TREE",
    "TRITON_NATIVE_SCAN",
    "TRITON_PTXAS_PATH",
    "TRITON_PTXAS_BLACKWELL_PATH",
)


class WorkerError(Exception):
    """A worker could not answer; the text says why."""


@dataclass(frozen=True)
class Contender:
    """A side of the comparison.  `kind` is "triton", "cub" or "torch"; `native` says whether the
    native lowering of scans must be on; `environment` is the process's, whole."""

    name: str
    kind: str
    python: str = sys.executable
    native: bool = False
    environment: dict[str, str] = field(default_factory=dict)

    def takes(self, row, mode: str) -> bool:
        """Whether this side has the row."""
        if self.kind == "triton":
            return row.suite != "growth" or self.name != OTHER
        if self.kind == "cub":
            return row.suite == "scan" and row.kind != "tile"
        return row.suite == "memory" and row.kind != "pair" and mode != "copy"

    @property
    def variants(self) -> tuple[str, ...]:
        return CUB_ALGORITHMS if self.kind == "cub" else ("",)


def environment(cache: Path, **changes: str | None) -> dict[str, str]:
    """This process's environment with a compilation cache of its own; None removes a variable."""
    # 3.9.0 warns without it; the value is the default of all releases so far.
    changes = {"TRITON_CACHE_DIR": str(cache), "TRITON_DEFAULT_FP_FUSION": "1"} | changes
    merged = {k: v for k, v in os.environ.items() if changes.get(k, "") is not None}
    return merged | {k: v for k, v in changes.items() if v is not None}


def triton_contenders(scratch: Path, other_python: str, other_path: str) -> list[Contender]:
    """Ours, upstream's lowering of the same wheel, and, if there is one, another triton."""
    ours = environment(scratch / OURS, TRITON_NATIVE_SCAN="1")
    upstream = environment(scratch / UPSTREAM, TRITON_NATIVE_SCAN="0")
    found = [
        Contender(OURS, "triton", native=True, environment=ours),
        Contender(UPSTREAM, "triton", environment=upstream),
    ]
    if other_python:
        changes = dict.fromkeys(PRIVATE) | ({"PYTHONPATH": other_path} if other_path else {})
        other = environment(scratch / OTHER, **changes)
        if reason := _why_not(other_python, other):
            print(f"no other triton is measured: {reason}")
        else:
            found.append(Contender(OTHER, "triton", other_python, environment=other))
    return found


def _why_not(python: str, env: dict[str, str]) -> str:
    patched = "hasattr(getattr(triton, 'knobs', None), 'scan')"
    code = f"import torch, triton; print(triton.__version__, {patched})"
    try:
        done = subprocess.run([python, "-c", code], env=env, capture_output=True, text=True)
    except OSError as error:
        return str(error)
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"{python} failed"])[-1]
    version, patched = done.stdout.split()
    return f"{python} has the patched triton {version}" if patched == "True" else ""


class Process:
    """A running worker: `script`, started with the configuration as JSON."""

    def __init__(self, contender: Contender, config: dict, script: Path = HERE / "worker.py"):
        config = config | {"kind": contender.kind, "native": contender.native}
        self.contender = contender
        self.process = subprocess.Popen(
            [contender.python, str(script), json.dumps(config)],
            env=contender.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, op: str, limit: float = 240, **request) -> dict:
        """Return the answer; WorkerError if there is none within `limit` seconds."""
        watchdog = threading.Timer(limit, self.process.kill)
        watchdog.start()
        try:
            self.process.stdin.write(json.dumps({"op": op, **request}) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except OSError:
            line = ""
        finally:
            watchdog.cancel()
        if not line:
            self.process.kill()
            self.process.wait()
            raise WorkerError(f"the process of {self.contender.name} ended or hung in {op}")
        answer = json.loads(line)
        if "error" in answer:
            raise WorkerError(f"{self.contender.name}: {answer['error']}")
        return answer

    def close(self) -> None:
        with contextlib.suppress(OSError):  # what a process that has ended did not read
            self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def compile_all(contender: Contender, config: dict, jobs: Iterable, processes: int) -> list:
    """Compile (row name, mode) pairs in several processes; each result is (job, answer or error).

    The timing process of the contender then finds them in its cache.
    """
    jobs = list(jobs)

    def run(part: list) -> list:
        process, results = Process(contender, config), []
        for row, mode in part:
            try:
                results.append(((row, mode), process.ask("compile", row=row, mode=mode)))
            except WorkerError as error:
                results.append(((row, mode), {"error": str(error)}))
        process.close()
        return results

    parts = [part for i in range(processes) if (part := jobs[i::processes])]
    with ThreadPoolExecutor(max(len(parts), 1)) as pool:
        return [result for part in pool.map(run, parts) for result in part]


def build_cub(nvcc: str, folder: Path, rounds: int) -> Path:
    """Compile cub.cu; WorkerError with the compiler's message if it fails."""
    library = folder / "libcub_scan.so"
    options = ["-O3", "-std=c++17", "-arch=sm_90", f"-DROUNDS={rounds}", "--shared"]
    options += ["-Xcompiler", "-fPIC", "-o", str(library), str(HERE / "cub.cu")]
    done = subprocess.run([nvcc, *options], capture_output=True, text=True)
    if done.returncode:
        raise WorkerError(f"nvcc cannot compile cub.cu: {done.stderr.strip()[-800:]}")
    return library
