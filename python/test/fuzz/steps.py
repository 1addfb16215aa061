"""Evaluates what the lowering makes of a scan, for targets that have no simulator.

The output of `lower-scan` is TTGIR: operations on scalars, lane permutations, and ops on a small
buffer in shared memory.  All threads of a CTA run side by side as NumPy arrays; control flow is
evaluated on both sides.  There is no notion of time: a missing barrier is not noticed, but a read
of an element that nobody wrote is, or one to which two threads wrote different values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
from triton import native_scan
from triton.tools.ptx_sim import from_bf16, to_bf16

from .amd_lanes import IllegalMove, Wave
from .backends import NUMPY

_RESULT = re.compile(r"^(%[\w#]+)(?::(\d+))? = (.*)$")
_VALUE = re.compile(r"%[\w#]+")
_CONSTANT = re.compile(r"\((\S+?)(?: : \w+)?\)")
_BASES = re.compile(r"(register|lane|warp|block) = \[((?:\[[\d, ]*\](?:, )?)*)\]")


class StepError(Exception):
    """The lowered scan does something that no thread order can make right."""


class Layout:
    """Where each register of each thread lies in a tensor.

    coordinates[dim] is an array of shape (registers, threads).

    keeps_copies: whether registers that are copies of others are among them
    """

    def __init__(self, bases: dict[str, list[list[int]]], rank: int, keeps_copies: bool = False):
        registers = [b for b in bases["register"] if any(b) or keeps_copies]
        threads = bases["lane"] + bases["warp"] + bases["block"]
        self.coordinates = []
        for dim in range(rank):
            register = _combinations([b[dim] for b in registers])
            self.coordinates.append(
                register[:, None] ^ _combinations([b[dim] for b in threads])[None, :]
            )

    @property
    def index(self) -> tuple[np.ndarray, ...]:
        return tuple(self.coordinates)


def _combinations(bits: list[int]) -> np.ndarray:
    values = np.zeros(1, np.int64)
    for bit in bits:
        values = np.concatenate([values, values ^ bit])
    return values


def _parse_linear(text: str) -> dict[str, list[list[int]]]:
    return {
        owner: [[int(c) for c in b.split(",")] for b in re.findall(r"\[([\d, ]+)\]", inner)]
        for owner, inner in _BASES.findall(text)
    }


def _bits(values: np.ndarray, kind: str) -> np.ndarray:
    """Return the bits as an unsigned integer."""
    if kind == "bf16":
        return to_bf16(values)
    return values.astype(np.uint8) if kind == "i1" else values.view(f"u{values.itemsize}")


def _from_bits(bits: np.ndarray, kind: str) -> np.ndarray:
    if kind == "bf16":
        return from_bf16(bits.astype(np.uint16))
    return (bits & 1).astype(bool) if kind == "i1" else bits.view(NUMPY[kind])


_PREDICATES = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "ult": lambda a, b: a < b,
    "ule": lambda a, b: a <= b,
    "ugt": lambda a, b: a > b,
    "uge": lambda a, b: a >= b,
}
_FLEXIBLE = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "max": np.maximum,
    "min": np.minimum,
}
_UNSIGNED = {
    "shl": lambda a, b: a << b,
    "lshr": lambda a, b: a >> b,
    "urem": lambda a, b: a % b,
    "udiv": lambda a, b: a // b,
}
_ARITH = {
    "addi": "add", "addf": "add", "subi": "sub", "muli": "mul", "mulf": "mul", "andi": "and",
    "ori": "or", "xori": "xor", "maxsi": "max", "maxnumf": "max", "minsi": "min", "minnumf": "min",
}  # fmt: skip


class Evaluator:
    """Runs one function of a lowered module.

    text: the module; lanes, warps: of its threads
    """

    def __init__(self, text: str, lanes: int, warps: int):
        self.lanes, self.threads = lanes, lanes * warps
        self.tid = np.arange(self.threads)
        self.wave = Wave(re.search(r'ttg\.target = "\w+:(\w+)"', text).group(1), lanes)
        self.aliases = dict(re.findall(r"^(#\w+) = (#ttg\.linear<.*>)$", text, re.M))
        self.functions = {}
        for body in re.split(r"(?m)^  tt\.func ", text)[1:]:
            lines = [line.strip() for line in body.splitlines()]
            name = re.search(r"@(\w+)", lines[0]).group(1)
            self.functions[name] = lines

    def layout(self, encoding: str) -> Layout:
        dims = []
        while sliced := re.match(r"#ttg\.slice<\{dim = (\d+), parent = (.*)\}>$", encoding):
            dims.append(int(sliced.group(1)))
            encoding = sliced.group(2)
        bases = _parse_linear(self.aliases.get(encoding, encoding))
        for dim in reversed(dims):
            bases = {k: [b[:dim] + b[dim + 1 :] for b in v] for k, v in bases.items()}
        rank = next(len(b) for v in bases.values() for b in v)
        # The source base's Triton keeps copies, but drops them from slices.
        return Layout(bases, rank, keeps_copies=native_scan.is_built_in() and not dims)

    def tensor_type(self, text: str) -> tuple[tuple[int, ...], str, Layout]:
        """Return the shape, the element type and the layout of a tensor type."""
        inner = re.match(r"tensor<([\dx]*x)(\w+), (.*)>$", text)
        shape = tuple(int(size) for size in inner.group(1).rstrip("x").split("x"))
        return shape, inner.group(2), self.layout(inner.group(3))

    def run(self, name: str, arguments: list) -> list[np.ndarray]:
        """Return the results of a function, one array of shape (registers, threads) each.

        arguments: whole tensors as arrays, and scalars, in the function's order
        """
        lines = self.functions[name]
        self.values: dict = {}
        self.active = np.ones(self.threads, bool)
        header = lines[0][lines[0].index("(") + 1 :].split(") ->")[0]
        parameters = re.findall(r"(%\w+): (tensor<.*?>(?=, %|$)|\w+)", header)
        for (parameter, kind), value in zip(parameters, arguments, strict=True):
            if kind.startswith("tensor"):
                _, _, layout = self.tensor_type(kind)
                self.values[parameter] = np.asarray(value)[layout.index]
            else:
                self.values[parameter] = np.full(self.threads, value)
        return self._block(iter(lines[1:]))

    def _block(self, lines: Iterator[str]) -> list:
        """Evaluate up to the end of a block and return what its terminator hands on."""
        handed: list = []
        for line in lines:
            if line in ("}", "} else {"):
                return handed
            if re.match(r"(tt\.return|scf\.yield)\b", line):
                handed = [self.values[name] for name in _VALUE.findall(line.split(" : ")[0])]
                continue
            result = _RESULT.match(line)
            names = [result.group(1)] if result else []
            text = result.group(3) if result else line
            if text.startswith("scf.if"):
                condition = self.values[_VALUE.search(text).group(0)]
                if not names:
                    # Some warps write to memory, and no value comes out.
                    outside, self.active = self.active, self.active & condition.astype(bool)
                    self._block(lines)
                    self.active = outside
                    continue
                sides = [self._block(lines), self._block(lines)]
                chosen = [np.where(condition, a, b) for a, b in zip(*sides, strict=True)]
                for i, value in enumerate(chosen):
                    self.values[f"{names[0]}#{i}"] = value
                if len(chosen) == 1:
                    self.values[names[0]] = chosen[0]
                continue
            value = self._operation(text)
            if names:
                self.values[names[0]] = value
        return handed

    def _operation(self, text: str):
        op, _, rest = text.partition(" ")
        name = op.split("(")[0]
        dialect, _, short = name.partition(".")
        if name == "llvm.call_intrinsic":
            dialect, short = "amdgcn", re.match(r'"llvm\.amdgcn\.(\S+?)"', rest).group(1)
        operands = [self.values[v] for v in _VALUE.findall(rest.split(" : ")[0])]
        kinds = text.rsplit(" : ", 1)[-1]
        if dialect in ("rocdl", "amdgcn"):
            try:
                return self._lanes(short, text, operands)
            except IllegalMove as error:
                raise StepError(str(error)) from error
        if dialect == "llvm":
            return self._llvm(short, text, operands, kinds)
        if dialect == "arith":
            return self._arith(short, rest, operands, kinds)
        if name == "gpu.thread_id":
            return self.tid
        if name == "ttg.warp_id":
            return (self.tid // self.lanes).astype(np.int32)
        if name == "builtin.unrealized_conversion_cast":
            return operands[0]
        if name == "ttg.convert_layout":
            return self._convert(operands[0], *kinds.split(" -> "))
        return self._memory(name, rest, operands, kinds)

    def _convert(self, values: list, source: str, target: str) -> list:
        """Evaluate a conversion between layouts; threads with copies must agree on them."""
        if source == target:
            return values
        shape, _, layout = self.tensor_type(source)
        registers = np.stack(values)
        whole = np.zeros(shape, registers.dtype)
        whole[layout.index] = registers
        if (_bits(whole[layout.index], "") != _bits(registers, "")).any():
            raise StepError("an element is converted of which threads hold different values")
        return list(whole[self.tensor_type(target)[2].index])

    def _lanes(self, op: str, text: str, operands: list):
        """Evaluate a move between the lanes of each wave."""
        words, immediates = [], []
        for value in operands:
            words.append(value.reshape(-1, self.lanes))
            immediates.append(int(value[0]) & 0xFFFFFFFF)

        def immediate(i: int) -> int:
            if (operands[i] != operands[i][0]).any():
                raise StepError(f"an operand of {op} has to be a constant")
            return immediates[i]

        wave = self.wave
        if op == "ds_bpermute":
            # The address is four times a lane, modulo the number of lanes.
            lane = (words[0].view(np.uint32) >> 2) % self.lanes
            moved = np.take_along_axis(words[1], lane.astype(np.int64), axis=1)
        elif op == "update.dpp":
            control, rows, banks, bound = re.search(
                r"with (\d+), (\d+), (\d+), (\w+)", text
            ).groups()
            masks = int(control), int(rows), int(banks)
            moved = wave.update_dpp(words[0], words[1], *masks, bound == "true")
        elif op in ("permlane16", "permlanex16"):
            moved = wave.permlane16(words[1], immediate(2), immediate(3), op == "permlanex16")
        elif op in ("permlane16.swap", "permlane32.swap"):
            both = wave.permlane_swap(words[0], words[1], int(op[8:10]))
            return [register.reshape(-1) for register in both]
        elif op == "readlane":
            moved = wave.readlane(words[0], immediate(1))
        elif op == "ds_swizzle":
            moved = wave.swizzle(words[0], immediate(1))
        else:
            raise StepError(f"unknown operation: {text}")
        return moved.reshape(-1)

    def _llvm(self, op: str, text: str, operands: list, kinds: str):
        if op == "mlir.constant":
            literal = _CONSTANT.search(text).group(1)
            if literal in ("true", "false"):
                return np.full(self.threads, literal == "true")
            return np.full(self.threads, int(literal)).astype(NUMPY[kinds])
        if op == "mlir.undef":
            count = kinds.count(",") + 1
            return [None] * count
        if op == "insertvalue":
            scalar, struct = operands
            at = int(re.search(r"\[(\d+)\]", text).group(1))
            return [*struct[:at], scalar, *struct[at + 1 :]]
        if op == "extractvalue":
            return operands[0][int(re.search(r"\[(\d+)\]", text).group(1))]
        if op == "select":
            return np.where(*operands)
        if op == "icmp":
            predicate = re.search(r'"(\w+)"', text).group(1)
            a, b = (_bits(v, "i1" if v.dtype == bool else "") for v in operands)
            return _PREDICATES[predicate](a, b)
        if op in ("zext", "trunc", "bitcast"):
            source, target = kinds.split(" to ")
            bits = _bits(operands[0], source.strip())
            width = 8 if target == "i1" else NUMPY[target].itemsize * 8
            width = 16 if target == "bf16" else width
            return _from_bits(bits.astype(f"u{width // 8}"), target)
        a, b = operands
        unsigned = f"u{a.itemsize}"
        if op in _UNSIGNED:
            return _UNSIGNED[op](a.view(unsigned), b.view(unsigned)).view(a.dtype)
        return _FLEXIBLE[op](a, b)

    def _arith(self, op: str, rest: str, operands: list, kinds: str):
        if op == "constant":
            literal = rest.split(" : ")[0].strip()
            if literal in ("true", "false"):
                return np.full(self.threads, literal == "true")
            return np.full(self.threads, int(literal)).astype(NUMPY[kinds])
        if op == "index_cast":
            return operands[0].astype(np.int32)
        if op == "select":
            return np.where(*operands)
        if op in ("cmpi", "cmpf"):
            compare = {"sgt": np.greater, "ogt": np.greater, "ne": np.not_equal}
            return compare[rest.split(",")[0]](*operands)
        a, b = operands
        if op == "remui":
            unsigned = f"u{a.itemsize}"
            return (a.view(unsigned) % b.view(unsigned)).view(a.dtype)
        return _FLEXIBLE[_ARITH[op]](a, b)

    def _memory(self, name: str, rest: str, operands: list, kinds: str):
        if name == "ttg.local_alloc":
            sizes = re.search(r"!ttg\.memdesc<([\dx]+)xi32", rest).group(1)
            shape = tuple(int(size) for size in sizes.split("x"))
            return {
                "data": np.zeros(shape, np.int32),
                "written": np.zeros(shape, bool),
                "contested": np.zeros(shape, bool),
            }
        if name == "ttg.barrier":
            return None
        if name == "ttg.memdesc_subslice":
            offsets = re.search(r"\[([\d, ]+)\]", rest).group(1)
            part = tuple(slice(int(offset), None) for offset in offsets.split(", "))
            return {key: whole[part] for key, whole in operands[0].items()}
        if name == "ttg.local_scatter":
            buffer, indices, values = operands
            axis = int(re.search(r"axis = (\d+)", rest).group(1))
            _, _, layout = self.tensor_type(_last_tensor(rest))
            at = list(layout.index)
            at[axis] = np.stack(indices)
            at = tuple(c[:, self.active] for c in np.broadcast_arrays(*at))
            stored = np.stack(values)[:, self.active]
            buffer["data"][at] = stored
            buffer["written"][at] = True
            lost = buffer["data"][at] != stored
            buffer["contested"][tuple(c[lost] for c in at)] = True
            return None
        if name == "ttg.local_load":
            _, _, layout = self.tensor_type(_last_tensor(rest))
            if not operands[0]["written"][layout.index][:, self.active].all():
                raise StepError("an element is read that nobody wrote")
            if operands[0]["contested"][layout.index][:, self.active].any():
                raise StepError("an element is read to which threads wrote different values")
            return list(operands[0]["data"][layout.index])
        raise StepError(f"unknown operation: {name} {rest}")


def _last_tensor(text: str) -> str:
    return text[text.rindex("tensor<") :]
