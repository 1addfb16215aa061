"""cvt in all its forms."""

from __future__ import annotations

import numpy as np

from . import rounding as rd
from .decode import BITS, DTYPES, Mods, alu, instruction, unsupported
from .float_ops import bits_of, flush, getter

_FLOAT = ("f16", "bf16", "f32", "f64", "tf32")
_FP8 = {"e4m3x2": "e4m3", "e5m2x2": "e5m2"}
_TYPES = (
    *(t for t in DTYPES if t not in ("pred",) and t[0] != "b"),
    "bf16",
    "bf16x2",
    "tf32",
    *_FP8,
)
_INTEGRAL = {"rni": np.rint, "rzi": np.trunc, "rmi": np.floor, "rpi": np.ceil}


def _int_to_float64_odd(v):
    """64-bit integers -> float64 rounded to odd (smaller ones are exact)."""
    f = v.astype(np.float64)
    if v.dtype.itemsize < 8:
        return f
    half = v.dtype.type(1 << 32)
    hi = (v // half).astype(np.float64) * 2.0**32
    lo = (v - v // half * half).astype(np.float64)
    return rd.to_odd(*rd.two_sum(hi, lo))


def _to_int(x, ty):
    """Integral float64 -> clamped integer; NaN becomes 0 (or 2^63, see the caller)."""
    dtype = DTYPES[ty]
    info = np.iinfo(dtype)
    low, high = float(info.min), float(info.max)
    safe = np.where((x > low) & (x < high), x, 0.0)
    out = safe.astype(dtype)
    out = np.where(x >= high, dtype(info.max), out)
    return np.where(x <= low, dtype(info.min), out)


def _float_int(dec, ins, mods, dt, st):
    mode, ftz, sat = mods.one(tuple(_INTEGRAL)), mods.flag("ftz"), mods.flag("sat")
    mods.done()
    if mode is None:
        raise unsupported(ins, "float to integer needs .rni .rzi .rmi or .rpi")
    del sat  # float to integer always clamps
    d, a = dec.expect(ins, 2)
    i, put = dec.dst(ins, d, dt)
    ga = getter(dec, ins, a, st, ftz)
    nan = 1 << (BITS[dt] - 1) if (st == "f64" or BITS[dt] == 64) else 0
    nan = np.array([nan], np.uint64).astype(f"u{BITS[dt] // 8}").view(DTYPES[dt])
    fn = _INTEGRAL[mode]

    def run(R):
        x = ga(R).astype(np.float64)
        put(R, np.where(np.isnan(x), nan, _to_int(fn(x), dt)))

    return alu(run, i, opclass="cvt")


def _int_float(dec, ins, mods, dt, st):
    mode, sat = mods.one(("rn", "rz", "rm", "rp")), mods.flag("sat")
    mods.flag("ftz") if dt == "f32" else None  # an integer is never subnormal
    mods.done()
    if mode is None:
        raise unsupported(ins, "integer to float needs a rounding mode")
    d, a = dec.expect(ins, 2)
    i, put = dec.dst(ins, d, dt)
    ga = dec.src(ins, a, st)

    def run(R):
        v = ga(R)
        if sat:
            v = np.clip(v, v.dtype.type(0), v.dtype.type(1))
        if dt == "f64":
            if mode == "rn" or v.dtype.itemsize < 8:
                x = v.astype(np.float64)
            else:
                half = v.dtype.type(1 << 32)
                x = rd.exact_f64(
                    "add",
                    (
                        (v // half).astype(np.float64) * 2.0**32,
                        (v - v // half * half).astype(np.float64),
                    ),
                    mode,
                )
            put(R, x)
            return
        x = _int_to_float64_odd(v)
        put(R, rd.narrow_f32(x, mode) if dt == "f32" else bits_of(x, dt, mode))

    return alu(run, i, opclass="cvt")


def _int_int(dec, ins, mods, dt, st):
    sat = mods.flag("sat")
    mods.done()
    d, a = dec.expect(ins, 2)
    i, put = dec.dst(ins, d, dt)
    ga, dtype = dec.src(ins, a, st), DTYPES[dt]
    if sat:
        si, di = np.iinfo(DTYPES[st]), np.iinfo(dtype)
        if di.min <= si.min and si.max <= di.max:
            raise unsupported(ins, ".sat where every value fits")
        low, high = max(si.min, di.min), min(si.max, di.max)
        return alu(lambda R: put(R, np.clip(ga(R), low, high).astype(dtype)), i, opclass="cvt")
    return alu(lambda R: put(R, ga(R).astype(dtype)), i, opclass="cvt")


def _float_float(dec, ins, mods, dt, st):
    mode = mods.one(("rn", "rz", "rm", "rp", "rna", *_INTEGRAL))
    ftz, sat, relu = mods.flag("ftz"), mods.flag("sat"), mods.flag("relu")
    satfinite = mods.flag("satfinite")
    mods.done()
    if dt == "tf32":
        if st != "f32" or mode not in ("rn", "rz", "rna"):
            raise unsupported(ins, "unknown form")
    elif mode == "rna" or (satfinite and dt not in ("bf16", "f16")):
        raise unsupported(ins, "unknown form")
    prec = {"f64": 4, "f32": 3, "tf32": 2, "f16": 1, "bf16": 1}
    if mode is None and (prec[dt] < prec[st] or {dt, st} == {"f16", "bf16"}):
        raise unsupported(ins, "a narrowing conversion needs a rounding mode")
    d, a = dec.expect(ins, 2)
    i, put = dec.dst(ins, d, "b32" if dt == "tf32" else dt)
    ga = getter(dec, ins, a, st, ftz)

    def run(R):
        x = ga(R).astype(np.float64)
        if mode in _INTEGRAL:
            x = _INTEGRAL[mode](x)
        if sat:
            x = np.where(x > 0, np.minimum(x, 1.0), 0.0)
        if relu:
            x = np.where(np.isnan(x) | (x > 0), x, 0.0)
        rounding = "rn" if mode is None or mode in _INTEGRAL else mode
        if satfinite:
            top = rd.FORMATS[dt][2]
            x = np.where(np.isnan(x), x, np.clip(x, -top, top))
        put(R, narrow(x, dt, rounding, ftz))

    return alu(run, i, opclass="cvt")


def narrow(x, dt, mode, ftz=False):
    """float64 -> bits of the format."""
    if dt == "f64":  # a signalling NaN comes out quiet
        bits = x.view(np.uint64)
        return np.where(np.isnan(x), bits | np.uint64(1 << 51), bits)
    if dt == "tf32":
        y = rd.quantise(x, "tf32", mode).astype(np.float32)
        return np.where(np.isnan(y), np.uint32(0x7FFFFFFF), y.view(np.uint32))
    if dt == "f32":
        y = rd.narrow_f32(x, mode)
        return bits_of(flush(y) if ftz else y, "f32")
    return bits_of(x, dt, mode)


def _packed_from_f32(dec, ins, mods, dt):
    """cvt.*.{f16x2,bf16x2,e4m3x2,e5m2x2}.f32 d, a, b: a goes to the upper half."""
    mode = mods.one(("rn", "rz"))
    relu, satfinite = mods.flag("relu"), mods.flag("satfinite")
    mods.done()
    d, a, b = dec.expect(ins, 3)
    if mode is None or (dt in _FP8 and (mode != "rn" or not satfinite)):
        raise unsupported(ins, "unknown form")
    ga, gb = getter(dec, ins, a, "f32"), getter(dec, ins, b, "f32")
    i, put = dec.dst(ins, d, "b16" if dt in _FP8 else "b32")

    def half(x):
        x = x.astype(np.float64)
        if relu:
            x = np.where(np.isnan(x) | (x > 0), x, 0.0)
        if dt in _FP8:
            return rd.to_fp8_bits(x, _FP8[dt])
        if satfinite:
            top = rd.FORMATS[dt[:-2]][2]
            x = np.where(np.isnan(x), x, np.clip(x, -top, top))
        return bits_of(x, dt[:-2], mode)

    def run(R):
        lo, hi = np.broadcast_arrays(half(gb(R)), half(ga(R)))
        both = np.ascontiguousarray(np.stack([lo, hi], axis=1))
        put(R, both.view(np.uint16 if dt in _FP8 else np.uint32).reshape(-1))

    return alu(run, i, opclass="cvt")


def _fp8(dec, ins, mods, dt, st):
    """Between pairs of fp8 and pairs of f16."""
    mode, relu, satfinite = mods.one(("rn",)), mods.flag("relu"), mods.flag("satfinite")
    mods.done()
    d, a = dec.expect(ins, 2)
    if mode is None or {dt, st} & {"f16x2"} == set() or (dt in _FP8 and not satfinite):
        raise unsupported(ins, "unknown form")
    if dt in _FP8:
        ga = getter(dec, ins, a, "f16x2")
        i, put = dec.dst(ins, d, "b16")

        def run(R):
            x = ga(R)
            x = np.where(np.isnan(x) | (x > 0), x, 0.0) if relu else x
            put(R, np.ascontiguousarray(rd.to_fp8_bits(x, _FP8[dt])).view(np.uint16).reshape(-1))

        return alu(run, i, opclass="cvt")
    raw = dec.src(ins, a, "b16")
    i, put = dec.dst(ins, d, "b32")

    def run(R):
        b = np.ascontiguousarray(raw(R)).view(np.uint8).reshape(-1, 2)
        x = rd.fp8_to_f64(b, _FP8[st])
        x = np.where(np.isnan(x) | (x > 0), x, 0.0) if relu else x
        put(R, np.ascontiguousarray(bits_of(x, "f16")).view(np.uint32).reshape(-1))

    return alu(run, i, opclass="cvt")


@instruction("cvt")
def _cvt(dec, ins):
    if ins.mods and ins.mods[0] == "pack":
        return _pack(dec, ins)
    mods = Mods(ins)
    types = [m for m in mods.rest if m in _TYPES]
    if len(types) != 2 or mods.rest[-2:] != types:
        raise unsupported(ins, "unknown types")
    dt, st = types
    del mods.rest[-2:]
    if st == "f32" and (dt in _FP8 or dt in ("f16x2", "bf16x2")):
        return _packed_from_f32(dec, ins, mods, dt)
    if st in _FP8 or dt in _FP8:
        return _fp8(dec, ins, mods, dt, st)
    if dt in ("f16x2", "bf16x2", "f32x2") or st in ("f16x2", "bf16x2", "f32x2", "tf32"):
        raise unsupported(ins, "unknown types")
    if st in _FLOAT:
        return (_float_float if dt in _FLOAT else _float_int)(dec, ins, mods, dt, st)
    if dt == "tf32":
        raise unsupported(ins, "unknown types")
    return (_int_float if dt in _FLOAT else _int_int)(dec, ins, mods, dt, st)


def _pack(dec, ins):
    """cvt.pack.sat.s8.s32.b32 d, a, b, c: two clamped values below the low half of c;
    cvt.pack.sat.s16.s32 d, a, b."""
    mods = Mods(ins)
    mods.flag("pack")
    if not mods.flag("sat"):
        raise unsupported(ins, "unknown form")
    three = mods.flag("b32")
    names = list(mods.rest)
    mods.rest.clear()
    if (
        len(names) != 2
        or names[1] != "s32"
        or names[0] not in ("s8", "u8", "s16", "u16")
        or three != (BITS[names[0]] == 8)
    ):
        raise unsupported(ins, "unknown types")
    ops = dec.expect(ins, 4 if three else 3)
    i, put = dec.dst(ins, ops[0], "b32")
    gets = [dec.src(ins, o, "s32") for o in ops[1:]]
    info, width = np.iinfo(DTYPES[names[0]]), BITS[names[0]]

    def run(R):
        a, b = (
            np.clip(g(R), info.min, info.max).astype(np.int64) & ((1 << width) - 1)
            for g in gets[:2]
        )
        v = (a << width) | b
        if three:
            v = v | (gets[2](R).astype(np.int64) & 0xFFFF) << 16
        put(R, (v & 0xFFFFFFFF).astype(np.uint32))

    return alu(run, i, opclass="cvt")
