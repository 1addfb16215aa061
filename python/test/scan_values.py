"""Runs scan kernels in the simulator, in both directions, against sequential folds.

A kernel under test takes its inputs' pointers, its outputs' pointers, other run-time arguments,
then constexprs with REVERSE among them.  bf16 and fp8 arrays are Typed, as the simulator has them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import triton
from triton.backends.compiler import GPUTarget
from triton.tools.ptx_sim import (
    Typed,
    compile_kernel,
    from_bf16,
    from_fp8,
    run_compiled,
    to_bf16,
    to_fp8,
)

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
# The gap between 1 and the next number.
EPSILON = {
    "float64": 2.0**-52,
    "float32": 2.0**-23,
    "float16": 2.0**-10,
    "bf16": 2.0**-7,
    "fp8e4nv": 2.0**-3,
    "fp8e5": 2.0**-2,
}


def encode(values: np.ndarray, dtype: str) -> np.ndarray | Typed:
    """Return a device array of the values, rounded to the dtype."""
    if dtype == "bf16":
        return Typed(to_bf16(values), dtype)
    if dtype.startswith("fp8"):
        return Typed(to_fp8(values, dtype), dtype)
    return np.ascontiguousarray(values.astype(dtype))


def bits(array: np.ndarray | Typed) -> np.ndarray:
    """Return the array's bits, one NaN of each dtype for all."""
    data = array.array if isinstance(array, Typed) else array
    if data.dtype.kind == "f":
        data = np.where(np.isnan(data), data.dtype.type(np.nan), data)
    return data.view(f"u{data.itemsize}")


def decode(array: np.ndarray | Typed) -> np.ndarray:
    """Return integers as they are and floats, exactly, as float64."""
    if isinstance(array, Typed):
        exact = from_bf16(array.array) if array.type == "bf16" else from_fp8(*_parts(array))
        return exact.astype(np.float64)
    return array.astype(np.float64) if array.dtype.kind == "f" else array


def _parts(array: Typed) -> tuple[np.ndarray, str]:
    return array.array, array.type


def like(array: np.ndarray | Typed) -> np.ndarray | Typed:
    """Return an output array for values such as those of `array`, filled with a pattern."""
    if isinstance(array, Typed):
        return Typed(like(array.array), array.type)
    return np.frombuffer(b"\x5a" * array.nbytes, array.dtype).reshape(array.shape).copy()


def flip(array: np.ndarray | Typed, axis: int) -> np.ndarray | Typed:
    """Return a reversed copy."""
    if isinstance(array, Typed):
        return Typed(flip(array.array, axis), array.type)
    return np.ascontiguousarray(np.flip(array, axis))


def copy(array: np.ndarray | Typed) -> np.ndarray | Typed:
    """Return a copy."""
    return Typed(array.array.copy(), array.type) if isinstance(array, Typed) else array.copy()


def fold(fn: Callable, operands: Sequence[np.ndarray], axis: int, reverse: bool) -> list:
    """Return the sequential left fold along `axis` in the direction, fn(*accumulated, *next).

    fn works on arrays without the axis and returns one, or a tuple of as many as there are
    operands.  Integer arrays wrap around.
    """
    moved = [np.moveaxis(x, axis, 0) for x in operands]
    if reverse:
        moved = [x[::-1] for x in moved]
    results = [x.copy() for x in moved]
    accumulated = tuple(x[0] for x in moved)
    with np.errstate(all="ignore"):
        for i in range(1, moved[0].shape[0]):
            accumulated = fn(*accumulated, *(x[i] for x in moved))
            if not isinstance(accumulated, tuple):
                accumulated = (accumulated,)
            for result, value in zip(results, accumulated, strict=True):
                result[i] = value
    if reverse:
        results = [x[::-1] for x in results]
    return [np.ascontiguousarray(np.moveaxis(x, 0, axis)) for x in results]


def run(kernel, inputs, outputs, scalars=(), constexprs=None, grid=1, **options) -> list:
    """Run a kernel on copies of the inputs; return the outputs, which hold a pattern before."""
    results = [like(x) for x in outputs]
    arguments = [*(copy(x) for x in inputs), *results, *scalars]
    compiled, kept = compile_kernel(kernel, arguments, constexprs, **options)
    run_compiled(compiled, grid, kept)
    return results


def assert_same(got: np.ndarray | Typed, wanted: np.ndarray | Typed, what: str = "") -> None:
    """Assert that all bits agree."""
    bad = np.argwhere(bits(got) != bits(wanted))
    assert not bad.size, (
        f"{what} {len(bad)} differ, first at {tuple(bad[0])}: "
        f"{decode(got)[tuple(bad[0])]}, wanted {decode(wanted)[tuple(bad[0])]}"
    )


