"""Instructions that look across the lanes of a warp: shfl, vote, match, redux, elect."""

from __future__ import annotations

import numpy as np

from .decode import BITS, CONTROL, MEM, Exec, Mods, instruction, unsupported
from .errors import PtxSyncError
from .float_ops import _VIEWS, min_max_float


def synchronised(dec, ins, member, body, dsts, opclass):
    """CONTROL closure of a .sync instruction: a warp proceeds when all lanes of its member
    mask that have not exited are here, and its lanes agree that they are members."""
    const = dec.constant(ins, member)
    get = dec.src(ins, member, "b32")
    full = const == 0xFFFFFFFF

    def run(S, pc, mask):
        if mask is None and full:
            body(S, None)
            return pc + 1
        here = S.arrived_here(pc, mask)
        members = np.broadcast_to(get(S.regs), (S.threads,))
        lanes = here.reshape(-1, 32)
        active = S.pack(lanes)
        alive = S.pack(S.alive.reshape(-1, 32))
        need = members.reshape(-1, 32)
        first = np.where(
            lanes.any(axis=1),
            np.take_along_axis(need, lanes.argmax(axis=1)[:, None], axis=1)[:, 0],
            0,
        ).astype(np.uint32)
        same = ((need == first[:, None]) | ~lanes).all(axis=1)
        if not same.all():
            S.fail(
                PtxSyncError,
                "lanes of one warp give different member masks",
                None,
                int(np.flatnonzero(~same)[0]) * 32,
            )
        outside = active & ~first
        if outside.any():
            S.fail(
                PtxSyncError,
                "an executing lane is not in its own member mask",
                None,
                int(np.flatnonzero(outside)[0]) * 32,
            )
        ready = (active != 0) & ((first & alive & ~active) == 0)
        go = here & np.repeat(ready, 32)
        if go.any():
            body(S, None if go.all() else go)
        return S.proceed(pc, here, go)

    return Exec(CONTROL, run, dsts, opclass)


