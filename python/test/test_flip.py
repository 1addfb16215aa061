"""tl.flip: its values in the simulator, what it costs, and what it refuses."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import CompilationError
from triton.tools.asm_counts import count_amdgcn, count_ptx, ptx_opcodes
from triton.tools.ptx_sim import Typed, run_kernel
from triton.tools.ptx_sim import compile_kernel as simulator_kernel

GFX942 = GPUTarget("hip", "gfx942", 64)
GFX1100 = GPUTarget("hip", "gfx1100", 32)


@triton.jit
def flip_shaped(x_ptr, z_ptr, N: tl.constexpr, SHAPE: tl.constexpr, DIM: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.reshape(tl.load(x_ptr + i), SHAPE)
    tl.store(z_ptr + i, tl.reshape(tl.flip(x, DIM), (N,)))


@triton.jit
def flip_row(x_ptr, z_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z_ptr + i, tl.flip(tl.load(x_ptr + i)))


@triton.jit
def flip_tile(x_ptr, z_ptr, T: tl.constexpr, D: tl.constexpr, DIM: tl.constexpr):
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(z_ptr + i, tl.flip(tl.load(x_ptr + i), DIM))


@triton.jit
def flip_booleans(x_ptr, z_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z_ptr + i, tl.flip(tl.load(x_ptr + i) > 0).to(tl.int32))


@triton.jit
def flip_offsets(x_ptr, z_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z_ptr + i, tl.load(x_ptr + tl.flip(i)))


@triton.jit
def flip_store_offsets(x_ptr, z_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z_ptr + tl.flip(i), tl.load(x_ptr + i))


@triton.jit
def flip_mask(x_ptr, z_ptr, n, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z_ptr + i, tl.load(x_ptr + i, mask=tl.flip(i < n), other=7.0))


@triton.jit
def flip_broadcast(x_ptr, z_ptr, T: tl.constexpr, D: tl.constexpr, DIM: tl.constexpr):
    # One operand is constant along an axis: only a flip along the other changes it.
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    column = tl.load(x_ptr + tl.arange(0, T))[:, None] + tl.zeros((T, D), tl.float32)
    three = tl.full((T, D), 3.0, tl.float32)
    tl.store(z_ptr + i, tl.flip(column, DIM) * tl.flip(three, DIM))


@triton.jit
def flip_between(x_ptr, z_ptr, T: tl.constexpr, D: tl.constexpr):
    # Transposition, reshape, expand_dims and join around flips: nothing may renumber their axes.
    x = tl.load(x_ptr + tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :])
    x = tl.flip(tl.trans(tl.flip(x, 0) * 2.0), 1)  # the two undo each other
    x = tl.trans(tl.flip(x, 0))
    x = tl.flip(tl.reshape(x, (T * D,)), 0)
    row = tl.flip(tl.arange(0, D), 0)[None, :]
    x = tl.reshape(x, (T, D)) + tl.broadcast_to(tl.flip(row, 1) + 2 * row, (T, D))
    both = tl.flip(tl.join(x, -x), 2)
    i = tl.arange(0, T)[:, None, None] * D * 2 + tl.arange(0, D)[None, :, None] * 2
    tl.store(z_ptr + i + tl.arange(0, 2)[None, None, :], both)


@triton.jit
def flip_loop(x_ptr, z_ptr, steps, N: tl.constexpr, STAGES: tl.constexpr):
    i = tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    for step in tl.range(steps, num_stages=STAGES):
        total = tl.flip(total) + tl.flip(tl.load(x_ptr + step * N + i)) * 2.0
    tl.store(z_ptr + i, total)


@triton.jit
def flip_and_scan(x_ptr, z_ptr, w_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(z_ptr + i, tl.flip(tl.cumsum(tl.flip(x), 0)))
    tl.store(w_ptr + i, tl.cumsum(x, 0, reverse=True))


@triton.jit
def flipped_twice(x):
    return x.flip(0) + x.flip(-1)


@triton.jit
def flip_called(x_ptr, z_ptr, T: tl.constexpr, D: tl.constexpr):
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    tl.store(z_ptr + i, flipped_twice(tl.load(x_ptr + i)))


@triton.jit
def flip_pointers(x_ptr, z_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(z_ptr + i, tl.load(tl.flip(x_ptr + i)))


def values(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(1, math.prod(shape) + 1, dtype=np.float32).reshape(shape)


SHAPES = [
    # shape, dim, warps, CTAs
    ((1,), 0, 1, 1),
    ((2,), 0, 4, 1),
    ((64,), 0, 8, 1),
    ((1024,), 0, 1, 1),
    ((1024,), 0, 4, 1),
    ((4096,), 0, 16, 1),
    ((32768,), 0, 4, 1),
    ((256,), 0, 4, 2),
    ((1024,), 0, 2, 4),
    *(((8, 4), d, w, 1) for d in (0, 1) for w in (1, 4)),
    *(((64, 32), d, w, c) for d in (0, 1) for w, c in ((4, 1), (8, 1), (4, 2))),
    ((1, 128), 0, 4, 1),
    ((128, 1), 1, 4, 1),
    *(((4, 16, 8), d, 4, 1) for d in (0, 1, 2)),
    *(((2, 4, 2, 8), d, 2, 1) for d in range(4)),
    ((2, 2, 4, 2, 8), 3, 4, 1),
]


@pytest.mark.parametrize("shape, dim, warps, ctas", SHAPES, ids=str)
def test_values(shape, dim, warps, ctas):
    x = values(shape)
    z = np.zeros_like(x)
    constants = {"N": x.size, "SHAPE": shape, "DIM": dim}
    run_kernel(flip_shaped, 1, [x, z], constants, num_warps=warps, num_ctas=ctas)
    np.testing.assert_array_equal(z, np.flip(x, dim))


@pytest.mark.parametrize("dim", [-3, -2, -1, None])
def test_default_and_negative_dim(dim):
    x = values((4, 8, 16))
    z = np.zeros_like(x)
    run_kernel(flip_shaped, 1, [x, z], {"N": x.size, "SHAPE": x.shape, "DIM": dim})
    np.testing.assert_array_equal(z, np.flip(x, -1 if dim is None else dim))


# NumPy's names, and Triton's for the types that NumPy does not know.
KINDS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
KINDS += ["bf16", "fp8e4nv", "fp8e5"]


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_dtypes(kind, dim, warps):
    # Every bit pattern that fits: a flip moves NaNs and signed zeros as they are.
    size = {"bf16": 2, "fp8e4nv": 1, "fp8e5": 1}.get(kind) or int(kind[1])
    bits = np.random.default_rng(1).integers(0, 256, (32, 16, size), dtype=np.uint8)
    bits = bits.view(f"u{size}")[..., 0]
    x = bits.copy() if kind in ("bf16", "fp8e4nv", "fp8e5") else bits.view(kind).copy()
    z = np.zeros_like(x)
    buffers = [Typed(x, kind), Typed(z, kind)] if not kind[1].isdigit() else [x, z]
    run_kernel(flip_tile, 1, buffers, {"T": 32, "D": 16, "DIM": dim}, num_warps=warps)
    np.testing.assert_array_equal(z.view(f"u{size}"), np.flip(bits, dim))


@pytest.mark.parametrize("warps", [1, 4])
def test_booleans(warps):
    x = np.random.default_rng(2).integers(-1, 2, 512, dtype=np.int32)
    z = np.zeros_like(x)
    run_kernel(flip_booleans, 1, [x, z], {"N": 512}, num_warps=warps)
    np.testing.assert_array_equal(z, np.flip(x > 0))


@pytest.mark.parametrize("kernel", [flip_offsets, flip_store_offsets], ids=lambda k: k.__name__)
@pytest.mark.parametrize("dtype", ["u1", "f2", "f4"])
@pytest.mark.parametrize("size, warps", [(512, 1), (2048, 4)])
def test_flipped_offsets(kernel, dtype, size, warps):
    # What is contiguous before a flip is not after it: no vector may go through it.
    x = np.random.default_rng(3).integers(0, 100, size).astype(dtype)
    z = np.zeros_like(x)
    run_kernel(kernel, 1, [x, z], {"N": size}, num_warps=warps)
    np.testing.assert_array_equal(z, np.flip(x))


@pytest.mark.parametrize("n", [0, 1, 16, 130, 512])
def test_flipped_mask(n):
    x = values((512,))
    z = np.zeros_like(x)
    run_kernel(flip_mask, 1, [x, z, n], {"N": 512})
    np.testing.assert_array_equal(z, np.where(np.arange(512) >= 512 - n, x, 7))


@pytest.mark.parametrize("dim", [0, 1])
def test_constant_axes(dim):
    x = values((32,))
    z = np.zeros((32, 64), np.float32)
    run_kernel(flip_broadcast, 1, [x, z], {"T": 32, "D": 64, "DIM": dim})
    np.testing.assert_array_equal(z, np.flip(np.broadcast_to(3 * x[:, None], z.shape), dim))


@pytest.mark.parametrize("warps", [1, 4])
def test_shape_changes_around(warps):
    x = values((16, 32))
    z = np.zeros((16, 32, 2), np.float32)
    run_kernel(flip_between, 1, [x, z], {"T": 16, "D": 32}, num_warps=warps)
    y = np.flip(np.flip(np.flip(x, 0) * 2, 0), 1)
    row = np.arange(32)[::-1]
    y = np.flip(y.reshape(-1)).reshape(x.shape) + (row[::-1] + 2 * row)
    np.testing.assert_array_equal(z, np.stack([-y, y], axis=2))


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("warps", [1, 4])
def test_loop(stages, warps):
    x = values((5, 256))
    z = np.zeros(256, np.float32)
    run_kernel(flip_loop, 1, [x, z, 5], {"N": 256, "STAGES": stages}, num_warps=warps)
    total = np.zeros(256, np.float32)
    for row in x:
        total = total[::-1] + 2 * row[::-1]
    np.testing.assert_array_equal(z, total)


@pytest.mark.parametrize("size, warps, ctas", [(256, 1, 1), (1024, 4, 1), (512, 4, 2)])
def test_with_scans(size, warps, ctas):
    x = np.random.default_rng(4).standard_normal(size).astype(np.float32)
    z, w = np.zeros_like(x), np.zeros_like(x)
    run_kernel(flip_and_scan, 1, [x, z, w], {"N": size}, num_warps=warps, num_ctas=ctas)
    # The two associate alike, so that not a bit differs.
    np.testing.assert_array_equal(z, w)
    np.testing.assert_allclose(z, np.cumsum(x[::-1].astype("f8"))[::-1], atol=1e-4)


def test_in_called_function():
    x = values((16, 64))
    z = np.zeros_like(x)
    run_kernel(flip_called, 1, [x, z], {"T": 16, "D": 64})
    np.testing.assert_array_equal(z, np.flip(x, 0) + np.flip(x, 1))


def assembly(compile_kernel, kernel, constants, kind, stage, **options):
    signature = {"x_ptr": f"*{kind}", "z_ptr": f"*{kind}"} | dict.fromkeys(constants, "constexpr")
    return compile_kernel(kernel, signature, constants, **options).asm[stage]


def error_of(compile_kernel, kernel, constants, native) -> str:
    """Return what the compilation complains about, with the reasons in called functions."""
    with pytest.raises(CompilationError) as caught:
        assembly(compile_kernel, kernel, constants, "fp32", "ptx", native=native)
    texts, error = [], caught.value
    while error is not None:
        texts.append(str(error))
        error = error.__cause__
    return "\n".join(texts)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("dim", [1, -2, 7])
def test_dim_out_of_range(compile_kernel, native, dim):
    error = error_of(compile_kernel, flip_shaped, {"N": 64, "SHAPE": (64,), "DIM": dim}, native)
    assert "flip: dim must be None or in [-rank, rank)" in error


def test_pointers_are_refused(compile_kernel):
    error = error_of(compile_kernel, flip_pointers, {"N": 64}, native=True)
    assert "flip: x must be a tensor of integers or floats, got one of pointer<fp32>" in error
    error_of(compile_kernel, flip_pointers, {"N": 64}, native=False)


def test_knob_selects_upstream(compile_kernel):
    signature = {"x_ptr": "*fp32", "z_ptr": "*fp32", "N": "constexpr"}
    ours, upstreams = (
        compile_kernel(flip_row, signature, {"N": 256}, native=native) for native in (True, False)
    )
    assert "triton_scan_flip" in ours.asm["ttir"]
    assert "triton_scan_flip" not in upstreams.asm["ttir"]
    assert upstreams.asm["ttir"].count("tt.reduce") > 0
    assert ours.hash != upstreams.hash


@pytest.mark.parametrize("native", [True, False])
def test_values_either_way(native):
    x = values((32, 16))
    z = np.zeros_like(x)
    run_kernel(flip_tile, 1, [x, z], {"T": 32, "D": 16, "DIM": 0}, native=native)
    np.testing.assert_array_equal(z, np.flip(x, 0))


def test_interpreter(run_python):
    code = """
