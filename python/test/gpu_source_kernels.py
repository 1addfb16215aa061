"""The kernels of gpu_source.py, and what they are compared with."""

from __future__ import annotations

import itertools

import torch
import triton
import triton.language as tl

ROWS = 7


@triton.jit
def _add(a, b):
    return a + b


@triton.jit
def _affine(a1, b1, a2, b2):
    return a2 * a1, a2 * b1 + b2


@triton.jit
def _scan_rows(x_ptr, z_ptr, N: tl.constexpr, R: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + i)
    for _ in range(R):
        x = tl.associative_scan(x, 0, _add, reverse=REVERSE)
    tl.store(z_ptr + i, x)


@triton.jit
def _recur_rows(a_ptr, x_ptr, z_ptr, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    _, y = tl.associative_scan(
        (tl.load(a_ptr + i), tl.load(x_ptr + i)), 0, _affine, reverse=REVERSE
    )
    tl.store(z_ptr + i, y)


@triton.jit
def _scan_tile(
    x_ptr, z_ptr, T: tl.constexpr, D: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr
):
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :] + tl.program_id(0) * T * D
    tl.store(z_ptr + i, tl.associative_scan(tl.load(x_ptr + i), AXIS, _add, reverse=REVERSE))


@triton.jit
def _matmul(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rows[:, None] * K + (k + inner)[None, :])
        b = tl.load(b_ptr + (k + inner)[:, None] * N + columns[None, :])
        total = tl.dot(a, b, total)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], total)


@triton.jit
def _attention(
    q_ptr, k_ptr, v_ptr, o_ptr, T, scale, D: tl.constexpr, BQ: tl.constexpr, BK: tl.constexpr
):
    # One head a program of the second axis; a causal mask; softmax over the keys seen so far.
    head = tl.program_id(1) * T * D
    queries = tl.program_id(0) * BQ + tl.arange(0, BQ)
    dims = tl.arange(0, D)
    q = tl.load(q_ptr + head + queries[:, None] * D + dims[None, :])
    greatest = tl.full((BQ,), float("-inf"), tl.float32)
    weight = tl.zeros((BQ,), tl.float32)
    out = tl.zeros((BQ, D), tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BQ, BK):
        keys = start + tl.arange(0, BK)
        k = tl.load(k_ptr + head + keys[None, :] * D + dims[:, None])
        scores = tl.dot(q, k) * scale
        scores = tl.where(queries[:, None] >= keys[None, :], scores, float("-inf"))
        new = tl.maximum(greatest, tl.max(scores, 1))
        p = tl.exp(scores - new[:, None])
        shrink = tl.exp(greatest - new)
        weight = weight * shrink + tl.sum(p, 1)
        v = tl.load(v_ptr + head + keys[:, None] * D + dims[None, :])
        out = out * shrink[:, None] + tl.dot(p.to(v.dtype), v)
        greatest = new
    tl.store(o_ptr + head + queries[:, None] * D + dims[None, :], out / weight[:, None])


def _cumsum(x: torch.Tensor, dim: int, reverse: bool) -> torch.Tensor:
    return x.flip(dim).cumsum(dim).flip(dim) if reverse else x.cumsum(dim)


def _recurrence(a: torch.Tensor, x: torch.Tensor, reverse: bool) -> torch.Tensor:
    if reverse:
        return _recurrence(a.flip(1), x.flip(1), False).flip(1)
    y, last = torch.empty_like(x), torch.zeros_like(x[:, 0])
    for t in range(x.shape[1]):
        last = y[:, t] = a[:, t] * last + x[:, t]
    return y


class _Comparison:
    """Counts what was compared and says what was wrong."""

    def __init__(self) -> None:
        self.compared = self.wrong = 0

    def __call__(self, name: object, got: torch.Tensor, wanted: torch.Tensor, tolerance: float):
        self.compared += 1
        error = ((got.double() - wanted.double()).norm() / wanted.double().norm()).item()
        if not error <= tolerance:  # NaN is wrong too
            self.wrong += 1
            print(f"WRONG {name}: relative error {error:.2e}", flush=True)


