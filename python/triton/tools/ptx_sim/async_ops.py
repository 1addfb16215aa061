"""cp.async (data arrives when it is waited for) and mbarrier (arrivals and phases).

The destination of a cp.async counts as written at issue for the race rules, and as holding
nothing until the wait of its own thread; the data is the source's at issue. Other warps see
it after a barrier that follows the wait.
"""

from __future__ import annotations

import numpy as np

from . import memory as mm
from .decode import MEM, Exec, Mods, instruction, unsupported
from .errors import PtxSyncError
from .memory_ops import CACHE, HINTS


@instruction("cp")
def _cp(dec, ins):
    mods = Mods(ins)
    if not mods.flag("async"):
        raise unsupported(ins, "unknown form")
    if mods.flag("commit_group"):
        mods.done()
        dec.expect(ins, 0)
        return Exec(MEM, _commit, (), "async")
    if mods.flag("wait_all"):
        mods.done()
        dec.expect(ins, 0)
        return Exec(MEM, lambda S, mask: _wait(S, mask, None), (), "async_wait")
    if mods.flag("wait_group"):
        mods.done()
        n = dec.constant(ins, dec.expect(ins, 1)[0])
        return Exec(MEM, lambda S, mask: _wait(S, mask, n), (), "async_wait")
    if mods.flag("mbarrier"):
        return _cp_mbarrier(dec, ins, mods)
    cache = mods.one(("ca", "cg"))
    shared = mods.one(("shared", "shared::cta"))
    if cache is None or shared is None or not mods.flag("global"):
        raise unsupported(ins, "unknown form")
    hint = mods.flag("L2::cache_hint")
    while mods.one(CACHE) or mods.one(HINTS):
        pass
    mods.done()
    ops = dec.expect(ins, 3 + hint, 4 + hint)
    size = dec.constant(ins, ops[2])
    if size not in ((16,) if cache == "cg" else (4, 8, 16)):
        raise unsupported(ins, f"cp-size {size}")
    gdst, _, _ = dec.address(ins, ops[0], size)
    gsrc, _, _ = dec.address(ins, ops[1], size)
    gcount = dec.src(ins, ops[3], "u32") if len(ops) == 4 + hint else None

    def run(S, mask):
        sel = np.arange(S.threads) if mask is None else np.flatnonzero(mask)
        if not sel.size:
            return
        dst, src = (np.broadcast_to(g(S.regs), (S.threads,))[sel] for g in (gdst, gsrc))
        data = np.zeros((sel.size, size), np.uint8)
        count = (
            np.full(sel.size, size)
            if gcount is None
            else np.broadcast_to(gcount(S.regs), (S.threads,))[sel].astype(np.int64)
        )
        if (count > size).any():
            S.fail(
                PtxSyncError, f"cp.async src-size above {size}", sel, int(np.argmax(count > size))
            )
        full = np.flatnonzero(count == size)
        if full.size:
            raw = mm.read(S, "global", src[full], size, sel[full])
            data[full] = np.ascontiguousarray(raw).view(np.uint8).reshape(-1, size)
        for t in np.flatnonzero((count > 0) & (count < size)):
            for b in range(int(count[t])):
                data[t, b] = mm.read(S, "global", src[t : t + 1] + b, 1, sel[t : t + 1])[0]
        flat = S.shared.flat(S, dst, size, sel, False)
        S.shared.start_copy(S, flat, size, sel)
        S.async_copies.append((sel, S.async_groups[sel].copy(), dst, size, data))

    return Exec(MEM, run, (), "async_copy")


def _commit(S, mask):
    if mask is None:
        S.async_groups += 1
    else:
        S.async_groups[mask] += 1


def _wait(S, mask, pending):
    """Data of all but the newest `pending` committed groups arrives (None: of everything)."""
    left = []
    for sel, group, dst, size, data in S.async_copies:
        done = np.ones(sel.size, bool) if pending is None else group < S.async_groups[sel] - pending
        if mask is not None:
            done &= mask[sel]
        if done.any():
            raw = np.ascontiguousarray(data[done]).view(mm._VIEW[min(size, 8)])
            raw = raw if size > 8 else raw.reshape(-1)
            flat = S.shared.flat(S, dst[done], size, sel[done], False)
            S.shared.store(S, flat, size, sel[done], raw)
        if not done.all():
            keep = ~done
            left.append((sel[keep], group[keep], dst[keep], size, data[keep]))
    S.async_copies = left


# -- mbarrier -------------------------------------------------------------------------
def _cp_mbarrier(dec, ins, mods):
    raise unsupported(ins, "unknown form")


def _object(S, sel, addr, create=None):
    """(key, state) of the mbarrier of each thread; `create` makes one with that count."""
    flat = S.shared.flat(S, addr, 8, sel, True)
    for t, at in zip(sel, flat, strict=True):
        yield int(t), int(at)


