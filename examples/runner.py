"""What the examples share: where they run, how they launch kernels, how results are checked.

With torch and a CUDA device an example works on CUDA tensors.  Without, its kernels run in the PTX
simulator that the wheel brings, on CPU tensors or, where torch is missing too, on numpy arrays, at
small sizes.  An example's functions are the same in all three cases.  In code of your own write

    torch.autograd.Function    instead of    Function
    kernel[grid](...)          instead of    launch(kernel, grid)(...)
    x.new_empty(shape)         instead of    empty(x, shape)
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from triton.testing import do_bench
from triton.tools.ptx_sim import Typed, run_kernel

try:
    import torch
except ImportError:
    torch = None

# Triton 3.9 warns where this is not set; 1 has been the default of all releases so far.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

SIMULATED_BLOCK = 64  # steps of a tile
Array = Any  # a torch.Tensor or a numpy.ndarray
Comparison = tuple[str, np.ndarray, np.ndarray]  # its name, the kernel's values, the right ones

# ---- for the wrappers around kernels


class _Context:
    """What torch hands to an autograd.Function's methods, as far as the examples use it."""

    needs_input_grad = (True,)

    def save_for_backward(self, *arrays: Array | None) -> None:
        self.saved_tensors = arrays


class _PlainFunction:
    """The base class of the examples' functions where there is no torch."""

    @classmethod
    def apply(cls, *arguments: object) -> Any:
        return cls.forward(_Context(), *arguments)


Function: Any = _PlainFunction if torch is None else torch.autograd.Function


def _is_tensor(value: object) -> bool:
    return torch is not None and isinstance(value, torch.Tensor)


def _simulated(value: object) -> object:
    """Return an argument as the simulator takes it; an array keeps sharing the tensor's memory."""
    if not _is_tensor(value):
        return value
    value = value.detach()
    if value.dtype == torch.bfloat16:
        return Typed(value.view(torch.uint16).numpy(), "bf16")
    return value.numpy()


def launch(kernel: Any, grid: tuple[int, ...]) -> Callable[..., None]:
    """Return what kernel[grid] is, for CUDA tensors, CPU tensors and numpy arrays alike.

    The simulator treats None, 1 and multiples of 16 as Triton's own launcher does.  Raises what
    the compiler or the simulator raises.
    """

    def run(*arguments: object, num_warps: int = 4, **constants: object) -> None:
        if any(_is_tensor(a) and a.is_cuda for a in arguments):
            kernel[grid](*arguments, num_warps=num_warps, **constants)
            return
        names = [name for name in kernel.arg_names if name not in constants]
        given = dict(zip(names, arguments, strict=True))
        constants |= {name: None for name, value in given.items() if value is None}
        rest = [_simulated(value) for value in given.values() if value is not None]
        run_kernel(kernel, grid, rest, constants, num_warps=num_warps)

    return run


def empty(like: Array, shape: Sequence[int], dtype: str | None = None) -> Array:
    """Return an uninitialised array of the kind and on the device of `like`, by default of its
    dtype; others are named as torch and numpy both do ("float32")."""
    if _is_tensor(like):
        return like.new_empty(tuple(shape), dtype=getattr(torch, dtype) if dtype else None)
    return np.empty(shape, dtype or like.dtype)


def cast(array: Array, like: Array) -> Array:
    """Return the array in the dtype of `like`; itself if that is its own."""
    return array.to(like.dtype) if _is_tensor(array) else array.astype(like.dtype, copy=False)


def contiguous(array: Array) -> Array:
    """Return the array, or a copy if it has gaps or another order of axes."""
    return array.contiguous() if _is_tensor(array) else np.ascontiguousarray(array)


