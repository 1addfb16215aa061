"""Arithmetic that exists for integers and floats: add ... max, fma, div, the approximations.

f32 works in float32 (or float64 where a directed rounding or a fused sum needs it), f64 in
float64, f16 and bf16 in float64 with one rounding at the end. NaN results are canonical
(0x7fffffff, 0x7fff); a f64 NaN's payload is whatever NumPy gives (PTX leaves it open).
"""

from __future__ import annotations

import numpy as np

from . import rounding as rd
from .decode import DTYPES, UINT, Mods, alu, instruction, unsupported
from .int_ops import add_sub_int, add_sub_x2, div_int, emit, mad_int, mul_int, rem_int

FLOATS = {
    "f16": 16,
    "bf16": 16,
    "f16x2": 16,
    "bf16x2": 16,
    "f32": 32,
    "f32x2": 32,
    "f64": 64,
    "tf32": 32,
}
ROUNDINGS = ("rn", "rz", "rm", "rp")
_NAN32, _NAN16 = np.uint32(0x7FFFFFFF), np.uint16(0x7FFF)
_rem = rem_int


def flush(x):
    """float32: subnormals to zero of the same sign."""
    bits = x.view(np.uint32)
    return np.where(bits & np.uint32(0x7F800000), bits, bits & np.uint32(0x80000000)).view(
        np.float32
    )


def _flush16(x):
    return np.where(np.abs(x) < 2.0**-14, np.copysign(0.0, x), x)


def getter(dec, ins, text, ty, ftz=False):
    """R -> working array: float32 for f32, float64 otherwise; (n, 2) for packed types."""
    base, pair = ty.removesuffix("x2"), ty.endswith("x2")
    raw = dec.src(ins, text, ty)
    if base == "f64":
        return raw
    if base == "f32":
        if not pair:
            return (lambda R: flush(raw(R))) if ftz else raw

        def get(R):
            v = np.ascontiguousarray(raw(R)).view(np.float32).reshape(-1, 2)
            return flush(v) if ftz else v

        return get

    def get(R):
        v = raw(R)
        if pair:
            v = np.ascontiguousarray(v).view(np.uint16).reshape(-1, 2)
        if base == "bf16":
            return rd.bf16_to_f32(v).astype(np.float64)
        v = v.view(np.float16).astype(np.float64)
        return _flush16(v) if ftz else v

    return get


def bits_of(x, base, mode="rn", ftz=False):
    """Working array -> bits of the format, rounded if it is f16 or bf16."""
    if base == "f32":
        if ftz:
            x = flush(x)
        bits = x.view(np.uint32)
        nan = np.isnan(x)
        return np.where(nan, _NAN32, bits) if nan.any() else bits
    if base == "f64":
        return x.view(np.uint64)
    if base == "bf16":
        return rd.to_bf16_bits(x, mode)
    if ftz:
        x = _flush16(rd.quantise(x, "f16", mode))
    return rd.to_f16_bits(x, mode)


def putter(dec, ins, text, ty, mode="rn", ftz=False, sat=False, relu=False):
    """(index, put(R, working array)) that rounds, saturates, flushes and packs."""
    base, pair = ty.removesuffix("x2"), ty.endswith("x2")
    i, put = dec.dst(ins, text, ty)
    wide = UINT[64 if base == "f32" else 32] if pair else None

    def finish(R, x):
        if sat:
            x = np.where(x > 0, np.minimum(x, x.dtype.type(1)), x.dtype.type(0))
        if relu:
            x = np.where(np.isnan(x) | (x > 0), x, x.dtype.type(0))
        bits = bits_of(np.ascontiguousarray(x), base, mode, ftz)
        if pair:
            bits = np.ascontiguousarray(bits).view(wide).reshape(-1)
        put(R, bits)

    return i, finish