@instruction("mbarrier")
def _mbarrier(dec, ins):
    mods = Mods(ins)
    op = mods.one(
        (
            "init",
            "inval",
            "arrive",
            "test_wait",
            "try_wait",
            "expect_tx",
            "arrive_drop",
            "complete_tx",
            "pending_count",
        )
    )
    if op in (None, "expect_tx", "arrive_drop", "complete_tx", "pending_count"):
        raise unsupported(ins, "unknown form")
    if not mods.flag("b64"):
        raise unsupported(ins, "unknown type")
    space = mods.one(("shared", "shared::cta", "shared::cluster"))
    mods.one(("release", "acquire", "relaxed"))
    mods.one(("cta", "cluster"))
    if space is None:
        raise unsupported(ins, "generic mbarrier address")
    return {
        "init": _init,
        "inval": _inval,
        "arrive": _arrive,
        "test_wait": _try_wait,
        "try_wait": _try_wait,
    }[op](dec, ins, mods)


def _selected(S, mask, ga):
    sel = np.arange(S.threads) if mask is None else np.flatnonzero(mask)
    return sel, np.broadcast_to(ga(S.regs), (S.threads,))[sel]


def _get(S, t, at):
    bar = S.mbarriers.get(at)
    if bar is None:
        S.fail(PtxSyncError, "mbarrier used before mbarrier.init", None, t)
    return bar


def _init(dec, ins, mods):
    mods.done()
    a, n = dec.expect(ins, 2)
    ga, _, _ = dec.address(ins, a, 8)
    gn = dec.src(ins, n, "u32")

    def run(S, mask):
        sel, addr = _selected(S, mask, ga)
        count = np.broadcast_to(gn(S.regs), (S.threads,))
        for t, at in _object(S, sel, addr):
            if at in S.mbarriers:
                S.fail(PtxSyncError, "mbarrier.init of a live mbarrier", None, t)
            S.mbarriers[at] = {
                "need": int(count[t]),
                "left": int(count[t]),
                "phase": 0,
                "clock": np.zeros(S.domain_warps, np.int32),
                "done": None,
            }

    return Exec(MEM, run, (), "mbarrier")


def _inval(dec, ins, mods):
    mods.done()
    (a,) = dec.expect(ins, 1)
    ga, _, _ = dec.address(ins, a, 8)

    def run(S, mask):
        sel, addr = _selected(S, mask, ga)
        for t, at in _object(S, sel, addr):
            _get(S, t, at)
            del S.mbarriers[at]

    return Exec(MEM, run, (), "mbarrier")


def _arrive(dec, ins, mods):
    if mods.flag("expect_tx") or mods.flag("noComplete"):
        raise unsupported(ins, "transaction counts")
    mods.done()
    ops = dec.expect(ins, 2, 3)
    i, put = dec.dst(ins, ops[0], "b64")
    ga, _, _ = dec.address(ins, ops[1], 8)
    gn = dec.src(ins, ops[2], "u32") if len(ops) == 3 else None

    def run(S, mask):
        sel, addr = _selected(S, mask, ga)
        token = np.zeros(sel.size, np.uint64)
        warps = set()
        for k, (t, at) in enumerate(_object(S, sel, addr)):
            bar = _get(S, t, at)
            n = 1 if gn is None else int(np.broadcast_to(gn(S.regs), (S.threads,))[t])
            if n > bar["left"]:
                S.fail(PtxSyncError, "more arrivals at an mbarrier than its count", None, t)
            token[k] = bar["phase"]
            bar["clock"] = np.maximum(bar["clock"], S.vc[t // 32])
            warps.add(t // 32)
            bar["left"] -= n
            if bar["left"] == 0:
                bar.update(left=bar["need"], phase=bar["phase"] + 1, done=bar["clock"].copy())
        if warps:
            S.tick(np.array(sorted(warps)))
        if i >= 0:
            S.put_selected(i, put, sel, token)

    return Exec(MEM, run, (i,) if i >= 0 else (), "mbarrier")


def _try_wait(dec, ins, mods):
    """True once the phase is over; it never suspends, the kernel's loop asks again."""
    parity = mods.flag("parity")
    mods.done()
    ops = dec.expect(ins, 3, 4)
    j, putp = dec.dst(ins, ops[0], "pred")
    ga, _, _ = dec.address(ins, ops[1], 8)
    gs = dec.src(ins, ops[2], "u32" if parity else "u64")

    def run(S, mask):
        sel, addr = _selected(S, mask, ga)
        state = np.broadcast_to(gs(S.regs), (S.threads,))
        ok = np.zeros(S.threads, bool)
        for t, at in _object(S, sel, addr):
            bar = _get(S, t, at)
            phase = int(state[t])
            ok[t] = (bar["phase"] & 1) != (phase & 1) if parity else bar["phase"] > phase
            if ok[t] and bar["done"] is not None:
                S.vc[t // 32] = np.maximum(S.vc[t // 32], bar["done"])
        S.merge(j, putp, ok, mask)
        S.waiting = not ok[sel].all()

    return Exec(MEM, run, (j,), "mbarrier")
