"""Float instructions against rational arithmetic, rounded by definition."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from ptx_sim_harness import execute, floats, integers, same_floats

N = 256
# precision, exponent of the smallest subnormal, largest finite value
FORMATS = {
    "f16": (11, -24, Fraction(65504)),
    "bf16": (8, -133, Fraction(2**8 - 1) * Fraction(2) ** 120),
    "f32": (24, -149, Fraction(2**24 - 1) * Fraction(2) ** 104),
    "f64": (53, -1074, Fraction(2**53 - 1) * Fraction(2) ** 971),
    "tf32": (11, -136, Fraction(2**11 - 1) * Fraction(2) ** 117),
    "e4m3": (4, -9, Fraction(448)),
    "e5m2": (3, -16, Fraction(57344)),
}
DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def round_to(v: Fraction, fmt: str, mode: str = "rn") -> float:
    """The value of the format that `mode` picks; overflow as IEEE 754 says. v is not zero."""
    prec, low, top = FORMATS[fmt]
    size = abs(v)
    e = (
        math.floor(math.log2(size))
        if 2**-900 < size < 2**900
        else (size.numerator.bit_length() - size.denominator.bit_length())
    )
    while Fraction(2) ** e > size:
        e -= 1
    while Fraction(2) ** (e + 1) <= size:
        e += 1
    unit = Fraction(2) ** max(e - prec + 1, low)
    below = v / unit // 1 * unit
    above = below if below == v else below + unit
    if mode == "rm":
        out = below
    elif mode == "rp":
        out = above
    elif mode == "rz":
        out = below if v > 0 else above
    elif mode == "rna":
        tie = v - below == above - v and above != below
        out = (above if v > 0 else below) if tie else min((below, above), key=lambda x: abs(v - x))
    else:
        even = below if (below / unit) % 2 == 0 else above
        out = below if v - below < above - v else above if v - below > above - v else even
    if abs(out) > top:
        stays = mode == "rz" or (mode == "rm" and v > 0) or (mode == "rp" and v < 0)
        return (1 if v > 0 else -1) * (float(top) if stays else math.inf)
    return math.copysign(float(out), 1 if v > 0 else -1)


def special(op, args):
    """The result if it is not a finite non-zero number's business, else None."""
    with np.errstate(all="ignore"):
        a, b, *c = (np.float64(x) for x in args)
        if not all(map(math.isfinite, args)):
            # an infinite or NaN operand: only which of inf and NaN matters, not rounding;
            # a finite product is replaced by its sign, so that it cannot overflow
            one = [np.copysign(min(abs(x), 1.0), x) if math.isfinite(x) else x for x in (a, b)]
            return {
                "add": lambda: a + b,
                "sub": lambda: a - b,
                "mul": lambda: one[0] * one[1],
                "div": lambda: one[0] / one[1],
                "fma": lambda: one[0] * one[1] + c[0],
            }[op]()
        if op == "div" and b == 0:
            return a / b
    return None


def exact(op, args, fmt, mode):
    got = special(op, args)
    if got is not None:
        return float(got)
    a, b, *c = map(Fraction, args)
    sign = [math.copysign(1, x) for x in args]
    if op in ("add", "sub"):
        if op == "sub":
            b, sign[1] = -b, -sign[1]
        terms, signs = (a, b), sign[:2]
    elif op == "fma":
        terms, signs = (a * b, c[0]), [sign[0] * sign[1], sign[2]]
    elif op == "mul":
        terms, signs = (a * b,), [sign[0] * sign[1]] * 2
    else:
        terms, signs = (a / b,), [sign[0] * sign[1]] * 2
    v = sum(terms)
    if v == 0:
        if signs[0] == signs[1]:
            return math.copysign(0.0, signs[0])
        return -0.0 if mode == "rm" else 0.0
    return round_to(v, fmt, mode)


