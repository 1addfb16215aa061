"""Branches, calls, exits, block and cluster barriers, fences."""

from __future__ import annotations

import numpy as np

from . import barriers
from .decode import CONTROL, MEM, Exec, Mods, instruction, unsupported
from .errors import PtxSimError
from .parser import Var
from .printing import EXTERNS
from .warp_ops import synchronised


@instruction("bra")
def _bra(dec, ins):
    mods = Mods(ins)
    mods.flag("uni")
    mods.done()
    (name,) = dec.expect(ins, 1)
    target = ins.scope.label(name)
    if target is None:
        raise unsupported(ins, f"unknown label {name}")
    if ins.pred is None:
        return Exec(CONTROL, lambda S, pc, mask: target, (), "branch")
    p, neg = dec.register(ins, ins.pred).index, ins.neg

    def run(S, pc, mask):
        taken = S.regs[p]
        if neg:
            taken = ~taken
        if taken.size == 1:
            return target if taken[0] else pc + 1
        if mask is not None:
            t = taken & mask
            n = np.count_nonzero(t)
            if n == 0:
                return pc + 1
            if n == np.count_nonzero(mask):
                return target
            S.pcs[mask] = pc + 1
            S.pcs[t] = target
            return None
        n = np.count_nonzero(taken)
        if n == 0:
            return pc + 1
        if n == taken.size:
            return target
        S.pcs[:] = np.where(taken, target, pc + 1)
        return None

    return Exec(CONTROL, run, (), "branch", owns_pred=True)


@instruction("brx")
def _brx(dec, ins):
    mods = Mods(ins)
    if not mods.flag("idx"):
        raise unsupported(ins, "unknown form")
    mods.flag("uni")
    mods.done()
    index, name = dec.expect(ins, 2)
    labels = ins.scope.table(name)
    if labels is None:
        raise unsupported(ins, f"unknown list of targets {name}")
    targets = [ins.scope.label(label) for label in labels]
    if None in targets:
        raise unsupported(ins, f"unknown label {labels[targets.index(None)]}")
    targets = np.array(targets)
    get = dec.src(ins, index, "u32")

    def run(S, pc, mask):
        here = np.ones(S.threads, bool) if mask is None else mask
        wanted = np.broadcast_to(get(S.regs), (S.threads,))[here]
        beyond = wanted >= len(targets)
        if beyond.any():
            first = int(np.argmax(beyond))
            message = f"index {wanted[first]} into a list of {len(targets)} targets"
            S.fail(PtxSimError, message, np.flatnonzero(here), first)
        to = targets[wanted]
        if (to == to[0]).all():
            return int(to[0])
        S.pcs[here] = to
        return None

    return Exec(CONTROL, run, (), "branch")


@instruction("exit")
def _exit(dec, ins):
    dec.expect(ins, 0)
    return Exec(CONTROL, lambda S, pc, mask: S.leave(mask), (), "branch")


@instruction("ret")
def _ret(dec, ins):
    Mods(ins).flag("uni")
    dec.expect(ins, 0)
    fn = next(f for f in dec.module.functions.values() if f.scope is _root(ins.scope, dec))
    if fn.entry:
        return Exec(CONTROL, lambda S, pc, mask: S.leave(mask), (), "branch")
    name = fn.name

    def run(S, pc, mask):
        back = S.returns[name]
        here = np.ones(S.threads, bool) if mask is None else mask
        S.frames[name] = S.frames[name] & ~here
        params = S.regs.params
        for to in np.unique(back[here]):
            threads = here & (back == to)
            for dst, src in S.results[int(to)]:
                params[dst.offset][threads] = params[src.offset][threads]
        first = int(back[np.argmax(here)])
        if (back[here] == first).all():
            return first
        S.pcs[here] = back[here]
        return None

    return Exec(CONTROL, run, (), "branch")


def _root(scope, dec):
    while scope.parent is not dec.module.scope:
        scope = scope.parent
    return scope


def _names(dec, ins, text):
    out = []
    for name in (t.strip() for t in text[1:-1].split(",")):
        if not name:
            continue
        var = ins.scope.find(name)
        if not isinstance(var, Var):
            raise unsupported(ins, f"'{name}' is not a parameter")
        out.append(var)
    return out


@instruction("call")
def _call(dec, ins):
    mods = Mods(ins)
    mods.flag("uni")
    mods.done()
    ops = list(ins.operands)
    rets = _names(dec, ins, ops.pop(0)) if ops and ops[0][0] == "(" else []
    name = ops.pop(0)
    args = _names(dec, ins, ops.pop(0)) if ops and ops[0][0] == "(" else []
    if ops:
        raise unsupported(ins, "indirect call")
    fn = dec.module.functions.get(name)
    if fn is None:
        handler = EXTERNS.get(name)
        if handler is None:
            raise unsupported(ins, f"unknown function '{name}'")
        return Exec(MEM, lambda S, mask: handler(S, mask, args, rets), (), "call")
    if len(fn.params) != len(args) or len(fn.rets) != len(rets):
        raise unsupported(
            ins, f"{name} takes {len(fn.params)} arguments and returns {len(fn.rets)}"
        )
    start, results = fn.start, list(zip(rets, fn.rets, strict=True))

    def run(S, pc, mask):
        here = np.ones(S.threads, bool) if mask is None else mask
        frame = S.frames.setdefault(name, np.zeros(S.threads, bool))
        if (frame & here).any():
            S.fail(PtxSimError, f"recursive call of {name}", None, int(np.argmax(frame & here)))
        S.frames[name] = frame | here
        params = S.regs.params
        for src, dst in zip(args, fn.params, strict=True):
            params[dst.offset][here] = params[src.offset][here]
        back = S.returns.setdefault(name, np.zeros(S.threads, np.int64))
        back[here] = pc + 1
        S.results[pc + 1] = results
        return start

    return Exec(CONTROL, run, (), "call")


