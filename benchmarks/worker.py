"""One contender in a process of its own: takes requests, a JSON object a line, on standard input
and answers each with a line.  run.py starts it; the interpreter and the environment decide which
triton it measures.

Requests: {"op": "versions" | "check" | "time" | "compile" | "compile_time", ...}; an answer with
"error" says what failed.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import json
import os
import statistics
import sys
import time
import traceback
from pathlib import Path

# Timed launches of one measurement.
FEWEST, MOST = 3, 100
# Largest tolerated error of a timed kernel; see Arrays.error().
TOLERANCE = 1e-3


class Arrays:
    """The arrays that kernels read and write, and the float64 reference.

    device: "cuda" or "cpu"; a row uses the first Row.elements() of each.
    """

    def __init__(self, config: dict):
        import torch

        self.torch, self.config, self.device = torch, config, config["device"]
        most = max(config["elements"].values())
        self.x, self.z = (torch.empty(most, device=self.device) for _ in range(2))
        self.a = torch.empty(max(most // 2, config["elements"]["scan"]), device=self.device)
        self.fill(0)

    def elements(self, row) -> int:
        return row.elements(self.config)

    def fill(self, seed: int) -> None:
        """Fresh data: x in [0.5, 1.5), so that sums do not cancel; |a| in [0.5, 0.72), any sign.

        A recurrence grows its input 1/(1 - 0.72) times at most; 64 of them stay below 1e36.
        """
        torch = self.torch
        generator = torch.Generator(self.device).manual_seed(seed)
        self.x.uniform_(0.5, 1.5, generator=generator)
        self.a.uniform_(-0.22, 0.22, generator=generator)
        self.a.add_(self.a.sign() * 0.5).masked_fill_(self.a == 0, 0.5)

    def inputs(self, row) -> list:
        """What the kernel reads, in the order of its arguments."""
        n = self.elements(row)
        return [self.a[:n], self.x[:n]] if row.kind == "pair" else [self.x[:n]]

    def error(self, row, mode: str, rounds: int, out) -> float:
        """Return the error of `out`, inf if an element was not written.

        Up to 64 blocks are compared: of sums, each element relative to itself; of recurrences,
        whose terms cancel, each relative to its block's largest.
        """
        torch = self.torch
        if not bool(torch.isfinite(out).all()):
            return float("inf")
        shape = (-1, row.length, row.width)
        out = out.view(shape)
        some = torch.randperm(len(out))[:48]
        picked = torch.cat([some, torch.arange(len(out))[:8], torch.arange(len(out))[-8:]])
        picked = picked.to(self.device)
        got = out[picked].double()
        want = self.reference(row, mode, rounds, [v.view(shape)[picked] for v in self.inputs(row)])
        difference = (got - want).abs()
        if row.kind == "pair":
            worst = difference.amax(1) / want.abs().amax(1)
        else:
            # Below 1e-30 rounds may underflow on the way.
            worst = difference / want.abs().clamp(min=1e-30)
        value = float(worst.max())
        return value if value == value else float("inf")

    def reference(self, row, mode: str, rounds: int, inputs: list):
        """The kernel in float64, for blocks [count, length, width]."""
        torch = self.torch
        values = [v.double() for v in inputs]
        if mode == "copy":
            return values[0] if row.kind != "pair" else values[0] + values[1]
        if mode == "reverse":
            values = [v.flip(1) for v in values]
        x = values[-1]
        factor = [float(torch.tensor(v, dtype=torch.float32)) for v in (row.scale, 0.999)]
        if row.kind != "pair":
            for _ in range(rounds):
                x = x.cumsum(1)
                if row.loops:
                    x = x * factor[0]
        else:
            a = values[0]
            for _ in range(rounds):
                x = self.recurrence(a, x)
                a = a * factor[1]
        return x.flip(1) if mode == "reverse" else x

    def recurrence(self, a, x):
        """h[i] = a[i]*h[i-1] + x[i] along axis 1, by doubling distances."""
        torch = self.torch
        distance = 1
        while distance < a.shape[1]:
            shifted_a, shifted_x = a[:, :-distance], x[:, :-distance]
            x = torch.cat([x[:, :distance], a[:, distance:] * shifted_x + x[:, distance:]], 1)
            a = torch.cat([a[:, :distance], a[:, distance:] * shifted_a], 1)
            distance *= 2
        return x


def triton_launcher(arrays: Arrays, row, mode: str, rounds: int, variant: str):
    """Return a function that launches the kernel once and returns its output."""
    n = arrays.elements(row)
    kernel, grid = row.kernel, (n // row.block,)
    arguments = [*arrays.inputs(row), arrays.z[:n]]
    options = row.constexprs(mode, rounds) | {"num_warps": row.num_warps}

    def launch():
        kernel[grid](*arguments, **options)
        return arguments[-1]

    return launch


def cub_launcher(arrays: Arrays, row, mode: str, rounds: int, variant: str):
    from contenders import CUB_ALGORITHMS

    if rounds != arrays.config["cub_rounds"]:
        raise ValueError(f"cub.cu was compiled for {arrays.config['cub_rounds']} rounds")
    function = _cub_library(arrays.config["cub_library"]).cub_scan
    pointer = ctypes.c_void_p
    function.argtypes = [ctypes.c_int] * 5 + [ctypes.c_float] + [pointer] * 3
    function.argtypes += [ctypes.c_int, pointer]
    n = arrays.elements(row)
    out = arrays.z[:n]
    stream = arrays.torch.cuda.current_stream().cuda_stream
    arguments = (
        int(row.kind == "pair"),
        32 * row.num_warps,
        row.per_thread,
        CUB_ALGORITHMS.index(variant),
        int(mode == "reverse"),
        row.scale,
        arrays.a.data_ptr(),
        arrays.x.data_ptr(),
        out.data_ptr(),
        n // row.block,
        stream,
    )

    def launch():
        if code := function(*arguments):
            raise RuntimeError(f"cub_scan failed with {code}: -1 is no such row, else a cudaError")
        return out

    return launch


@functools.cache
def _cub_library(path: str) -> ctypes.CDLL:
    return ctypes.CDLL(path)


def torch_launcher(arrays: Arrays, row, mode: str, rounds: int, variant: str):
    x = arrays.inputs(row)[0].view(-1, row.length, row.width)
    if row.width == 1:
        x = x[:, :, 0]
    if mode == "reverse":
        return lambda: x.flip(1).cumsum(1).flip(1).view(-1)
    return lambda: x.cumsum(1).view(-1)


LAUNCHERS = {"triton": triton_launcher, "cub": cub_launcher, "torch": torch_launcher}


class Worker:
    """Answers requests; `config` is what run.py's settings() describes."""

    def __init__(self, config: dict):
        self.config = config
        self.launches: dict = {}

    @functools.cached_property
    def arrays(self) -> Arrays:
        return Arrays(self.config)

    def rounds(self, row) -> int:
        return self.config["rounds"] if row.loops else 1

    def launcher(self, request: dict):
        from suites import find

        row = find(request["row"])
        make = LAUNCHERS[self.config["kind"]]
        arguments = (row, request["mode"], self.rounds(row), request.get("variant", ""))
        return row, make(self.arrays, *arguments)

    def versions(self, request: dict) -> dict:
        """Name what is measured; fails if it is not the lowering that was asked for."""
        found = {"python": sys.version.split()[0]}
        if self.config["kind"] == "triton":
            import triton

            found |= {"triton": triton.__version__, "triton_file": triton.__file__}
            wanted = self.config["native"]
            status = None
            if hasattr(getattr(triton, "knobs", None), "scan"):
                from triton import native_scan

                status = native_scan.status()
                found["native_scan_build"] = status.build
            enabled = status is not None and status.enabled
            if enabled != wanted:
                reason = status.reason if status else f"{triton.__file__} has none"
                raise RuntimeError(f"native scan lowering: wanted {wanted}, is {enabled}: {reason}")
        if self.config["kind"] == "cub":
            found["cub"] = _cub_library(self.config["cub_library"]).cub_version()
        if request.get("torch", True):
            import torch

            found["torch"] = torch.__version__
            if self.config["device"] == "cuda":
                found["gpu"] = torch.cuda.get_device_name()
                found["cuda"] = torch.version.cuda
                self.arrays  # noqa: B018  (allocate now)
                torch.cuda.synchronize()
        return found

    def check(self, request: dict) -> dict:
        """Run once on fresh data into a poisoned output."""
        row, launch = self.launcher(request)
        self.arrays.fill(request["seed"])
        self.arrays.z.fill_(float("nan"))
        out = launch()
        error = self.arrays.error(row, request["mode"], self.rounds(row), out)
        return {"relative_error": error, "right": error <= TOLERANCE}

    def time(self, request: dict) -> dict:
        """Median milliseconds of launches that together take about request["ms"]."""
        _, launch = self.launcher(request)
        name = (request["row"], request["mode"], request.get("variant"))
        if name not in self.launches:
            launch()
            once = statistics.median(self._measure(launch, FEWEST))
            self.launches[name] = max(FEWEST, min(MOST, round(request["ms"] / max(once, 1e-6))))
        samples = self._measure(launch, self.launches[name])
        return {"ms": statistics.median(samples), "launches": len(samples)}

    def _measure(self, launch, count: int) -> list[float]:
        if self.config["device"] != "cuda":
            start = time.perf_counter()
            launch()
            return [(time.perf_counter() - start) * 1e3]
        launch()  # not timed: the host gets ahead of the device
        torch = self.arrays.torch
        events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(count)]
        for start, end in events:
            start.record()
            launch()
            end.record()
        torch.cuda.synchronize()
        return [start.elapsed_time(end) for start, end in events]

    def compile(self, request: dict) -> dict:
        """Compile into the cache that the timing worker reads, and tell the sizes in bytes."""
        from suites import compile_row, find

        row, mode = find(request["row"]), request["mode"]
        if self.config["device"] == "cuda":
            n = self.arrays.elements(row)
            kernel = row.kernel.warmup(
                *self.arrays.inputs(row),
                self.arrays.z[:n],
                grid=(n // row.block,),
                num_warps=row.num_warps,
                **row.constexprs(mode, self.rounds(row)),
            )
        else:
            kernel = compile_row(row, mode)
        ptx = kernel.asm["ptx"]
        return {
            "ptx": len(ptx),
            "cubin": len(kernel.asm["cubin"]),
            "ptx_sha256": hashlib.sha256(ptx.encode()).hexdigest(),
        }

    def compile_time(self, request: dict) -> dict:
        """Seconds to compile the row for sm_90, all stages, ptxas included; no cache is read."""
        import triton
        from suites import compile_row, find

        with triton.knobs.compilation.scope():
            triton.knobs.compilation.always_compile = True
            start = time.perf_counter()
            compile_row(find(request["row"]), request["mode"])
            return {"seconds": time.perf_counter() - start}


def main() -> None:
    # What libraries print must not get between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    sys.path.insert(0, str(Path(__file__).parent))
    worker = Worker(json.loads(sys.argv[1]))
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(worker, request["op"])(request)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}", "trace": traceback.format_exc()}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
