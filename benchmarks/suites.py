"""What is timed: the kernels, and the rows (shapes) of each suite.  Needs triton, not torch.

scan    a tile stays in registers and is scanned ROUNDS times: the scan itself is what is timed
memory  load, scan once, store; mode 0 is the same kernel without the scan
growth  the scan suite's rows of 256 to 16384 elements, 8 or 16 a thread, 1 to 32 warps
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import triton
import triton.language as tl

# Scans of the same registers in a kernel of the suites "scan" and "growth".
ROUNDS = 64
FORWARD, REVERSE = "forward", "reverse"
DIRECTIONS = (FORWARD, REVERSE)
COPY = "copy"


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def affine(a1, b1, a2, b2):
    # h -> a1*h + b1, then h -> a2*h + b2
    return a2 * a1, a2 * b1 + b2


@triton.jit
def rows_loop(
    x_ptr, z_ptr, N: tl.constexpr, R: tl.constexpr, SCALE: tl.constexpr, REVERSE: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    x = tl.load(x_ptr + i)
    for _ in range(R):
        x = tl.associative_scan(x, 0, add, reverse=REVERSE) * SCALE
    tl.store(z_ptr + i, x)


@triton.jit
def pairs_loop(a_ptr, x_ptr, z_ptr, N: tl.constexpr, R: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    a = tl.load(a_ptr + i)
    x = tl.load(x_ptr + i)
    for _ in range(R):
        _a, x = tl.associative_scan((a, x), 0, affine, reverse=REVERSE)
        a = a * 0.999
    tl.store(z_ptr + i, x)


@triton.jit
def tiles_loop(
    x_ptr,
    z_ptr,
    T: tl.constexpr,
    D: tl.constexpr,
    R: tl.constexpr,
    SCALE: tl.constexpr,
    REVERSE: tl.constexpr,
):
    tile = tl.program_id(0).to(tl.int64) * T * D
    i = tile + tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    x = tl.load(x_ptr + i)
    for _ in range(R):
        x = tl.associative_scan(x, 0, add, reverse=REVERSE) * SCALE
    tl.store(z_ptr + i, x)


@triton.jit
def rows_once(x_ptr, z_ptr, N: tl.constexpr, SCAN: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    x = tl.load(x_ptr + i)
    if SCAN:
        x = tl.associative_scan(x, 0, add, reverse=REVERSE)
    tl.store(z_ptr + i, x)


@triton.jit
def pairs_once(a_ptr, x_ptr, z_ptr, N: tl.constexpr, SCAN: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    a = tl.load(a_ptr + i)
    x = tl.load(x_ptr + i)
    if SCAN:
        _a, x = tl.associative_scan((a, x), 0, affine, reverse=REVERSE)
    else:
        x = a + x
    tl.store(z_ptr + i, x)


@triton.jit
def tiles_once(
    x_ptr, z_ptr, T: tl.constexpr, D: tl.constexpr, SCAN: tl.constexpr, REVERSE: tl.constexpr
):
    tile = tl.program_id(0).to(tl.int64) * T * D
    i = tile + tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    x = tl.load(x_ptr + i)
    if SCAN:
        x = tl.associative_scan(x, 0, add, reverse=REVERSE)
    tl.store(z_ptr + i, x)


KERNELS = {
    ("add", True): rows_loop,
    ("pair", True): pairs_loop,
    ("tile", True): tiles_loop,
    ("add", False): rows_once,
    ("pair", False): pairs_once,
    ("tile", False): tiles_once,
}


@dataclass(frozen=True)
class Row:
    """One shape of a suite: `length` elements along the axis times `width` columns a block.

    kind: "add" (a row of sums), "pair" (a row of the recurrence h = a*h + x) or "tile" (sums along
    axis 0).
    """

    suite: str
    kind: str
    length: int
    num_warps: int
    width: int = 1

    def __str__(self) -> str:
        shape = f"{self.length}x{self.width} axis 0" if self.kind == "tile" else f"N={self.length}"
        return f"{self.kind} {shape}, {self.num_warps} warp{'s' * (self.num_warps > 1)}"

    @property
    def loops(self) -> bool:
        """Whether the kernel scans ROUNDS times."""
        return self.suite != "memory"

    @property
    def block(self) -> int:
        """Elements of a block."""
        return self.length * self.width

    @property
    def per_thread(self) -> int:
        """Elements of a thread."""
        return self.block // (32 * self.num_warps)

    @property
    def kernel(self) -> Callable:
        return KERNELS[self.kind, self.loops]

    @property
    def inputs(self) -> int:
        """How many arrays the kernel reads."""
        return 2 if self.kind == "pair" else 1

    @property
    def scale(self) -> float:
        """The factor after each scan of the loop.

        R sums of sums grow like (length*scale)**R / R!; 60/length keeps most elements normal
        numbers through 64 rounds.  (With 0.001, all would be zero after about 20.)
        """
        return 60.0 / self.length

    def elements(self, config: dict) -> int:
        """Elements that a launch scans, whole blocks.

        config: "elements" by suite (pairs of the suite "memory" take half), or "blocks".
        """
        if "blocks" in config:
            return config["blocks"] * self.block
        n = config["elements"][self.suite]
        if self.suite == "memory" and self.kind == "pair":
            n //= 2
        return n // self.block * self.block

    def constexprs(self, mode: str, rounds: int = ROUNDS) -> dict[str, object]:
        """The kernel's constexprs for "forward", "reverse" or (suite "memory") "copy"."""
        values: dict[str, object] = {"N": self.length}
        if self.kind == "tile":
            values = {"T": self.length, "D": self.width}
        if self.loops:
            values["R"] = rounds
            if self.kind != "pair":
                values["SCALE"] = self.scale
        else:
            values["SCAN"] = mode != COPY
        return values | {"REVERSE": mode == REVERSE}


