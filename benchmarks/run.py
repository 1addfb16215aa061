"""Run every suite against every contender on one GPU: `python benchmarks/run.py --out DIR`.

The Python that runs this must import the patched triton and torch.  Writes DIR/results.json and,
where matplotlib is installed, plots; prints the table of targets last.  See --help and NOTES.md.
"""

from __future__ import annotations

import argparse
import datetime
import json
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import report
import suites
from contenders import (
    OTHER,
    OURS,
    TORCH,
    UPSTREAM,
    Contender,
    Process,
    WorkerError,
    build_cub,
    compile_all,
    triton_contenders,
)

HERE = Path(__file__).parent
START = time.monotonic()
SENSORS = (
    "nvidia-smi",
    "--query-gpu=clocks.sm,power.draw,temperature.gpu",
    "--format=csv,noheader",
)


def say(text: str) -> None:
    print(f"[{time.monotonic() - START:5.0f} s] {text}", flush=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True, help="folder for results.json and plots")
    parser.add_argument("--other-python", default=sys.executable, help="Python with another triton")
    parser.add_argument("--other-path", default="", help="PYTHONPATH for --other-python")
    parser.add_argument("--skip", nargs="*", default=[], help="contenders: other, cub, torch")
    parser.add_argument(
        "--suites",
        nargs="*",
        default=[*suites.SUITES, "compile"],
        choices=[*suites.SUITES, "compile"],
    )
    parser.add_argument("--rows", default="", help="only rows whose name contains this")
    parser.add_argument("--rounds", type=int, default=9, help="repeats of each measurement")
    parser.add_argument("--ms", type=float, default=20, help="milliseconds of one measurement")
    parser.add_argument("--scan-log2", type=int, default=26, help="elements of scan and growth")
    parser.add_argument("--memory-log2", type=int, default=28, help="elements of memory")
    parser.add_argument("--processes", type=int, default=5, help="that compile for a contender")
    parser.add_argument("--seconds", type=float, default=420, help="start no suite after these")
    parser.add_argument("--commit", default="", help="what is measured, where there is no git")
    parser.add_argument(
        "--smoke",
        action="store_true",
        help="no GPU: tiny arrays through triton's interpreter; the times mean nothing",
    )
    return parser.parse_args()


def settings(args: argparse.Namespace) -> dict:
    """What workers must know: the device, elements of each suite, scans in a kernel."""
    if args.smoke:
        sizes = dict.fromkeys(suites.SUITES, 1 << 15)
        return {"device": "cpu", "elements": sizes, "blocks": 1, "rounds": 2}
    sizes = {"scan": 1 << args.scan_log2, "memory": 1 << args.memory_log2}
    sizes["growth"] = sizes["scan"]
    return {"device": "cuda", "elements": sizes, "rounds": suites.ROUNDS}


def output_of(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, cwd=HERE).stdout.strip()
    except OSError:
        return ""


def machine(commit: str) -> dict:
    """Versions that belong to no contender; `commit` replaces what git says."""
    driver = output_of("nvidia-smi", "--query-gpu=driver_version,name", "--format=csv,noheader")
    nvcc = output_of("nvcc", "--version").splitlines()
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "commit": commit or output_of("git", "rev-parse", "HEAD"),
        "changed_files": output_of("git", "status", "--porcelain", "--untracked-files=no"),
        "driver": driver,
        "nvcc": nvcc[-2] if len(nvcc) > 1 else "",
    }