def assert_close(got, wanted: np.ndarray, tolerance, what: str = "") -> None:
    """Assert equality for integers and |got - wanted| <= tolerance (absolute) for floats."""
    values = decode(got)
    if values.dtype.kind != "f":
        tolerance = 0
        bad = values != wanted
    else:
        with np.errstate(invalid="ignore"):
            near = np.abs(values - wanted) <= tolerance
        bad = ~(near | (values == wanted) | (np.isnan(values) & np.isnan(wanted)))
    where = np.argwhere(bad)
    assert not where.size, (
        f"{what} {len(where)} wrong, first at {tuple(where[0])}: "
        f"{values[tuple(where[0])]}, wanted {wanted[tuple(where[0])]}"
    )


def check(
    kernel,
    inputs: Sequence,
    reference: Callable,
    *,
    axis: int,
    outputs: Sequence | None = None,
    scalars: Sequence = (),
    constexprs: dict | None = None,
    relative: float = 0.0,
    mirrored: bool = True,
    **options,
) -> dict:
    """Check a kernel in both directions; return {reverse: outputs}.

    reference: either fn(*accumulated, *next) for fold(), or, with `outputs` given, a function
        (decoded inputs, reverse) -> the results in that direction.
    relative: allowed error as a fraction of max(|wanted|, 1); integers must be equal.
    mirrored: whether reverse(x) must have the bits of flip(forward(flip(x))).
    """
    decoded = [decode(x) for x in inputs]
    results = {}
    for reverse in (False, True):
        got = run(
            kernel,
            inputs,
            inputs if outputs is None else outputs,
            scalars,
            {**(constexprs or {}), "REVERSE": reverse},
            **options,
        )
        if outputs is None:
            wanted = fold(reference, decoded, axis, reverse)
        else:
            wanted = reference(*decoded, reverse)
        for i, (mine, right) in enumerate(zip(got, wanted, strict=True)):
            tolerance = relative * np.maximum(np.abs(right), 1.0) if relative else 0.0
            assert_close(mine, right, tolerance, f"reverse={reverse}, output {i}:")
        results[reverse] = got
    if mirrored:
        flipped = run(
            kernel,
            [flip(x, axis) for x in inputs],
            inputs if outputs is None else outputs,
            scalars,
            {**(constexprs or {}), "REVERSE": False},
            **options,
        )
        for i, (mine, other) in enumerate(zip(results[True], flipped, strict=True)):
            assert_same(mine, flip(other, axis), f"flip(forward(flip(x))), output {i}:")
    return results


def compile_ttgir(text: str, capability: int = 90, native: bool = True):
    """Compile a TTGIR module."""
    with tempfile.TemporaryDirectory() as folder, triton.knobs.scan.scope():
        path = Path(folder) / "kernel.ttgir"
        path.write_text(text)
        triton.knobs.scan.native = native
        return triton.compile(str(path), target=GPUTarget("cuda", capability, 32))


_MLIR = {"float16": "f16", "float32": "f32", "float64": "f64", "bf16": "bf16"}


def mlir_type(dtype: str) -> str:
    """Return the MLIR type of a dtype's name."""
    return _MLIR.get(dtype) or f"i{dtype.lstrip('uint')}"


