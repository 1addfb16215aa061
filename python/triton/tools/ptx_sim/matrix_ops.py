"""ldmatrix, stmatrix, movmatrix and mma.sync.

mma multiplies exactly and adds in float64, then rounds once to the accumulator's type: PTX
fixes neither the order nor the precision of the sums, hardware differs in the last bits.
"""

from __future__ import annotations

import re

import numpy as np

from . import memory as mm
from . import rounding as rd
from .decode import Mods, instruction, unsupported
from .float_ops import bits_of
from .warp_ops import synchronised

_ALL = "0xffffffff"


def _rows(S, addr, count):
    """Addresses of the 8 rows of each matrix: lane 8*m + r holds row r of matrix m."""
    a = np.broadcast_to(addr, (S.threads,)).reshape(-1, 32)
    return a[:, : 8 * count]


def _matrix_mods(mods, ins):
    shape, trans = mods.one(("m8n8",)), mods.flag("trans")
    count = mods.one(("x1", "x2", "x4"))
    ok = (
        mods.flag("sync")
        and mods.flag("aligned")
        and mods.one(("shared", "shared::cta"))
        and mods.flag("b16")
    )
    if not ok or shape is None or count is None:
        raise unsupported(ins, "unknown form")
    mods.done()
    return int(count[1]), trans


