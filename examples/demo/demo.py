"""Compile the example kernels in both directions with both lowerings of scans, and print what they
cost.

The kernels run on a CUDA device or, where there is none, compiled for sm_90, in the PTX simulator,
and are compared with a sequential fold, in float64 for floats.  Exit status 1 if a value is wrong
or the native lowering is not available.
"""

from __future__ import annotations

import os
import sys
import tempfile

import numpy as np

# Fixed before triton is imported: it reads this once, and would warn without it.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

import triton
from cuda import CudaError, Device
from kernels import EXAMPLES, Example
from simulator import Simulator
from triton import native_scan
from triton.backends.compiler import GPUTarget
from triton.tools.asm_counts import Counts, count_ptx


def compile_example(example: Example, reverse: bool, native: bool, capability: int):
    """Return the compiled kernel."""
    source = triton.compiler.ASTSource(
        example.kernel, signature=example.signature, constexprs={"REVERSE": reverse}
    )
    with triton.knobs.scan.scope():
        triton.knobs.scan.native = native
        target = GPUTarget("cuda", capability, 32)
        return triton.compile(source, target=target, options={"num_warps": example.num_warps})


def check_values(example: Example, compiled, reverse: bool, device: Device | Simulator) -> str:
    """Run the kernel and return 'right' or what is wrong."""
    inputs = example.inputs(np.random.default_rng(0))
    expected = example.expected(inputs, reverse)
    outputs = tuple(np.zeros(y.shape, x.dtype) for y, x in zip(expected, inputs * 2, strict=False))
    device.run(compiled, inputs, outputs)
    for got, wanted in zip(outputs, expected, strict=True):
        error = np.abs(got - wanted) / np.maximum(np.abs(wanted), 1.0)
        if not error.max() <= example.tolerance:
            return f"WRONG at {int(error.argmax())}"
    return "right"


def _columns(ours: Counts, theirs: Counts) -> list[str]:
    pairs = (
        (ours.shuffles, theirs.shuffles),
        (ours.barriers, theirs.barriers),
        (ours.instructions, theirs.instructions),
    )
    return [f"{mine:5} /{other:5}" for mine, other in pairs]


def main() -> int:
    """Print the table; returns the exit status."""
    state = native_scan.status()
    print(f"triton from {os.path.dirname(triton.__file__)}")  # noqa: PTH120
    if not state.available:
        print(f"error: the native lowering is not available: {state.reason}", file=sys.stderr)
        return 1
    try:
        device = Device()
        print(f"running on {device.name} (sm_{device.capability})")
    except CudaError as error:
        device = Simulator()
        print(f"running in {device.name}, compiled for sm_{device.capability} ({error})")
    print("\nin each column: native lowering / upstream's (TRITON_NATIVE_SCAN=0)\n")
    line = "{:20} {:8} {:>6} {:>12} {:>12} {:>12}  {}"
    header = line.format(
        "kernel", "scan", "warps", "shuffles", "barriers", "instructions", "values"
    )
    print(header, "-" * len(header), sep="\n")
    wrong = 0
    with tempfile.TemporaryDirectory() as cache, triton.knobs.cache.scope():
        triton.knobs.cache.dir = cache
        for example in EXAMPLES:
            for reverse in (False, True):
                ours, theirs = (
                    compile_example(example, reverse, native, device.capability)
                    for native in (True, False)
                )
                values = check_values(example, ours, reverse, device)
                wrong += values.startswith("WRONG")
                counts = _columns(count_ptx(ours.asm["ptx"]), count_ptx(theirs.asm["ptx"]))
                direction = "reverse" if reverse else "forward"
                print(
                    line.format(example.title, direction, example.num_warps, *counts, values),
                    flush=True,
                )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