import numpy as np, triton, triton.language as tl
from triton.runtime.interpreter import InterpretedFunction

@triton.jit
def kernel(z_ptr, DIM: tl.constexpr):
    i = tl.arange(0, 8)[:, None] * 4 + tl.arange(0, 4)[None, :]
    tl.static_assert(tl.flip(i, DIM).shape[0] == 8)
    tl.device_print("flip", tl.flip(i, DIM))

assert isinstance(kernel, InterpretedFunction)
kernel[(1,)](0, 0)
"""
    done = run_python(code, Path(triton.__file__).parent.parent, TRITON_INTERPRET="1")
    assert done.returncode == 0, done.stderr
    numbers = [
        int(word)
        for word in done.stdout.replace("[", " ").replace("]", " ").split()
        if word.isdigit()
    ]
    assert numbers[-32:] == np.flip(np.arange(32).reshape(8, 4), 0).ravel().tolist()


COSTS = [
    (kernel, constants, kind, warps)
    for kernel, constants in (
        (flip_row, {"N": 1024}),
        (flip_tile, {"T": 64, "D": 64, "DIM": 0}),
        (flip_tile, {"T": 64, "D": 64, "DIM": 1}),
    )
    for kind in ("fp32", "fp16", "i8")
    for warps in (1, 4, 8)
]


@pytest.mark.parametrize("kernel, constants, kind, warps", COSTS, ids=str)
def test_costs(compile_kernel, kernel, constants, kind, warps):
    def compile_ptx(native):
        return assembly(
            compile_kernel, kernel, constants, kind, "ptx", native=native, num_warps=warps
        )

    ours, upstreams = (count_ptx(compile_ptx(native)) for native in (True, False))
    elements = constants.get("N") or constants["T"] * constants["D"]
    bits = {"fp32": 32, "fp16": 16, "i8": 8}[kind]
    words = elements * bits // 32 // (32 * warps)
    # Each word moves once: by a shuffle, or into shared memory and out of it. Rows that a single
    # warp holds in registers do not move.
    allowed = [(words, 0), (0, 1)]
    if warps == 1 and constants.get("DIM") == 0:
        allowed = [(0, 0)]
    assert (ours.shuffles, ours.barriers) in allowed
    assert ours.shared <= 2 * words
    assert (ours.shared == 0) == (ours.barriers == 0)
    assert ours.shuffles <= upstreams.shuffles
    assert ours.barriers <= upstreams.barriers
    assert ours.instructions < upstreams.instructions or allowed == [(0, 0)]
    assert ours.instructions <= upstreams.instructions
    selects = Counter(op.split(".")[0] for op in ptx_opcodes(compile_ptx(True)))["selp"]
    assert selects == 0


# (tile, axis, warps, CTAs): what holds the axis, and (instructions, shuffles, barriers, accesses to
# shared memory) of the native lowering and of upstream's: the table of docs/differences.md
BITS = {
    ((128, 4), 1, 1, 1): ("2 register", (39, 0, 0, 0), (39, 0, 0, 0)),
    ((32, 16), 0, 1, 1): ("3 lane 2 register", (55, 16, 0, 0), (87, 48, 0, 0)),
    ((32, 32), 1, 1, 1): ("2 register 3 lane", (103, 32, 0, 0), (167, 96, 0, 0)),
    ((4, 128), 0, 4, 1): ("2 warp", (25, 0, 1, 2), (92, 8, 7, 8)),
    ((1, 4096), 1, 4, 1): (
        "2 register 5 lane 2 warp 3 register", (95, 0, 1, 16), (597, 224, 63, 64)
    ),
    ((2, 512), 0, 4, 2): ("1 block", (40, 0, 4, 3), (62, 4, 8, 4)),
    ((1, 4096), 1, 4, 2): (
        "2 register 5 lane 2 warp 2 register 1 block", (110, 0, 18, 20), (477, 128, 65, 48)
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", BITS, ids=str)
def test_costs_by_bits(case, capfd, monkeypatch):
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    shape, axis, warps, ctas = case
    runs, *wanted = BITS[case]
    x = np.zeros(shape, np.float32)
    constexprs = {"T": shape[0], "D": shape[1], "DIM": axis}
    capfd.readouterr()
    for native, counts in zip((True, False), wanted, strict=True):
        with triton.knobs.scan.scope():
            triton.knobs.scan.remarks = True
            kernel, _ = simulator_kernel(
                flip_tile, [x, x.copy()], constexprs, num_warps=warps, num_ctas=ctas, native=native
            )
        got = count_ptx(kernel.asm["ptx"])
        assert (got.instructions, got.shuffles, got.barriers, got.shared) == counts
    assert f"finest first: {runs};" in capfd.readouterr().err


@pytest.mark.parametrize("target", [GFX942, GFX1100], ids=lambda t: t.arch)
@pytest.mark.parametrize("kernel, constants, kind, warps", COSTS, ids=str)
def test_costs_on_amd(compile_kernel, kernel, constants, kind, warps, target):
    if warps == 8 and kind == "i8" and "N" in constants:
        constants = {"N": 4096}
    ours, upstreams = (
        count_amdgcn(
            assembly(
                compile_kernel,
                kernel,
                constants,
                kind,
                "amdgcn",
                native=native,
                num_warps=warps,
                target=target,
            )
        )
        for native in (True, False)
    )
    assert ours.instructions <= upstreams.instructions
    assert ours.shuffles <= upstreams.shuffles
    assert ours.barriers <= upstreams.barriers