class Run:
    """A run in progress; `results` is what results.json becomes."""

    def __init__(self, args: argparse.Namespace, scratch: Path):
        self.args, self.config = args, settings(args)
        self.names = [s for s in args.suites if s in suites.SUITES]
        self.contenders = triton_contenders(
            scratch, "" if OTHER in args.skip else args.other_python, args.other_path
        )
        self.processes: dict[str, Process] = {}
        self.results = {
            "machine": machine(args.commit),
            "settings": self.config | {"repeats": args.rounds, "smoke": args.smoke},
            "versions": {},
            "timings": [],
            "checks": [],
            "sizes": [],
            "compile": [],
            "errors": [],
        }

    def save(self) -> None:
        text = json.dumps(self.results, indent=1)
        (self.args.out / "results.json").write_text(text + "\n")

    def failed(self, what: str, error: object) -> None:
        say(f"FAILED {what}: {error}")
        self.results["errors"].append({"what": what, "error": str(error)})

    def jobs(self, contender: Contender) -> list[tuple[str, str]]:
        """The (row name, mode) pairs that a contender runs."""
        return [
            (suites.key(row), mode)
            for name in self.names
            for row in self.rows(name)
            for mode in suites.modes(row)
            if contender.takes(row, mode)
        ]

    def rows(self, suite: str) -> list[suites.Row]:
        return [row for row in suites.SUITES[suite] if self.args.rows in str(row)]

    def compile(self, contender: Contender) -> None:
        # Compiling needs no large arrays, and no interpreter.
        config = self.config | {"elements": dict.fromkeys(suites.SUITES, 1 << 16)}
        for (row, mode), answer in compile_all(
            contender, config, self.jobs(contender), self.args.processes
        ):
            name = {"contender": contender.name, "row": row, "mode": mode}
            if "error" in answer:
                self.failed(f"compiling {name}", answer["error"])
            else:
                self.results["sizes"].append(name | answer)
        say(f"compiled {len(self.jobs(contender))} kernels for {contender.name}")

    def prepare(self, scratch: Path) -> None:
        """Compile everything, side by side, and start the processes that time."""
        nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
        with_cub = "cub" not in self.args.skip and "scan" in self.names
        if with_cub and not nvcc:
            say("no nvcc: CUB is not measured")
        with ThreadPoolExecutor() as pool:
            cub = None
            if with_cub and nvcc:
                cub = pool.submit(build_cub, nvcc, scratch, self.config["rounds"])
            for done in [pool.submit(self.compile, c) for c in self.contenders]:
                done.result()
            if cub:
                try:
                    library = cub.result()
                    say("compiled cub.cu")
                    self.config |= {
                        "cub_library": str(library),
                        "cub_rounds": self.config["rounds"],
                    }
                    if not self.args.smoke:  # CUB needs a GPU
                        self.contenders.append(replace(self.contenders[0], name="cub", kind="cub"))
                except WorkerError as error:
                    self.failed("cub", error)
        if TORCH not in self.args.skip and "memory" in self.names:
            self.contenders.append(replace(self.contenders[0], name=TORCH, kind="torch"))
        for contender in self.contenders:
            if self.args.smoke:
                contender.environment["TRITON_INTERPRET"] = "1"
            self.processes[contender.name] = Process(contender, self.config)
        for contender in list(self.contenders):
            try:
                found = self.processes[contender.name].ask("versions")
                self.results["versions"][contender.name] = found
                say(f"{contender.name}: {found}")
            except WorkerError as error:
                self.failed(f"starting {contender.name}", error)
                self.contenders.remove(contender)

    def sides(self, row: suites.Row) -> list[tuple[str, str, str, str]]:
        """What is measured for a row: (name in results, process, variant, mode)."""
        return [
            (f"{c.name} {variant}".strip(), c.name, variant, mode)
            for c in self.contenders
            for variant in c.variants
            for mode in suites.modes(row)
            if c.takes(row, mode)
        ]

    def check(self, row: suites.Row) -> list[tuple[str, str, str, str]]:
        """Check every side of a row; return those that are right."""
        right = []
        for side in self.sides(row):
            name, process, variant, mode = side
            what = {"row": suites.key(row), "mode": mode, "variant": variant}
            try:
                seed = time.time_ns() % (1 << 31)
                answer = self.processes[process].ask("check", seed=seed, **what)
            except WorkerError as error:
                self.failed(f"{name}, {what['row']}, {mode}", error)
                continue
            self.results["checks"].append({"contender": name, "seed": seed, **what, **answer})
            if answer["right"]:
                right.append(side)
            else:
                self.failed(f"{name}, {what['row']}, {mode}", f"wrong result: {answer}")
        return right

    def measure(self, row: suites.Row) -> None:
        """Check, then time the sides of a row in alternating rounds."""
        sides = self.check(row)
        times: dict = {side: [] for side in sides}
        for number in range(self.args.rounds):
            # Every second round goes backwards, so that no side always follows the same one.
            for side in sides[:: -1 if number % 2 else 1]:
                name, process, variant, mode = side
                if len(times[side]) < number:
                    continue  # it failed before
                what = {"row": suites.key(row), "mode": mode, "variant": variant}
                try:
                    answer = self.processes[process].ask("time", ms=self.args.ms, **what)
                    times[side].append(answer["ms"])
                except WorkerError as error:
                    self.failed(f"{name}, {what['row']}, {mode}", error)
        scanned = row.elements(self.config) * (self.config["rounds"] if row.loops else 1)
        for (name, _, _, mode), values in times.items():
            if len(values) == self.args.rounds:
                entry = {"suite": row.suite, "row": str(row), "contender": name, "mode": mode}
                self.results["timings"].append(entry | {"scanned": scanned, "ms": values})
        say(f"{suites.key(row)}: {report.line(self.results, row.suite, str(row))}")

    def measure_compile(self) -> None:
        """Time the compilation of some rows, ours and upstream's in turn, nothing else running."""
        sides = [c for c in self.contenders if c.name in (OURS, UPSTREAM)]
        processes = {c.name: Process(c, self.config) for c in sides}
        jobs = [(row, mode) for row in suites.COMPILE for mode in suites.DIRECTIONS]
        seconds: dict = {(c.name, *job): [] for c in sides for job in jobs}
        try:
            for row, mode in jobs[:1]:  # imports and the first call's set-up
                for process in processes.values():
                    process.ask("compile_time", row=suites.key(row), mode=mode)
            for number in range(3):
                for row, mode in jobs:
                    for c in sides[:: -1 if number % 2 else 1]:
                        answer = processes[c.name].ask(
                            "compile_time", row=suites.key(row), mode=mode
                        )
                        seconds[c.name, row, mode].append(answer["seconds"])
        except WorkerError as error:
            self.failed("compile time", error)
            return
        finally:
            for process in processes.values():
                process.close()
        self.results["compile"] = [
            {"contender": name, "row": suites.key(row), "mode": mode, "seconds": values}
            for (name, row, mode), values in seconds.items()
        ]
        say("measured compile times")

    def close(self) -> None:
        for process in self.processes.values():
            process.close()


def main() -> int:
    args = parse_arguments()
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="scan-bench-") as folder:
        run = Run(args, Path(folder))
        try:
            if "compile" in args.suites:
                run.measure_compile()
            run.prepare(Path(folder))
            run.save()
            for name in run.names:
                if time.monotonic() - START > args.seconds:
                    run.failed(f"suite {name}", f"not started: {args.seconds} seconds were over")
                    continue
                for row in run.rows(name):
                    run.measure(row)
                run.results["machine"][f"after {name}"] = output_of(*SENSORS)
                run.save()
        finally:
            run.close()
    try:
        import plots
    except ImportError as error:
        say(f"no plots: {error}")
    else:
        plots.draw(args.out)
    say(f"wrote {args.out}")
    print(report.write(args.out, run.results))
    return 1 if run.results["errors"] else 0


if __name__ == "__main__":
    sys.exit(main())