def _arith(base, op, mode):
    """Function of working arrays for add, sub, mul, fma."""
    if base == "f64":
        if op == "fma":
            return lambda a, b, c: rd.fma_f64(a, b, c, mode)
        if mode != "rn":
            if op == "sub":
                return lambda a, b: rd.exact_f64("add", (a, -b), mode)
            return lambda a, b: rd.exact_f64(op, (a, b), mode)
    elif op == "fma":

        def fused(a, b, c):
            x, neg = rd.fma_odd(a.astype(np.float64), b.astype(np.float64), c.astype(np.float64))
            if mode == "rm":
                x = rd.round_down_zero(x, neg)
            return rd.narrow_f32(x, mode) if base == "f32" else x

        return fused
    elif base == "f32" and mode != "rn":
        if op == "mul":
            return lambda a, b: rd.narrow_f32(a.astype(np.float64) * b.astype(np.float64), mode)

        def directed(a, b):
            b = -b if op == "sub" else b
            x, neg = rd.add_odd(a.astype(np.float64), b.astype(np.float64))
            return rd.narrow_f32(rd.round_down_zero(x, neg) if mode == "rm" else x, mode)

        return directed
    if base == "bf16" and op in ("add", "sub"):
        # float64 may round a sum of far apart terms: keep it odd, bf16 then rounds it once
        return lambda a, b: rd.add_odd(a, b if op == "add" else -b)[0]
    return {"add": np.add, "sub": np.subtract, "mul": np.multiply}[op]


_TINY = np.float32(2.0**-126)


def _flush_before_the_limit(fn, op, mode):
    """mul.ftz and fma.ftz: GPUs decide about subnormals with the exponent unbounded, so a
    result that only rounds up to the smallest normal number is flushed too (seen on H200)."""

    def run(*v):
        y = fn(*v)
        edge = np.abs(y) == _TINY
        if edge.any():
            w = [x.astype(np.float64) for x in v]
            exact = w[0] * w[1] if op == "mul" else rd.fma_odd(*w)[0]
            small = np.abs(rd.narrow_f32(exact * 2.0**64, mode)) < np.float32(2.0**-62)
            y = np.where(edge & small, np.copysign(np.float32(0), y), y)
        return y

    return run


def _float(dec, ins, mods, ty, op, nsrc):
    base = ty.removesuffix("x2")
    mode = mods.one(ROUNDINGS, "rn")
    ftz, sat, relu = mods.flag("ftz"), mods.flag("sat"), mods.flag("relu")
    if base in ("f16", "bf16") and mode != "rn":
        raise unsupported(ins, f"unknown modifier .{mode}")
    if (
        (ftz and base in ("bf16", "f64"))
        or (sat and base in ("bf16", "f64"))
        or (relu and (op != "fma" or base in ("f32", "f64")))
    ):
        raise unsupported(ins, "this modifier does not exist for the type")
    mods.done()
    ops = dec.expect(ins, nsrc + 1)
    i, put = putter(dec, ins, ops[0], ty, mode, ftz, sat, relu)
    gets = [getter(dec, ins, s, ty, ftz) for s in ops[1:]]
    fn = _arith(base, op, mode)
    if ftz and base == "f32" and op in ("mul", "fma"):
        fn = _flush_before_the_limit(fn, op, mode)
    if nsrc == 2:
        ga, gb = gets
        return alu(lambda R: put(R, fn(ga(R), gb(R))), i, opclass="fp")
    ga, gb, gc = gets
    return alu(lambda R: put(R, fn(ga(R), gb(R), gc(R))), i, opclass="fp")


@instruction("add", "sub")
def _add(dec, ins):
    mods = Mods(ins)
    if mods.rest[-1] in ("s16x2", "u16x2"):
        return add_sub_x2(dec, ins, mods, mods.rest.pop(), ins.op == "sub")
    ty = mods.type()
    if ty in FLOATS:
        return _float(dec, ins, mods, ty, ins.op, 2)
    return add_sub_int(dec, ins, mods, ty, ins.op == "sub")


