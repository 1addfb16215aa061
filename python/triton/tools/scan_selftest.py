"""The self-test of the native scan lowering, which `python -m triton.tools.scan_report` runs.

    python -m triton.tools.scan_selftest        one line of JSON for the device, then one a case

Small kernels in both directions, on the first GPU where torch has one, else compiled for sm_90 and
run in the PTX simulator (`triton.tools.ptx_sim`, which needs NumPy).  All values are small integers
in the dtype under test, so that every sum is exact and has to equal the sequential fold bit by bit.
Exit status 1 if a case is wrong or did not run.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import triton
import triton.language as tl


@triton.jit
def _then(a1, b1, a2, b2):
    # h -> a1*h + b1, then h -> a2*h + b2; not commutative
    return a2 * a1, a2 * b1 + b2


@triton.jit
def _later(i, j):
    # Keeps the argument that comes later in the direction: tells the order of the arguments.
    return j


@triton.jit
def _plus(a, b):
    return a + b


@triton.jit
def _sum(x, out, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + i)
    tl.store(out + i, tl.associative_scan(v, AXIS, _plus, reverse=REVERSE))


@triton.jit
def _recurrence(
    a, b, out, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr
):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    pair = tl.load(a + i), tl.load(b + i)
    _, h = tl.associative_scan(pair, AXIS, _then, reverse=REVERSE)
    tl.store(out + i, h)


@triton.jit
def _last(x, out, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + i, tl.associative_scan(tl.load(x + i), AXIS, _later, reverse=REVERSE))


def _fold_sum(rows: list) -> list:
    total, out = 0, []
    for (x,) in rows:
        total += x
        out.append(total)
    return out


def _fold_recurrence(rows: list) -> list:
    h, out = 0, []
    for a, b in rows:
        h = a * h + b
        out.append(h)
    return out


@dataclass(frozen=True)
class Case:
    """A kernel on arrays of `shape`, scanned along `axis`.

    fold(list of operand tuples) returns the forward results of one row; `operands` is the number of
    input arrays, whose values are from -1 to 1.
    """

    title: str
    kernel: object
    fold: Callable[[list], list]
    operands: int
    dtype: str
    shape: tuple[int, int]
    axis: int
    num_warps: int

    def constexprs(self, reverse: bool) -> dict:
        """Return the kernel's constexpr arguments."""
        return {"M": self.shape[0], "N": self.shape[1], "AXIS": self.axis, "REVERSE": reverse}


CASES = (
    Case("sum", _sum, _fold_sum, 1, "int32", (1, 1024), 1, 4),
    Case("sum", _sum, _fold_sum, 1, "int8", (1, 128), 1, 1),
    Case("sum", _sum, _fold_sum, 1, "float64", (2, 128), 1, 4),
    Case("sum", _sum, _fold_sum, 1, "float16", (1, 512), 1, 8),
    Case("sum", _sum, _fold_sum, 1, "bfloat16", (1, 128), 1, 1),
    Case("sum", _sum, _fold_sum, 1, "float32", (32, 32), 0, 4),
    Case("recurrence", _recurrence, _fold_recurrence, 2, "float32", (1, 1024), 1, 4),
    Case("argument order", _last, lambda rows: [x for (x,) in rows], 1, "int64", (128, 2), 0, 2),
)


class _Simulator:
    name = "the PTX simulator, compiled for sm_90"

    def __init__(self) -> None:
        import numpy  # noqa: F401  (before any case says that it is missing)

    def run(self, case: Case, inputs: list[list], reverse: bool) -> tuple[list, str]:
        """Return the output, flat, and the lowering (metadata.native_scan) it was compiled with."""
        import numpy as np
        from triton.tools.ptx_sim import Typed, compile_kernel, from_bf16, run_compiled, to_bf16

        is_bf16 = case.dtype == "bfloat16"

        def array(values: list) -> object:
            if is_bf16:
                return Typed(to_bf16(values), "bf16")
            return np.array(values, case.dtype)

        out = array([0] * len(inputs[0]))
        arguments = [*map(array, inputs), out]
        compiled, kept = compile_kernel(
            case.kernel, arguments, case.constexprs(reverse), num_warps=case.num_warps
        )
        run_compiled(compiled, 1, kept)
        values = from_bf16(out.array) if is_bf16 else out
        return values.tolist(), compiled.metadata.native_scan


