"""Integer, logic, move and predicate instructions."""

from __future__ import annotations

import numpy as np

from .decode import BITS, DTYPES, UINT, Mods, alu, instruction, unsupported

_ONE = {w: UINT[w](1) for w in (8, 16, 32, 64)}


def _binary(name, fn):
    @instruction(name)
    def decode(dec, ins):
        mods = Mods(ins)
        ty = mods.type()
        mods.done()
        d, a, b = dec.expect(ins, 3)
        return emit(dec, ins, ty, fn, d, a, b)

    return decode


def emit(dec, ins, ty, fn, d, *srcs):
    i, put = dec.dst(ins, d, ty)
    gets = [dec.src(ins, s, ty) for s in srcs]
    if len(gets) == 2:
        ga, gb = gets
        return alu(lambda R: put(R, fn(ga(R), gb(R))), i)
    if len(gets) == 1:
        (ga,) = gets
        return alu(lambda R: put(R, fn(ga(R))), i)
    return alu(lambda R: put(R, fn(*[g(R) for g in gets])), i)


for _name, _fn in (("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)):
    _binary(_name, _fn)


@instruction("not")
def _not(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    mods.done()
    d, a = dec.expect(ins, 2)
    return emit(dec, ins, ty, np.invert, d, a)


@instruction("cnot")
def _cnot(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    mods.done()
    d, a = dec.expect(ins, 2)
    return emit(dec, ins, ty, lambda v: (v == 0).astype(v.dtype), d, a)


def sat_s32(wide):
    return np.clip(wide, -(2**31), 2**31 - 1).astype(np.int32)


def _packed(fn, dtype):
    """Lane-wise on 16-bit halves of a 32-bit register."""

    def run(*args):
        out = fn(*[np.ascontiguousarray(a).view(dtype).reshape(-1, 2) for a in args])
        return np.ascontiguousarray(out).view(np.uint32).reshape(-1)

    return run


def add_sub_int(dec, ins, mods, ty, subtract):
    """Integer add/sub, with .sat, .cc and the 16x2 forms."""
    sat, carry = mods.flag("sat"), mods.flag("cc")
    mods.done()
    d, a, b = dec.expect(ins, 3)
    op = np.subtract if subtract else np.add
    if carry:
        return _carry(dec, ins, ty, subtract, False, True, d, a, b)
    if sat:
        if ty != "s32":
            raise unsupported(ins, "unknown modifier .sat")
        return emit(
            dec, ins, ty, lambda x, y: sat_s32(op(x.astype(np.int64), y.astype(np.int64))), d, a, b
        )
    return emit(dec, ins, ty, op, d, a, b)


def add_sub_x2(dec, ins, mods, ty, subtract):
    mods.done()
    d, a, b = dec.expect(ins, 3)
    dtype = np.int16 if ty[0] == "s" else np.uint16
    return emit(dec, ins, "b32", _packed(np.subtract if subtract else np.add, dtype), d, a, b)


def carry_register(dec):
    """The condition code register CC.CF, a hidden predicate."""
    return dec.special_index("%CC.CF")


def _carry(dec, ins, ty, subtract, use, write, d, a, b):
    i, put = dec.dst(ins, d, ty)
    w = BITS[ty]
    u = f"u{w}"
    ga, gb = dec.src(ins, a, u), dec.src(ins, b, u)
    cc = carry_register(dec)

    def run(R):
        x, y = ga(R), gb(R)
        c = R[cc].astype(x.dtype) if use else x.dtype.type(0)
        if subtract:
            t = x - y
            out = t - c
            flag = (x < y) | (t < c)
        else:
            t = x + y
            out = t + c
            flag = (t < x) | (out < t)
        put(R, out)
        if write:
            R[cc] = flag

    return alu(run, i, cc if write else -1)


@instruction("addc", "subc")
def _addc(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    write = mods.flag("cc")
    mods.done()
    d, a, b = dec.expect(ins, 3)
    return _carry(dec, ins, ty, ins.op == "subc", True, write, d, a, b)


def _mul_hi(a, b):
    if a.dtype.itemsize < 8:
        wide = np.int64 if a.dtype.kind == "i" else np.uint64
        bits = a.dtype.itemsize * 8
        return (a.astype(wide) * b.astype(wide) >> wide(bits)).astype(a.dtype)
    signed = a.dtype.kind == "i"
    x, y = a.view(np.uint64), b.view(np.uint64)
    m, s = np.uint64(0xFFFFFFFF), np.uint64(32)
    xl, xh, yl, yh = x & m, x >> s, y & m, y >> s
    mid = (xl * yl >> s) + (xh * yl & m) + (xl * yh & m)
    hi = xh * yh + (xh * yl >> s) + (xl * yh >> s) + (mid >> s)
    if signed:  # subtract the other operand for each negative one
        zero = np.uint64(0)
        hi = hi - np.where(a < 0, y, zero) - np.where(b < 0, x, zero)
        return hi.view(np.int64)
    return hi


def _mul_wide(a, b):
    wide = np.dtype(f"{a.dtype.kind}{a.dtype.itemsize * 2}")
    return a.astype(wide) * b.astype(wide)


def _mul24(a, b, hi):
    wide = np.int64 if a.dtype.kind == "i" else np.uint64
    sh = wide(40)
    x, y = (a.astype(wide) << sh) >> sh, (b.astype(wide) << sh) >> sh
    p = x * y
    return (p >> wide(16) if hi else p).astype(a.dtype)


def mul_int(dec, ins, mods, ty):
    part = mods.one(("lo", "hi", "wide"))
    mods.done()
    d, a, b = dec.expect(ins, 3)
    if part == "wide":
        i, put = dec.dst(ins, d, f"{ty[0]}{BITS[ty] * 2}")
        ga, gb = dec.src(ins, a, ty), dec.src(ins, b, ty)
        return alu(lambda R: put(R, _mul_wide(ga(R), gb(R))), i)
    if part is None:
        raise unsupported(ins, "integer mul without .lo, .hi or .wide")
    return emit(dec, ins, ty, np.multiply if part == "lo" else _mul_hi, d, a, b)


@instruction("mul24", "mad24")
def _mul24_ins(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    hi, sat = mods.one(("lo", "hi")) == "hi", mods.flag("sat")
    mods.done()
    if ins.op == "mul24":
        d, a, b = dec.expect(ins, 3)
        return emit(dec, ins, ty, lambda x, y: _mul24(x, y, hi), d, a, b)
    d, a, b, c = dec.expect(ins, 4)
    if sat:
        return emit(
            dec,
            ins,
            ty,
            lambda x, y, z: sat_s32(_mul24(x, y, hi).astype(np.int64) + z.astype(np.int64)),
            d,
            a,
            b,
            c,
        )
    return emit(dec, ins, ty, lambda x, y, z: _mul24(x, y, hi) + z, d, a, b, c)


def mad_int(dec, ins, mods, ty, use_carry=False):
    part, sat, write = mods.one(("lo", "hi", "wide")), mods.flag("sat"), mods.flag("cc")
    mods.done()
    d, a, b, c = dec.expect(ins, 4)
    if part is None:
        raise unsupported(ins, "integer mad without .lo, .hi or .wide")
    wide = f"{ty[0]}{BITS[ty] * 2}" if part == "wide" else ty
    i, put = dec.dst(ins, d, wide)
    ga, gb, gc = dec.src(ins, a, ty), dec.src(ins, b, ty), dec.src(ins, c, wide)
    mul = {"lo": np.multiply, "hi": _mul_hi, "wide": _mul_wide}[part]
    if use_carry or write:
        cc = carry_register(dec)
        u = UINT[BITS[wide]]

        def run(R):
            p, z = mul(ga(R), gb(R)).view(u), gc(R).view(u)
            k = R[cc].astype(u) if use_carry else u(0)
            t = p + z
            out = t + k
            put(R, out)
            if write:
                R[cc] = (t < p) | (out < t)

        return alu(run, i, cc if write else -1)
    if sat:
        return alu(
            lambda R: put(
                R, sat_s32(_mul_hi(ga(R), gb(R)).astype(np.int64) + gc(R).astype(np.int64))
            ),
            i,
        )
    return alu(lambda R: put(R, mul(ga(R), gb(R)) + gc(R)), i)


@instruction("madc")
def _madc(dec, ins):
    mods = Mods(ins)
    return mad_int(dec, ins, mods, mods.type(), use_carry=True)


def div_int(a, b):
    """Truncating; x/0 is all ones (unspecified by PTX, this is what GPUs return)."""
    zero = b == 0
    safe = np.where(zero, b.dtype.type(1), b)
    if a.dtype.kind == "u":
        q = a // safe
    else:
        q = a // safe
        r = a - q * safe
        q = q + ((r != 0) & ((r < 0) != (a < 0))).astype(a.dtype)
        q = np.where(safe == -1, (~a.view(f"u{a.itemsize}")).view(a.dtype) + a.dtype.type(1), q)
    return np.where(zero, np.array(-1).astype(a.dtype), q)


def rem_int(a, b):
    q = div_int(a, b)
    return np.where(b == 0, a, a - q * b)


@instruction("rem")
def _rem(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    mods.done()
    d, a, b = dec.expect(ins, 3)
    return emit(dec, ins, ty, rem_int, d, a, b)


@instruction("sad")
def _sad(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    mods.done()
    d, a, b, c = dec.expect(ins, 4)
    return emit(dec, ins, ty, lambda x, y, z: z + np.where(x < y, y - x, x - y), d, a, b, c)


def _shift(left):
    def run(a, n):
        width = a.dtype.itemsize * 8
        over = n >= width
        k = np.where(over, np.uint32(0), n).astype(a.dtype)
        if left:
            return np.where(over, a.dtype.type(0), a << k)
        if a.dtype.kind == "i":
            return np.where(over, a >> a.dtype.type(width - 1), a >> k)
        return np.where(over, a.dtype.type(0), a >> k)

    return run


@instruction("shl", "shr")
def _shl_shr(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    mods.done()
    d, a, b = dec.expect(ins, 3)
    left = ins.op == "shl"
    n = dec.constant(ins, b)
    i, put = dec.dst(ins, d, ty)
    ga = dec.src(ins, a, ty)
    dtype = DTYPES[ty]
    if n is not None and n < BITS[ty]:
        k = dtype(n)
        op = np.left_shift if left else np.right_shift
        return alu(lambda R: put(R, op(ga(R), k)), i)
    gb, shift = dec.src(ins, b, "u32"), _shift(left)
    return alu(lambda R: put(R, shift(ga(R), gb(R))), i)


@instruction("shf")
def _shf(dec, ins):
    mods = Mods(ins)
    mods.type()
    side, mode = mods.one(("l", "r")), mods.one(("wrap", "clamp"))
    mods.done()
    d, a, b, c = dec.expect(ins, 4)

    def run(lo, hi, n):
        n = np.minimum(n, 32) if mode == "clamp" else n & 31
        n = n.astype(np.uint64)
        both = (hi.astype(np.uint64) << np.uint64(32)) | lo
        if side == "l":
            return (both << n >> np.uint64(32)).astype(np.uint32)
        return (both >> n).astype(np.uint32)

    return emit(dec, ins, "u32", run, d, a, b, c)


@instruction("bfe")
def _bfe(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    mods.done()
    d, a, b, c = dec.expect(ins, 4)
    i, put = dec.dst(ins, d, ty)
    ga, gb, gc = dec.src(ins, a, ty), dec.src(ins, b, "u32"), dec.src(ins, c, "u32")
    width = BITS[ty]
    u, signed = UINT[width], ty[0] == "s"

    def run(R):
        v = ga(R).view(u)
        pos, n = (gb(R) & 255).astype(np.int64), (gc(R) & 255).astype(np.int64)
        field = np.where(pos >= width, u(0), v >> np.minimum(pos, width - 1).astype(u))
        low = np.where(n >= width, ~u(0), (u(1) << np.minimum(n, width - 1).astype(u)) - u(1))
        out = field & low
        if signed:
            last = np.minimum(pos + n - 1, width - 1)
            sign = np.where(n == 0, u(0), v >> np.maximum(last, 0).astype(u) & u(1))
            beyond = np.where(
                pos >= width, ~u(0), ~((~u(0)) >> np.minimum(pos, width - 1).astype(u))
            )
            fill = ~low | beyond  # bits above the field, or beyond the register's msb
            out = np.where((n > 0) & (sign == 1), out | fill, out)
            out = np.where(n == 0, u(0), out)
        put(R, out)

    return alu(run, i)


@instruction("bfi")
def _bfi(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    mods.done()
    f, a, b, c, d = dec.expect(ins, 5)
    i, put = dec.dst(ins, f, ty)
    ga, gb = dec.src(ins, a, ty), dec.src(ins, b, ty)
    gc, gd = dec.src(ins, c, "u32"), dec.src(ins, d, "u32")
    width = BITS[ty]
    u = UINT[width]

    def run(R):
        pos, n = (gc(R) & 255).astype(np.int64), (gd(R) & 255).astype(np.int64)
        low = np.where(n >= width, ~u(0), (u(1) << np.minimum(n, width - 1).astype(u)) - u(1))
        p = np.minimum(pos, width - 1).astype(u)
        mask = np.where(pos >= width, u(0), low << p)
        put(R, (gb(R) & ~mask) | (ga(R) << p & mask))

    return alu(run, i)


@instruction("bmsk")
def _bmsk(dec, ins):
    mods = Mods(ins)
    mods.type()
    wrap = mods.one(("clamp", "wrap")) == "wrap"
    mods.done()
    d, a, b = dec.expect(ins, 3)

    def run(pos, n):
        if wrap:
            pos, n = pos & 31, n & 31
        pos, n = np.minimum(pos, 32).astype(np.uint64), np.minimum(n, 32).astype(np.uint64)
        return (((np.uint64(1) << n) - np.uint64(1)) << pos).astype(np.uint32)

    return emit(dec, ins, "u32", run, d, a, b)


@instruction("brev")
def _brev(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    mods.done()
    d, a = dec.expect(ins, 2)

    def run(v):
        b = np.ascontiguousarray(v).view(np.uint8).reshape(-1, v.dtype.itemsize)
        bits = np.unpackbits(b, axis=1, bitorder="little")[:, ::-1]
        out = np.packbits(np.ascontiguousarray(bits), axis=1, bitorder="little")
        return np.ascontiguousarray(out).view(v.dtype).reshape(-1)

    return emit(dec, ins, ty, run, d, a)


def _bits_of(v):
    b = np.ascontiguousarray(v).view(np.uint8).reshape(-1, v.dtype.itemsize)
    return np.unpackbits(b, axis=1, bitorder="little")


def highest(v):
    """Position of the most significant one, -1 for zero."""
    bits = _bits_of(v)
    top = bits.shape[1] - 1 - np.argmax(bits[:, ::-1], axis=1)
    return np.where(v == 0, -1, top)


@instruction("clz", "popc", "bfind")
def _count(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    amount = mods.flag("shiftamt")
    mods.done()
    d, a = dec.expect(ins, 2)
    i, put = dec.dst(ins, d, "u32")
    ga, width = dec.src(ins, a, ty), BITS[ty]
    if ins.op == "popc":
        return alu(lambda R: put(R, _bits_of(ga(R)).sum(axis=1).astype(np.uint32)), i)
    if ins.op == "clz":
        return alu(lambda R: put(R, (width - 1 - highest(ga(R))).astype(np.uint32)), i)

    def run(R):
        v = ga(R)
        v = np.where(v < 0, ~v, v) if ty[0] == "s" else v
        top = highest(v)
        if amount:
            top = np.where(top < 0, -1, width - 1 - top)
        put(R, top.astype(np.int32).view(np.uint32))

    return alu(run, i)


@instruction("fns")
def _fns(dec, ins):
    raise unsupported(ins, "unknown instruction 'fns'")


_PRMT_MODES = ("f4e", "b4e", "rc8", "ecl", "ecr", "rc16")


@instruction("prmt")
def _prmt(dec, ins):
    mods = Mods(ins)
    mode = mods.one(_PRMT_MODES)
    mods.type()
    mods.done()
    d, a, b, c = dec.expect(ins, 4)

    def select(n):
        """Byte indices (n, 4) and sign replication for the selector values."""
        n = n.astype(np.int64)[:, None]
        k = np.arange(4)
        if mode is None:
            nib = n >> 4 * k & 15
            return nib & 7, nib >> 3 == 1
        m = n & 3
        idx = {
            "f4e": (m + k) % 8,
            "b4e": (m - k) % 8,
            "rc8": m + 0 * k,
            "ecl": np.maximum(m, k),
            "ecr": np.minimum(m, k),
            "rc16": (m & 1) * 2 + (k & 1),
        }[mode]
        return idx, np.zeros_like(idx, bool)

    def run(x, y, n):
        x, y, n = np.broadcast_arrays(x, y, n)
        both = np.concatenate(
            [np.ascontiguousarray(v).view(np.uint8).reshape(-1, 4) for v in (x, y)], axis=1
        )
        idx, sign = select(n)
        out = np.take_along_axis(both, idx, axis=1)
        if sign.any():
            out = np.where(sign, (out.view(np.int8) >> 7).view(np.uint8), out)
        return np.ascontiguousarray(out).view(np.uint32).reshape(-1)

    return emit(dec, ins, "u32", run, d, a, b, c)


@instruction("lop3")
def _lop3(dec, ins):
    mods = Mods(ins)
    mods.type()
    boolop = mods.one(("or", "and"))
    mods.done()
    ops = dec.expect(ins, 6) if boolop else dec.expect(ins, 5)
    d, a, b, c, lut = ops[:5]
    lut = dec.constant(ins, lut)
    d, _, p = d.partition("|")
    i, put = dec.dst(ins, d.strip(), "u32")
    ga, gb, gc = (dec.src(ins, s, "u32") for s in (a, b, c))

    def value(R):
        x, y, z = ga(R), gb(R), gc(R)
        out = np.zeros(1, np.uint32)
        for k in range(8):
            if lut >> k & 1:
                out = out | ((x if k & 4 else ~x) & (y if k & 2 else ~y) & (z if k & 1 else ~z))
        return out

    if not boolop:
        return alu(lambda R: put(R, value(R)), i)
    j, putp = dec.dst(ins, p.strip(), "pred")
    gq = dec.src(ins, ops[5], "pred")

    def run(R):
        out = value(R)
        q = gq(R)
        put(R, out)
        putp(R, (out != 0) | q if boolop == "or" else (out != 0) & q)

    return alu(run, i, j)


@instruction("dp4a", "dp2a")
def _dp(dec, ins):
    mods = Mods(ins)
    tb, ta = mods.type(), mods.type()
    half = mods.one(("lo", "hi")) if ins.op == "dp2a" else None
    mods.done()
    d, a, b, c = dec.expect(ins, 4)
    signed = "s" in (ta[0], tb[0])
    i, put = dec.dst(ins, d, "s32" if signed else "u32")
    ga, gb, gc = (dec.src(ins, s, "u32") for s in (a, b, c))

    def parts(v, ty, size):
        kind = "i" if ty[0] == "s" else "u"
        return np.ascontiguousarray(v).view(f"{kind}{size}").reshape(-1, 4 // size).astype(np.int64)

    def run(R):
        x = parts(ga(R), ta, 1 if ins.op == "dp4a" else 2)
        y = parts(gb(R), tb, 1)
        if half:
            y = y[:, :2] if half == "lo" else y[:, 2:]
        put(R, ((x * y).sum(axis=1) + gc(R)).astype(np.uint64).astype(np.uint32))

    return alu(run, i)


# -- moves ----------------------------------------------------------------------------
@instruction("mov")
def _mov(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    mods.done()
    d, a = dec.expect(ins, 2)
    if d[0] == "{" or a[0] == "{":
        return _mov_vector(dec, ins, ty, d, a)
    if ty == "b128":
        return _mov_b128(dec, ins, d, a)
    i, put = dec.dst(ins, d, ty)
    ga = dec.src(ins, a, ty)
    return alu(lambda R: put(R, ga(R)), i, opclass="mov")


def _mov_b128(dec, ins, d, a):
    i, j = dec.register(ins, d).index, dec.register(ins, a).index

    def run(R):
        R[i] = R[j].view(np.uint64)

    return alu(run, i, opclass="mov")


def _mov_vector(dec, ins, ty, d, a):
    width = 128 if ty == "b128" else BITS[ty]
    if d[0] == "{":
        names = dec.vector(ins, d)
        part = width // len(names)
        dtype = UINT[part]
        puts = [dec.dst(ins, n, f"b{part}") for n in names]
        if width == 128:
            j = dec.register(ins, a).index

            def ga(R):
                return R[j].view(np.uint64)
        else:
            ga = dec.src(ins, a, ty)

        def run(R):
            v = np.ascontiguousarray(ga(R)).view(dtype).reshape(-1, len(puts))
            for k, (index, put) in enumerate(puts):
                if index >= 0:
                    put(R, np.ascontiguousarray(v[:, k]))

        return alu(run, *[p[0] for p in puts], opclass="mov")
    names = dec.vector(ins, a)
    part = width // len(names)
    gets = [dec.src(ins, n, f"b{part}") for n in names]
    if width == 128:
        i = dec.register(ins, d).index

        def put(R, v):
            R[i] = v.view(np.uint64).reshape(-1, 2)
    else:
        i, put = dec.dst(ins, d, ty)
    out = np.uint64 if width == 128 else UINT[width]

    def run(R):
        v = np.stack(np.broadcast_arrays(*[g(R) for g in gets]), axis=1)
        put(R, np.ascontiguousarray(v).view(out).reshape(-1))

    return alu(run, i, opclass="mov")


@instruction("selp")
def _selp(dec, ins):
    mods = Mods(ins)
    ty = mods.type()
    mods.done()
    d, a, b, p = dec.expect(ins, 4)
    raw = f"b{BITS[ty]}"
    i, put = dec.dst(ins, d, raw)
    ga, gb, gp = dec.src(ins, a, ty), dec.src(ins, b, ty), dec.src(ins, p, "pred")
    u = UINT[BITS[ty]]
    return alu(lambda R: put(R, np.where(gp(R), ga(R).view(u), gb(R).view(u))), i, opclass="select")


@instruction("slct")
def _slct(dec, ins):
    mods = Mods(ins)
    tc, ty = mods.type(), mods.type()
    mods.flag("ftz")  # -denormal >= -0 either way: comparison with zero after flushing
    ftz = "ftz" in ins.mods
    mods.done()
    d, a, b, c = dec.expect(ins, 4)
    raw = f"b{BITS[ty]}"
    i, put = dec.dst(ins, d, raw)
    ga, gb, gc = dec.src(ins, a, raw), dec.src(ins, b, raw), dec.src(ins, c, tc)
    tiny = np.float32(2.0**-126)

    def run(R):
        v = gc(R)
        ge = (v >= 0) | (np.abs(v) < tiny) if ftz else v >= 0
        put(R, np.where(ge, ga(R), gb(R)))

    return alu(run, i, opclass="select")