@instruction("mul")
def _mul(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    return _float(dec, ins, mods, ty, "mul", 2) if ty in FLOATS else mul_int(dec, ins, mods, ty)


@instruction("fma")
def _fma(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    if ty not in FLOATS:
        raise unsupported(ins, "unknown type")
    return _float(dec, ins, mods, ty, "fma", 3)


@instruction("mad")
def _mad(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    return _float(dec, ins, mods, ty, "fma", 3) if ty in FLOATS else mad_int(dec, ins, mods, ty)


def _round_f32(fn, mode):
    """A f32 result from its correctly rounded float64 value. Right for div, rcp and sqrt of
    24-bit numbers: such a value lies on a 25-bit number exactly or further from it than
    float64 can round, so the second rounding sees the truth."""
    return lambda *v: rd.narrow_f32(fn(*[x.astype(np.float64) for x in v]), mode)


@instruction("div")
def _div(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    if ty not in FLOATS:
        mods.done()
        d, a, b = dec.expect(ins, 3)
        return emit(dec, ins, ty, div_int, d, a, b)
    mode = mods.one((*ROUNDINGS, "approx", "full"))
    ftz = mods.flag("ftz")
    mods.done()
    if mode is None or ty not in ("f32", "f64") or (ty == "f64" and mode not in ROUNDINGS):
        raise unsupported(ins, "div of a float needs a rounding or .approx/.full")
    d, a, b = dec.expect(ins, 3)
    i, put = putter(dec, ins, d, ty, ftz=ftz)
    ga, gb = getter(dec, ins, a, ty, ftz), getter(dec, ins, b, ty, ftz)
    if ty == "f64":
        fn = np.divide if mode == "rn" else lambda x, y: rd.exact_f64("div", (x, y), mode)
    elif mode in ("rn", "approx", "full"):
        fn = np.divide
    else:
        fn = _round_f32(np.divide, mode)
    return alu(lambda R: put(R, fn(ga(R), gb(R))), i, opclass="fp")


def _unary_rounded(fn, name):
    @instruction(name)
    def decode(dec, ins):
        mods = Mods(ins)
        ty = mods.type()
        mode, ftz = mods.one((*ROUNDINGS, "approx")), mods.flag("ftz")
        mods.done()
        if mode is None or ty not in ("f32", "f64"):
            raise unsupported(ins, "unknown form")
        d, a = dec.expect(ins, 2)
        i, put = putter(dec, ins, d, ty, ftz=ftz)
        ga = getter(dec, ins, a, ty, ftz)
        if ty == "f64":
            if mode == "approx":
                return _approx_f64(ins, name, fn, ga, i, put)
            op = "sqrt" if name == "sqrt" else "div"
            if mode == "rn":
                run = fn
            elif op == "sqrt":

                def run(x):
                    return rd.exact_f64("sqrt", (x,), mode)
            else:

                def run(x):
                    return rd.exact_f64("div", (np.ones_like(x), x), mode)
        else:
            run = _round_f32(fn, "rn" if mode == "approx" else mode)
        return alu(lambda R: put(R, run(ga(R))), i, opclass="fp")

    return decode


def _approx_f64(ins, name, fn, ga, i, put):
    """rcp/rsqrt.approx.ftz.f64: the upper 32 bits of the result, subnormals to zero."""
    if "ftz" not in ins.mods or name == "sqrt":
        raise unsupported(ins, "unknown form")

    def cut(x):
        tiny = np.abs(x) < 2.0**-1022
        return np.where(tiny, np.copysign(0.0, x), x)

    def run(R):
        y = cut(fn(cut(ga(R))))
        put(R, (y.view(np.uint64) & np.uint64(0xFFFFFFFF00000000)).view(np.float64))

    return alu(run, i, opclass="fp")


_unary_rounded(np.sqrt, "sqrt")
_unary_rounded(lambda x: 1.0 / x, "rcp")


def _approx(name, fn, types):
    """Approximations are computed in float64 and rounded once: error at most 0.5 ulp of the
    type (+1e-15 relative), inside every bound that PTX documents for them."""

    @instruction(name)
    def decode(dec, ins):
        mods = Mods(ins)
        ty = mods.type()
        ftz = mods.flag("ftz")
        known = ty in types or (name == "rsqrt" and ty == "f64")
        if not mods.flag("approx") or not known:
            raise unsupported(ins, "unknown form")
        mods.done()
        d, a = dec.expect(ins, 2)
        base = ty.removesuffix("x2")
        i, put = putter(dec, ins, d, ty, ftz=ftz and base in ("f32",))
        ga = getter(dec, ins, a, ty, ftz and base == "f32")
        if ty == "f64":
            return _approx_f64(ins, name, fn, ga, i, put)
        if base == "f32":
            return alu(
                lambda R: put(R, fn(ga(R).astype(np.float64)).astype(np.float32)), i, opclass="fp"
            )
        return alu(lambda R: put(R, fn(ga(R))), i, opclass="fp")

    return decode


_half = ("f16", "f16x2", "bf16", "bf16x2")
_approx("ex2", np.exp2, ("f32", *_half))
_approx("lg2", np.log2, ("f32",))
_approx("sin", np.sin, ("f32",))
_approx("cos", np.cos, ("f32",))
_approx("tanh", np.tanh, ("f32", *_half))
_approx("rsqrt", lambda x: 1.0 / np.sqrt(x), ("f32",))


# -- sign and order -------------------------------------------------------------------
@instruction("abs", "neg")
def _abs_neg(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    ftz = mods.flag("ftz")
    mods.done()
    d, a = dec.expect(ins, 2)
    if ty not in FLOATS:
        if ftz:
            raise unsupported(ins, "unknown modifier .ftz")
        return emit(dec, ins, ty, np.abs if ins.op == "abs" else np.negative, d, a)
    size = FLOATS[ty]
    pair = ty.endswith("x2")
    i, put = dec.dst(ins, d, ty)
    raw = dec.src(ins, a, ty)
    lane = UINT[size]
    wide = UINT[size * 2] if pair else lane
    sign = 1 << (size - 1)
    sign = wide(sign | sign << size) if pair else wide(sign)

    def run(R):
        v = np.ascontiguousarray(raw(R)).view(wide)
        v = v & ~sign if ins.op == "abs" else v ^ sign
        if ftz and size == 32:
            v = flush(v.view(np.float32)).view(wide)
        elif ftz:
            h = v.view(np.uint16)
            v = np.where(h & np.uint16(0x7C00), h, h & np.uint16(0x8000)).view(wide)
        put(R, v)

    return alu(run, i, opclass="fp")


def min_max_float(bits_a, bits_b, dtype_view, largest, nan_wins, canonical, xorsign=False):
    """min/max on bit patterns: NaN loses (or wins), -0 < +0, both NaN give the canonical."""
    a, b = dtype_view(bits_a), dtype_view(bits_b)
    sign = bits_a.dtype.type(1 << (bits_a.dtype.itemsize * 8 - 1))
    if xorsign:
        flip = (bits_a ^ bits_b) & sign
        bits_a, bits_b, a, b = bits_a & ~sign, bits_b & ~sign, np.abs(a), np.abs(b)
    if largest:
        r = np.where(a > b, bits_a, np.where(a < b, bits_b, bits_a & bits_b))
    else:
        r = np.where(a < b, bits_a, np.where(a > b, bits_b, bits_a | bits_b))
    na, nb = np.isnan(a), np.isnan(b)
    if na.any() or nb.any():
        r = np.where(na, bits_b, np.where(nb, bits_a, r))
        r = np.where((na | nb) if nan_wins else (na & nb), canonical, r)
    if xorsign:
        r = np.where(np.isnan(dtype_view(r)), r, r | flip)
    return r


_VIEWS = {
    "f16": (np.uint16, lambda v: v.view(np.float16), _NAN16),
    "bf16": (np.uint16, rd.bf16_to_f32, _NAN16),
    "f32": (np.uint32, lambda v: v.view(np.float32), _NAN32),
    "f64": (np.uint64, lambda v: v.view(np.float64), np.uint64(0x7FF8000000000000)),
}


@instruction("min", "max")
def _min_max(dec, ins):
    mods = Mods(ins)
    largest = ins.op == "max"
    if mods.rest[-1] in ("s16x2", "u16x2"):
        kind = np.int16 if mods.rest.pop()[0] == "s" else np.uint16
        relu = mods.flag("relu")
        mods.done()
        d, a, b = dec.expect(ins, 3)
        fn = np.maximum if largest else np.minimum

        def packed(x, y):
            r = fn(*[np.ascontiguousarray(v).view(kind).reshape(-1, 2) for v in (x, y)])
            r = np.maximum(r, kind(0)) if relu else r
            return np.ascontiguousarray(r).view(np.uint32).reshape(-1)

        return emit(dec, ins, "b32", packed, d, a, b)
    ty = mods.type()
    if ty not in FLOATS:
        relu = mods.flag("relu")
        mods.done()
        d, a, b = dec.expect(ins, 3)
        fn = np.maximum if largest else np.minimum
        run = (lambda x, y: np.maximum(fn(x, y), x.dtype.type(0))) if relu else fn
        return emit(dec, ins, ty, run, d, a, b)
    ftz, nan = mods.flag("ftz"), mods.flag("NaN")
    xorsign = mods.flag("xorsign")
    if xorsign and not mods.flag("abs"):
        raise unsupported(ins, ".xorsign without .abs")
    mods.done()
    ops = dec.expect(ins, 3, 4)
    base = ty.removesuffix("x2")
    unsigned, view, canonical = _VIEWS[base]
    i, put = dec.dst(ins, ops[0], ty)
    gets = [dec.src(ins, s, ty) for s in ops[1:]]
    wide = UINT[np.dtype(DTYPES[ty]).itemsize * 8]
    if len(gets) == 3 and (ty != "f32" or xorsign):
        raise unsupported(ins, "three inputs exist for plain .f32 only")

    def load(R, g):
        v = np.ascontiguousarray(g(R)).view(unsigned)
        if ty.endswith("x2"):
            v = v.reshape(-1, 2)
        if ftz and base == "f32":
            v = flush(v.view(np.float32)).view(np.uint32)
        elif ftz:
            v = np.where(v & np.uint16(0x7C00), v, v & np.uint16(0x8000))
        return v

    def run(R):
        r = min_max_float(
            load(R, gets[0]), load(R, gets[1]), view, largest, nan, canonical, xorsign
        )
        if len(gets) == 3:
            r = min_max_float(r, load(R, gets[2]), view, largest, nan, canonical)
        put(R, np.ascontiguousarray(r).view(wide).reshape(-1))

    return alu(run, i, opclass="fp")


@instruction("copysign")
def _copysign(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    mods.done()
    d, a, b = dec.expect(ins, 3)
    u = UINT[FLOATS[ty]]
    sign = u(1 << (FLOATS[ty] - 1))

    def run(x, y):  # the sign of a, the magnitude of b
        return (x.view(u) & sign) | (y.view(u) & ~sign)

    return emit(dec, ins, ty, run, d, a, b)


@instruction("testp")
def _testp(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    kind = mods.one(("finite", "infinite", "number", "notanumber", "normal", "subnormal"))
    mods.done()
    p, a = dec.expect(ins, 2)
    i, put = dec.dst(ins, p, "pred")
    ga = dec.src(ins, a, ty)
    tiny = np.finfo(DTYPES[ty]).tiny
    fn = {
        "finite": np.isfinite,
        "infinite": np.isinf,
        "notanumber": np.isnan,
        "number": lambda x: ~np.isnan(x),
        # PTX counts both zeros as normal
        "normal": lambda x: np.isfinite(x) & ((np.abs(x) >= tiny) | (x == 0)),
        "subnormal": lambda x: (np.abs(x) < tiny) & (x != 0),
    }[kind]
    return alu(lambda R: put(R, fn(ga(R))), i)


# -- comparisons ----------------------------------------------------------------------
_ORDERED = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}
_UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


def _comparison(name, is_float):
    if not is_float:
        return _ORDERED[_UNSIGNED.get(name, name)]
    if name == "num":
        return lambda a, b: ~(np.isnan(a) | np.isnan(b))
    if name == "nan":
        return lambda a, b: np.isnan(a) | np.isnan(b)
    if name == "ne":
        return lambda a, b: (a != b) & ~(np.isnan(a) | np.isnan(b))
    if name in _ORDERED:
        return _ORDERED[name]
    fn = _ORDERED[name[:-1]]  # equ, neu, ltu, ...: true if either is NaN
    if name == "neu":
        return np.not_equal
    return lambda a, b: fn(a, b) | np.isnan(a) | np.isnan(b)


_COMPARES = (*_ORDERED, *_UNSIGNED, "num", "nan", "equ", "neu", "ltu", "leu", "gtu", "geu")
_BOOL = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}


def _compare(dec, ins, mods, ty, a, b):
    """Getter of the comparison's truth, (n,) or (n, 2)."""
    name = mods.one(_COMPARES)
    ftz = mods.flag("ftz")
    if name is None or (name in _UNSIGNED and ty[0] != "u"):
        raise unsupported(ins, "unknown comparison")
    if ty in FLOATS:
        ga, gb = getter(dec, ins, a, ty, ftz), getter(dec, ins, b, ty, ftz)
    else:
        if ftz or (name not in _ORDERED and name not in _UNSIGNED):
            raise unsupported(ins, "unknown comparison")
        ga, gb = dec.src(ins, a, ty), dec.src(ins, b, ty)
    fn = _comparison(name, ty in FLOATS)
    return lambda R: fn(ga(R), gb(R))


@instruction("setp")
def _setp(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    boolop = mods.one(tuple(_BOOL))
    ops = dec.expect(ins, 4 if boolop else 3)
    p, _, q = (s.strip() for s in ops[0].partition("|"))
    get = _compare(dec, ins, mods, ty, ops[1], ops[2])
    mods.done()
    gc = dec.src(ins, ops[3], "pred") if boolop else None
    i, put = dec.dst(ins, p, "pred")
    if ty.endswith("x2"):
        j, putq = dec.dst(ins, q, "pred")

        def run(R):
            v = get(R)
            v = _BOOL[boolop](v, gc(R)[:, None]) if boolop else v
            put(R, np.ascontiguousarray(v[:, 0]))
            putq(R, np.ascontiguousarray(v[:, 1]))

        return alu(run, i, j, opclass="setp")
    if not q and not boolop:
        return alu(lambda R: put(R, get(R)), i, opclass="setp")
    j, putq = dec.dst(ins, q, "pred") if q else (-1, None)

    def run(R):
        t = get(R)
        c = gc(R) if boolop else None
        put(R, _BOOL[boolop](t, c) if boolop else t)
        if putq:
            putq(R, _BOOL[boolop](~t, c) if boolop else ~t)

    return alu(run, i, j, opclass="setp")


@instruction("set")
def _set(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    dt = mods.type()
    boolop = mods.one(tuple(_BOOL))
    ops = dec.expect(ins, 4 if boolop else 3)
    get = _compare(dec, ins, mods, ty, ops[1], ops[2])
    mods.done()
    gc = dec.src(ins, ops[3], "pred") if boolop else None
    i, put = dec.dst(ins, ops[0], dt)
    one = {
        "f32": np.uint32(0x3F800000),
        "f16": np.uint16(0x3C00),
        "bf16": np.uint16(0x3F80),
        "f16x2": np.uint16(0x3C00),
        "bf16x2": np.uint16(0x3F80),
    }
    true = (
        one.get(dt)
        if dt in one
        else UINT[np.dtype(DTYPES[dt]).itemsize * 8]((1 << np.dtype(DTYPES[dt]).itemsize * 8) - 1)
    )
    if ty.endswith("x2") and not dt.endswith("x2"):
        true = np.uint16(0xFFFF)  # u32/s32 destination: a mask in each half

    def run(R):
        t = get(R)
        if boolop:
            c = gc(R)
            t = _BOOL[boolop](t, c[:, None] if t.ndim == 2 else c)
        v = np.where(t, true, true.dtype.type(0))
        put(R, np.ascontiguousarray(v).view(np.uint32).reshape(-1) if t.ndim == 2 else v)

    return alu(run, i, opclass="setp")
