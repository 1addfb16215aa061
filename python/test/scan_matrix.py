"""The kernels and shapes of test_counts.py, and how it compiles them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import triton
import triton.language as tl
from triton import native_scan
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.compiler import make_backend

SM_80, SM_90, SM_100, SM_120 = (GPUTarget("cuda", n, 32) for n in (80, 90, 100, 120))
GFX942 = GPUTarget("hip", "gfx942", 64)
GFX1100 = GPUTarget("hip", "gfx1100", 32)
GFX90A, GFX950 = (GPUTarget("hip", name, 64) for name in ("gfx90a", "gfx950"))
GFX1200 = GPUTarget("hip", "gfx1200", 32)


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def multiply(a, b):
    return a * b


@triton.jit
def greater(a, b):
    return tl.maximum(a, b)


@triton.jit
def affine(a1, b1, a2, b2):
    return a2 * a1, a2 * b1 + b2


@triton.jit
def first_greatest(v1, i1, v2, i2):
    later = v2 > v1
    return tl.where(later, v2, v1), tl.where(later, i2, i1)


@triton.jit
def segmented(f1, x1, n1, f2, x2, n2):
    return f1 | f2, tl.where(f2, x2, x1 + x2), n1 + n2


@triton.jit
def row(x_ptr, z_ptr, N: tl.constexpr, FN: tl.constexpr, R: tl.constexpr, REVERSE: tl.constexpr):
    # A chain of R scans, as a benchmark that is bound by scans has it; R = 1 is bound by memory.
    i = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    x = tl.load(x_ptr + i)
    if R == 1:
        x = tl.associative_scan(x, 0, FN, reverse=REVERSE)
    else:
        for _ in range(R):
            x = tl.associative_scan(x, 0, FN, reverse=REVERSE) * 0.001
    tl.store(z_ptr + i, x)


@triton.jit
def tile(
    x_ptr,
    z_ptr,
    T: tl.constexpr,
    D: tl.constexpr,
    AXIS: tl.constexpr,
    R: tl.constexpr,
    REVERSE: tl.constexpr,
):
    base = tl.program_id(0).to(tl.int64) * T * D
    i = base + tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    x = tl.load(x_ptr + i)
    if R == 1:
        x = tl.associative_scan(x, AXIS, add, reverse=REVERSE)
    else:
        for _ in range(R):
            x = tl.associative_scan(x, AXIS, add, reverse=REVERSE) * 0.001
    tl.store(z_ptr + i, x)


@triton.jit
def recurrence(a_ptr, x_ptr, z_ptr, N: tl.constexpr, R: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * N + tl.arange(0, N)
    a = tl.load(a_ptr + i)
    x = tl.load(x_ptr + i)
    if R == 1:
        _, x = tl.associative_scan((a, x), 0, affine, reverse=REVERSE)
    else:
        for _ in range(R):
            _, x = tl.associative_scan((a, x), 0, affine, reverse=REVERSE)
            a = a * 0.999
    tl.store(z_ptr + i, x)


@triton.jit
def argmax(x_ptr, z_ptr, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    _, index = tl.associative_scan((tl.load(x_ptr + i), i), 0, first_greatest, reverse=REVERSE)
    tl.store(z_ptr + i, index)


@triton.jit
def segments(f_ptr, x_ptr, n_ptr, z_ptr, m_ptr, N: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)
    operands = (tl.load(f_ptr + i) != 0, tl.load(x_ptr + i), tl.load(n_ptr + i))
    _, z, m = tl.associative_scan(operands, 0, segmented, reverse=REVERSE)
    tl.store(z_ptr + i, z)
    tl.store(m_ptr + i, m)


@triton.jit
def after_dot(x_ptr, y_ptr, z_ptr, N: tl.constexpr, AXIS: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    z = tl.dot(tl.load(x_ptr + i), tl.load(y_ptr + i))
    tl.store(z_ptr + i, tl.associative_scan(z, AXIS, add, reverse=REVERSE) * z)


@triton.jit
def of_slice(x_ptr, z_ptr, T: tl.constexpr, D: tl.constexpr, REVERSE: tl.constexpr):
    # The sums of a tile's rows are in a slice layout.
    x = tl.load(x_ptr + tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :])
    z = tl.associative_scan(tl.sum(x, 1), 0, add, reverse=REVERSE)
    tl.store(z_ptr + tl.arange(0, T), z)


@triton.jit
def without_scan(x_ptr, y_ptr, z_ptr, N: tl.constexpr):
    i = tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    z = tl.dot(tl.load(x_ptr + i), tl.load(y_ptr + i))
    tl.store(z_ptr + i, tl.softmax(z) - tl.sum(z, 0)[None, :])


@dataclass(frozen=True)
class Case:
    """A kernel with its pointers' element types, constexprs without REVERSE, and a target."""

    kernel: Callable
    types: tuple[str, ...]
    constexprs: tuple[tuple[str, object], ...]
    num_warps: int = 4
    target: GPUTarget = SM_90

    def __str__(self) -> str:
        values = [getattr(v, "__name__", str(v)) for _, v in self.constexprs]
        target = f"{self.target.backend}{self.target.arch}"
        parts = [self.kernel.__name__, *self.types, *values, f"w{self.num_warps}", target]
        return "-".join(parts)


