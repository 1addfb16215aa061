"""Instruction -> closure: operand access, modifiers, the registry of instructions.

A register holds an unsigned NumPy array (bool for predicates), one element a thread; an
array of one element stands for a value that all threads share. b128 is an array (n, 2) of
uint64. Closures of ALU instructions take the register list and compute for every thread;
the scheduler merges by mask. Other closures take the state and the active mask.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from .errors import PtxUnsupported
from .parser import Function, Inst, Module, Reg, Var

ALU, MEM, CONTROL = 0, 1, 2  # fn(R) | fn(S, mask) | fn(S, pc, mask) -> next pc or None

UINT = {1: np.bool_, 8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
DTYPES = {"pred": np.bool_}
for _w in (8, 16, 32, 64):
    DTYPES[f"b{_w}"] = DTYPES[f"u{_w}"] = UINT[_w]
    DTYPES[f"s{_w}"] = getattr(np, f"int{_w}")
DTYPES.update(
    f16=np.float16,
    f32=np.float32,
    f64=np.float64,
    bf16=np.uint16,
    f16x2=np.uint32,
    bf16x2=np.uint32,
    f32x2=np.uint64,
)
BITS = {k: np.dtype(v).itemsize * 8 for k, v in DTYPES.items()} | {"pred": 1}

SPECIAL = re.compile(
    r"%(tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|"
    r"cluster_nctaid)\.[xyz]|%(laneid|warpid|nwarpid|smid|nsmid|gridid|clock|"
    r"clock_hi|clock64|globaltimer|globaltimer_lo|globaltimer_hi|"
    r"cluster_ctarank|cluster_nctarank|is_explicit_cluster|lanemask_eq|"
    r"lanemask_le|lanemask_lt|lanemask_ge|lanemask_gt|dynamic_smem_size|"
    r"total_smem_size)"
)
CLOCKS = {"%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"}

REGISTRY = {}


@dataclass(slots=True)
class Exec:
    """One decoded instruction."""

    kind: int
    fn: object
    dsts: tuple = ()
    opclass: str = ""
    pred: int = -1
    neg: bool = False
    owns_pred: bool = False  # the closure looks at the predicate itself


def instruction(*names):
    def register(fn):
        for name in names:
            REGISTRY[name] = fn
        return fn

    return register


class Mods:
    """The modifiers of one instruction, taken one by one; what is left over is an error."""

    def __init__(self, ins: Inst):
        self.ins, self.rest = ins, list(ins.mods)

    def flag(self, *names) -> bool:
        for name in names:
            if name in self.rest:
                self.rest.remove(name)
                return True
        return False

    def one(self, names, default=None):
        for name in self.rest:
            if name in names:
                self.rest.remove(name)
                return name
        return default

    def type(self) -> str:
        """The last modifier as a type."""
        if not self.rest or (self.rest[-1] not in DTYPES and self.rest[-1] != "b128"):
            raise unsupported(self.ins, "no known type")
        return self.rest.pop()

    def done(self) -> None:
        if self.rest:
            raise unsupported(self.ins, "unknown modifier ." + " .".join(self.rest))


def where(module: Module, ins: Inst) -> str:
    """'PTX line 12 (file.py:3:4): text' for messages."""
    source = ""
    if ins.loc:
        name = module.files.get(ins.loc[0], f"file {ins.loc[0]}")
        source = f" ({name}:{ins.loc[1]}:{ins.loc[2]})"
    return f"PTX line {ins.line}{source}: {ins.text}"


def unsupported(ins: Inst, why: str) -> PtxUnsupported:
    return PtxUnsupported(f"PTX line {ins.line}: {why}: {ins.text}")


_INT = re.compile(r"-?(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?$")
_FLOAT = re.compile(r"0([fFdD])([0-9a-fA-F]+)$")
_DECIMAL = re.compile(r"-?\d+\.\d*(e[+-]?\d+)?$")


class Decoder:
    """Decodes the instructions of one module. `address` maps a Var to its address."""

    def __init__(self, module: Module):
        self.module = module
        self.special = {}  # name -> register index, filled on first use

    # -- operands ---------------------------------------------------------------------
    def register(self, ins: Inst, name: str) -> Reg:
        found = ins.scope.find(name)
        if not isinstance(found, Reg):
            raise unsupported(ins, f"'{name}' is not a register")
        return found

    def special_index(self, name: str) -> int:
        if name not in self.special:
            self.special[name] = len(self.module.regs)
            self.module.regs.append(Reg(len(self.module.regs), 32, name))
        return self.special[name]

    def const_bits(self, ins: Inst, text: str, ty: str):
        """Bits of an immediate for the type, or None if the text is not an immediate."""
        width = BITS[ty]
        if _INT.match(text):
            value = int(text.rstrip("U"), 0)
            if ty in ("f32", "f64", "f16", "bf16") and not text.startswith("0x") and value:
                raise unsupported(ins, f"integer immediate {text} for .{ty}")
            return value & ((1 << width) - 1)
        m = _FLOAT.match(text)
        if m:
            bits, is_double = int(m[2], 16), m[1] in "dD"
            if ty == "f64" and not is_double:
                return int(np.float64(np.uint32(bits).view(np.float32)).view(np.uint64))
            if ty == "f32" and is_double:
                return int(np.float32(np.uint64(bits).view(np.float64)).view(np.uint32))
            if width != (64 if is_double else 32):
                raise unsupported(ins, f"immediate {text} does not fit .{ty}")
            return bits
        if _DECIMAL.match(text):
            if ty == "f32":
                return int(np.float32(text).view(np.uint32))
            if ty == "f64":
                return int(np.float64(text).view(np.uint64))
            raise unsupported(ins, f"immediate {text} for .{ty}")
        if text == "WARP_SZ":
            return 32
        return None

    def src(self, ins: Inst, text: str, ty: str):
        """Getter R -> array of the type's dtype (packed and bf16 types: raw bits)."""
        dtype = DTYPES[ty]
        if text[0] == "%" and SPECIAL.fullmatch(text):
            if text in CLOCKS:
                return _clock(text, dtype)
            i = self.special_index(text)
            return lambda R: R[i].astype(dtype)
        found = ins.scope.find(text)
        if isinstance(found, Reg):
            i = found.index
            if ty == "pred":
                if found.width != 1:
                    raise unsupported(ins, f"{text} is not a predicate")
                return lambda R: R[i]
            if found.width == BITS[ty]:
                return lambda R: R[i].view(dtype)
            if found.width > BITS[ty] and found.width <= 64:
                unsigned = UINT[BITS[ty]]
                return lambda R: R[i].astype(unsigned).view(dtype)
            raise unsupported(ins, f"{text} is {found.width} bits wide, .{ty} was asked for")
        if isinstance(found, Var):
            value = found.offset
            if found.space == "param":
                raise unsupported(ins, f"address of parameter {text}")
            if found.space == "shared":
                own = np.array([value], dtype=UINT[BITS[ty]])
                return lambda R: (own if R.rank is None else own + R.rank.astype(own.dtype)).view(
                    dtype
                )
        elif isinstance(found, Function) or text in self.module.functions:
            raise unsupported(ins, f"address of function {text}")
        elif ty == "pred" and text in ("0", "1", "-1", "true", "false"):
            const = np.array([text not in ("0", "false")])
            return lambda R: const
        else:
            neg = text[0] == "!" or (text[0] == "-" and len(text) > 1 and text[1] == "%")
            value = None if neg else self.const_bits(ins, text, ty)
            if value is None:
                if text[0] == "!" and ty == "pred":
                    get = self.src(ins, text[1:].strip(), ty)
                    return lambda R: ~get(R)
                raise unsupported(ins, f"unknown operand '{text}'")
        const = np.array([value], dtype=UINT[BITS[ty]]).view(dtype)
        return lambda R: const

    def constant(self, ins: Inst, text: str, ty: str = "b32"):
        """int of an immediate operand, or None."""
        return self.const_bits(ins, text, ty) if text[0] not in "%!" else None

    def dst(self, ins: Inst, text: str, ty: str):
        """(register index, put(R, array)); index -1 for the sink '_'. The array is any dtype
        of the type's size; wider registers get it zero- or sign-extended."""
        if text == "_":
            return -1, lambda R, v: None
        reg = self.register(ins, text)
        i, width = reg.index, BITS[ty]
        if reg.width == width:
            unsigned = UINT[width]
            if width == 1:

                def put(R, v):
                    R[i] = v
            else:

                def put(R, v):
                    R[i] = v.view(unsigned)
        elif reg.width > width and reg.width <= 64 and width > 1:
            wide = UINT[reg.width]
            if ty[0] == "s":
                signed, dtype = np.dtype(f"int{reg.width}"), DTYPES[ty]

                def put(R, v):
                    R[i] = v.view(dtype).astype(signed).view(wide)
            else:
                unsigned = UINT[width]

                def put(R, v):
                    R[i] = v.view(unsigned).astype(wide)
        else:
            raise unsupported(ins, f"{text} is {reg.width} bits wide, .{ty} was asked for")
        return i, put

    def vector(self, ins: Inst, text: str) -> list:
        """'{a, b}' -> [a, b]; a bare operand -> [operand]."""
        if text[0] == "{":
            return [t.strip() for t in text.strip()[1:-1].split(",")]
        return [text]

    def expect(self, ins: Inst, *counts: int) -> list:
        if len(ins.operands) not in counts:
            raise unsupported(ins, f"{len(ins.operands)} operands")
        return ins.operands

    def address(self, ins: Inst, text: str, width: int):
        """'[%r1+4]' -> (getter R -> integer addresses (int64), Var or None, constant offset)."""
        if text[0] != "[":
            raise unsupported(ins, f"'{text}' is not an address")
        inner = text[1:-1].strip()
        m = re.fullmatch(r"([\w%$.]+)\s*(?:\+\s*(-?\w+))?|([\w%$.]+)\s*(-\s*\w+)", inner)
        if not m:
            raise unsupported(ins, f"cannot read the address {text}")
        base, off = (m[1], m[2]) if m[1] else (m[3], m[4].replace(" ", ""))
        offset = int(off, 0) if off else 0
        found = ins.scope.find(base)
        if isinstance(found, Var):
            if found.space == "param":
                return None, found, offset
            const = np.array([found.offset + offset], np.int64)
            if found.space == "shared":
                return (lambda R: const if R.rank is None else const + R.rank), found, offset
            return (lambda R: const), found, offset
        if isinstance(found, Reg):
            i = found.index
            if found.width == 64:
                if offset:
                    return (lambda R: R[i].view(np.int64) + offset), None, offset
                return (lambda R: R[i].view(np.int64)), None, offset
            if found.width == 32:
                return (
                    (lambda R: (R[i] + np.uint32(offset & 0xFFFFFFFF)).astype(np.int64)),
                    None,
                    offset,
                )
        elif _INT.match(base):
            const = np.array([int(base, 0) + offset], np.int64)
            return (lambda R: const), None, offset
        raise unsupported(ins, f"'{base}' is not an address")

    # -- instructions -----------------------------------------------------------------
    def decode(self, ins: Inst) -> Exec:
        fn = REGISTRY.get(ins.op)
        if fn is None:
            raise unsupported(ins, f"unknown instruction '{ins.op}'")
        try:
            ex = fn(self, ins)
        except (IndexError, KeyError, ValueError) as e:
            raise unsupported(ins, f"cannot decode ({type(e).__name__}: {e})") from e
        if ins.pred is not None and not ex.owns_pred:
            reg = self.register(ins, ins.pred)
            if reg.width != 1:
                raise unsupported(ins, f"{ins.pred} is not a predicate")
            ex.pred, ex.neg = reg.index, ins.neg
        return ex


_ticks = [0]


def _clock(name, dtype):
    """Clocks only promise to move forward: each read is one tick later."""
    shift = np.uint64(32 if name.endswith("_hi") else 0)

    def get(R):
        _ticks[0] += 1
        return (np.array([_ticks[0]], np.uint64) >> shift).astype(dtype)

    return get


def alu(fn, *dsts, opclass="alu") -> Exec:
    return Exec(ALU, fn, tuple(d for d in dsts if d >= 0), opclass)