def scan_module(
    dtypes: Sequence[str],
    shape: Sequence[int],
    layout: str,
    axis: int,
    region: str,
    *,
    warps: int = 4,
    ctas: int = 1,
    captured: str | None = None,
) -> str:
    """Return TTGIR that loads operands in `layout`, scans them forward and in reverse, and stores.

    The kernel's arguments are, for each operand, the input, the forward and the reverse result,
    contiguous arrays of (programs, *shape); then, if given, the scalar %gamma of the dtype
    `captured`.  `region` is the combine region's body over %a0.. (accumulated) and %b0.. (next);
    `layout` is an attribute over all the dimensions.
    """
    dims = "x".join(map(str, shape))
    rank = len(shape)
    types = [mlir_type(t) for t in dtypes]
    body: list[str] = []

    def offsets() -> None:
        total = f"tensor<{dims}xi32, #l>"
        size = int(np.prod(shape))
        body.append("%pid = tt.get_program_id x : i32")
        body.append(f"%size = arith.constant {size} : i32")
        body.append("%base = arith.muli %pid, %size : i32")
        body.append(f"%sum_start = tt.splat %base : i32 -> {total}")
        last = "%sum_start"
        for d, n in enumerate(shape):
            # A slice of the layout for each other dimension, the last one first.
            encoding, encodings = "#l", ["#l"]
            for other in reversed(range(rank)):
                if other != d:
                    encoding = f"#ttg.slice<{{dim = {other}, parent = {encoding}}}>"
                    encodings.append(encoding)
            kind = f"tensor<{n}xi32, {encodings[-1]}>"
            body.append(f"%range{d} = tt.make_range {{start = 0 : i32, end = {n} : i32}} : {kind}")
            name, have = f"%range{d}", [n]
            step = len(encodings) - 2
            for other in range(rank):
                if other == d:
                    continue
                at = other
                have = [*have[:at], 1, *have[at:]]
                new = f"tensor<{'x'.join(map(str, have))}xi32, {encodings[step]}>"
                body.append(
                    f"%e{d}_{other} = tt.expand_dims {name} {{axis = {at} : i32}} : {kind} -> {new}"
                )
                name, kind, step = f"%e{d}_{other}", new, step - 1
            body.append(f"%w{d} = tt.broadcast {name} : {kind} -> {total}")
            stride = int(np.prod(shape[d + 1 :]))
            body.append(f"%c{d} = arith.constant dense<{stride}> : {total}")
            body.append(f"%m{d} = arith.muli %w{d}, %c{d} : {total}")
            body.append(f"%sum{d} = arith.addi {last}, %m{d} : {total}")
            last = f"%sum{d}"
        body.append(f"%off = arith.addi {last}, %sum_zero : {total}")
        body.insert(0, f"%sum_zero = arith.constant dense<0> : {total}")

    def pointer(name: str, argument: str, kind: str) -> None:
        pointers = f"tensor<{dims}x!tt.ptr<{kind}>, #l>"
        body.append(f"%{name}s = tt.splat %{argument} : !tt.ptr<{kind}> -> {pointers}")
        body.append(f"%{name} = tt.addptr %{name}s, %off : {pointers}, tensor<{dims}xi32, #l>")

    offsets()
    tensors = [f"tensor<{dims}x{t}, #l>" for t in types]
    for i, kind in enumerate(types):
        pointer(f"px{i}", f"x{i}", kind)
        body.append(f"%v{i} = tt.load %px{i} : tensor<{dims}x!tt.ptr<{kind}>, #l>")
    n = len(types)
    for name, reverse in (("f", "false"), ("r", "true")):
        results = f"%scan_{name}" + (f":{n}" if n > 1 else "")
        arguments = ", ".join(
            [f"%a{i}: {t}" for i, t in enumerate(types)]
            + [f"%b{i}: {t}" for i, t in enumerate(types)]
        )
        body.append(
            f'{results} = "tt.scan"({", ".join(f"%v{i}" for i in range(n))}) '
            f"<{{axis = {axis} : i32, reverse = {reverse}}}> ({{\n^bb0({arguments}):\n{region}\n}})"
            f" : ({', '.join(tensors)}) -> ({', '.join(tensors)})"
        )
        for i, kind in enumerate(types):
            pointer(f"p{name}{i}", f"{name}{i}", kind)
            value = f"%scan_{name}#{i}" if n > 1 else f"%scan_{name}"
            body.append(f"tt.store %p{name}{i}, {value} : tensor<{dims}x!tt.ptr<{kind}>, #l>")
    arguments = [f"%{p}{i}: !tt.ptr<{t}>" for i, t in enumerate(types) for p in "xfr"]
    if captured:
        arguments.append(f"%gamma: {mlir_type(captured)}")
    lines = "\n    ".join(body)
    return f"""
#l = {layout}
module attributes {{"ttg.num-ctas" = {ctas} : i32, "ttg.num-warps" = {warps} : i32,
                   ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32}} {{
  tt.func public @kernel({", ".join(arguments)}) {{
    {lines}
    tt.return
  }}
}}
"""


def run_module(text: str, inputs: Sequence, scalars=(), **options) -> tuple[list, list]:
    """Run a scan_module() over programs, the inputs' first dimension; return (forward, reverse)."""
    compiled = compile_ttgir(text, **options)
    forward, reverse = [like(x) for x in inputs], [like(x) for x in inputs]
    arrays = [a for triple in zip(inputs, forward, reverse, strict=True) for a in triple]
    arrays = [a.array if isinstance(a, Typed) else a for a in arrays]
    programs = arrays[0].shape[0]
    run_compiled(compiled, programs, [*arrays, *scalars])
    return forward, reverse