def case(kernel, types: str, num_warps: int = 4, target: GPUTarget = SM_90, **constexprs) -> Case:
    """Return a Case; `types` are element types separated by blanks."""
    return Case(kernel, tuple(types.split()), tuple(constexprs.items()), num_warps, target)


@functools.cache
def assembly(case: Case, reverse: bool | None = False, native: bool = True) -> str:
    """Compile to PTX or amdgcn text; `reverse` is None for a kernel without a scan."""
    with triton.knobs.scan.scope():
        triton.knobs.scan.native = native
        assert native_scan.is_enabled() == native
        return _run_stages(case, reverse, ("llir", "ptx", "amdgcn"))


@functools.cache
def llvm_ir(case: Case, reverse: bool = False, native: bool = True) -> str:
    """Compile to LLVM IR, after LLVM's optimizations."""
    with triton.knobs.scan.scope():
        triton.knobs.scan.native = native
        return str(_run_stages(case, reverse, ("llir",)))


@functools.cache
def lowered(case: Case, reverse: bool) -> str:
    """Return the TTGIR in which the scan has become code on registers, as text."""
    module = _run_stages(case, reverse, ())
    pipeline = ir.pass_manager(module.context)
    native_scan.add_lowering(pipeline)
    native_scan.run_reporting(pipeline, module, "test")
    return module.str_nodebug()


def _source(case: Case, reverse: bool | None) -> ASTSource:
    constants = dict(case.constexprs) | ({} if reverse is None else {"REVERSE": reverse})
    types = [f"*{t}" for t in case.types] + ["constexpr"] * len(constants)
    return ASTSource(
        case.kernel,
        signature=dict(zip(case.kernel.arg_names, types, strict=True)),
        constexprs=constants,
        # Pointers as torch allocates them.
        attrs={(i,): [["tt.divisibility", 16]] for i in range(len(case.types))},
    )


def _run_stages(case: Case, reverse: bool | None, after_ttgir: tuple[str, ...]):
    """Run the stages up to TTGIR, then those named; no binary is made, so no ptxas runs."""
    source = _source(case, reverse)
    backend = make_backend(case.target)
    options = backend.parse_options({"num_warps": case.num_warps} | source.parse_options())
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = source.make_ir(
        case.target,
        options,
        backend.get_codegen_implementation(options),
        backend.get_module_map(),
        context,
    )
    stages: dict[str, Callable] = {}
    backend.add_stages(stages, options, source.language)
    metadata = {"target": case.target, **options.__dict__}
    for name, stage in stages.items():
        if name in ("ttir", "ttgir", *after_ttgir):
            module = stage(module, metadata)
    return module
