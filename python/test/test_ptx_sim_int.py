"""Integer, logic and move instructions against Python's unbounded integers."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_sim_harness import execute, integers
from triton.tools.ptx_sim import PtxUnsupported

N = 256
TYPES = {
    "u16": np.uint16,
    "s16": np.int16,
    "u32": np.uint32,
    "s32": np.int32,
    "u64": np.uint64,
    "s64": np.int64,
}


def wrap(values, dtype) -> np.ndarray:
    bits = np.dtype(dtype).itemsize * 8
    unsigned = np.array([v % (1 << bits) for v in values], np.uint64)
    return unsigned.astype(f"u{bits // 8}").view(dtype)


def trunc_div(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return -q if (a < 0) != (b < 0) else q


def check(text: str, ty: str, statement, nsrc: int, fix=None, out: str | None = None) -> None:
    dtype = TYPES[ty]
    srcs = {n: integers(dtype, N, k) for k, n in enumerate("abc"[:nsrc])}
    if fix:
        fix(srcs)
    out_type = TYPES[out or ty]
    got = execute(text, srcs, {"d": out_type})["d"]
    want = wrap(
        (statement(*(int(x) for x in row)) for row in zip(*srcs.values(), strict=True)), out_type
    )
    np.testing.assert_array_equal(got, want)


def nonzero(srcs):
    srcs["b"][srcs["b"] == 0] = 3


BINARY = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul.lo": lambda a, b: a * b,
    "min": min,
    "max": max,
}


@pytest.mark.parametrize("ty", TYPES)
@pytest.mark.parametrize("op", BINARY)
def test_binary(op, ty):
    check(f"{op}.{ty} %d, %a, %b;", ty, BINARY[op], 2)


@pytest.mark.parametrize("ty", TYPES)
def test_mul_hi_div_rem(ty):
    bits = int(ty[1:])
    check(f"mul.hi.{ty} %d, %a, %b;", ty, lambda a, b: a * b >> bits, 2)
    check(f"div.{ty} %d, %a, %b;", ty, trunc_div, 2, nonzero)
    check(f"rem.{ty} %d, %a, %b;", ty, lambda a, b: a - b * trunc_div(a, b), 2, nonzero)


@pytest.mark.parametrize("ty", ["u16", "s16", "u32", "s32"])
def test_wide(ty):
    wide = ty[0] + str(int(ty[1:]) * 2)
    check(f"mul.wide.{ty} %d, %a, %b;", ty, lambda a, b: a * b, 2, out=wide)
    a, b = integers(TYPES[ty], N, 1), integers(TYPES[ty], N, 2)
    c = integers(TYPES[wide], N, 3)
    got = execute(f"mad.wide.{ty} %d, %a, %b, %c;", {"a": a, "b": b, "c": c}, {"d": TYPES[wide]})
    want = wrap((int(x) * int(y) + int(z) for x, y, z in zip(a, b, c, strict=True)), TYPES[wide])
    np.testing.assert_array_equal(got["d"], want)


@pytest.mark.parametrize("ty", ["u32", "s32", "u64", "s64"])
def test_mad_and_sad(ty):
    bits = int(ty[1:])
    check(f"mad.lo.{ty} %d, %a, %b, %c;", ty, lambda a, b, c: a * b + c, 3)
    check(f"mad.hi.{ty} %d, %a, %b, %c;", ty, lambda a, b, c: (a * b >> bits) + c, 3)
    check(f"sad.{ty} %d, %a, %b, %c;", ty, lambda a, b, c: c + abs(a - b), 3)


def clamp32(v):
    return max(-(2**31), min(2**31 - 1, v))


def test_saturating():
    check("add.sat.s32 %d, %a, %b;", "s32", lambda a, b: clamp32(a + b), 2)
    check("sub.sat.s32 %d, %a, %b;", "s32", lambda a, b: clamp32(a - b), 2)
    check("mad.hi.sat.s32 %d, %a, %b, %c;", "s32", lambda a, b, c: clamp32((a * b >> 32) + c), 3)


@pytest.mark.parametrize("ty", ["u32", "s32"])
def test_24_bits(ty):
    def low(v):
        v %= 1 << 24
        return v - (1 << 24) if ty == "s32" and v >> 23 else v

    check(f"mul24.lo.{ty} %d, %a, %b;", ty, lambda a, b: low(a) * low(b), 2)
    check(f"mul24.hi.{ty} %d, %a, %b;", ty, lambda a, b: low(a) * low(b) >> 16, 2)
    check(f"mad24.lo.{ty} %d, %a, %b, %c;", ty, lambda a, b, c: low(a) * low(b) + c, 3)


@pytest.mark.parametrize("ty", ["s16", "s32", "s64"])
def test_unary_signed(ty):
    check(f"neg.{ty} %d, %a;", ty, lambda a: -a, 1)
    check(f"abs.{ty} %d, %a;", ty, abs, 1)


@pytest.mark.parametrize("bits", [16, 32, 64])
def test_logic(bits):
    ty = f"u{bits}"
    check(f"and.b{bits} %d, %a, %b;", ty, lambda a, b: a & b, 2)
    check(f"or.b{bits} %d, %a, %b;", ty, lambda a, b: a | b, 2)
    check(f"xor.b{bits} %d, %a, %b;", ty, lambda a, b: a ^ b, 2)
    check(f"not.b{bits} %d, %a;", ty, lambda a: ~a, 1)
    check(f"cnot.b{bits} %d, %a;", ty, lambda a: int(a == 0), 1)


@pytest.mark.parametrize("ty", TYPES)
def test_shifts(ty):
    bits = int(ty[1:])
    a, n = integers(TYPES[ty], N, 1), (np.arange(N) % 80).astype(np.uint32)
    n[-1] = 2**32 - 1
    for amount in ("%n", "5"):
        k = [5 if amount == "5" else min(int(v), bits) for v in n]
        got = execute(f"shl.b{bits} %d, %a, {amount};", {"a": a, "n": n}, {"d": TYPES[ty]})["d"]
        np.testing.assert_array_equal(
            got, wrap((int(x) << s for x, s in zip(a, k, strict=True)), TYPES[ty])
        )
        got = execute(f"shr.{ty} %d, %a, {amount};", {"a": a, "n": n}, {"d": TYPES[ty]})["d"]
        np.testing.assert_array_equal(
            got, wrap((int(x) >> s for x, s in zip(a, k, strict=True)), TYPES[ty])
        )


@pytest.mark.parametrize("side", "lr")
@pytest.mark.parametrize("mode", ["wrap", "clamp"])
def test_funnel_shift(side, mode):
    def statement(a, b, c):
        n = c % 32 if mode == "wrap" else min(c, 32)
        both = b << 32 | a
        return (both << n >> 32) if side == "l" else both >> n

    def small(srcs):
        srcs["c"][:] = np.arange(N) % 70

    check(f"shf.{side}.{mode}.b32 %d, %a, %b, %c;", "u32", statement, 3, small)


def fields(n):
    rng = np.random.default_rng(7)
    pos = rng.integers(0, 80, n).astype(np.uint32)
    length = rng.integers(0, 80, n).astype(np.uint32)
    pos[:4], length[:4] = [0, 255, 256 + 3, 31], [0, 255, 256 + 5, 1]
    return pos, length


@pytest.mark.parametrize("ty", ["u32", "s32", "u64", "s64"])
def test_bfe(ty):
    bits = int(ty[1:])
    a = integers(TYPES[ty], N, 1)
    b, c = fields(N)

    def statement(a, b, c):
        pos, length = b & 255, c & 255
        raw = a % (1 << bits)
        signed = ty[0] == "s" and length > 0
        sign = raw >> min(pos + length - 1, bits - 1) & 1 if signed else 0
        out = 0
        for i in range(bits):
            bit = raw >> (pos + i) & 1 if i < length and pos + i < bits else sign
            out |= bit << i
        return out

    got = execute(f"bfe.{ty} %d, %a, %b, %c;", {"a": a, "b": b, "c": c}, {"d": TYPES[ty]})["d"]
    want = wrap((statement(*map(int, r)) for r in zip(a, b, c, strict=True)), TYPES[ty])
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("bits", [32, 64])
def test_bfi(bits):
    u = TYPES[f"u{bits}"]
    a, b = integers(u, N, 1), integers(u, N, 2)
    c, e = fields(N)

    def statement(a, b, c, e):
        pos, length = c & 255, e & 255
        for i in range(min(length, max(bits - pos, 0))):
            b = b & ~(1 << (pos + i)) | (a >> i & 1) << (pos + i)
        return b

    got = execute(f"bfi.b{bits} %d, %a, %b, %c, %e;", {"a": a, "b": b, "c": c, "e": e}, {"d": u})
    want = wrap((statement(*map(int, r)) for r in zip(a, b, c, e, strict=True)), u)
    np.testing.assert_array_equal(got["d"], want)


@pytest.mark.parametrize("bits", [32, 64])
def test_counting(bits):
    ty, s = f"u{bits}", f"s{bits}"
    check(f"popc.b{bits} %d, %a;", ty, lambda a: bin(a).count("1"), 1, out="u32")
    check(f"clz.b{bits} %d, %a;", ty, lambda a: bits - a.bit_length(), 1, out="u32")
    check(f"brev.b{bits} %d, %a;", ty, lambda a: int(f"{a:0{bits}b}"[::-1], 2), 1)
    check(f"bfind.{ty} %d, %a;", ty, lambda a: a.bit_length() - 1, 1, out="u32")
    check(f"bfind.{s} %d, %a;", s, lambda a: (~a if a < 0 else a).bit_length() - 1, 1, out="u32")
    check(
        f"bfind.shiftamt.{ty} %d, %a;",
        ty,
        lambda a: bits - a.bit_length() if a else -1,
        1,
        out="u32",
    )


def test_prmt_default():
    def statement(a, b, c):
        both, out = b << 32 | a, 0
        for k in range(4):
            sel = c >> 4 * k & 15
            byte = both >> 8 * (sel & 7) & 255
            if sel & 8:
                byte = 255 if byte & 128 else 0
            out |= byte << 8 * k
        return out

    check("prmt.b32 %d, %a, %b, %c;", "u32", statement, 3)


@pytest.mark.parametrize(
    ("mode", "rows"),
    [
        ("f4e", ["3210", "4321", "5432", "6543"]),
        ("b4e", ["5670", "6701", "7012", "0123"]),
        ("rc8", ["0000", "1111", "2222", "3333"]),
        ("ecl", ["3210", "3211", "3222", "3333"]),
        ("ecr", ["0000", "1110", "2210", "3210"]),
        ("rc16", ["1010", "3232", "1010", "3232"]),
    ],
)
def test_prmt_modes(mode, rows):
    def statement(a, b, c):
        both = b << 32 | a
        return int.from_bytes(
            bytes(both >> 8 * int(ch) & 255 for ch in reversed(rows[c & 3])), "little"
        )

    check(f"prmt.b32.{mode} %d, %a, %b, %c;", "u32", statement, 3)


@pytest.mark.parametrize("lut", [0x00, 0xFF, 0x96, 0xE8, 0xCA, 0x1B, 0x80])
def test_lop3(lut):
    def statement(a, b, c):
        out = 0
        for i in range(32):
            index = (a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1
            out |= (lut >> index & 1) << i
        return out

    check(f"lop3.b32 %d, %a, %b, %c, {lut:#x};", "u32", statement, 3)


@pytest.mark.parametrize("op", ["add", "sub"])
def test_carry_chain(op):
    a, b = integers(np.uint64, N, 1), integers(np.uint64, N, 2)
    a[:4], b[:4] = [2**32 - 1, 0, 2**64 - 1, 2**32], [1, 1, 1, 2**32 - 1]
    body = f"""mov.b64 {{%al, %ah}}, %a; mov.b64 {{%bl, %bh}}, %b;
        {op}.cc.u32 %al, %al, %bl; {op}c.cc.u32 %ah, %ah, %bh; {op}c.u32 %e, 0, 0;
        mov.b64 %d, {{%al, %ah}};"""
    got = execute(
        body, {"a": a, "b": b}, {"d": np.uint64, "e": np.uint32}, ".reg .b32 %al, %ah, %bl, %bh;"
    )
    sign = 1 if op == "add" else -1
    total = [int(x) + sign * int(y) for x, y in zip(a, b, strict=True)]
    np.testing.assert_array_equal(got["d"], wrap(total, np.uint64))
    np.testing.assert_array_equal(got["e"], wrap((t >> 64 for t in total), np.uint32))


def test_mad_carry():
    a, b = integers(np.uint32, N, 1), integers(np.uint32, N, 2)
    c = integers(np.uint64, N, 3)
    body = """mov.b64 {%cl, %ch}, %c; mad.lo.cc.u32 %cl, %a, %b, %cl;
        madc.hi.u32 %ch, %a, %b, %ch; mov.b64 %d, {%cl, %ch};"""
    got = execute(body, {"a": a, "b": b, "c": c}, {"d": np.uint64}, ".reg .b32 %cl, %ch;")["d"]
    want = wrap((int(x) * int(y) + int(z) for x, y, z in zip(a, b, c, strict=True)), np.uint64)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("ta", ["u32", "s32"])
@pytest.mark.parametrize("tb", ["u32", "s32"])
def test_dp4a(ta, tb):
    def parts(v, ty):
        raw = [v >> 8 * k & 255 for k in range(4)]
        return [r - 256 if ty == "s32" and r > 127 else r for r in raw]

    def statement(a, b, c):
        return c + sum(x * y for x, y in zip(parts(a, ta), parts(b, tb), strict=True))

    check(f"dp4a.{ta}.{tb} %d, %a, %b, %c;", "u32", statement, 3)


def test_packed_16():
    a, b = integers(np.uint32, N, 1), integers(np.uint32, N, 2)
    for op in ("add", "min", "max"):
        for ty in ("u16x2", "s16x2"):
            got = execute(f"{op}.{ty} %d, %a, %b;", {"a": a, "b": b}, {"d": np.uint32})["d"]
            x, y = (v.view(TYPES[ty[:3]]) for v in (a, b))
            want = {"add": np.add, "min": np.minimum, "max": np.maximum}[op](x, y)
            np.testing.assert_array_equal(got, want.view(np.uint32))


COMPARE = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
UNSIGNED = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}


@pytest.mark.parametrize("ty", TYPES)
def test_setp_selp(ty):
    names = list(COMPARE) + (list(UNSIGNED) if ty[0] == "u" else [])
    for name in names:
        fn = COMPARE[UNSIGNED.get(name, name)]
        body = (
            f"setp.{name}.{ty} %p|%q, %a, %b; selp.b32 %x, 1, 0, %p; selp.b32 %y, 2, 0, %q;"
            "or.b32 %d, %x, %y;"
        )
        a, b = integers(TYPES[ty], N, 1), integers(TYPES[ty], N, 2)
        b[::3] = a[::3]
        got = execute(
            body, {"a": a, "b": b}, {"d": np.uint32}, ".reg .pred %p, %q; .reg .b32 %x, %y;"
        )["d"]
        want = [1 if fn(int(x), int(y)) else 2 for x, y in zip(a, b, strict=True)]
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("boolop", ["and", "or", "xor"])
def test_setp_combined(boolop):
    a, b = integers(np.int32, N, 1), integers(np.int32, N, 2)
    body = (
        f"setp.gt.s32 %r, %b, 0; setp.lt.{boolop}.s32 %p|%q, %a, %b, !%r;"
        "selp.b32 %x, 1, 0, %p; selp.b32 %y, 2, 0, %q; or.b32 %d, %x, %y;"
    )
    got = execute(
        body, {"a": a, "b": b}, {"d": np.uint32}, ".reg .pred %p, %q, %r; .reg .b32 %x, %y;"
    )["d"]
    fn = {"and": lambda x, y: x and y, "or": lambda x, y: x or y, "xor": lambda x, y: x != y}[
        boolop
    ]
    want = [
        int(fn(x < y, not y > 0)) + 2 * int(fn(not x < y, not y > 0))
        for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]
    np.testing.assert_array_equal(got, want)


def test_set_and_slct():
    a, b = integers(np.int32, N, 1), integers(np.int32, N, 2)
    got = execute(
        "set.le.u32.s32 %d, %a, %b; slct.u32.s32 %e, %a, %b, %b;",
        {"a": a, "b": b},
        {"d": np.uint32, "e": np.int32},
    )
    np.testing.assert_array_equal(got["d"], np.where(a <= b, 0xFFFFFFFF, 0))
    np.testing.assert_array_equal(got["e"], np.where(b >= 0, a, b))


def test_vector_moves():
    a = integers(np.uint64, N, 1)
    body = """mov.b64 {%l, %h}, %a; mov.b32 {%s0, %s1}, %h; mov.b32 {_, %s2}, %l;
        mov.b32 %x, {%s2, %s0}; mov.b64 {%t0, %t1, %t2, %t3}, %a; mov.b64 %d, {%t3, %t2, %t1, %t0};
        mov.b64 %e, {%x, %l}; mov.b32 %f, %h;"""
    got = execute(
        body,
        {"a": a},
        {"d": np.uint64, "e": np.uint64, "f": np.uint32},
        ".reg .b32 %l, %h, %x; .reg .b16 %s0, %s1, %s2, %t0, %t1, %t2, %t3;",
    )
    v = [int(x) for x in a]
    part = [[x >> 16 * k & 0xFFFF for k in range(4)] for x in v]
    np.testing.assert_array_equal(
        got["d"], [p[3] | p[2] << 16 | p[1] << 32 | p[0] << 48 for p in part]
    )
    np.testing.assert_array_equal(
        got["e"], [p[1] | p[2] << 16 | (x & 0xFFFFFFFF) << 32 for p, x in zip(part, v, strict=True)]
    )
    np.testing.assert_array_equal(got["f"], [x >> 32 for x in v])


@pytest.mark.parametrize("dt", ["u8", "s8", *TYPES])
@pytest.mark.parametrize("st", ["u8", "s8", *TYPES])
@pytest.mark.parametrize("sat", ["", ".sat"])
def test_cvt_integers(dt, st, sat):
    types = {**TYPES, "u8": np.uint8, "s8": np.int8}
    out = types[dt]
    a = integers(types[st], N, 1)
    info, src = np.iinfo(out), np.iinfo(types[st])
    if sat and info.min <= src.min and src.max <= info.max:  # PTX has no such form
        with pytest.raises(PtxUnsupported, match="every value fits"):
            execute(f"cvt.sat.{dt}.{st} %d, %a;", {"a": a}, {"d": out})
        return
    got = execute(f"cvt{sat}.{dt}.{st} %d, %a;", {"a": a}, {"d": out})["d"]
    values = [int(v) for v in a]
    if sat:
        values = [max(int(info.min), min(int(info.max), v)) for v in values]
    np.testing.assert_array_equal(got, wrap(values, out))


def test_narrow_types_extend_in_wide_registers():
    """PTX: the destination register may be wider; signed values extend their sign."""
    a = integers(np.uint16, N, 1)
    got = execute(
        "cvt.s8.u16 %d, %a; cvt.u8.u16 %e, %a;", {"a": a}, {"d": np.int32, "e": np.uint32}
    )
    np.testing.assert_array_equal(got["d"], a.astype(np.uint8).view(np.int8).astype(np.int32))
    np.testing.assert_array_equal(got["e"], a & 255)


def test_cvt_pack():
    a, b, c = (integers(np.int32, N, k) for k in range(3))
    got = execute(
        "cvt.pack.sat.s8.s32.b32 %d, %a, %b, %c; cvt.pack.sat.u16.s32 %e, %a, %b;",
        {"a": a, "b": b, "c": c},
        {"d": np.uint32, "e": np.uint32},
    )
    x, y = (np.clip(v, -128, 127).astype(np.uint32) & 255 for v in (a, b))
    np.testing.assert_array_equal(got["d"], c.view(np.uint32) << 16 | x << 8 | y)
    x, y = (np.clip(v, 0, 65535).astype(np.uint32) for v in (a, b))
    np.testing.assert_array_equal(got["e"], x << 16 | y)


def test_bmsk():
    a = (np.arange(N) % 40).astype(np.uint32)
    b = (np.arange(N) * 7 % 45).astype(np.uint32)
    got = execute(
        "bmsk.clamp.b32 %d, %a, %b; bmsk.wrap.b32 %e, %a, %b;",
        {"a": a, "b": b},
        {"d": np.uint32, "e": np.uint32},
    )
    low = 2**32 - 1
    np.testing.assert_array_equal(
        got["d"],
        [((1 << min(int(y), 32)) - 1 << min(int(x), 32)) & low for x, y in zip(a, b, strict=True)],
    )
    np.testing.assert_array_equal(
        got["e"], [((1 << int(y) % 32) - 1 << int(x) % 32) & low for x, y in zip(a, b, strict=True)]
    )