def require(
    name: str, array: Array, shape: Sequence[int], dtypes: Iterable[str] = ("float32",)
) -> Array:
    """Return the array, contiguous.

    Raises ValueError if its shape is not `shape` and TypeError if its dtype is none of `dtypes`,
    with `name` in the message.
    """
    if tuple(array.shape) != tuple(shape):
        raise ValueError(f"{name} has the shape {tuple(array.shape)}, expected {tuple(shape)}")
    dtype = str(array.dtype).removeprefix("torch.")
    if dtype not in dtypes:
        raise TypeError(f"{name} is {dtype}, expected {' or '.join(dtypes)}")
    return contiguous(array)


# ---- for the checks


def steps(xp: Any, array: Array) -> list[Array]:
    """Return the slices of the last axis; `xp` is the module that the array belongs to."""
    return list(np.moveaxis(array, -1, 0)) if xp is np else list(array.unbind(-1))


def _tuple(values: Any) -> tuple:
    return values if isinstance(values, tuple) else (values,)


def stacked(xp: Any, slices: list[Array], if_none: Array) -> Array:
    """Return the array whose last axis has these slices; `if_none` if there are none."""
    return xp.stack(slices, -1) if slices else if_none


def _is_float(array: np.ndarray | None) -> bool:
    return array is not None and array.dtype.kind == "f"


class Place:
    """Where an example runs: `gpu` says whether that is a GPU, `name` is what to call it."""

    def __init__(self, simulator: bool = False) -> None:
        """Choose the first CUDA device; the simulator if there is none or the caller wants it."""
        self.gpu = not simulator and torch is not None and torch.cuda.is_available()
        self.name = torch.cuda.get_device_name() if self.gpu else "the PTX simulator"

    def put(self, array: np.ndarray | None) -> Array | None:
        """Return the array as the examples' functions take it here; None stays None."""
        if torch is None or array is None:
            return array
        return torch.from_numpy(array).to("cuda" if self.gpu else "cpu")

    def get(self, array: Array) -> np.ndarray:
        """Return a result of the examples' functions as a numpy array."""
        return array.detach().cpu().numpy() if _is_tensor(array) else np.asarray(array)

    def _torch_gradients(
        self,
        function: Callable[..., Any],
        inputs: Sequence[np.ndarray | None],
        cotangents: Sequence[np.ndarray],
    ) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        arguments = [self.put(x) for x in inputs]
        leaves = [
            a.requires_grad_() for a, x in zip(arguments, inputs, strict=True) if _is_float(x)
        ]
        results = _tuple(function(*arguments))
        torch.autograd.backward(results, [self.put(g) for g in cotangents])
        gradients = [torch.zeros_like(x) if x.grad is None else x.grad for x in leaves]
        return tuple(map(self.get, results)), tuple(map(self.get, gradients))

    def gradients(
        self,
        function: Any,
        inputs: Sequence[np.ndarray | None],
        cotangents: Sequence[np.ndarray],
        *options: object,
    ) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        """Apply a Function to inputs and options; differentiate sum(cotangent * result) over its
        results.  Returns (results, the gradient of each float input); inputs may be None."""
        if torch is not None:
            return self._torch_gradients(
                lambda *arrays: function.apply(*arrays, *options), inputs, cotangents
            )
        context = _Context()
        results = _tuple(function.forward(context, *inputs, *options))
        gradients = _tuple(function.backward(context, *cotangents))
        return results, tuple(g for g, x in zip(gradients, inputs, strict=False) if _is_float(x))

    def reference_gradients(
        self,
        reference: Callable[..., Any],
        inputs: Sequence[np.ndarray | None],
        cotangents: Sequence[np.ndarray],
    ) -> tuple[tuple[np.ndarray, ...], tuple[np.ndarray, ...]]:
        """Return what gradients() returns, in float64 and from the definition of the results alone.

        reference(xp, *inputs) computes them with the functions of xp, numpy or torch; numpy
        arrays have one more axis in front, whose length is 1 or that of the others.  With torch
        the gradients are autograd's.  Without, each element is moved by an imaginary step, which
        leaves its derivative in the imaginary part, right to float64's last digits.
        """
        inputs = [x.astype(np.float64) if _is_float(x) else x for x in inputs]
        cotangents = [g.astype(np.float64) for g in cotangents]
        if torch is not None:
            return self._torch_gradients(
                lambda *arrays: reference(torch, *arrays), inputs, cotangents
            )
        one = [None if x is None else x[None] for x in inputs]
        results = tuple(r[0] for r in _tuple(reference(np, *one)))
        floats = [k for k, x in enumerate(inputs) if _is_float(x)]
        return results, tuple(_imaginary_steps(reference, one, k, cotangents) for k in floats)