# -- barriers -------------------------------------------------------------------------
@instruction("bar", "barrier")
def _bar(dec, ins):
    mods = Mods(ins)
    if mods.flag("cluster"):
        return _cluster_barrier(dec, ins, mods)
    if mods.flag("warp"):
        if not mods.flag("sync"):
            raise unsupported(ins, "unknown form")
        mods.done()
        (member,) = dec.expect(ins, 1)
        return synchronised(dec, ins, member, lambda S, mask: None, (), "warp_barrier")
    mods.flag("cta")
    op = mods.one(("sync", "arrive", "red"))
    aligned = mods.flag("aligned") or ins.op == "bar"
    if op == "red":
        return _bar_red(dec, ins, mods)
    mods.done()
    if op is None:
        raise unsupported(ins, "unknown form")
    ops = dec.expect(ins, 1, 2) if op == "sync" else dec.expect(ins, 2)
    number = dec.src(ins, ops[0], "u32")
    count = dec.src(ins, ops[1], "u32") if len(ops) == 2 else None
    return Exec(CONTROL, _barrier_closure(op == "arrive", number, count, aligned), (), "barrier")


def _barrier_closure(arrive, number, count, aligned):
    def run(S, pc, mask):
        num = number(S.regs)
        want = None if count is None else count(S.regs)
        if (
            mask is None
            and not arrive
            and num.size == 1
            and not S.pending_barriers
            and (want is None or (want.size == 1 and int(want[0]) == S.cta_threads))
        ):
            barriers.join_ctas(S)
            return pc + 1
        return barriers.arrive_at(S, pc, mask, num, want, arrive, aligned)

    return run


def _bar_red(dec, ins, mods):
    ty = mods.rest[-1]
    if ty not in ("pred", "u32"):
        raise unsupported(ins, "unknown form")
    mods.rest.pop()
    op = mods.one(("popc", "and", "or"))
    mods.flag("aligned")
    mods.done()
    ops = dec.expect(ins, 3, 4)
    if len(ops) == 4:
        raise unsupported(ins, "bar.red with a thread count")
    i, put = dec.dst(ins, ops[0], ty)
    gp = dec.src(ins, ops[2], "pred")
    number = dec.src(ins, ops[1], "u32")

    def run(S, pc, mask):
        # all threads of the CTA take part, so the values are known when all have arrived
        def finish(threads):
            v = np.broadcast_to(gp(S.regs), (S.threads,)).reshape(S.nctas, -1)
            out = {
                "popc": lambda: v.sum(axis=1).astype(np.uint32),
                "and": lambda: v.all(axis=1),
                "or": lambda: v.any(axis=1),
            }[op]()
            S.merge(i, put, np.repeat(out, S.cta_threads), threads)

        if mask is None and not S.pending_barriers:
            finish(None)
            barriers.join_ctas(S)
            return pc + 1
        return barriers.arrive_at(S, pc, mask, number(S.regs), None, False, True, finish)

    return Exec(CONTROL, run, (i,), "barrier")


def _cluster_barrier(dec, ins, mods):
    op = mods.one(("arrive", "wait"))
    mods.one(("release", "acquire", "relaxed"))
    mods.flag("aligned")
    mods.done()
    dec.expect(ins, 0)
    if op is None:
        raise unsupported(ins, "unknown form")
    relaxed = "relaxed" in ins.mods
    if op == "arrive":
        return Exec(
            CONTROL,
            lambda S, pc, mask: barriers.cluster_arrive(S, pc, mask, relaxed),
            (),
            "cluster_barrier",
        )
    return Exec(CONTROL, lambda S, pc, mask: barriers.cluster_wait(S, pc, mask), (), "cluster_wait")


@instruction("membar", "fence")
def _fence(dec, ins):
    """Orders memory, which this simulator always does: counted, no other effect."""
    known = {
        "cta",
        "gl",
        "sys",
        "gpu",
        "cluster",
        "sc",
        "acq_rel",
        "acquire",
        "release",
        "proxy",
        "async",
        "async::generic",
        "alias",
        "async.shared::cta",
        "shared::cta",
        "global",
        "shared::cluster",
        "mbarrier_init",
        "sync_restrict::shared::cta",
        "sync_restrict::shared::cluster",
        "async.global",
    }
    left = [m for m in ins.mods if m not in known]
    if left or ins.operands:
        raise unsupported(ins, "unknown modifier ." + " .".join(left))
    return Exec(MEM, lambda S, mask: None, (), "fence")


@instruction("griddepcontrol")
def _griddepcontrol(dec, ins):
    if ins.mods not in (["wait"], ["launch_dependents"]):
        raise unsupported(ins, "unknown form")
    return Exec(MEM, lambda S, mask: None, (), "hint")


@instruction("setmaxnreg")
def _setmaxnreg(dec, ins):
    dec.expect(ins, 1)
    return Exec(MEM, lambda S, mask: None, (), "hint")


@instruction("nanosleep", "pmevent")
def _nanosleep(dec, ins):
    dec.expect(ins, 1)
    return Exec(MEM, lambda S, mask: None, (), "hint")


@instruction("trap", "brkpt")
def _trap(dec, ins):
    def run(S, mask):
        if mask is None or mask.any():
            S.fail(
                PtxSimError, f"{ins.op} executed", None, 0 if mask is None else int(np.argmax(mask))
            )

    return Exec(MEM, run, (), "trap")
