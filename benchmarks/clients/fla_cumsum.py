"""fla-core's cumulative sums, on which its chunked attention kernels are built."""

from __future__ import annotations

import torch
from cases import Case, Draw, Problem
from references import additive_gate, cumsum, in_float64, with_gradients

CHUNK = 64
SHAPES = {"check": (2, 1000, 4, 96), "time": (8, 8192, 8, 64), "tiny": (1, 70, 1, 33)}


def _cumsum(scope: str, vector: bool, reverse: bool) -> Case:
    def build(device: torch.device, size: str) -> Problem:
        from fla.ops.utils import chunk_global_cumsum, chunk_local_cumsum

        *shape, features = SHAPES[size]
        if not vector and size == "time":
            shape[2] *= 16  # the elements of a vector gate would be too many
        x = Draw(device).normal(*shape, *([features] if vector else []))

        def run() -> dict:
            if scope == "chunk":
                return {"output": chunk_local_cumsum(x, CHUNK, reverse=reverse)}
            return {"output": chunk_global_cumsum(x, reverse=reverse)}

        def reference() -> dict:
            chunk = CHUNK if scope == "chunk" else 0
            return {"output": cumsum(x.double(), 1, reverse, chunk)}

        return Problem(run, reference)

    kind = "vectors" if vector else "scalars"
    title = f"cumsum of {kind}, {scope}{', reverse' if reverse else ''}"
    return Case("fla-core", title, build, 1e-5)


def _additive_gate(device: torch.device, size: str) -> Problem:
    """Log-sum-exp forward; a recurrence from the right backward, as a scan over mirrored loads."""
    from fla.ops.gsa.gate import fused_additive_gate

    inputs = {"x": Draw(device).normal(*SHAPES[size])}
    run = with_gradients(lambda x: fused_additive_gate(x)[:2], inputs)
    return Problem(run, with_gradients(additive_gate, in_float64(inputs)))


CASES = [
    *(
        _cumsum(scope, vector, reverse)
        for scope in ("chunk", "global")
        for vector in (False, True)
        for reverse in (False, True)
    ),
    Case("fla-core", "additive gate, forward and backward", _additive_gate, 1e-5),
]
