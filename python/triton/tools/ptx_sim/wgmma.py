"""wgmma: the matrix product of a warpgroup (4 warps) with operands in shared memory.

The product is complete when the instruction is: fence, commit_group and wait_group are only
counted, so a missing wait is not found. Operands in shared memory are checked as reads of the
warps (matrix A: of the warp that owns the rows; B: of all four). Sums: as for mma.
"""

from __future__ import annotations

import re

import numpy as np

from . import memory as mm
from .decode import MEM, Exec, Mods, instruction, unsupported
from .errors import PtxSyncError
from .float_ops import bits_of
from .matrix_ops import _ELEMENTS, _fragment_a

_WIDTH = {1: 128, 2: 64, 3: 32}  # swizzle mode of the descriptor -> bytes of a row


def _operand(S, ins, desc, rows, k, size, mn_major, warps):
    """Bits (rows, k) of the matrix that a descriptor names. warps: the warp that reads each row."""
    start, lead, stride = ((desc >> at & 0x3FFF) << 4 for at in (0, 16, 32))
    mode = desc >> 62
    if desc >> 49 & 7 or (mn_major and (mode == 0 or size != 2)):
        raise unsupported(ins, f"matrix descriptor {desc:#x}")
    width = _WIDTH.get(mode, 16)
    # addresses of pieces of 16 bytes: the swizzle moves nothing smaller
    if mn_major:
        j, r = np.arange(k)[:, None], np.arange(0, rows, 8)[None, :]
        span = width // 2
        at = r // span * lead + j // 8 * stride + j % 8 * width + r % span * 2
    else:
        r, b = np.arange(rows)[:, None], np.arange(0, k * size, 16)[None, :]
        at = r // 8 * stride + r % 8 * width + (b if mode else b // 16 * lead)
    at = at + start
    if mode:
        at = at ^ ((at >> 7 & (width // 16 - 1)) << 4)
    owner = warps[np.broadcast_to(r, at.shape).reshape(-1)] * 32
    at = at.reshape(-1)
    if S.regs.rank is not None:
        at = at + S.regs.rank[owner]
    raw = mm.read(S, "shared", at, 16, owner)
    dtype = np.dtype(f"u{size}")
    out = np.ascontiguousarray(raw).view(dtype)
    return out.reshape(k, rows).T if mn_major else out.reshape(rows, k)


@instruction("wgmma")
def _wgmma(dec, ins):
    mods = Mods(ins)
    op = mods.one(("fence", "commit_group", "wait_group", "mma_async"))
    if op is None or not (mods.flag("sync") and mods.flag("aligned")):
        raise unsupported(ins, "unknown form")
    if op != "mma_async":
        mods.done()
        dec.expect(ins, 1 if op == "wait_group" else 0)
        return Exec(MEM, lambda S, mask: None, (), "wgmma_sync")
    saturate = mods.flag("satfinite")
    shape, *types = mods.rest
    mods.rest.clear()
    m = re.fullmatch(r"m64n(\d+)k(\d+)", shape)
    if (
        m is None
        or len(types) != 3
        or types[0] not in ("f32", "s32")
        or any(t not in _ELEMENTS for t in types[1:])
    ):
        raise unsupported(ins, "unknown shape or types")
    n, k = int(m[1]), int(m[2])
    dt, ta, tb = types
    size = _ELEMENTS[ta][0] // 8
    if (
        k * size != 32
        or _ELEMENTS[tb][0] != size * 8
        or (saturate and dt != "s32")
        or (dt == "s32") != (ta in ("s8", "u8"))
    ):
        raise unsupported(ins, "unknown shape or types")
    in_registers = ins.operands[1][0] == "{"
    expected = 4 if dt == "s32" else 6 + (2 - in_registers if size == 2 else 0)
    ops = dec.expect(ins, expected)
    flags = [dec.constant(ins, o, "s32") for o in ops[4:]]
    scale = [-1 if f == 0xFFFFFFFF else f for f in flags[:2]] or [1, 1]
    turned = [bool(f) for f in flags[2:]]
    turned = [False] * (2 - len(turned)) + turned
    if scale[0] not in (1, -1) or scale[1] not in (1, -1):
        raise unsupported(ins, "unknown scale")
    names = dec.vector(ins, ops[0])
    if len(names) != n // 2:
        raise unsupported(ins, "wrong number of registers")
    puts = [dec.dst(ins, name, "b32") for name in names]
    old = [dec.src(ins, name, "b32") for name in names]
    if in_registers:
        ga = [dec.src(ins, name, "b32") for name in dec.vector(ins, ops[1])]
    else:
        ga = dec.src(ins, ops[1], "b64")
    gb, keep = dec.src(ins, ops[2], "b64"), dec.src(ins, ops[3], "pred")
    (_, dtype, decode_a), (_, _, decode_b) = _ELEMENTS[ta], _ELEMENTS[tb]
    lane = np.arange(128) % 32
    warp = np.arange(128) // 32
    i = np.arange(n // 2)[:, None]
    row = 16 * warp + lane // 4 + 8 * (i // 2 % 2)  # (registers, threads)
    col = 8 * (i // 4) + 2 * (lane % 4) + i % 2

    def product(S, group, desc_a, desc_b, fragments):
        warps = np.arange(4) + 4 * group
        if in_registers:
            a = fragments[4 * group : 4 * group + 4].reshape(64, k)
        else:
            rows = np.repeat(warps, 16)
            a = decode_a(
                np.ascontiguousarray(_operand(S, ins, desc_a, 64, k, size, turned[0], rows))
            )
        for w in warps:  # all four read B: the last one's value is as good as any
            b = _operand(S, ins, desc_b, n, k, size, turned[1], np.full(n, w))
        return (a @ decode_b(np.ascontiguousarray(b)).T) * (scale[0] * scale[1])

    def uniform(S, get, group, what):
        v = np.broadcast_to(get(S.regs), (S.threads,))[128 * group : 128 * group + 128]
        if (v != v[0]).any():
            S.fail(PtxSyncError, f"threads of a warpgroup give different {what}", None, 128 * group)
        return int(v[0])

    def run(S, mask):
        active = np.ones(S.threads, bool) if mask is None else mask
        if S.cta_threads % 128:
            S.fail(PtxSyncError, "wgmma in a block without whole warpgroups", None, 0)
        groups = active.reshape(-1, 128)
        whole = groups.all(axis=1)
        if (groups.any(axis=1) != whole).any():
            S.fail(
                PtxSyncError,
                "wgmma that only a part of a warpgroup executes",
                None,
                int(np.argmax(active)),
            )
        fragments = None
        if in_registers:
            v = np.stack([np.broadcast_to(g(S.regs), (S.threads,)) for g in ga])
            v = np.ascontiguousarray(v).view(dtype).reshape(len(ga), S.threads // 32, 32, -1)
            fragments = _fragment_a(decode_a(v), 4 // size, k)
        out = np.zeros((n // 2, S.threads), np.uint32)
        for group in np.flatnonzero(whole):
            at = slice(128 * group, 128 * group + 128)
            desc_a = 0 if in_registers else uniform(S, ga, group, "descriptors")
            total = product(S, group, desc_a, uniform(S, gb, group, "descriptors"), fragments)
            total = total[row, col]
            if uniform(S, keep, group, "scale-d"):
                c = np.stack([np.broadcast_to(g(S.regs), (S.threads,))[at] for g in old])
                c = c.view(np.float32 if dt == "f32" else np.int32)
                total = total + c.astype(total.dtype)
            if dt == "f32":
                out[:, at] = bits_of(total.astype(np.float32), "f32")
            else:
                total = np.clip(total, -(2**31), 2**31 - 1) if saturate else total
                out[:, at] = (total & 0xFFFFFFFF).astype(np.uint32)
        for (index, put), v in zip(puts, out, strict=True):
            S.merge(index, put, np.ascontiguousarray(v), mask)

    return Exec(MEM, run, tuple(p[0] for p in puts if p[0] >= 0), "mma")