@instruction("shfl")
def _shfl(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    sync = mods.flag("sync")
    mode = mods.one(("up", "down", "bfly", "idx"))
    mods.done()
    if not sync or mode is None or ty != "b32":
        raise unsupported(ins, "unknown form")
    d, a, b, c, member = dec.expect(ins, 5)
    d, _, p = (s.strip() for s in d.partition("|"))
    i, put = dec.dst(ins, d, "b32")
    j, putp = dec.dst(ins, p, "pred") if p else (-1, None)
    ga, gb, gc = dec.src(ins, a, "b32"), dec.src(ins, b, "u32"), dec.src(ins, c, "u32")
    const = dec.constant(ins, b) is not None and dec.constant(ins, c) is not None
    member_full = dec.constant(ins, member) == 0xFFFFFFFF
    gm = dec.src(ins, member, "u32")
    cache = {}

    def source(S):
        """(thread to read from, in range) for every thread."""
        R = S.regs
        lane = S.lane
        bval, cval = (gb(R) & 31).astype(np.int64), (gc(R) & 31).astype(np.int64)
        seg = (gc(R) >> 8 & 31).astype(np.int64)
        last = (lane & seg) | (cval & ~seg & 31)
        if mode == "up":
            src = lane - bval
            ok = src >= last
        else:
            if mode == "down":
                src = lane + bval
            elif mode == "bfly":
                src = lane ^ bval
            else:
                src = (lane & seg) | (bval & ~seg & 31)
            ok = src <= last
        return np.where(ok, S.tid - lane + src, S.tid), ok

    def body(S, mask):
        if const:
            if S.threads not in cache:
                cache[S.threads] = source(S)
            src, ok = cache[S.threads]
        else:
            src, ok = source(S)
        value = np.broadcast_to(ga(S.regs), (S.threads,))
        if mask is not None or not member_full:
            inside = np.ones(S.threads, bool) if mask is None else mask
            member = np.broadcast_to(gm(S.regs), (S.threads,))
            listed = (member >> (src & 31).astype(np.uint32) & 1).astype(bool)
            bad = inside & ok & ~(inside[src] & listed)
            if bad.any():
                t = int(np.flatnonzero(bad)[0])
                S.fail(
                    PtxSyncError,
                    f"shfl reads lane {int(src[t]) % 32}, which does not take part",
                    None,
                    t,
                )
        S.merge(i, put, value[src], mask)
        if putp:
            S.merge(j, putp, ok, mask)

    dsts = tuple(x for x in (i, j) if x >= 0)
    return synchronised(dec, ins, member, body, dsts, "shuffle")


@instruction("vote")
def _vote(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    sync = mods.flag("sync")
    mode = mods.one(("all", "any", "uni", "ballot"))
    mods.done()
    if not sync or mode is None or (ty == "b32") != (mode == "ballot"):
        raise unsupported(ins, "unknown form")
    d, a, member = dec.expect(ins, 3)
    i, put = dec.dst(ins, d, ty)
    ga = dec.src(ins, a, "pred")

    def body(S, mask):
        v = np.broadcast_to(ga(S.regs), (S.threads,)).reshape(-1, 32)
        m = np.ones_like(v) if mask is None else mask.reshape(-1, 32)
        yes = v & m
        if mode == "ballot":
            out = S.pack(yes)
        elif mode == "all":
            out = (yes == m).all(axis=1)
        elif mode == "any":
            out = yes.any(axis=1)
        else:
            out = (yes == m).all(axis=1) | ~yes.any(axis=1)
        S.merge(i, put, np.repeat(out, 32), mask)

    return synchronised(dec, ins, member, body, (i,), "vote")


@instruction("activemask")
def _activemask(dec, ins):
    mods = Mods(ins)
    mods.type()
    mods.done()
    (d,) = dec.expect(ins, 1)
    i, put = dec.dst(ins, d, "b32")

    def run(S, mask):
        m = np.ones(S.threads, bool) if mask is None else mask
        S.merge(i, put, np.repeat(S.pack(m.reshape(-1, 32)), 32), mask)

    return Exec(MEM, run, (i,), "vote")


@instruction("match")
def _match(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    mode = mods.one(("any", "all"))
    if not mods.flag("sync") or mode is None:
        raise unsupported(ins, "unknown form")
    mods.done()
    d, a, member = dec.expect(ins, 3)
    d, _, p = (s.strip() for s in d.partition("|"))
    i, put = dec.dst(ins, d, "b32")
    j, putp = dec.dst(ins, p, "pred") if p else (-1, None)
    ga = dec.src(ins, a, f"b{BITS[ty]}")

    def body(S, mask):
        v = np.broadcast_to(ga(S.regs), (S.threads,)).reshape(-1, 32)
        m = (np.ones(S.threads, bool) if mask is None else mask).reshape(-1, 32)
        equal = (v[:, :, None] == v[:, None, :]) & m[:, None, :]
        if mode == "any":
            out = S.pack(equal.reshape(-1, 32))
        else:
            every = (equal == m[:, None, :]).all(axis=2)
            out = np.where(every, S.pack(m)[:, None], np.uint32(0)).reshape(-1)
            if putp:
                S.merge(j, putp, every.reshape(-1), mask)
        S.merge(i, put, out, mask)

    return synchronised(dec, ins, member, body, tuple(x for x in (i, j) if x >= 0), "vote")


@instruction("redux")
def _redux(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    op = mods.one(("add", "min", "max", "and", "or", "xor"))
    absolute, nan = mods.flag("abs"), mods.flag("NaN")
    if not mods.flag("sync") or op is None:
        raise unsupported(ins, "unknown form")
    mods.done()
    is_float = ty == "f32"
    if (is_float and op not in ("min", "max")) or ((absolute or nan) and not is_float):
        raise unsupported(ins, "unknown form")
    d, a, member = dec.expect(ins, 3)
    i, put = dec.dst(ins, d, ty)
    ga = dec.src(ins, a, ty)
    ufunc = {
        "add": np.add,
        "min": np.minimum,
        "max": np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }[op]

    def body(S, mask):
        v = np.broadcast_to(ga(S.regs), (S.threads,)).reshape(-1, 32)
        m = (np.ones(S.threads, bool) if mask is None else mask).reshape(-1, 32)
        if is_float:
            _, view, canonical = _VIEWS["f32"]
            bits = np.ascontiguousarray(np.abs(v) if absolute else v).view(np.uint32)
            # a lane that is absent repeats a lane that is present
            first = np.take_along_axis(bits, m.argmax(axis=1)[:, None], axis=1)
            bits = np.where(m, bits, first)
            while bits.shape[1] > 1:
                n = bits.shape[1] // 2
                bits = min_max_float(
                    np.ascontiguousarray(bits[:, :n]),
                    np.ascontiguousarray(bits[:, n:]),
                    view,
                    op == "max",
                    nan,
                    canonical,
                )
            out = bits[:, 0]
        else:
            if op in ("add", "or", "xor"):
                neutral = v.dtype.type(0)
            elif op == "and":
                neutral = ~v.dtype.type(0)
            else:
                info = np.iinfo(v.dtype)
                neutral = v.dtype.type(info.max if op == "min" else info.min)
            out = ufunc.reduce(np.where(m, v, neutral), axis=1, dtype=v.dtype)
        S.merge(i, put, np.repeat(out, 32), mask)

    return synchronised(dec, ins, member, body, (i,), "redux")


@instruction("elect")
def _elect(dec, ins):
    mods = Mods(ins)
    if not mods.flag("sync"):
        raise unsupported(ins, "unknown form")
    mods.done()
    d, member = dec.expect(ins, 2)
    d, _, p = (s.strip() for s in d.partition("|"))
    i, put = dec.dst(ins, d, "b32")
    j, putp = dec.dst(ins, p, "pred")

    def body(S, mask):
        m = (np.ones(S.threads, bool) if mask is None else mask).reshape(-1, 32)
        lane = m.argmax(axis=1).astype(np.uint32)  # any one lane: here the lowest
        S.merge(j, putp, S.lane == np.repeat(lane, 32), mask)
        if i >= 0:
            S.merge(i, put, np.repeat(lane, 32), mask)

    return synchronised(dec, ins, member, body, tuple(x for x in (i, j) if x >= 0), "vote")