def _empty(x: torch.Tensor) -> torch.Tensor:
    return torch.full_like(x, float("nan") if x.is_floating_point() else -1)


def check_scans() -> tuple[int, int]:
    """Compare scans of both directions with torch; return (compared, wrong)."""
    check = _Comparison()
    grid = (ROWS,)
    directions = (False, True)
    sizes = [(8, 4), (64, 4), (128, 1), (1024, 1), (1024, 4), (1024, 8), (4096, 8), (8192, 16)]
    for (n, warps), reverse in itertools.product(sizes, directions):
        name = (n, warps, "reverse" if reverse else "forward")
        for dtype, repeats in itertools.product((torch.int32, torch.int64, torch.int8), (1, 3)):
            # Wrapping integers: exact whatever the order.
            x = torch.randint(-100, 100, (ROWS, n), device="cuda").to(dtype)
            z, wanted = _empty(x), x.clone()
            _scan_rows[grid](x, z, N=n, R=repeats, REVERSE=reverse, num_warps=warps)
            for _ in range(repeats):
                wanted = _cumsum(wanted.long(), 1, reverse).to(dtype)
            check(("sum", dtype, repeats, *name), z, wanted, 0)
        x = torch.randn(ROWS, n, device="cuda")
        a = torch.rand(ROWS, n, device="cuda")
        z = _empty(x)
        _recur_rows[grid](a, x, z, N=n, REVERSE=reverse, num_warps=warps)
        check(("recurrence", *name), z, _recurrence(a.double(), x.double(), reverse), 1e-5)
    tiles = [(64, 64, 4), (128, 32, 4), (256, 16, 4), (64, 16, 1), (16, 256, 8), (512, 4, 16)]
    for (t, d, warps), axis, reverse in itertools.product(tiles, (0, 1), directions):
        x = torch.randint(-(2**30), 2**30, (ROWS, t, d), device="cuda", dtype=torch.int32)
        z = _empty(x)
        _scan_tile[grid](x, z, T=t, D=d, AXIS=axis, REVERSE=reverse, num_warps=warps)
        wanted = _cumsum(x.long(), axis + 1, reverse).to(torch.int32)
        check(("tile", t, d, warps, axis, reverse), z, wanted, 0)
    return check.compared, check.wrong


def check_others() -> tuple[int, int]:
    """Compare a matrix product and attention with torch; return (compared, wrong)."""
    check = _Comparison()
    torch.manual_seed(0)
    for dtype, tolerance in ((torch.float16, 1e-3), (torch.bfloat16, 4e-3)):
        for m, n, k in ((128, 128, 64), (512, 256, 1024)):
            a = torch.randn(m, k, device="cuda", dtype=dtype)
            b = torch.randn(k, n, device="cuda", dtype=dtype)
            for bm, bn, bk, warps in ((64, 64, 32, 4), (128, 128, 64, 8)):
                c = _empty(torch.empty(m, n, device="cuda", dtype=dtype))
                _matmul[(m // bm, n // bn)](a, b, c, m, n, k, BM=bm, BN=bn, BK=bk, num_warps=warps)
                name = ("matmul", dtype, m, n, k, bm, bn, bk, warps)
                check(name, c, a.double() @ b.double(), tolerance)
        for length, dim in ((256, 64), (512, 128)):
            q, k, v = (torch.randn(3, length, dim, device="cuda", dtype=dtype) for _ in range(3))
            out = _empty(q)
            _attention[(length // 64, 3)](
                q, k, v, out, length, dim**-0.5, D=dim, BQ=64, BK=64, num_warps=4
            )
            scores = q.double() @ k.double().transpose(1, 2) * dim**-0.5
            mask = torch.ones(length, length, device="cuda", dtype=torch.bool).tril()
            wanted = scores.masked_fill(~mask, float("-inf")).softmax(-1) @ v.double()
            check(("attention", dtype, length, dim), out, wanted, 5 * tolerance)
    return check.compared, check.wrong