def operands(fmt, count, seed=0):
    out = []
    for k in range(count):
        v = floats(DTYPES[fmt], N, seed + k)
        out.append(v)
    if count > 1:  # sums that cancel, nearly cancel, and lie far apart
        out[1][60:90] = -out[0][60:90]
    if count == 3:
        with np.errstate(all="ignore"):
            out[2][90:140] = -(out[0][90:140].astype(np.float64) * out[1][90:140]).astype(
                DTYPES[fmt]
            )
    return out


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("fmt", ["f32", "f64"])
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "fma"])
def test_rounding_modes(op, fmt, mode):
    args = operands(fmt, 3 if op == "fma" else 2, 11)
    names = dict(zip("abc", args, strict=False))
    text = ", ".join(f"%{n}" for n in names)
    got = execute(f"{op}.{mode}.{fmt} %d, {text};", names, {"d": DTYPES[fmt]})["d"]
    want = np.array(
        [exact(op, [float(x) for x in row], fmt, mode) for row in zip(*args, strict=True)]
    )
    same_floats(got, want)


def test_fma_f64_near_the_limits():
    """Products and sums around overflow and the subnormals, and one-sided sticky bits."""
    rng = np.random.default_rng(3)
    a = np.ldexp(rng.uniform(1, 2, N), rng.integers(-1074, 1024, N))
    e = rng.choice([-1080, -1074, -1050, -1022, 0, 52, 53, 106, 107, 1000, 1022], N)
    _, ea = np.frexp(a)
    b = np.ldexp(rng.uniform(1, 2, N), np.clip(e - ea, -1074, 1023))
    shift = rng.choice([-120, -108, -107, -106, -54, -53, -2, -1, 0, 1, 53, 54, 106, 300], N)
    c = np.ldexp(rng.choice([-1.0, 1.0, 1.5, -1.25], N), np.clip(e + shift, -1074, 1023))
    got = execute("fma.rn.f64 %d, %a, %b, %c;", {"a": a, "b": b, "c": c}, {"d": np.float64})["d"]
    want = [
        exact("fma", [float(x), float(y), float(z)], "f64", "rn")
        for x, y, z in zip(a, b, c, strict=True)
    ]
    same_floats(got, np.array(want))


@pytest.mark.parametrize("op", ["add", "sub", "mul", "fma"])
def test_f16(op):
    args = operands("f16", 3 if op == "fma" else 2, 5)
    names = dict(zip("abc", args, strict=False))
    text = ", ".join(f"%{n}" for n in names)
    rnd = ".rn" if op == "fma" else ""
    got = execute(f"{op}{rnd}.f16 %d, {text};", names, {"d": np.float16})["d"]
    want = np.array(
        [exact(op, [float(x) for x in row], "f16", "rn") for row in zip(*args, strict=True)]
    )
    same_floats(got, want)
    # both halves of the packed form
    pairs = {n: v.view(np.uint32) for n, v in names.items()}
    for v in pairs.values():
        assert len(v) == N // 2
    got = execute(f"{op}{rnd}.f16x2 %d, {text};", pairs, {"d": np.uint32})["d"]
    same_floats(got.view(np.float16), want)


