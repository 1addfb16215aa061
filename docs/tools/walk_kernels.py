"""The kernels whose scans docs/lowering.md draws."""

import triton
import triton.language as tl


@triton.jit
def scan_rows(x, out, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + i, tl.cumsum(tl.load(x + i), AXIS, reverse=REVERSE))


@triton.jit
def scan_in_loop(
    x, out, n, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr
):
    i = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + i)
    for _ in range(n):
        v = tl.cumsum(v, AXIS, reverse=REVERSE) * 0.5
    tl.store(out + i, v)