def _rows(suite: str, shapes, pairs, tiles) -> list[Row]:
    return [
        *(Row(suite, "add", n, w) for n, w in shapes),
        *(Row(suite, "pair", n, w) for n, w in pairs),
        *(Row(suite, "tile", t, w, d) for t, d, w in tiles),
    ]


SCAN = _rows(
    "scan",
    ((128, 1), (256, 1), (1024, 1), (1024, 4), (1024, 8), (4096, 4), (4096, 8), (8192, 8)),
    ((256, 1), (1024, 4), (4096, 8)),
    ((64, 64, 4), (128, 32, 4), (256, 16, 4), (64, 16, 1)),
)
MEMORY = _rows(
    "memory",
    ((256, 1), (1024, 1), (1024, 4), (4096, 4), (4096, 8), (8192, 8)),
    ((256, 1), (1024, 4), (4096, 8)),
    # The last three as in chunked linear attention, where warps share the axis of a tile.
    ((64, 64, 4), (128, 32, 4), (256, 16, 4), (64, 64, 2), (64, 64, 8), (64, 32, 8)),
)
GROWTH_WARPS = (1, 2, 4, 8, 16, 32)
GROWTH = _rows("growth", [(32 * e * w, w) for e in (8, 16) for w in GROWTH_WARPS], (), ())
SUITES = {"scan": SCAN, "memory": MEMORY, "growth": GROWTH}
# Compiled again and again for the compile time: a small, a usual and a large one of each kind.
COMPILE = [SCAN[i] for i in (0, 3, 7, 9, 11)]


def modes(row: Row) -> tuple[str, ...]:
    """The modes in which a row is timed."""
    return DIRECTIONS if row.loops else (COPY, *DIRECTIONS)


def find(name: str) -> Row:
    """The row of a name "suite: shape", as key() gives it."""
    suite, _, shape = name.partition(": ")
    return next(row for row in SUITES[suite] if str(row) == shape)


def key(row: Row) -> str:
    """The name of a row among all suites."""
    return f"{row.suite}: {row}"


def compile_row(row: Row, mode: str, capability: int = 90, rounds: int = ROUNDS):
    """Compile without a GPU, with the pointers' attributes that torch's arrays have.

    Returns triton's CompiledKernel, whose `asm` holds "ttgir", "ptx" and "cubin".
    """
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    constants = row.constexprs(mode, rounds)
    names = row.kernel.arg_names
    source = ASTSource(
        row.kernel,
        signature={n: "constexpr" if n in constants else "*fp32" for n in names},
        constexprs=constants,
        attrs={(i,): [["tt.divisibility", 16]] for i, n in enumerate(names) if n not in constants},
    )
    target = GPUTarget("cuda", capability, 32)
    return triton.compile(source, target=target, options={"num_warps": row.num_warps})