def _imaginary_steps(
    reference: Callable[..., Any],
    one: list[np.ndarray | None],
    k: int,
    cotangents: list[np.ndarray],
) -> np.ndarray:
    size, step = one[k].size, 1e-40
    moved = one[k].astype(complex).repeat(size, 0)
    moved.reshape(size, size)[np.diag_indices(size)] += step * 1j
    results = _tuple(reference(np, *one[:k], moved, *one[k + 1 :]))
    total = np.zeros(size)
    for result, cotangent in zip(results, cotangents, strict=True):
        total += (result.imag * cotangent).sum(tuple(range(1, result.ndim)))
    return (total / step).reshape(one[k].shape[1:])


def error(got: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference, relative to the expected value or, where that is small, to
    the root mean square of them all (to 1 if they are all zero).  Equal infinities do not differ;
    the error of NaN and of a wrong shape is infinite."""
    if got.shape != expected.shape:
        return math.inf
    got, expected = got.astype(np.float64), expected.astype(np.float64)
    finite = expected[np.isfinite(expected)]
    scale = np.maximum(np.abs(expected), np.sqrt(np.mean(finite**2)) if finite.any() else 1)
    with np.errstate(invalid="ignore"):
        relative = np.where(got == expected, 0, np.abs(got - expected) / scale)
    return float(np.nan_to_num(relative, nan=math.inf, posinf=math.inf).max(initial=0))


def _arguments(about: str, argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=about.split("\n")[0])
    parser.add_argument("--simulator", action="store_true", help="do not use the GPU")
    parser.add_argument("--lengths", type=int, nargs="+", help="of the sequences")
    return parser.parse_args(argv)


def main(
    about: str,
    check: Callable[[Place, int, int], Iterable[Comparison]],
    measure: Callable[[Place], Iterable[tuple[str, Callable[[], object]]]],
    block: int,
    tolerance: float = 1e-5,
    argv: Sequence[str] | None = None,
) -> int:
    """Run an example and print what it did; returns the exit status, 1 if a value is wrong.

    about: the example's docstring, of which the first line is printed.
    check(place, length, block): the comparisons for sequences of that length in tiles of `block`.
    measure(place): names and functions to time on a GPU.
    block: the tile on a GPU; in the simulator it has SIMULATED_BLOCK steps.
    tolerance: the largest error() that passes.
    """
    arguments = _arguments(about, argv)
    place = Place(arguments.simulator)
    if not place.gpu:
        block = SIMULATED_BLOCK
    print(about.split("\n")[0], f"running {'on' if place.gpu else 'in'} {place.name}", sep="\n")
    longest = 4113 if place.gpu else 4 * block + 17
    worst, where = 0.0, "nowhere"
    for length in arguments.lengths or (0, 1, block, block + 1, 3 * block - 1, longest):
        comparisons = check(place, length, block)
        errors = {name: error(got, expected) for name, got, expected in comparisons}
        print(f"length {length:5}, errors:", ", ".join(f"{n} {e:.1e}" for n, e in errors.items()))
        for name, value in errors.items():
            if value > worst:
                worst, where = value, f"{name}, length {length}"
    if place.gpu:
        for name, function in measure(place):
            print(f"{do_bench(function, return_mode='median') * 1e3:8.0f} us  {name}")
    passed = worst <= tolerance
    verdict = "passed" if passed else "FAILED"
    print(f"{verdict}: largest error {worst:.1e} ({where}), allowed {tolerance:.0e}")
    return 0 if passed else 1