class _Gpu:
    def __init__(self, torch) -> None:
        self.torch, self.name = torch, torch.cuda.get_device_name()

    def run(self, case: Case, inputs: list[list], reverse: bool) -> tuple[list, str]:
        """As _Simulator.run."""
        dtype = getattr(self.torch, case.dtype)
        arrays = [self.torch.tensor(x, dtype=dtype, device="cuda") for x in inputs]
        out = self.torch.zeros_like(arrays[0])
        options = case.constexprs(reverse) | {"num_warps": case.num_warps}
        compiled = case.kernel[(1,)](*arrays, out, **options)
        return out.cpu().tolist(), compiled.metadata.native_scan


def _device() -> _Simulator | _Gpu:
    try:
        import torch
    except ImportError:
        return _Simulator()
    return _Gpu(torch) if torch.cuda.is_available() else _Simulator()


def _inputs(case: Case) -> list[list]:
    """Return the operands, flat."""
    values = random.Random(0)
    count = case.shape[0] * case.shape[1]
    return [[values.randint(-1, 1) for _ in range(count)] for _ in range(case.operands)]


def expected(case: Case, inputs: list[list], reverse: bool) -> list:
    """Return the sequential fold in the direction, flat."""
    m, n = case.shape
    rows = [range(i * n, (i + 1) * n) for i in range(m)]
    if case.axis == 0:
        rows = [range(j, m * n, n) for j in range(n)]
    out = [0] * (m * n)
    for places in rows:
        places = places[::-1] if reverse else places
        values = case.fold([tuple(x[place] for x in inputs) for place in places])
        for place, value in zip(places, values, strict=True):
            out[place] = value
    return out


def _check(device: _Simulator | _Gpu, case: Case, reverse: bool) -> str:
    """Return 'right', or what is wrong in one line."""
    inputs = _inputs(case)
    try:
        got, lowering = device.run(case, inputs, reverse)
    except Exception as error:  # a report wants every case's own words
        return f"{type(error).__name__}: {' '.join(str(error).split())}"[:400]
    if not lowering.startswith("native-"):
        return f"compiled with another lowering ({lowering})"
    wanted = expected(case, inputs, reverse)
    wrong = [i for i, (g, w) in enumerate(zip(got, wanted, strict=True)) if g != w]
    if not wrong:
        return "right"
    i = wrong[0]
    return f"{len(wrong)} of {len(wanted)} values wrong, at {i} {got[i]} and not {wanted[i]}"


def run() -> Iterator[dict]:
    """Yield {"device": name}, then for each case {"case", "dtype", "shape", "axis", "reverse",
    "num_warps", "result"}, whose result is 'right' or says what is wrong.

    Raises ImportError where there is neither a GPU nor NumPy.
    """
    device = _device()
    yield {"device": device.name}
    for case in CASES:
        for reverse in (False, True):
            yield {
                "case": case.title,
                "dtype": case.dtype,
                "shape": list(case.shape),
                "axis": case.axis,
                "reverse": reverse,
                "num_warps": case.num_warps,
                "result": _check(device, case, reverse),
            }


def main() -> int:
    """Print the lines; returns the exit status."""
    results = []
    try:
        for line in run():
            print(json.dumps(line), flush=True)
            results.append(line.get("result", "right"))
    except ImportError as error:
        print(f"the simulator needs NumPy, `pip install numpy` ({error})", file=sys.stderr)
        return 1
    return 0 if all(result == "right" for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
