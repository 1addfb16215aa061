"""A decoded module: addresses laid out, one tuple of closures an instruction."""

from __future__ import annotations

import functools

import numpy as np

from . import (  # noqa: F401
    async_ops,
    control_ops,
    convert,
    float_ops,
    int_ops,
    matrix_ops,
    memory,
    memory_ops,
    warp_ops,
    wgmma,
)
from .decode import Decoder, where
from .errors import PtxSimError, PtxUnsupported
from .parser import parse


class Program:
    """`entry` names the kernel if the module has several."""

    def __init__(self, ptx: str, entry: str | None = None):
        self.module = module = parse(ptx)
        entries = [f for f in module.functions.values() if f.entry]
        if entry is not None:
            entries = [f for f in entries if f.name == entry]
        if len(entries) != 1:
            names = [f.name for f in module.functions.values() if f.entry]
            raise PtxSimError(f"the module has the entries {names}: name one of them with entry=")
        self.entry = entries[0]
        self._layout()
        self.decoder = Decoder(module)
        execs = [self.decoder.decode(ins) for ins in module.code]
        self.special = self.decoder.special
        self.classes = [ex.opclass for ex in execs]
        self.code = [(ex.kind, ex.fn, ex.pred, ex.neg, ex.dsts) for ex in execs]
        self.execs = execs
        written = {d for ex in execs for d in ex.dsts} | set(self.special.values())
        self.undefined = [r for r in module.regs if r.index not in written]
        self.granule = self._granule()
        self.counts = [0] * len(self.code)

    def _layout(self):
        """Addresses of variables; .param variables get numbers."""
        self.params, self.globals = [], []
        shared, local, glob = 0, 0, 0
        self.dynamic = None
        for var in [*self.module.variables.values(), *self.module.locals, *self.entry.params]:
            if var.space == "shared" and var.size is not None:
                shared = -(-shared // var.align) * var.align
                var.offset, shared = memory.SHARED_BASE + shared, shared + var.size
            elif var.space == "shared":
                self.dynamic = var
            elif var.space == "local":
                local = -(-local // var.align) * var.align
                var.offset, local = memory.LOCAL_BASE + local, local + var.size
            elif var.space in ("global", "const"):
                if var.size is None:
                    raise PtxUnsupported(f"extern .{var.space} variable {var.name}")
                glob = -(-glob // max(var.align, 16)) * max(var.align, 16)
                var.offset, glob = memory.MODULE_BASE + glob, glob + var.size
                self.globals.append(var)
            elif var.space == "param":
                if var.size is None:
                    raise PtxUnsupported(f"parameter {var.name} without a size")
                var.offset = len(self.params)
                self.params.append(var)
        self.static_shared = -(-shared // 128) * 128
        if self.dynamic is not None:
            self.dynamic.offset = memory.SHARED_BASE + self.static_shared
        self.local_bytes, self.global_bytes = local, glob
        for var in self.globals:
            data = bytearray(var.init)
            for at, name in var.pointers:
                target = self.module.scope.find(name)
                if target is None:
                    raise PtxUnsupported(f"initialiser of {var.name} names unknown '{name}'")
                data[at : at + 8] = target.offset.to_bytes(8, "little")
            var.init = bytes(data)

    def _granule(self) -> int:
        """Smallest access that any instruction may make to shared memory, in bytes."""
        smallest = 8
        for ins in self.module.code:
            if ins.op in ("ld", "st", "atom", "red"):
                if any(m in ("global", "local", "param") for m in ins.mods):
                    continue
                bits = int("".join(c for c in ins.mods[-1][1:].split("x")[0] if c.isdigit()) or 8)
                bits = 16 if ins.mods[-1].startswith("bf16") else bits
                bits = bits * (2 if ins.mods[-1].endswith("x2") else 1)
                n = next((int(m[1]) for m in ins.mods if m in ("v2", "v4", "v8")), 1)
                smallest = min(smallest, max(bits * n // 8, 1))
                if ins.used_bytes is not None:
                    smallest = min(smallest, bits // 8)
            elif ins.op == "cp":
                smallest = min(smallest, 4)
        return smallest

    def where(self, pc: int) -> str:
        return where(self.module, self.module.code[pc])

    def param_storage(self, threads: int) -> list:
        """Bytes of every .param variable; the kernel's are shared by all threads."""
        kernel = {id(p) for p in self.entry.params}
        return [
            self.kernel_params[i] if id(p) in kernel else np.zeros((threads, p.size), np.uint8)
            for i, p in enumerate(self.params)
        ]

    def set_kernel_params(self, values: list) -> None:
        """`values`: bytes of each entry parameter, in order."""
        self.kernel_params = {}
        for var, data in zip(self.entry.params, values, strict=True):
            self.kernel_params[var.offset] = np.frombuffer(data, np.uint8).reshape(1, -1)


@functools.lru_cache(maxsize=64)
def load(ptx: str, entry: str | None = None) -> Program:
    """Parsed and decoded modules are kept: launching one again costs no parsing."""
    return Program(ptx, entry)
