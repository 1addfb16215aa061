"""Run software that uses Triton's scans on both lowerings of one wheel:
`python benchmarks/clients/run.py --packages DIR --out DIR`.

The Python that runs this must import the patched triton and torch.  --packages names a folder with
the clients' wheels and sdists as pip downloads them; nothing is installed.  Every case runs with
TRITON_NATIVE_SCAN=1 and =0, in separate processes with the same inputs; results are compared with
float64 references and with one another, then both are timed in turn.  A client that cannot be
imported or run is a row that says why.  Writes OUT/clients.json, clients.md and a log
of each side's processes.

Without a GPU: --simulate runs tiny problems in the PTX simulator, --compile-only compiles them.
"""

from __future__ import annotations

import argparse
import datetime
import json
import queue
import sys
import tarfile
import tempfile
import threading
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))

import table  # noqa: E402
from contenders import Contender, Process, WorkerError, environment  # noqa: E402

NATIVE, UPSTREAM = "native", "upstream"
START = time.monotonic()


def say(text: str) -> None:
    print(f"[{time.monotonic() - START:5.0f} s] {text}", flush=True)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--packages", type=Path, required=True, help="wheels and sdists of clients")
    parser.add_argument("--out", type=Path, required=True, help="folder for results and logs")
    parser.add_argument("--only", nargs="*", default=[""], help="cases whose name contains one")
    parser.add_argument("--processes", type=int, default=10, help="pairs that prepare cases")
    parser.add_argument("--rounds", type=int, default=7, help="repeats of each measurement")
    parser.add_argument("--ms", type=float, default=20, help="milliseconds of one measurement")
    parser.add_argument("--scan-configs", type=int, default=4, help="tried for a kernel with scans")
    parser.add_argument("--configs", type=int, default=2, help="tried for any other kernel")
    parser.add_argument(
        "--seconds",
        type=float,
        default=180,
        help="on a GPU, time no other case after these; prepare none after 0.6 of them",
    )
    parser.add_argument("--commit", default="", help="what is measured, where there is no git")
    parser.add_argument("--simulate", action="store_true", help="no GPU: tiny problems, simulated")
    parser.add_argument("--compile-only", action="store_true", help="no GPU: compile for sm_90")
    return parser.parse_args()


def unpack(packages: Path, folder: Path) -> list[str]:
    """Unpack all of `packages` side by side; return their names."""
    names = []
    for archive in sorted(packages.iterdir()):
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as opened:
                opened.extractall(folder)
        elif archive.name.endswith(".tar.gz"):
            with tarfile.open(archive) as opened:
                opened.extractall(folder, filter="data")
        else:
            continue
        names.append("-".join(archive.name.split("-")[:2]).removesuffix(".tar.gz"))
    if not names:
        raise SystemExit(f"error: {packages} has no wheel (*.whl) and no sdist (*.tar.gz)")
    return names


class Pair:
    """A process for each side."""

    def __init__(self, run: Run, name: str):
        self.run, self.name = run, name
        self.limit = 150 if run.config["mode"] == "gpu" else 1800  # seconds for one answer
        self.outputs = {s: str(run.scratch / f"{name}-{s}.pt") for s in (UPSTREAM, NATIVE)}
        self.processes = {}
        for side in (UPSTREAM, NATIVE):
            config = run.config | {"name": name, "log": str(run.args.out / f"{side}.log")}
            self.processes[side] = Process(run.contenders[side], config, HERE / "worker.py")

    def ask(self, side: str, op: str, **request) -> dict:
        return self.processes[side].ask(op, limit=self.limit, **request)

    def prepare(self, case: str) -> dict:
        """Upstream's side first: it chooses the configurations."""
        upstream = self.ask(
            UPSTREAM, "prepare", case=case, chosen={}, outputs=self.outputs[UPSTREAM]
        )
        native = self.ask(
            NATIVE, "prepare", case=case, chosen=upstream["chosen"], outputs=self.outputs[NATIVE]
        )
        return {UPSTREAM: upstream, NATIVE: native}

    def load(self, case: str, chosen: dict) -> dict:
        """Make both sides ready to be timed."""
        with ThreadPoolExecutor() as pool:
            waiting = {
                side: pool.submit(self.ask, side, "load", case=case, chosen=chosen)
                for side in self.processes
            }
        return {side: answer.result() for side, answer in waiting.items()}

    def alive(self) -> Pair:
        """This pair, or a new one if a process of it has ended."""
        if all(process.process.poll() is None for process in self.processes.values()):
            return self
        self.close()
        return Pair(self.run, self.name)

    def close(self) -> None:
        for process in self.processes.values():
            process.close()