def _active_warps(S, mask):
    """The numbers of the warps that take part; a mask of None means all."""
    if mask is None:
        return np.arange(S.threads // 32)
    return np.flatnonzero(mask.reshape(-1, 32).any(axis=1))


@instruction("ldmatrix")
def _ldmatrix(dec, ins):
    count, trans = _matrix_mods(Mods(ins), ins)
    d, a = dec.expect(ins, 2)
    names = dec.vector(ins, d)
    if len(names) != count:
        raise unsupported(ins, "vector size and count differ")
    puts = [dec.dst(ins, n, "b32") for n in names]
    ga, _, _ = dec.address(ins, a, 16)

    def body(S, mask):
        warps = _active_warps(S, mask)
        rows = _rows(S, ga(S.regs), count)[warps]
        sel = (warps[:, None] * 32 + np.arange(8 * count)).reshape(-1)
        raw = mm.read(S, "shared", np.ascontiguousarray(rows).reshape(-1), 16, sel)
        m = np.ascontiguousarray(raw).view(np.uint16).reshape(len(warps), count, 8, 8)
        if trans:
            m = m.transpose(0, 1, 3, 2)
        words = np.ascontiguousarray(m).view(np.uint32).reshape(len(warps), count, 32)
        for k, (i, put) in enumerate(puts):
            full = np.zeros((S.threads // 32, 32), np.uint32)
            full[warps] = words[:, k]
            S.merge(i, put, full.reshape(-1), mask)

    return synchronised(dec, ins, _ALL, body, tuple(p[0] for p in puts if p[0] >= 0), "shared_load")


@instruction("stmatrix")
def _stmatrix(dec, ins):
    count, trans = _matrix_mods(Mods(ins), ins)
    a, d = dec.expect(ins, 2)
    names = dec.vector(ins, d)
    if len(names) != count:
        raise unsupported(ins, "vector size and count differ")
    gets = [dec.src(ins, n, "b32") for n in names]
    ga, _, _ = dec.address(ins, a, 16)

    def body(S, mask):
        warps = _active_warps(S, mask)
        words = np.stack(
            [np.broadcast_to(g(S.regs), (S.threads,)).reshape(-1, 32)[warps] for g in gets], axis=1
        )
        m = np.ascontiguousarray(words).view(np.uint16).reshape(len(warps), count, 8, 8)
        if trans:
            m = m.transpose(0, 1, 3, 2)
        raw = np.ascontiguousarray(m).reshape(-1, 8).view(np.uint64)
        rows = np.ascontiguousarray(_rows(S, ga(S.regs), count)[warps]).reshape(-1)
        sel = (warps[:, None] * 32 + np.arange(8 * count)).reshape(-1)
        mm.write(S, "shared", rows, 16, sel, raw)

    return synchronised(dec, ins, _ALL, body, (), "shared_store")


@instruction("movmatrix")
def _movmatrix(dec, ins):
    mods = Mods(ins)
    ok = all(mods.flag(m) for m in ("sync", "aligned", "m8n8", "trans", "b16"))
    mods.done()
    if not ok:
        raise unsupported(ins, "unknown form")
    d, a = dec.expect(ins, 2)
    i, put = dec.dst(ins, d, "b32")
    ga = dec.src(ins, a, "b32")

    def body(S, mask):
        v = np.ascontiguousarray(np.broadcast_to(ga(S.regs), (S.threads,)))
        m = v.view(np.uint16).reshape(-1, 8, 8).transpose(0, 2, 1)
        S.merge(i, put, np.ascontiguousarray(m).view(np.uint32).reshape(-1), mask)

    return synchronised(dec, ins, _ALL, body, (i,), "shuffle")


# -- mma ------------------------------------------------------------------------------
# element type: (bits, dtype of the bits, decode to float64 or int64)
_ELEMENTS = {
    "f16": (16, np.uint16, lambda v: v.view(np.float16).astype(np.float64)),
    "bf16": (16, np.uint16, lambda v: rd.bf16_to_f32(v).astype(np.float64)),
    "tf32": (
        32,
        np.uint32,
        lambda v: (v & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64),
    ),
    "e4m3": (8, np.uint8, lambda v: rd.fp8_to_f64(v, "e4m3")),
    "e5m2": (8, np.uint8, lambda v: rd.fp8_to_f64(v, "e5m2")),
    "s8": (8, np.uint8, lambda v: v.view(np.int8).astype(np.int64)),
    "u8": (8, np.uint8, lambda v: v.astype(np.int64)),
    "f64": (64, np.uint64, lambda v: v.view(np.float64)),
}
_SHAPES = {
    "f16": (8, 16),
    "bf16": (8, 16),
    "tf32": (4, 8),
    "e4m3": (16, 32),
    "e5m2": (16, 32),
    "s8": (16, 32),
    "u8": (16, 32),
}


def _fragment_a(regs, per, k):
    """(warps, 16, k) from registers (n, warps, 32, per): rows g and g+8, columns by pairs
    of register words: register 2j + h holds row g + 8h, columns (4 * per) * j + per * t."""
    n, warps = regs.shape[:2]
    r = regs.reshape(n // 2, 2, warps, 8, 4, per)  # j, h, warp, g, t, element
    return r.transpose(2, 1, 3, 0, 4, 5).reshape(warps, 16, k)


def _fragment_b(regs, per, k):
    """(warps, k, 8): register j holds column g, rows (4 * per) * j + per * t + element."""
    n, warps = regs.shape[:2]
    r = regs.reshape(n, warps, 8, 4, per)  # j, warp, g, t, element
    return r.transpose(1, 0, 3, 4, 2).reshape(warps, k, 8)


@instruction("mma")
def _mma(dec, ins):
    mods = Mods(ins)
    ok = mods.flag("sync") and mods.flag("aligned")
    shape = next((m for m in mods.rest if re.fullmatch(r"m\d+n\d+k\d+", m)), None)
    if not ok or shape is None:
        raise unsupported(ins, "unknown form")
    mods.rest.remove(shape)
    if not (mods.flag("row") and mods.flag("col")):
        raise unsupported(ins, "unknown layout")
    saturate = mods.flag("satfinite")
    if mods.flag("kind::f8f6f4"):
        pass  # e4m3/e5m2 operands have the layout of the plain form
    types = list(mods.rest)
    mods.rest.clear()
    m, n, k = map(int, re.findall(r"\d+", shape))
    if len(types) != 4 or types[1] not in _ELEMENTS or types[2] not in _ELEMENTS:
        raise unsupported(ins, "unknown types")
    dt, ta, tb, tc = types
    if (
        (m, n) != (16, 8)
        or ta not in _SHAPES
        or tb not in _SHAPES
        or k not in _SHAPES[ta]
        or k not in _SHAPES[tb]
        or dt != tc
        or dt not in ("f32", "f16", "s32")
        or (dt == "s32") != (ta in ("s8", "u8"))
        or (ta in ("s8", "u8")) != (tb in ("s8", "u8"))
    ):
        raise unsupported(ins, "unknown shape or types")
    if saturate and dt != "s32":
        raise unsupported(ins, "unknown modifier .satfinite")
    bits, dtype, decode_a = _ELEMENTS[ta]
    dtype_b, decode_b = _ELEMENTS[tb][1:]
    per = 32 // bits
    ops = [dec.vector(ins, o) for o in dec.expect(ins, 4)]
    nc = 2 if dt == "f16" else 4
    if [len(o) for o in ops] != [nc, k * 16 // (32 * per), k * 8 // (32 * per), nc]:
        raise unsupported(ins, "wrong number of registers")
    puts = [dec.dst(ins, o, "b32") for o in ops[0]]
    gets = [[dec.src(ins, o, "b32") for o in group] for group in ops[1:]]

    def load(S, group, kind):
        v = np.stack([np.broadcast_to(g(S.regs), (S.threads,)) for g in group])
        return v.view(kind).reshape(len(group), S.threads // 32, 32, -1)

    def body(S, mask):
        a = _fragment_a(decode_a(load(S, gets[0], dtype)), per, k)
        b = _fragment_b(decode_b(load(S, gets[1], dtype_b)), per, k)
        acc = a @ b  # (warps, 16, 8)
        c = load(S, gets[2], np.uint16 if dt == "f16" else np.uint32)
        if dt == "f16":  # register h: row g + 8h, columns 2t and 2t + 1
            c = c.view(np.float16).astype(np.float64)
        else:  # registers 2h, 2h + 1
            c = c.reshape(2, 2, *c.shape[1:3]).transpose(0, 2, 3, 1)
            c = np.ascontiguousarray(c).view(np.float32 if dt == "f32" else np.int32)
        warps = S.threads // 32
        c = c.reshape(2, warps, 8, 4, 2).transpose(1, 0, 2, 3, 4).reshape(warps, 16, 8)
        if dt == "s32":
            total = acc + c.astype(np.int64)
            if saturate:
                total = np.clip(total, -(2**31), 2**31 - 1)
            out = (total & 0xFFFFFFFF).astype(np.uint32)
        else:
            total = acc + c.astype(np.float64)
            out = bits_of(total.astype(np.float32), "f32") if dt == "f32" else bits_of(total, "f16")
        out = out.reshape(warps, 2, 8, 4, 2).transpose(1, 0, 2, 3, 4)  # h, warp, g, t, element
        if dt == "f16":
            words = np.ascontiguousarray(out).view(np.uint32).reshape(2, -1)
        else:
            words = np.ascontiguousarray(out.transpose(0, 4, 1, 2, 3)).reshape(4, -1)
        for (i, put), w in zip(puts, words, strict=True):
            S.merge(i, put, w, mask)

    return synchronised(dec, ins, _ALL, body, tuple(p[0] for p in puts if p[0] >= 0), "mma")
