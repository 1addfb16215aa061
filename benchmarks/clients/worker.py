"""One side of the comparison: answers the requests of run.py, a line of JSON each.

Started with TRITON_NATIVE_SCAN=1 or 0 and JSON in its argument: `native`, whether the lowering has
to be on; `packages`, the folder of unpacked clients; `log`, a file that is appended to; `name`, for
the log; `configurations`, the arguments of Tuning; `mode`, "gpu", "simulate" or "compile"
(see nogpu.py).
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
import types
from pathlib import Path

CONFIG = json.loads(sys.argv[1])
# Clients and compilers print; only answers go to the pipe.
ANSWERS = os.fdopen(os.dup(1), "w")
LOG = Path(CONFIG["log"]).open("a", buffering=1)  # noqa: SIM115 (open to the end of the process)
os.dup2(LOG.fileno(), 1)
os.dup2(LOG.fileno(), 2)

import torch  # noqa: E402
import triton  # noqa: E402
from cases import Case, Problem, all_cases  # noqa: E402
from triton.compiler.compiler import CompiledKernel  # noqa: E402
from tuning import Tuning  # noqa: E402

GPU = CONFIG["mode"] == "gpu"
DEVICE = torch.device("cuda", 0) if GPU else torch.device("cpu")
SIZES = ("check", "time") if GPU else ("tiny",)
TUNING = Tuning(**CONFIG["configurations"])
# Every kernel that this process compiled or loaded, and whether it has a scan.
KERNELS: dict[str, bool] = {}


def note_kernels() -> None:
    """Fill KERNELS from now on."""
    initialize = CompiledKernel.__init__

    def note(kernel: CompiledKernel, *args, **kwargs) -> None:
        initialize(kernel, *args, **kwargs)
        has_scan = "tt.scan" in kernel.asm["ttir"]
        KERNELS[kernel.name] = KERNELS.get(kernel.name, False) or has_scan

    CompiledKernel.__init__ = note


def find_packages(folder: str) -> None:
    """Clients come last on the path, so that what is installed wins; mamba_ssm without its
    __init__, which wants its CUDA build."""
    sys.path.append(folder)
    for unpacked in Path(folder).glob("mamba_ssm-*/mamba_ssm"):
        stub = types.ModuleType("mamba_ssm")
        stub.__path__ = [str(unpacked)]
        sys.modules["mamba_ssm"] = stub


def difference(found: torch.Tensor, expected: torch.Tensor) -> float:
    """Root mean square of the difference, over that of what is expected; NaN, infinity and a
    missing element make it infinite."""
    if found.shape != expected.shape:
        return float("inf")
    wide = torch.promote_types(expected.dtype, torch.float64)
    error = (found.to(wide) - expected.to(wide)).abs().square().mean().sqrt()
    size = expected.to(wide).abs().square().mean().sqrt()
    ratio = (error / size).item() if size else error.item()
    return ratio if ratio == ratio else float("inf")


class Worker:
    def __init__(self) -> None:
        self.cases: dict[str, Case] = {str(case): case for case in all_cases()}
        self.problem: Problem | None = None
        self.replay = None

    def versions(self) -> dict:
        from triton import native_scan

        status = native_scan.status()
        native = bool(status.enabled and status.available)
        if native != CONFIG["native"]:
            raise RuntimeError(f"native lowering of scans: {native}, wanted {CONFIG['native']}")
        return {
            "python": sys.version.split()[0],
            "torch": torch.__version__,
            "triton": triton.__version__,
            "build": status.build if native else "upstream's lowering",
            "gpu": torch.cuda.get_device_name() if GPU else f"none: {CONFIG['mode']}",
        }

    def list_cases(self) -> dict:
        described = [
            {"case": n, "tolerance": c.tolerance, "group": c.group, "knob": c.knob}
            for n, c in self.cases.items()
        ]
        return {"cases": described}

    def prepare(self, case: str, chosen: dict, outputs: str) -> dict:
        """Compile and tune a case at each size; save the results of the first size."""
        begin = time.monotonic()
        TUNING.missing.clear()
        if CONFIG["native"]:
            TUNING.give(chosen)
        known = set(TUNING.chosen)
        for size in SIZES:
            problem = self.cases[case].build(DEVICE, size)
            results = problem.run()
            if size == SIZES[0]:
                torch.save({n: x.cpu() for n, x in results.items()}, outputs)
            del problem, results
            self.free()
        return {
            "chosen": {n: c for n, c in TUNING.chosen.items() if n not in known},
            "missing": list(TUNING.missing),
            "kernels": dict(KERNELS),
            "seconds": round(time.monotonic() - begin, 1),
        }

    def compare(self, case: str, outputs: dict) -> dict:
        """Differences of the sides' saved results to the reference, and to one another."""
        expected = self.cases[case].build(DEVICE, SIZES[0]).reference()
        sides = {side: torch.load(path) for side, path in outputs.items()}
        names = list(expected)
        for found in sides.values():
            if list(found) != names:
                raise RuntimeError(f"results {list(found)}, the reference has {names}")
        errors = {
            side: {n: difference(found[n].to(DEVICE), expected[n]) for n in names}
            for side, found in sides.items()
        }
        first, second = sides.values()
        same = {n: torch.equal(first[n], second[n]) for n in names}
        apart = {n: difference(first[n], second[n]) for n in names}
        self.free()
        return {"errors": errors, "bitwise": same, "apart": apart}

    def load(self, case: str, chosen: dict) -> dict:
        """Make a case ready for `time`: capture it in a CUDA graph if it can be."""
        self.problem = self.replay = None
        self.free()
        TUNING.give(chosen)
        TUNING.missing.clear()
        self.problem = self.cases[case].build(DEVICE, "time")
        for _ in range(2):
            self.problem.run()
        torch.cuda.synchronize()
        try:
            self.replay = self._capture()
            how = {"timer": "graph"}
        except RuntimeError as error:
            self.replay = self.problem.run
            self.replay()
            torch.cuda.synchronize()
            how = {"timer": "launches", "why": str(error).splitlines()[0]}
        return how | {"retuned": list(TUNING.missing)}

    def _capture(self):
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            self.problem.run()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.kept = self.problem.run()
        return graph.replay

    def time(self, ms: float) -> dict:
        """Median of launches of about `ms` milliseconds together."""
        first = self._events(2)
        count = max(3, min(100, int(ms / max(first[-1], 1e-3))))
        times = sorted(self._events(count))
        return {"ms": times[len(times) // 2]}

    def _events(self, count: int) -> list[float]:
        pairs = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(count)]
        for begin, end in pairs:
            begin.record()
            self.replay()
            end.record()
        torch.cuda.synchronize()
        return [begin.elapsed_time(end) for begin, end in pairs]

    def profile(self) -> dict:
        """Microseconds of each kernel in one run."""
        from torch.profiler import ProfilerActivity, profile

        runs = 5
        with profile(activities=[ProfilerActivity.CUDA]) as recorded:
            for _ in range(runs):
                self.problem.run()
            torch.cuda.synchronize()
        return {
            "microseconds": {
                e.key: e.self_device_time_total / runs
                for e in recorded.key_averages()
                if e.self_device_time_total
            }
        }

    def free(self) -> None:
        self.kept = None
        if GPU:
            torch.cuda.empty_cache()

    def answer(self, op: str, **request) -> dict:
        return getattr(self, op)(**request)


def main() -> None:
    find_packages(CONFIG["packages"])
    if not GPU:
        import nogpu

        nogpu.install(simulate=CONFIG["mode"] == "simulate")
    TUNING.install()
    note_kernels()
    worker = Worker()
    for line in sys.stdin:
        request = json.loads(line)
        print(f"--- {CONFIG['name']}: {request['op']} {request.get('case', '')}", file=LOG)
        try:
            reply = worker.answer(**request)
        except Exception as error:
            traceback.print_exc()
            text = str(error).strip().splitlines() or [""]
            reply = {"error": f"{type(error).__name__}: {text[0][:300]}"}
            worker.free()
        print(json.dumps(reply), file=ANSWERS, flush=True)


main()