class Run:
    """A run in progress; `results` is what clients.json becomes."""

    def __init__(self, args: argparse.Namespace, scratch: Path):
        self.args, self.scratch = args, scratch
        mode = "simulate" if args.simulate else "compile" if args.compile_only else "gpu"
        packages = unpack(args.packages, scratch / "packages")
        self.config = {
            "mode": mode,
            "packages": str(scratch / "packages"),
            "configurations": {"scans": args.scan_configs, "others": args.configs},
        }
        self.contenders = {}
        for side, knob in ((NATIVE, "1"), (UPSTREAM, "0")):
            env = environment(
                scratch / side,
                TRITON_NATIVE_SCAN=knob,
                TORCHINDUCTOR_CACHE_DIR=str(scratch / f"inductor-{side}"),
                TORCHINDUCTOR_COMPILE_THREADS="1",
                TORCH_EXTENSIONS_DIR=str(scratch / "extensions"),
                TORCH_CUDA_ARCH_LIST="9.0",
                PYTHONUNBUFFERED="1",
            )
            self.contenders[side] = Contender(
                side, "client", native=side == NATIVE, environment=env
            )
        self.results = {
            "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "commit": args.commit,
            "mode": mode,
            "packages": packages,
            "settings": {"rounds": args.rounds, "ms": args.ms} | self.config["configurations"],
            "cases": [],
        }
        self.entries: dict[str, dict] = {}

    def save(self) -> None:
        self.results["cases"] = list(self.entries.values())
        (self.args.out / "clients.json").write_text(json.dumps(self.results, indent=1) + "\n")

    def late(self, share: float = 1.0) -> str:
        """Why no other case is started after a share of the time, or nothing."""
        seconds = share * self.args.seconds
        over = time.monotonic() - START > seconds and self.config["mode"] == "gpu"
        return f"{seconds:.0f} seconds were over" if over else ""

    def list_cases(self) -> None:
        """Start the processes that prepare cases, and ask the first pair what there is."""
        self.pairs = [Pair(self, f"prepare{k}") for k in range(self.args.processes)]
        first = self.pairs[0]
        self.results["versions"] = {s: first.ask(s, "versions") for s in (NATIVE, UPSTREAM)}
        for case in first.ask(NATIVE, "list_cases")["cases"]:
            if any(text in case["case"] for text in self.args.only):
                self.entries[case["case"]] = case
        say(f"{len(self.entries)} cases; {self.results['versions'][NATIVE]}")

    def prepare(self) -> None:
        """Compile and tune all cases in pairs of processes, and compare their results."""
        waiting: queue.SimpleQueue = queue.SimpleQueue()
        for name in self.entries:
            waiting.put(name)

        def work(pair: Pair) -> None:
            while True:
                try:
                    name = waiting.get_nowait()
                except queue.Empty:
                    break
                pair = self.prepare_case(pair, name)
            pair.close()

        threads = [threading.Thread(target=work, args=(pair,)) for pair in self.pairs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def prepare_case(self, pair: Pair, name: str) -> Pair:
        """Return the pair that the next case is for: a new one if this one has ended."""
        entry = self.entries[name]
        if late := self.late(0.6):
            entry["error"] = late
            return pair
        try:
            entry |= pair.prepare(name)
            if self.config["mode"] != "compile":
                entry |= pair.ask(UPSTREAM, "compare", case=name, outputs=pair.outputs)
            say(f"prepared {name}: {table.summary(entry)}")
        except WorkerError as error:
            entry["error"] = str(error)
            say(f"FAILED {name}: {error}")
            return pair.alive()
        return pair

    def measure(self) -> None:
        """Time the cases that gave right results, both sides in turn, nothing else running."""
        pair = Pair(self, "measure")
        # A kernel that several cases use was tuned in the first of them in a process.
        chosen: dict[str, str] = {}
        for entry in self.entries.values():
            chosen |= entry.get(UPSTREAM, {}).get("chosen", {})
        for name, entry in self.entries.items():
            if "error" in entry:
                continue
            if table.wrong(entry):
                entry["untimed"] = "not timed: the results are wrong"
                continue
            if late := self.late():
                entry["untimed"] = f"not timed: {late}"
                continue
            try:
                self.measure_case(pair, name, entry, chosen)
                say(f"timed {name}: {table.summary(entry)}")
            except WorkerError as error:
                entry["untimed"] = str(error)
                say(f"FAILED to time {name}: {error}")
                pair = pair.alive()
            self.save()
        pair.close()

    def measure_case(self, pair: Pair, name: str, entry: dict, chosen: dict[str, str]) -> None:
        sides = (UPSTREAM, NATIVE)
        for side, answer in pair.load(name, chosen).items():
            entry[side] |= answer
        if len({entry[side]["timer"] for side in sides}) > 1:
            raise WorkerError("one side could be captured in a CUDA graph, the other not")
        times: dict[str, list[float]] = {side: [] for side in sides}
        for number in range(self.args.rounds):
            for side in sides[:: -1 if number % 2 else 1]:
                times[side].append(pair.ask(side, "time", ms=self.args.ms)["ms"])
        for side in sides:
            entry[side]["ms"] = times[side]
        for side in sides:
            try:
                entry[side] |= pair.ask(side, "profile")
            except WorkerError as error:
                entry[side]["unprofiled"] = str(error)


def main() -> int:
    args = parse_arguments()
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="scan-clients-") as folder:
        run = Run(args, Path(folder))
        run.list_cases()
        run.prepare()
        run.save()
        if run.config["mode"] == "gpu":
            run.measure()
        run.results["seconds"] = round(time.monotonic() - START)
        run.save()
    text = table.markdown(run.results)
    (args.out / "clients.md").write_text(text)
    say(f"wrote {args.out}")
    print(text)
    return 1 if any(table.failed(entry) for entry in run.entries.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
