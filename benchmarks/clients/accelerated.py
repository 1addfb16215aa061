"""accelerated-scan's recurrences (its Triton and CUDA kernels) beside our example of the same.

The shapes are those of its own benchmark: 8 sequences of 1536 channels.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import torch
from cases import Case, Draw, Problem
from references import in_float64, recurrence, with_gradients
from torch import Tensor

EXAMPLES = Path(__file__).parents[2] / "examples"
# Length, and whether the backward pass is run too (see _shape for 256).
RUNS = ((256, False), (2048, True), (16384, False), (16384, True))

Scan = Callable[[Tensor, Tensor], Tensor]
_not_built: list[Exception] = []


def _scalar() -> Scan:
    from accelerated_scan.scalar import scan

    return scan


def _warp() -> Scan:
    """Compiles the CUDA kernel with nvcc, once."""
    if _not_built:
        raise _not_built[0]
    try:
        from accelerated_scan.warp import scan
    except Exception as error:
        # A second import would complain about the library that is missing, not about the reason.
        _not_built.append(error)
        raise
    return scan


def _example() -> Scan:
    sys.path.append(str(EXAMPLES))
    from linear_recurrence import linear_recurrence

    return linear_recurrence


def _complex() -> Scan:
    from accelerated_scan.complex import scan

    return scan


def _shape(load: Callable[[], Scan], size: str, length: int, backward: bool) -> tuple[int, ...]:
    if size == "time":
        return 8, 1536, length
    # Several blocks of 2048, the last one not full: but accelerated-scan's Triton kernel of the
    # backward pass reads past the end of such states (scalar.py, line 81 of 0.3.1, has no mask for
    # it; the simulator refuses that), and its CUDA kernel takes powers of two alone.
    whole = load is _warp or (load is _scalar and backward)
    batch, channels = (2, 24) if size == "check" else (1, 1)
    return batch, channels, 4096 if whole else 5000


def _build(
    load: Callable[[], Scan], size: str, length: int, backward: bool, device: torch.device
) -> Problem:
    scan, draw = load(), Draw(device)
    shape = _shape(load, size, length, backward)
    inputs = {
        "gates": draw.uniform(*shape, low=0.5, high=1.0),
        "tokens": draw.normal(*shape),
    }
    if load is _complex:
        angle = draw.uniform(*shape, low=-1.0, high=1.0)
        inputs["gates"] = torch.polar(inputs["gates"], angle)
        inputs["tokens"] = torch.complex(inputs["tokens"], draw.normal(*shape))
    if backward:
        run = with_gradients(lambda gates, tokens: scan(gates, tokens), inputs)
        return Problem(run, with_gradients(recurrence, in_float64(inputs)))
    return Problem(
        lambda: {"output 0": scan(inputs["gates"], inputs["tokens"])},
        lambda: {"output 0": recurrence(**in_float64(inputs))},
    )


def _case(client: str, name: str, load: Callable[[], Scan], length: int, backward: bool) -> Case:
    passes = "forward and backward" if backward else "forward"
    group = f"8 x 1536 x {length}, {passes}"

    def build(device: torch.device, size: str) -> Problem:
        return _build(load, size, length, backward, device)

    # The first of the CUDA kernel's cases waits for nvcc; the others find what it built.
    slow = load is _warp and (length, backward) == RUNS[0]
    name = f"{name}, {group}"
    return Case(client, name, build, 1e-5, group, knob=load is not _warp, slow=slow)


CASES = [
    _case("accelerated-scan", "complex.scan (Triton)", _complex, 2048, True),
    *(
        _case(client, name, load, length, backward)
        for client, name, load in (
            ("accelerated-scan", "scalar.scan (Triton)", _scalar),
            ("accelerated-scan", "warp.scan (CUDA)", _warp),
            ("our example", "linear_recurrence", _example),
        )
        for length, backward in RUNS
    ),
]
