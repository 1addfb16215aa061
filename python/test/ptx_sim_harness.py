"""Runs a few PTX instructions, one thread an element, for the simulator's tests."""

from __future__ import annotations

import numpy as np
from triton.tools.ptx_sim import launch

HEADER = ".version 8.6\n.target sm_90a\n.address_size 64\n"
_LETTER = {1: "b8", 2: "b16", 4: "b32", 8: "b64"}


def module(body: str, params: str = "", name: str = "t", before: str = "") -> str:
    """A module with one kernel; `params` like ".param .u64 p0"."""
    return f"{HEADER}{before}\n.visible .entry {name}({params})\n{{\n{body}\n}}\n"


def execute(body: str, inputs: dict, outputs: dict, regs: str = "", before: str = "") -> dict:
    """Runs `body` with %name holding inputs[name][thread] and returns what it left in the
    registers named by `outputs` (name -> dtype). All inputs have the same multiple of 32
    elements; 8-bit values live in 16-bit registers."""
    n = len(next(iter(inputs.values())))
    results = {name: np.zeros(n, dtype) for name, dtype in outputs.items()}
    arrays = {**inputs, **results}
    lines = [".reg .b32 %idx;", ".reg .b64 %ptr, %off;", regs]
    for name, a in arrays.items():
        lines.append(f".reg .b{max(a.dtype.itemsize, 2) * 8} %{name};")
    lines.append("mov.u32 %idx, %tid.x;")
    for k, (name, a) in enumerate(inputs.items()):
        lines += [
            f"ld.param.u64 %ptr, [p{k}];",
            f"mul.wide.u32 %off, %idx, {a.itemsize};",
            "add.s64 %ptr, %ptr, %off;",
            f"ld.global.{_LETTER[a.itemsize]} %{name}, [%ptr];",
        ]
    lines.append(body)
    for k, (name, a) in enumerate(results.items(), len(inputs)):
        lines += [
            f"ld.param.u64 %ptr, [p{k}];",
            f"mul.wide.u32 %off, %idx, {a.itemsize};",
            "add.s64 %ptr, %ptr, %off;",
            f"st.global.{_LETTER[a.itemsize]} [%ptr], %{name};",
        ]
    lines.append("ret;")
    params = ", ".join(f".param .u64 p{k}" for k in range(len(arrays)))
    launch(
        module("\n".join(lines), params, before=before),
        1,
        [np.ascontiguousarray(a) for a in inputs.values()] + list(results.values()),
        num_warps=n // 32,
    )
    return results


def integers(dtype, n: int, seed: int = 0) -> np.ndarray:
    """Edge values first, then random ones of all magnitudes."""
    rng = np.random.default_rng(seed)
    info = np.iinfo(dtype)
    edges = [0, 1, 2, info.max, info.max - 1, info.min, info.min + 1, 31, 32, 33]
    edges += [-1, -2] if info.min < 0 else [info.max // 2, info.max // 2 + 1]
    raw = rng.integers(0, 2**63, n, dtype=np.uint64) * np.uint64(2) + rng.integers(
        0, 2, n, dtype=np.uint64
    )
    values = (raw >> rng.integers(0, 64, n, dtype=np.uint64)).astype(f"u{info.bits // 8}")
    values = values.view(dtype)
    rng.shuffle(edges)
    values[: len(edges)] = edges
    return values


def floats(dtype, n: int, seed: int = 0) -> np.ndarray:
    """Every kind of float: zeros, subnormals, infinities, NaN, powers of two and their
    neighbours, random bit patterns, and values near one."""
    rng = np.random.default_rng(seed)
    info = np.finfo(dtype)
    edges = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        np.inf,
        -np.inf,
        np.nan,
        info.max,
        -info.max,
        info.tiny,
        -info.tiny,
        info.smallest_subnormal,
        -info.smallest_subnormal,
        0.5,
        1.5,
        2.0,
        3.0,
        1 + info.eps,
        1 - info.epsneg,
        info.tiny * (1 - info.epsneg),
    ]
    size = np.dtype(dtype).itemsize
    bits = rng.integers(0, 2**64, n, dtype=np.uint64).astype(f"u{size}").view(dtype)
    near = rng.standard_normal(n).astype(dtype)
    out = np.where(rng.random(n) < 0.5, bits, near).astype(dtype)
    rng.shuffle(edges)
    out[: len(edges)] = np.array(edges, dtype)
    return out


def same_floats(got: np.ndarray, want: np.ndarray) -> None:
    """Bitwise equal, any NaN equal to any NaN."""
    u = f"u{got.dtype.itemsize}"
    want = want.astype(got.dtype)
    bad = (got.view(u) != want.view(u)) & ~(np.isnan(got) & np.isnan(want))
    assert not bad.any(), [(int(i), got[i], want[i]) for i in np.flatnonzero(bad)[:5]]