def bf16_values(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


@pytest.mark.parametrize("op", ["add", "sub", "mul", "fma"])
def test_bf16(op):
    args = [floats(np.float32, N, k).view(np.uint32) >> 16 for k in range(3 if op == "fma" else 2)]
    args = [a.astype(np.uint16) for a in args]
    args[1][60:90] = args[0][60:90] ^ 0x8000
    names = dict(zip("abc", args, strict=False))
    text = ", ".join(f"%{n}" for n in names)
    rnd = ".rn" if op in ("fma", "add", "sub", "mul") else ""
    got = execute(f"{op}{rnd}.bf16 %d, {text};", names, {"d": np.uint16})["d"]
    want = np.array(
        [
            exact(op, [float(x) for x in row], "bf16", "rn")
            for row in zip(*map(bf16_values, args), strict=True)
        ]
    )
    same_floats(bf16_values(got), want)
    pairs = {n: v.view(np.uint32) for n, v in names.items()}
    got = execute(f"{op}{rnd}.bf16x2 %d, {text};", pairs, {"d": np.uint32})["d"]
    same_floats(bf16_values(got.view(np.uint16)), want)


def test_f32x2():
    a, b, c = (floats(np.float32, 2 * N, k) for k in range(3))
    packed = {n: v.view(np.uint64) for n, v in zip("abc", (a, b, c), strict=True)}
    got = execute(
        "fma.rn.f32x2 %d, %a, %b, %c; add.f32x2 %e, %a, %b; mul.f32x2 %f, %a, %b;",
        packed,
        {"d": np.uint64, "e": np.uint64, "f": np.uint64},
    )
    for name, op, args in (("d", "fma", (a, b, c)), ("e", "add", (a, b)), ("f", "mul", (a, b))):
        want = [exact(op, [float(x) for x in row], "f32", "rn") for row in zip(*args, strict=True)]
        same_floats(got[name].view(np.float32), np.array(want))


def flushed(v):
    return np.where(np.abs(v) < 2.0**-126, np.copysign(0, v), v).astype(np.float32)


def test_ftz_and_sat():
    a, b, c = (floats(np.float32, N, k) for k in range(3))
    a[100:140] = np.float32(2.0**-100) * a[100:140]
    names = {"a": a, "b": b, "c": c}
    got = execute(
        "mul.ftz.f32 %d, %a, %b; fma.rn.ftz.f32 %e, %a, %b, %c; add.sat.f32 %f, %a, %b;"
        "add.ftz.f32 %g, %a, %b;",
        names,
        dict.fromkeys("defg", np.float32),
    )
    fa, fb, fc = (flushed(v) for v in (a, b, c))

    def rows(op, *args):  # rounded with the exponent unbounded: scale up, round, scale down
        if op == "mul":
            wide = [
                round_to(Fraction(float(x)) * Fraction(float(y)) * 2**64, "f32")
                if math.isfinite(x)
                and math.isfinite(y)
                and x * y != 0
                and 2**-130 < abs(float(x) * float(y)) < 2**-120
                else None
                for x, y in zip(*args, strict=True)
            ]
            plain = [exact(op, [float(x) for x in r], "f32", "rn") for r in zip(*args, strict=True)]
            return np.array(
                [p if w is None else w * 2.0**-64 for w, p in zip(wide, plain, strict=True)]
            )
        return np.array(
            [exact(op, [float(x) for x in r], "f32", "rn") for r in zip(*args, strict=True)]
        ).astype(np.float32)

    same_floats(got["d"], flushed(rows("mul", fa, fb)))
    same_floats(got["e"], flushed(rows("fma", fa, fb, fc)))
    same_floats(got["g"], flushed(rows("add", fa, fb)))
    plain = rows("add", a, b)
    want = np.where(np.isnan(plain) | (plain <= 0), np.float32(0), np.minimum(plain, 1))
    same_floats(got["f"], want.astype(np.float32))


def test_ftz_decides_with_an_unbounded_exponent():
    """(1 - 2^-24) * 2^-126 rounds up to the smallest normal number, and is still flushed;
    (1 - 2^-26) * 2^-126 is not (both as an H200 does it)."""
    a = np.full(32, 2.0**-63 * (1 - 2.0**-24), np.float32)
    b = np.full(32, 2.0**-63, np.float32)
    a[1::2], b[1::2] = 2.0**-63 * (1 + 2.0**-13), 2.0**-63 * (1 - 2.0**-13)
    z = np.zeros(32, np.float32)
    got = execute(
        "mul.ftz.f32 %d, %a, %b; fma.rn.ftz.f32 %e, %a, %b, %z; mul.f32 %f, %a, %b;",
        {"a": a, "b": b, "z": z},
        dict.fromkeys("def", np.float32),
    )
    tiny = np.float32(2.0**-126)
    for name in "de":
        same_floats(got[name], np.where(np.arange(32) % 2, tiny, 0))
    same_floats(got["f"], np.full(32, tiny))


def test_nan_results_are_canonical():
    a = np.full(32, np.inf, np.float32)
    a.view(np.uint32)[::2] = 0xFFC12345  # a NaN with a payload
    h = np.full(32, np.nan, np.float16)
    h.view(np.uint16)[:] = 0xFE01
    got = execute(
        "sub.f32 %d, %a, %a; add.f16 %e, %h, %h;",
        {"a": a, "h": h},
        {"d": np.uint32, "e": np.uint16},
    )
    assert set(got["d"]) == {0x7FFFFFFF} and set(got["e"]) == {0x7FFF}


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
def test_sqrt_and_rcp(mode):
    for fmt in ("f32", "f64"):
        a = np.abs(floats(DTYPES[fmt], N, 2))
        a[0], a[1] = -0.0, -1.0
        got = execute(
            f"sqrt.{mode}.{fmt} %d, %a; rcp.{mode}.{fmt} %e, %a;",
            {"a": a},
            {"d": DTYPES[fmt], "e": DTYPES[fmt]},
        )
        for x, root, inverse in zip(a, got["d"], got["e"], strict=True):
            x, root, inverse = float(x), float(root), float(inverse)
            assert inverse == exact("div", [1.0, x], fmt, mode) or math.isnan(x)
            if not math.isfinite(x) or x <= 0:
                with np.errstate(all="ignore"):
                    want = np.sqrt(np.float64(x))
                assert (root == want and math.copysign(1, root) == math.copysign(1, want)) or (
                    math.isnan(root) and math.isnan(want)
                )
                continue
            # by definition: the neighbours' squares bracket x
            up = float(np.nextafter(DTYPES[fmt](root), DTYPES[fmt](np.inf)))
            down = float(np.nextafter(DTYPES[fmt](root), DTYPES[fmt](0)))
            r, u, d, v = (Fraction(t) for t in (root, up, down, x))
            if mode in ("rz", "rm"):
                assert r * r <= v < u * u
            elif mode == "rp":
                assert d * d < v <= r * r
            else:
                assert ((d + r) / 2) ** 2 <= v <= ((r + u) / 2) ** 2


@pytest.mark.parametrize("fmt", ["f16", "f32", "f64"])
def test_min_max_abs_neg(fmt):
    a, b = floats(DTYPES[fmt], N, 1), floats(DTYPES[fmt], N, 2)
    a[100:104], b[100:104] = [0.0, -0.0, np.nan, -0.0], [-0.0, 0.0, np.nan, -0.0]
    nan_forms = fmt != "f64"
    body = f"min.{fmt} %d, %a, %b; max.{fmt} %e, %a, %b; abs.{fmt} %h, %a; neg.{fmt} %i, %a;"
    if nan_forms:
        body += f"min.NaN.{fmt} %f, %a, %b; max.NaN.{fmt} %g, %a, %b;"
    else:
        body += "mov.b64 %f, %a; mov.b64 %g, %a;"
    got = execute(body, {"a": a, "b": b}, dict.fromkeys("defghi", DTYPES[fmt]))

    def pick(x, y, largest):
        if math.isnan(x) or math.isnan(y):
            return y if math.isnan(x) else x
        key = (x, math.copysign(1, x)), (y, math.copysign(1, y))  # -0 < +0
        return (max if largest else min)(key)[0]

    pairs = [(float(x), float(y)) for x, y in zip(a, b, strict=True)]
    same_floats(got["d"], np.array([pick(x, y, False) for x, y in pairs]))
    same_floats(got["e"], np.array([pick(x, y, True) for x, y in pairs]))
    if nan_forms:
        some = [math.isnan(x) or math.isnan(y) for x, y in pairs]
        same_floats(got["f"], np.where(some, np.nan, [pick(x, y, False) for x, y in pairs]))
        same_floats(got["g"], np.where(some, np.nan, [pick(x, y, True) for x, y in pairs]))
    same_floats(got["h"], np.abs(a))
    same_floats(got["i"], np.where(np.isnan(a), np.nan, -a))


def test_xorsign():
    a, b = floats(np.float32, N, 1), floats(np.float32, N, 2)
    got = execute(
        "max.xorsign.abs.f32 %d, %a, %b; min.xorsign.abs.f32 %e, %a, %b;",
        {"a": a, "b": b},
        {"d": np.float32, "e": np.float32},
    )
    ok = ~np.isnan(a) & ~np.isnan(b)
    sign = np.where(np.signbit(a) != np.signbit(b), np.float32(-1), np.float32(1))
    for name, fn in (("d", np.maximum), ("e", np.minimum)):
        same_floats(got[name][ok], np.copysign(fn(np.abs(a), np.abs(b)), sign)[ok])


ORDERED = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


@pytest.mark.parametrize("fmt", ["f16", "f32", "f64"])
def test_setp(fmt):
    a, b = floats(DTYPES[fmt], N, 1), floats(DTYPES[fmt], N, 2)
    b[::3] = a[::3]
    pairs = [(float(x), float(y)) for x, y in zip(a, b, strict=True)]
    nan = [math.isnan(x) or math.isnan(y) for x, y in pairs]
    cases = {
        n: [fn(x, y) and not o for (x, y), o in zip(pairs, nan, strict=True)]
        for n, fn in ORDERED.items()
    }
    cases.update(
        {
            n + "u": [fn(x, y) or o for (x, y), o in zip(pairs, nan, strict=True)]
            for n, fn in ORDERED.items()
        }
    )
    cases.update(num=[not o for o in nan], nan=nan)
    for name, want in cases.items():
        got = execute(
            f"setp.{name}.{fmt} %p, %a, %b; selp.u32 %d, 1, 0, %p;",
            {"a": a, "b": b},
            {"d": np.uint32},
            ".reg .pred %p;",
        )["d"]
        np.testing.assert_array_equal(got, np.array(want).astype(np.uint32), err_msg=name)


def test_setp_and_set_packed():
    a, b = floats(np.float16, 2 * N, 1), floats(np.float16, 2 * N, 2)
    body = (
        "setp.lt.f16x2 %p|%q, %a, %b; selp.b32 %x, 1, 0, %p; selp.b32 %y, 2, 0, %q;"
        "or.b32 %d, %x, %y; set.nan.f16x2.f16x2 %e, %a, %b;"
    )
    got = execute(
        body,
        {"a": a.view(np.uint32), "b": b.view(np.uint32)},
        {"d": np.uint32, "e": np.uint32},
        ".reg .pred %p, %q; .reg .b32 %x, %y;",
    )
    less = (a < b).reshape(-1, 2)
    np.testing.assert_array_equal(got["d"], less[:, 0] + 2 * less[:, 1])
    nan = np.isnan(a) | np.isnan(b)
    np.testing.assert_array_equal(got["e"].view(np.float16), nan.astype(np.float16))


def test_testp_copysign():
    a, b = floats(np.float32, N, 1), floats(np.float32, N, 2)
    got = execute(
        "testp.subnormal.f32 %p, %a; selp.u32 %d, 1, 0, %p; testp.normal.f32 %p, %a;"
        "selp.u32 %e, 1, 0, %p; copysign.f32 %f, %a, %b;",
        {"a": a, "b": b},
        {"d": np.uint32, "e": np.uint32, "f": np.float32},
        ".reg .pred %p;",
    )
    field = a.view(np.uint32) >> 23 & 255
    np.testing.assert_array_equal(got["d"], (field == 0) & (a != 0))
    np.testing.assert_array_equal(got["e"], (field > 0) & (field < 255) | (a == 0))
    bits = a.view(np.uint32) & 0x80000000 | b.view(np.uint32) & 0x7FFFFFFF
    np.testing.assert_array_equal(got["f"].view(np.uint32), bits)


# documented: ex2 2^-22 relative (+2 ulp), lg2 2^-22, rcp and rsqrt 1 and 2 ulp, sin/cos 2^-20.5
# absolute, tanh 2^-11 relative; the simulator promises half an ulp of the result.
@pytest.mark.parametrize(
    ("op", "fn", "low", "high"),
    [
        ("ex2", lambda x: 2.0**x, -140, 127),
        ("lg2", math.log2, 1e-30, 1e30),
        ("rcp", lambda x: 1 / x, 1e-30, 1e30),
        ("rsqrt", lambda x: x**-0.5, 1e-30, 1e30),
        ("sqrt", math.sqrt, 0, 1e30),
        ("sin", math.sin, -3, 3),
        ("cos", math.cos, -3, 3),
        ("tanh", math.tanh, -9, 9),
    ],
)
def test_approximations(op, fn, low, high):
    rng = np.random.default_rng(1)
    a = rng.uniform(low, high, N).astype(np.float32)
    got = execute(f"{op}.approx.f32 %d, %a;", {"a": a}, {"d": np.float32})["d"]
    for x, y in zip(a, got, strict=True):
        want = fn(float(x))
        assert abs(float(y) - want) <= 0.5001 * float(np.spacing(np.abs(np.float32(want))))


def test_approximations_of_special_values():
    a = np.zeros(32, np.float32)
    a[:6] = [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-40]
    got = execute(
        "ex2.approx.ftz.f32 %d, %a; lg2.approx.ftz.f32 %e, %a; rcp.approx.ftz.f32 %f, %a;"
        "rsqrt.approx.ftz.f32 %g, %a; div.full.f32 %h, %a, %a;",
        {"a": a},
        dict.fromkeys("defgh", np.float32),
    )
    inf, nan = np.inf, np.nan
    same_floats(got["d"][:6], np.array([inf, 0, nan, 1, 1, 1]))
    same_floats(got["e"][:6], np.array([inf, nan, nan, -inf, -inf, -inf]))
    same_floats(got["f"][:6], np.array([0.0, -0.0, nan, inf, -inf, inf]))
    same_floats(got["g"][:6], np.array([0.0, nan, nan, inf, -inf, inf]))
    same_floats(got["h"][:6], np.array([nan, nan, nan, nan, nan, 1]))


# -- conversions ----------------------------------------------------------------------
@pytest.mark.parametrize(
    ("dt", "st"),
    [
        ("f32", "f64"),
        ("f16", "f32"),
        ("f16", "f64"),
        ("f32", "f16"),
        ("f64", "f32"),
        ("f64", "f16"),
    ],
)
def test_cvt_floats(dt, st):
    a = floats(DTYPES[st], N, 4)
    modes = ["rn", "rz", "rm", "rp"] if FORMATS[dt][0] < FORMATS[st][0] else [None]
    if dt == "f16":
        modes = ["rn", "rz"]
    for mode in modes:
        suffix = "" if mode is None else "." + mode
        got = execute(f"cvt{suffix}.{dt}.{st} %d, %a;", {"a": a}, {"d": DTYPES[dt]})["d"]
        want = [
            x if not math.isfinite(x) or x == 0 else round_to(Fraction(x), dt, mode or "rn")
            for x in map(float, a)
        ]
        same_floats(got, np.array(want))


def rounded(x, mode):
    return {
        "rni": lambda v: round(Fraction(v)),
        "rzi": math.trunc,
        "rmi": math.floor,
        "rpi": math.ceil,
    }[mode](x)


@pytest.mark.parametrize("mode", ["rni", "rzi", "rmi", "rpi"])
@pytest.mark.parametrize("st", ["f16", "f32", "f64"])
def test_cvt_float_to_integer(mode, st):
    a = floats(DTYPES[st], N, 6)
    rng = np.random.default_rng(0)
    with np.errstate(all="ignore"):
        a[40:200] = np.ldexp(rng.standard_normal(160), rng.integers(0, 70, 160)).astype(DTYPES[st])
    for dt in ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64"):
        bits = int(dt[1:])
        dtype = np.dtype(("i" if dt[0] == "s" else "u") + str(bits // 8))
        got = execute(f"cvt.{mode}.{dt}.{st} %d, %a;", {"a": a}, {"d": dtype})["d"]
        info = np.iinfo(dtype)
        for x, y in zip(map(float, a), got, strict=True):
            if math.isnan(x):
                want = 1 << (bits - 1) if st == "f64" or bits == 64 else 0
                want = want - (1 << bits) if dt[0] == "s" and want else want
            elif math.isinf(x):
                want = info.max if x > 0 else info.min
            else:
                want = max(int(info.min), min(int(info.max), rounded(x, mode)))
            assert int(y) == want, (x, dt)


@pytest.mark.parametrize("mode", ["rn", "rz", "rm", "rp"])
@pytest.mark.parametrize("st", ["s8", "u16", "s32", "u32", "s64", "u64"])
def test_cvt_integer_to_float(mode, st):
    dtype = np.dtype(("i" if st[0] == "s" else "u") + str(int(st[1:]) // 8))
    a = integers(dtype, N, 3)
    for dt in ("f16", "f32", "f64"):
        got = execute(f"cvt.{mode}.{dt}.{st} %d, %a;", {"a": a}, {"d": DTYPES[dt]})["d"]
        want = [0.0 if x == 0 else round_to(Fraction(int(x)), dt, mode) for x in a]
        same_floats(got, np.array(want))


def test_cvt_to_integral_float():
    a = floats(np.float32, N, 8)
    a[50:150] *= np.float32(3)
    for mode in ("rni", "rzi", "rmi", "rpi"):
        got = execute(f"cvt.{mode}.f32.f32 %d, %a;", {"a": a}, {"d": np.float32})["d"]
        want = [
            x if not math.isfinite(x) else math.copysign(float(rounded(x, mode)), x)
            for x in map(float, a)
        ]
        same_floats(got, np.array(want))


def test_cvt_packed_halves():
    a, b = floats(np.float32, N, 1), floats(np.float32, N, 2)
    got = execute(
        "cvt.rn.f16x2.f32 %d, %a, %b; cvt.rn.bf16x2.f32 %e, %a, %b;"
        "cvt.rz.f16x2.f32 %f, %a, %b; cvt.rn.relu.f16x2.f32 %g, %a, %b;"
        "cvt.rn.bf16.f32 %h, %a; cvt.rna.tf32.f32 %i, %a;",
        {"a": a, "b": b},
        {**dict.fromkeys("defg", np.uint32), "h": np.uint16, "i": np.float32},
    )

    def expect(v, fmt, mode="rn"):
        return np.array(
            [
                x if not math.isfinite(x) or x == 0 else round_to(Fraction(x), fmt, mode)
                for x in map(float, v)
            ]
        )

    both = np.stack([b, a], axis=1).reshape(-1)  # the first operand is the upper half
    same_floats(got["d"].view(np.float16), expect(both, "f16"))
    same_floats(bf16_values(got["e"].view(np.uint16)), expect(both, "bf16"))
    same_floats(got["f"].view(np.float16), expect(both, "f16", "rz"))
    plain = expect(both, "f16")
    same_floats(got["g"].view(np.float16), np.where(np.signbit(plain) & ~np.isnan(plain), 0, plain))
    same_floats(bf16_values(got["h"]), expect(a, "bf16"))
    same_floats(got["i"], expect(a, "tf32", "rna"))


def fp8_value(bits, fmt):
    """By the definition of the encodings: E4M3 has no infinity, E5M2 has."""
    mant, bias = (3, 7) if fmt == "e4m3" else (2, 15)
    sign, e, f = bits >> 7, bits >> mant & ((1 << 7 - mant) - 1), bits & ((1 << mant) - 1)
    if fmt == "e4m3" and bits & 127 == 127:
        return math.nan
    if fmt == "e5m2" and e == 31:
        return (-math.inf if sign else math.inf) if f == 0 else math.nan
    v = math.ldexp(f, 1 - bias - mant) if e == 0 else math.ldexp(f + (1 << mant), e - bias - mant)
    return -v if sign else v


@pytest.mark.parametrize("fmt", ["e4m3", "e5m2"])
def test_cvt_fp8(fmt):
    a, b = floats(np.float32, N, 1), floats(np.float32, N, 2)
    a[100:200] *= np.float32(300)
    got = execute(f"cvt.rn.satfinite.{fmt}x2.f32 %d, %a, %b;", {"a": a, "b": b}, {"d": np.uint16})
    top = float(FORMATS[fmt][2])
    for half, v in ((got["d"] >> 8, a), (got["d"] & 255, b)):
        for bits, x in zip(map(int, half), map(float, v), strict=True):
            y = fp8_value(bits, fmt)
            if math.isnan(x):
                assert math.isnan(y)
                continue
            want = (
                x
                if x == 0
                else math.copysign(top, x)
                if math.isinf(x)
                else round_to(Fraction(x), fmt)
            )
            want = max(-top, min(top, want))
            assert y == want and math.copysign(1, y) == math.copysign(1, x), (x, y, want)
    every = np.arange(256).astype(np.uint16) | np.arange(256)[::-1].astype(np.uint16) << 8
    got = execute(f"cvt.rn.f16x2.{fmt}x2 %d, %a;", {"a": every}, {"d": np.uint32})["d"]
    want = [fp8_value(int(v), fmt) for v in every.view(np.uint8)]
    same_floats(got.view(np.float16), np.array(want))
