"""launch(): runs the kernel of a PTX module over a grid, on NumPy arrays."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from . import memory
from .errors import PtxSimError
from .program import load
from .state import State

MAX_SHARED = 227 * 1024


@dataclass
class Stats:
    """`static` counts the instructions of the PTX by class, `executed` the warp-level
    executions by class (one for each warp with an active lane), `opcodes` the static counts
    by full opcode, `printed` the lines of device prints."""

    static: Counter = field(default_factory=Counter)
    executed: Counter = field(default_factory=Counter)
    opcodes: Counter = field(default_factory=Counter)
    printed: list = field(default_factory=list)


def count(ptx: str, entry: str | None = None) -> Stats:
    """The static counts of a module without running it."""
    program = load(ptx, entry)
    stats = Stats()
    stats.static.update(program.classes)
    stats.opcodes.update(".".join([i.op, *i.mods]) for i in program.module.code)
    return stats


class _Buffers:
    """Device copies of the array arguments; overlapping arrays share one buffer."""

    def __init__(self, program, args):
        self.arena = memory.Arena()
        self.program = program
        module_at = self.arena.reserve(max(program.global_bytes, 1), "the module's variables")
        assert module_at == memory.MODULE_BASE
        self.arrays = []
        for k, a in enumerate(args):
            if isinstance(a, np.ndarray):
                if not a.flags.c_contiguous:
                    raise PtxSimError(f"argument {k}: the array is not C-contiguous")
                self.arrays.append((k, a, a.__array_interface__["data"][0], a.nbytes))
        self.regions, self.address = [], {}
        for k, a, at, size in sorted(self.arrays, key=lambda e: (e[2], -e[3])):
            last = self.regions[-1] if self.regions else None
            if last and at < last["end"] and size:
                last["end"] = max(last["end"], at + size)
                last["members"].append((k, a, at))
            else:
                self.regions.append({"start": at, "end": at + size, "members": [(k, a, at)]})
        for region in self.regions:
            names = " and ".join(f"argument {k}" for k, _, _ in region["members"])
            writable = any(a.flags.writeable for _, a, _ in region["members"])
            base = self.arena.reserve(region["end"] - region["start"], names, writable)
            for k, _, at in region["members"]:
                self.address[k] = base + at - region["start"]
        self.arena_scratch = {}

    def scratch(self, size, name):
        return self.arena.reserve(size, name)

    def upload(self):
        self.arena.commit()
        for var in self.program.globals:
            at = var.offset - memory.GLOBAL_BASE
            self.arena.data[at : at + len(var.init)] = np.frombuffer(var.init, np.uint8)
        for k, a, _, size in self.arrays:
            at = self.address[k] - memory.GLOBAL_BASE
            self.arena.data[at : at + size] = a.reshape(-1).view(np.uint8)

    def download(self):
        for k, a, _, size in self.arrays:
            if a.flags.writeable:
                at = self.address[k] - memory.GLOBAL_BASE
                a.reshape(-1).view(np.uint8)[:] = self.arena.data[at : at + size]


def _pack(var, value, k):
    size = var.size
    if isinstance(value, (bytes, bytearray)):
        if len(value) != size:
            raise PtxSimError(f"argument {k}: {len(value)} bytes for a parameter of {size}")
        return bytes(value)
    if isinstance(value, np.generic):
        data = value.tobytes()
        if len(data) < size and value.dtype.kind in "iub":
            return int(value).to_bytes(size, "little", signed=value.dtype.kind == "i")
        if len(data) != size:
            raise PtxSimError(f"argument {k}: {value.dtype} for a parameter of {size} bytes")
        return data
    if isinstance(value, (bool, int)):
        if not -(1 << 8 * size - 1) <= value < 1 << 8 * size:
            raise PtxSimError(f"argument {k}: {value} does not fit {size} bytes")
        return (value % (1 << 8 * size)).to_bytes(size, "little")
    if isinstance(value, float):
        if size not in (4, 8):
            raise PtxSimError(f"argument {k}: pass a NumPy scalar for a float of {size} bytes")
        return np.array(value, f"f{size}").tobytes()
    raise PtxSimError(f"argument {k}: {type(value).__name__} is neither an array nor a scalar")


@dataclass(frozen=True)
class Scratch:
    """An argument that becomes a pointer to `size` zeroed bytes (a null pointer if 0)."""

    size: int


def launch(
    ptx: str,
    grid,
    args,
    *,
    num_warps: int,
    shared_bytes: int = 0,
    cluster: int = 1,
    entry: str | None = None,
    max_threads: int = 4096,
    max_steps: int = 20_000_000,
    equal_writes: bool = False,
) -> Stats:
    """Runs `grid` clusters of `cluster` CTAs (along x) of num_warps * 32 threads each.

    * `grid`: int or tuple of up to three, counted in clusters as Triton counts programs.
    * `args`: NumPy arrays (C-contiguous; device buffers with exact bounds, 256-byte aligned,
      overlapping arrays share memory; modified in place), Python or NumPy scalars, bytes,
      or Scratch(size). bf16 and fp8 travel as uint16 and uint8.
    * `shared_bytes`: size of the dynamic shared memory.
    * `max_threads`: threads that run together as one batch of CTAs (memory against speed).
    * `equal_writes`: warps that store equal bytes without a barrier in between do not race, if by
      several instructions either.

    Raises PtxUnsupported, PtxMemoryError, PtxRaceError, PtxSyncError or PtxSimError; the
    arrays are then unchanged.
    """
    program = load(ptx, entry)
    grid = (grid,) if isinstance(grid, int) else tuple(grid)
    grid = tuple(int(g) for g in grid) + (1,) * (3 - len(grid))
    if len(grid) != 3 or min(grid) < 0:
        raise PtxSimError(f"grid {grid}: up to three sizes, none negative")
    if num_warps < 1 or num_warps > 32:
        raise PtxSimError(f"num_warps {num_warps}: 1 to 32")
    directives = program.entry.directives
    threads = num_warps * 32
    required = directives.get("reqntid")
    if required and int(np.prod(required)) != threads:
        raise PtxSimError(
            f"the kernel requires {int(np.prod(required))} threads, {threads} were launched"
        )
    wanted = directives.get("reqnctapercluster")
    if wanted and int(np.prod(wanted)) != cluster:
        raise PtxSimError(f"the kernel requires clusters of {wanted}, {cluster} was asked for")
    shared = program.static_shared + shared_bytes
    if shared > MAX_SHARED:
        raise PtxSimError(f"{shared} bytes of shared memory: a CTA has {MAX_SHARED}")
    params = program.entry.params
    if len(params) != len(args):
        raise PtxSimError(f"{program.entry.name} takes {len(params)} arguments, got {len(args)}")
    buffers = _Buffers(program, args)
    values = []
    for k, (var, value) in enumerate(zip(params, args, strict=True)):
        if isinstance(value, np.ndarray):
            value = buffers.address[k]
        elif isinstance(value, Scratch):
            value = buffers.scratch(value.size, f"scratch argument {k}") if value.size else 0
        values.append(_pack(var, value, k))
    buffers.upload()
    program.set_kernel_params(values)
    program.counts = [0] * len(program.code)
    ctas = (grid[0] * cluster, grid[1], grid[2])
    total = ctas[0] * ctas[1] * ctas[2]
    # the read clocks take (warps * shared bytes / granule) words a CTA
    tracked = max(1, shared * num_warps * cluster * 8 // program.granule)
    batch = max(1, min(max_threads // (threads * cluster), (256 << 20) // (tracked * cluster)))
    printed = []
    with np.errstate(all="ignore"):
        for first in range(0, total, batch * cluster):
            n = min(batch * cluster, total - first)
            state = State(
                program, buffers.arena, first, n, ctas, threads, cluster, shared, equal_writes
            )
            _run(program, state, max_steps)
            printed += state.printed
    buffers.download()
    stats = count(ptx, entry)
    stats.printed = printed
    for name, n in zip(program.classes, program.counts, strict=True):
        if n:
            stats.executed[name] += n
    return stats


def _run(program, state, max_steps):
    try:
        state.run(program.entry.start, max_steps)
    except PtxSimError:
        raise
    except Exception as e:
        at = program.where(state.pc)
        ins = program.module.code[state.pc]
        for text in [*ins.operands[1:], *ins.operands[:1]]:
            for name in (
                text.replace("{", " ")
                .replace("}", " ")
                .replace("[", " ")
                .replace("]", " ")
                .replace(",", " ")
                .replace("|", " ")
                .split()
            ):
                reg = ins.scope.find(name.lstrip("!"))
                if hasattr(reg, "index") and state.regs[reg.index] is None:
                    raise PtxSimError(
                        f"register {name} may be read before anything wrote it\n  at {at}"
                    ) from e
        raise PtxSimError(f"the simulator failed: {type(e).__name__}: {e}\n  at {at}") from e
