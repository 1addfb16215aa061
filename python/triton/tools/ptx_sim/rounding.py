"""Correctly rounded conversions and sums: every result here is rounded once.

The tool is round-to-odd: a value that is not representable goes to its neighbour with an odd
last bit. A number rounded to odd with p + 2 or more bits, then rounded to p bits in any
mode, equals the exact number rounded once (53 bits suffice for f32, tf32, f16, bf16, fp8).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

# name: (precision incl. hidden bit, exponent of the smallest subnormal, largest finite)
FORMATS = {
    "f32": (24, -149, float(np.finfo(np.float32).max)),
    "tf32": (11, -136, float((2 - 2.0**-10) * 2.0**127)),
    "f16": (11, -24, 65504.0),
    "bf16": (8, -133, float((2 - 2.0**-7) * 2.0**127)),
    "e5m2": (3, -16, 57344.0),
    "e4m3": (4, -9, 448.0),
}
_INTEGRAL = {"rn": np.rint, "rz": np.trunc, "rm": np.floor, "rp": np.ceil}


def two_sum(a, b):
    """float64: s = fl(a + b) and the exact error (0 where s is not finite)."""
    s = a + b
    bb = s - a
    err = (a - (s - bb)) + (b - bb)
    return s, np.where(np.isfinite(s), err, 0.0)


def to_odd(s, err):
    """float64 s = RN(s + err) -> s + err rounded to odd."""
    bits = np.ascontiguousarray(s).view(np.int64)
    fix = (err != 0) & ((bits & 1) == 0)
    if not fix.any():
        return s
    step = np.where((err > 0) == (s > 0), 1, -1)
    return np.where(fix, bits + step, bits).view(np.float64)


def quantise(x, fmt, mode="rn"):
    """float64 x -> float64 holding a value of the format (rounded once; overflow goes to
    inf, or to the largest finite value where the direction of rounding says so)."""
    prec, low, top = FORMATS[fmt]
    if mode == "rna":

        def rounding(v):
            return np.copysign(np.floor(np.abs(v) + 0.5), v)
    else:
        rounding = _INTEGRAL[mode]
    finite = np.isfinite(x)
    v = np.where(finite, x, 0.0)
    _, e = np.frexp(v)
    q = np.maximum(e - prec, low)
    scaled = np.ldexp(v, -q)
    # a scaled subnormal double may have lost bits, but only where it rounds to 0 or 1 anyway
    y = np.ldexp(rounding(scaled), q)
    big = np.abs(y) > top
    if big.any():
        y = np.where(big, _overflow(y, top, mode), y)
    return np.where(finite, np.copysign(y, v), x)


def _overflow(y, top, mode):
    if mode == "rz":
        return np.copysign(top, y)
    if mode == "rm":
        return np.where(y > 0, top, -np.inf)
    if mode == "rp":
        return np.where(y > 0, np.inf, -top)
    return np.copysign(np.inf, y)


def narrow_f32(x, mode="rn"):
    """float64 -> float32 in a rounding mode."""
    y = x.astype(np.float32)
    if mode == "rn":
        return y
    back = y.astype(np.float64)
    if mode == "rz":
        return np.where(np.abs(back) > np.abs(x), np.nextafter(y, np.float32(0)), y)
    if mode == "rm":
        return np.where(back > x, np.nextafter(y, np.float32(-np.inf)), y)
    if mode == "rp":
        return np.where(back < x, np.nextafter(y, np.float32(np.inf)), y)
    raise ValueError(mode)


def bf16_to_f32(bits):
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def f32_to_bf16_bits(x):
    """float32 holding a bf16 value (or NaN) -> uint16, NaN canonical."""
    bits = (np.ascontiguousarray(x).view(np.uint32) >> np.uint32(16)).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(0x7FFF), bits)


def to_bf16_bits(x, mode="rn"):
    """float64 -> bf16 bits, rounded once."""
    return f32_to_bf16_bits(quantise(x, "bf16", mode).astype(np.float32))


def to_f16_bits(x, mode="rn"):
    """float64 -> f16 bits, rounded once, NaN canonical."""
    y = x.astype(np.float16) if mode == "rn" else quantise(x, "f16", mode).astype(np.float16)
    return np.where(np.isnan(y), np.uint16(0x7FFF), y.view(np.uint16))


def to_fp8_bits(x, fmt, saturate=True):
    """float64 -> e4m3/e5m2 bits (uint8), round to nearest even, overflow to the largest
    finite value (`saturate`, the only form PTX has)."""
    mant = 3 if fmt == "e4m3" else 2
    bias = 7 if fmt == "e4m3" else 15
    top = FORMATS[fmt][2]
    y = quantise(np.where(np.isfinite(x), np.clip(x, -2 * top, 2 * top), x), fmt)
    nan = np.isnan(y)
    a = np.minimum(np.where(nan, 0.0, np.abs(y)), top)
    _, e = np.frexp(a)
    e = np.maximum(e - 1, 1 - bias)
    code = np.rint(np.ldexp(a, mant - e)).astype(np.int64)  # 2^mant + fraction, or subnormal
    bits = np.where(code >= (1 << mant), ((e + bias) << mant) + code - (1 << mant), code)
    bits = bits | np.where(np.signbit(x) & ~nan, 0x80, 0)
    return np.where(nan, 0x7F, bits).astype(np.uint8)


def fp8_to_f64(bits, fmt):
    return _FP8_TABLE[fmt][bits]


def _fp8_table(fmt):
    mant, bias = (3, 7) if fmt == "e4m3" else (2, 15)
    out = np.empty(256)
    for b in range(256):
        e, f = (b & 0x7F) >> mant, b & ((1 << mant) - 1)
        if fmt == "e4m3" and (b & 0x7F) == 0x7F:
            v = math.nan
        elif fmt == "e5m2" and e == 31:
            v = math.inf if f == 0 else math.nan
        else:
            v = (
                math.ldexp(f, 1 - bias - mant)
                if e == 0
                else math.ldexp((1 << mant) + f, e - bias - mant)
            )
        out[b] = -v if b & 0x80 else v
    return out


_FP8_TABLE = {f: _fp8_table(f) for f in ("e4m3", "e5m2")}


def fma_odd(a, b, c):
    """a*b + c rounded to odd in float64, for operands of at most 24 bits each whose product
    stays in float64's normal range (f32, f16, bf16): the product is exact, the sum's error
    is known. Returns (value, zero sign for round-down)."""
    p = a * b
    s, err = two_sum(p, c)
    return to_odd(s, err), np.signbit(p) | np.signbit(c)


def add_odd(a, b):
    s, err = two_sum(a, b)
    return to_odd(s, err), np.signbit(a) | np.signbit(b)


def round_down_zero(value, sign):
    """In mode rm an exact zero of unlike terms is -0 (the sum of two +0 stays +0)."""
    return np.where((value == 0) & sign, -0.0, value)


def _plain_fma(a, b, c):
    """The result where an operand is infinite, NaN or zero. A finite product may overflow in
    float64, but not in the exact sum with an infinite c."""
    return np.where(np.isinf(c) & np.isfinite(a) & np.isfinite(b), c, a * b + c)


def fma_f64(a, b, c, mode="rn"):
    """Fused multiply-add of float64 arrays, rounded once in any mode."""
    a, b, c = np.broadcast_arrays(a, b, c)
    if mode != "rn":
        return exact_f64("fma", (a, b, c), mode)
    plain = _plain_fma(a, b, c)
    with np.errstate(all="ignore"):
        ma, ea = np.frexp(a)
        mb, eb = np.frexp(b)
        mc, ec = np.frexp(c)
        e = ea + eb
        # beyond +-200 the smaller term is only a sticky bit: bring it near
        k = np.clip(ec - e, -200, 200)
        cc = np.ldexp(mc, k)
        p, pe = _two_prod(ma, mb)
        s1, s2 = two_sum(p, cc)
        t1, t2 = two_sum(s2, pe)
        # value = s1 + t1 + t2 exactly; round the tail to odd, then add once
        h, l1 = two_sum(s1, t1)
        tail = to_odd(*two_sum(l1, t2))
        r = h + tail
        scale = np.where(ec - e > 200, ec - k, e)
        _, er = np.frexp(r)
        out = np.ldexp(r, scale)
    ordinary = np.isfinite(a) & np.isfinite(b) & np.isfinite(c) & (a != 0) & (b != 0) & (c != 0)
    safe = (er + scale > -1000) & (er + scale < 1020) & (r != 0)
    result = np.where(ordinary, out, plain)
    bad = ordinary & ~safe
    if bad.any():
        result[bad] = exact_f64("fma", (a[bad], b[bad], c[bad]), mode)
    zero_c = (c == 0) & (a != 0) & (b != 0)  # one rounding of a*b, also where it underflows
    return np.where(zero_c, a * b, result)


def _two_prod(a, b):
    """Exact product of two float64 in [0.5, 1) as head + tail (Veltkamp/Dekker split)."""
    p = a * b
    f = 134217729.0  # 2^27 + 1
    ah = a * f
    ah = ah - (ah - a)
    al = a - ah
    bh = b * f
    bh = bh - (bh - b)
    bl = b - bh
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def round_fraction(v: Fraction, mode: str, negative_zero: bool = False) -> float:
    """A rational number rounded to float64 in mode rn/rz/rm/rp."""
    if v == 0:
        return -0.0 if negative_zero else 0.0
    sign, v = (-1, -v) if v < 0 else (1, v)
    e = v.numerator.bit_length() - v.denominator.bit_length()
    e = e if Fraction(2) ** e <= v else e - 1
    q = max(e - 52, -1074)
    scaled = v / Fraction(2) ** q
    n = scaled.numerator // scaled.denominator
    rest = scaled - n
    up = {
        "rn": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and n & 1),
        "rz": False,
        "rm": rest > 0 and sign < 0,
        "rp": rest > 0 and sign > 0,
    }[mode]
    n += bool(up)
    if n.bit_length() + q > 1024:
        away = mode == "rn" or up or (mode == "rp" and sign > 0) or (mode == "rm" and sign < 0)
        return sign * (math.inf if away else float(np.finfo(np.float64).max))
    return sign * math.ldexp(n, q)


def _sqrt_exact(x: float, mode: str) -> float:
    v = Fraction(x)
    # 2^(2s) * v is an integer of 140 bits or more: its root has 70, and a sticky bit
    s = (160 + max(0, -(v.numerator.bit_length() - v.denominator.bit_length()))) // 2 + 540
    n = v * Fraction(2) ** (2 * s)
    root = math.isqrt(n.numerator // n.denominator)
    exact = root * root == n
    return round_fraction(Fraction(2 * root + (not exact), 1) / Fraction(2) ** (s + 1), mode)


def exact_f64(op: str, args, mode: str):
    """add, mul, div, sqrt or fma of float64 arrays by rational arithmetic (slow, any mode)."""
    args = [np.atleast_1d(x) for x in np.broadcast_arrays(*args)]
    with np.errstate(all="ignore"):
        plain = {
            "add": lambda a, b: a + b,
            "mul": lambda a, b: a * b,
            "div": lambda a, b: a / b,
            "sqrt": np.sqrt,
            "fma": _plain_fma,
        }[op](*args)
    out = np.array(plain, np.float64)
    for i in range(out.size):
        xs = [float(x.flat[i]) for x in args]
        if not all(map(math.isfinite, xs)) or (op == "div" and xs[1] == 0):
            continue  # inf and NaN do not depend on rounding
        if op == "sqrt":
            if xs[0] > 0:
                out.flat[i] = _sqrt_exact(xs[0], mode)
            continue
        if op == "mul":
            v = Fraction(xs[0]) * Fraction(xs[1])
            neg = (math.copysign(1, xs[0]) * math.copysign(1, xs[1])) < 0
        elif op == "div":
            v = Fraction(xs[0]) / Fraction(xs[1])
            neg = (math.copysign(1, xs[0]) * math.copysign(1, xs[1])) < 0
        else:
            if op == "add":
                terms, signs = [Fraction(xs[0]), Fraction(xs[1])], [math.copysign(1, x) for x in xs]
            else:
                terms = [Fraction(xs[0]) * Fraction(xs[1]), Fraction(xs[2])]
                signs = [math.copysign(1, xs[0]) * math.copysign(1, xs[1]), math.copysign(1, xs[2])]
            v = sum(terms)
            neg = signs[0] < 0 and signs[1] < 0
            if mode == "rm" and signs[0] != signs[1]:
                neg = True
        r = round_fraction(v, mode, neg)
        out.flat[i] = -0.0 if (r == 0 and v != 0 and v < 0) else r
    return out
