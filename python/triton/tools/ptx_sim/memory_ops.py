"""ld, st, atom, red, cvta, mapa, getctarank, prefetch, createpolicy."""

from __future__ import annotations

import numpy as np

from . import memory as mm
from . import rounding as rd
from .decode import ALU, BITS, DTYPES, MEM, UINT, Exec, Mods, alu, instruction, unsupported
from .float_ops import _VIEWS, bits_of, min_max_float

SPACES = {
    "global": "global",
    "shared": "shared",
    "shared::cta": "shared",
    "shared::cluster": "shared::cluster",
    "local": "local",
    "const": "global",
    "param": "param",
    "param::entry": "param",
    "param::func": "param",
}
ORDER = ("weak", "relaxed", "acquire", "release", "acq_rel", "volatile", "mmio")
SCOPE = ("cta", "cluster", "gpu", "sys")
CACHE = ("ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "unified")
HINTS = tuple(
    f"{level}::{hint}"
    for level in ("L1", "L2")
    for hint in (
        "evict_normal",
        "evict_unchanged",
        "evict_first",
        "evict_last",
        "no_allocate",
        "64B",
        "128B",
        "256B",
    )
)


def _hints(mods):
    """Takes ordering, scope and cache modifiers: they do not change a single launch's values.
    Returns whether a cache-policy operand follows."""
    mods.one(ORDER)
    mods.one(SCOPE)
    while mods.one(CACHE) or mods.one(HINTS):
        pass
    return mods.flag("L2::cache_hint")


def opclass(ins, space):
    return (
        {"shared::cluster": "shared_cluster"}.get(space, space)
        + "_"
        + ("load" if ins.op in ("ld", "ldu") else "store")
    )


@instruction("ld", "ldu")
def _ld(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    space = SPACES.get(mods.one(tuple(SPACES)), "generic")
    vec = mods.one(("v2", "v4", "v8"))
    hint = _hints(mods)
    mods.done()
    ops = dec.expect(ins, 3 if hint else 2)
    names = dec.vector(ins, ops[0])
    if len(names) != (int(vec[1]) if vec else 1):
        raise unsupported(ins, "vector size and operands differ")
    puts = [dec.dst(ins, n, ty) for n in names]
    width = BITS[ty]
    total = width // 8 * len(names)
    ga, var, offset = dec.address(ins, ops[1], total)
    dsts = tuple(p[0] for p in puts if p[0] >= 0)
    if ga is None:
        return _ld_param(dec, ins, var, offset, ty, puts, dsts, total)
    if space == "param":
        raise unsupported(ins, "parameter by computed address")
    unsigned, used, count = UINT[width], ins.used_bytes, len(names)

    def run(S, mask):
        R = S.regs
        addr = ga(R)
        sel = None
        if mask is not None:
            sel = np.flatnonzero(mask)
            if not sel.size:
                return
            addr = np.broadcast_to(addr, (S.threads,))[sel] if addr.size == 1 else addr[sel]
        raw = mm.read(S, space, addr, total, sel, used)
        parts = raw.view(unsigned).reshape(-1, count) if count > 1 or raw.ndim > 1 else None
        for k, (i, put) in enumerate(puts):
            if i < 0:
                continue
            v = raw if parts is None else np.ascontiguousarray(parts[:, k])
            if sel is None:
                put(R, v)
            else:
                S.put_selected(i, put, sel, v)

    return Exec(MEM, run, dsts, opclass(ins, space))


def _ld_param(dec, ins, var, offset, ty, puts, dsts, total):
    unsigned, count = UINT[BITS[ty]], len(puts)
    if offset + total > (var.size or 0):
        raise unsupported(ins, f"outside parameter {var.name}")

    def run(R):
        v = R.params[var.offset][:, offset : offset + total]
        v = np.ascontiguousarray(v).view(unsigned).reshape(-1, count)
        for k, (_, put) in enumerate(puts):
            put(R, np.ascontiguousarray(v[:, k]))

    return Exec(ALU, run, dsts, "param")


@instruction("st")
def _st(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    space = SPACES.get(mods.one(tuple(SPACES)), "generic")
    vec = mods.one(("v2", "v4", "v8"))
    hint = _hints(mods)
    mods.done()
    ops = dec.expect(ins, 3 if hint else 2)
    names = dec.vector(ins, ops[1])
    if len(names) != (int(vec[1]) if vec else 1):
        raise unsupported(ins, "vector size and operands differ")
    gets = [dec.src(ins, n, f"b{BITS[ty]}") for n in names]
    total = BITS[ty] // 8 * len(names)
    ga, var, offset = dec.address(ins, ops[0], total)
    if ga is None:
        return _st_param(ins, var, offset, gets, total)
    if space == "param":
        raise unsupported(ins, "parameter by computed address")
    raw_type = UINT[min(total * 8, 64)]

    def run(S, mask):
        R = S.regs
        addr = ga(R)
        vals = [g(R) for g in gets]
        sel = None
        if mask is not None:
            sel = np.flatnonzero(mask)
            if not sel.size:
                return
            addr = addr if addr.size == 1 else addr[sel]
            vals = [v if v.size == 1 else v[sel] for v in vals]
        if len(vals) == 1:
            raw = vals[0]
        else:
            raw = np.ascontiguousarray(np.stack(np.broadcast_arrays(*vals), axis=1)).view(raw_type)
            raw = raw if total > 8 else raw.reshape(-1)
        mm.write(S, space, addr, total, sel, raw)

    return Exec(MEM, run, (), opclass(ins, space))


def _st_param(ins, var, offset, gets, total):
    if offset + total > (var.size or 0):
        raise unsupported(ins, f"outside parameter {var.name}")

    def run(S, mask):
        vals = np.stack(np.broadcast_arrays(*[g(S.regs) for g in gets]), axis=1)
        raw = np.ascontiguousarray(vals).view(np.uint8).reshape(-1, total)
        store = S.regs.params[var.offset]
        if mask is None:
            store[:, offset : offset + total] = raw
        else:
            raw = np.broadcast_to(raw, (S.threads, total))
            store[mask, offset : offset + total] = raw[mask]

    return Exec(MEM, run, (), "param")


# -- atomics --------------------------------------------------------------------------
def _atomic_function(ins, op, ty):
    """(old bits, operand bits[, operand bits]) -> new bits, on unsigned arrays."""
    dtype = DTYPES[ty]
    base = ty.removesuffix("x2")
    if op == "exch":
        return lambda old, b: b
    if op == "cas":
        return lambda old, b, c: np.where(old == b, c, old)
    if op in ("and", "or", "xor"):
        fn = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[op]
        return lambda old, b: fn(old, b)
    if op == "inc":
        return lambda old, b: np.where(old >= b, old.dtype.type(0), old + old.dtype.type(1))
    if op == "dec":
        return lambda old, b: np.where((old == 0) | (old > b), b, old - old.dtype.type(1))
    if base in ("f16", "bf16", "f32", "f64"):
        unsigned, view, canonical = _VIEWS[base]
        pair = ty != base

        def run(old, b):
            wide = old.dtype
            old, b = (np.ascontiguousarray(v).view(unsigned) for v in (old, b))
            if op == "add":
                x, y = view(old), view(b)
                if base in ("f16", "bf16"):
                    x, y = x.astype(np.float64), y.astype(np.float64)
                r = rd.add_odd(x, y)[0] if base == "bf16" else x + y
                r = bits_of(r, base)
            else:
                r = min_max_float(old, b, view, op == "max", False, canonical)
            return np.ascontiguousarray(r).view(wide) if pair else r

        if op in ("add", "min", "max"):
            return run
    elif dtype in (np.int32, np.int64, np.uint32, np.uint64):
        fn = {"add": np.add, "min": np.minimum, "max": np.maximum}.get(op)
        if fn is not None:
            return lambda old, b: fn(old.view(dtype), b.view(dtype)).view(old.dtype)
    raise unsupported(ins, f"unknown atomic .{op}.{ty}")


@instruction("atom", "red")
def _atom(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    space = SPACES.get(mods.one(tuple(SPACES)), "generic")
    mods.one(ORDER)
    mods.one(SCOPE)
    mods.flag("noftz")
    op = mods.one(("add", "min", "max", "and", "or", "xor", "exch", "cas", "inc", "dec"))
    hint = mods.flag("L2::cache_hint")
    while mods.one(HINTS):
        pass
    mods.done()
    if op is None:
        raise unsupported(ins, "unknown atomic")
    nsrc = 2 if op == "cas" else 1
    is_atom = ins.op == "atom"
    ops = dec.expect(ins, 1 + is_atom + nsrc + hint)
    i, put = dec.dst(ins, ops[0], ty) if is_atom else (-1, None)
    ops = ops[is_atom:]
    size = BITS[ty] // 8
    ga, _, _ = dec.address(ins, ops[0], size)
    if ga is None or space == "param":
        raise unsupported(ins, "unknown address")
    gets = [dec.src(ins, dec.vector(ins, o)[0], f"b{BITS[ty]}") for o in ops[1 : 1 + nsrc]]
    fn = _atomic_function(ins, op, ty)

    def run(S, mask):
        sel = np.arange(S.threads) if mask is None else np.flatnonzero(mask)
        if not sel.size:
            return
        addr = np.broadcast_to(ga(S.regs), (S.threads,))[sel]
        vals = [np.broadcast_to(g(S.regs), (S.threads,))[sel] for g in gets]
        old = mm.read(S, space, addr, size, sel, atomic=True).copy()
        key = addr if space == "global" else addr + (S.cta[sel] << 40)
        if np.unique(key).size == key.size and space != "shared::cluster":
            new = fn(old, *vals)
        else:  # threads of one address take their turns in thread order
            memory, new = {}, np.empty_like(old)
            cluster = space in ("shared::cluster", "generic")
            for t in range(len(sel)):
                k = S.physical(int(addr[t]), int(S.cta[sel[t]])) if cluster else int(key[t])
                old[t] = memory.get(k, old[t])
                new[t] = memory[k] = fn(old[t : t + 1], *[v[t : t + 1] for v in vals])[0]
        mm.write(S, space, addr, size, sel, new, atomic=True)
        if i >= 0:
            S.put_selected(i, put, sel, old)

    return Exec(MEM, run, (i,) if i >= 0 else (), "atomic")


# -- addresses ------------------------------------------------------------------------
_WINDOWS = {
    "shared": mm.SHARED_WINDOW,
    "shared::cta": mm.SHARED_WINDOW,
    "shared::cluster": mm.SHARED_WINDOW,
    "local": mm.LOCAL_WINDOW,
    "global": 0,
    "const": 0,
    "param": None,
}


@instruction("cvta")
def _cvta(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    to = mods.flag("to")
    space = mods.one(tuple(_WINDOWS))
    mods.done()
    if space is None or _WINDOWS[space] is None or BITS[ty] != 64:
        raise unsupported(ins, "unknown form")
    base = np.uint64(_WINDOWS[space])
    d, a = dec.expect(ins, 2)
    i, put = dec.dst(ins, d, "u64")
    ga = dec.src(ins, a, "u64")
    if to:
        return alu(lambda R: put(R, ga(R) - base), i)
    return alu(lambda R: put(R, ga(R) + base), i)


@instruction("isspacep")
def _isspacep(dec, ins):
    mods = Mods(ins)
    space = mods.one(("global", "shared", "shared::cta", "shared::cluster", "local", "const"))
    mods.done()
    if space is None or space in ("const", "shared::cta"):
        raise unsupported(ins, "unknown form")
    p, a = dec.expect(ins, 2)
    i, put = dec.dst(ins, p, "pred")
    ga = dec.src(ins, a, "u64")

    def run(R):
        v = ga(R).astype(np.int64)
        shared = (v >= mm.SHARED_WINDOW) & (v < mm.SHARED_WINDOW + mm.WINDOW_SIZE)
        local = (v >= mm.LOCAL_WINDOW) & (v < mm.LOCAL_WINDOW + mm.WINDOW_SIZE)
        put(R, {"local": local, "global": ~shared & ~local}.get(space, shared))

    return alu(run, i)


@instruction("mapa")
def _mapa(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    space = mods.one(("shared::cluster",))
    mods.done()
    d, a, b = dec.expect(ins, 3)
    if ty not in ("u32", "u64"):
        raise unsupported(ins, "unknown type")
    i, put = dec.dst(ins, d, ty)
    ga, gb = dec.src(ins, a, ty), dec.src(ins, b, "u32")
    low = (1 << mm.RANK_SHIFT) - 1
    generic = space is None

    def run(S, mask):
        v = ga(S.regs).astype(np.int64) - (mm.SHARED_WINDOW if generic else 0)
        rank = gb(S.regs).astype(np.int64)
        active = rank if mask is None or rank.size == 1 else rank[mask]
        if (active >= S.cluster).any():
            from .errors import PtxMemoryError

            S.fail(
                PtxMemoryError,
                f"mapa to rank {int(active.max())} of a cluster of {S.cluster}",
                None,
                0,
            )
        out = (v & low) | (rank << mm.RANK_SHIFT)
        out = out + (mm.SHARED_WINDOW if generic else 0)
        S.merge(i, put, out.astype(DTYPES[ty]), mask)

    return Exec(MEM, run, (i,), "address")


@instruction("getctarank")
def _getctarank(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    space = mods.one(("shared::cluster",))
    mods.done()
    d, a = dec.expect(ins, 2)
    i, put = dec.dst(ins, d, "u32")
    ga = dec.src(ins, a, ty)

    def run(S, mask):
        v = ga(S.regs).astype(np.int64) - (0 if space else mm.SHARED_WINDOW)
        S.merge(i, put, (v >> mm.RANK_SHIFT).astype(np.uint32), mask)

    return Exec(MEM, run, (i,), "address")


@instruction("createpolicy")
def _createpolicy(dec, ins):
    """A cache policy has no effect on values: the register gets 0."""
    i, put = dec.dst(ins, ins.operands[0], "b64")
    zero = np.zeros(1, np.uint64)
    if not ins.mods or ins.mods[0] not in ("fractional", "range"):
        raise unsupported(ins, "unknown form")
    return alu(lambda R: put(R, zero), i)


@instruction("prefetch", "prefetchu", "discard", "applypriority")
def _prefetch(dec, ins):
    if ins.op != "prefetch" and ins.op != "prefetchu":
        raise unsupported(ins, f"unknown instruction '{ins.op}'")
    return Exec(MEM, lambda S, mask: None, (), "hint")
