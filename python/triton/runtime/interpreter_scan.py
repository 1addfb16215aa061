"""tl.associative_scan in the interpreter: the sequential fold, a slice of all rows at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

import numpy as np
import triton.language as tl
from triton.language import scan_checks

# numpy's own sequential folds, where they compute what Triton does.
_ACCUMULATE = {"_sum_combine": np.add, "_prod_combine": np.multiply}

_slices_are_scalars = False


class _RowsDisagree(Exception):
    """A combine function branches on a value that differs from row to row."""


def check_condition(data: np.ndarray) -> None:
    """Refuse the truth value of a slice while a combine function takes slices for scalars."""
    if _slices_are_scalars and data.size != 1:
        raise _RowsDisagree


@contextlib.contextmanager
def _taking_slices_for_scalars(on: bool) -> Iterator[None]:
    global _slices_are_scalars
    before, _slices_are_scalars = _slices_are_scalars, on
    try:
        yield
    finally:
        _slices_are_scalars = before


def scan(
    input: object, axis: object, combine_fn: object, reverse: object = False, **_frontend: object
) -> object:
    """Scan a tensor, or a tuple of tensors of one shape, along `axis`.

    Returns a tensor, or a tuple of tensors, of the operands' shape and types: in the direction,
    element by element, combine_fn(*accumulated, *next).  Raises what check_arguments() and
    check_results() of scan_checks raise.
    """
    axis, combine_fn, reverse = scan_checks.check_arguments(input, axis, combine_fn, reverse)
    operands = (input,) if isinstance(input, tl.core.tensor) else tuple(input)
    arrays = [_rows_first(t.handle.data, axis, reverse) for t in operands]
    types = [t.type.scalar for t in operands]

    ufunc = _ufunc(combine_fn, types)
    if ufunc is not None:
        with np.errstate(over="ignore"):
            folded = [ufunc.accumulate(x, axis=0, dtype=x.dtype) for x in arrays]
    else:
        folded = _fold(combine_fn, arrays, types)

    results = []
    for operand, data in zip(operands, folded, strict=True):
        rows_first = np.moveaxis(operand.handle.data, axis, 0).shape
        data = (data[::-1] if reverse else data).reshape(rows_first)
        data = np.ascontiguousarray(np.moveaxis(data, 0, axis))
        results.append(tl.core.tensor(_handle(data, operand.type.scalar), operand.type))
    return results[0] if isinstance(input, tl.core.tensor) else tuple(results)


def _rows_first(data: np.ndarray, axis: int, reverse: bool) -> np.ndarray:
    """Return a view with `axis` first, in the scan's direction, and one axis of all rows."""
    moved = np.moveaxis(data, axis, 0)
    moved = moved.reshape(moved.shape[0], -1)
    return moved[::-1] if reverse else moved


def _handle(data: np.ndarray, scalar_type: tl.dtype) -> object:
    from .interpreter import TensorHandle

    return TensorHandle(data, scalar_type)


def _ufunc(combine_fn: object, types: list) -> np.ufunc | None:
    ufunc = _ACCUMULATE.get(getattr(combine_fn, "__name__", ""))
    if ufunc is None or getattr(tl.standard, combine_fn.__name__) is not combine_fn:
        return None
    # numpy adds bools by `or`, and knows no bf16 or fp8.
    numbers = (tl.float16, tl.float32, tl.float64)
    is_number = types[0] in numbers or (types[0].is_int() and types[0] != tl.int1)
    return ufunc if is_number else None


def _fold(combine_fn: object, arrays: list, types: list) -> list:
    function = _python_function(combine_fn)
    if arrays[0].shape[1] == 1:
        return _fold_rows(function, combine_fn, arrays, types, slices=False)
    try:
        return _fold_rows(function, combine_fn, arrays, types, slices=True)
    except _RowsDisagree:
        rows = [
            _fold_rows(function, combine_fn, [x[:, r : r + 1] for x in arrays], types, slices=False)
            for r in range(arrays[0].shape[1])
        ]
        return [np.concatenate(columns, axis=1) for columns in zip(*rows, strict=True)]


def _fold_rows(
    function: Callable, combine_fn: object, arrays: list, types: list, slices: bool
) -> list:
    """Fold (n, rows) arrays; the function takes a slice (rows,) of each for its scalars."""

    def scalars(row: int) -> list:
        values = zip(arrays, types, strict=True)
        return [tl.core.tensor(_handle(x[row], t), t) for x, t in values]

    results = [x.copy() for x in arrays]
    with _taking_slices_for_scalars(slices), np.errstate(over="ignore", invalid="ignore"):
        accumulated = scalars(0)
        for row in range(1, arrays[0].shape[0]):
            returned = function(*accumulated, *scalars(row))
            if row == 1:
                scan_checks.check_results(combine_fn, returned, types)
            values = returned if isinstance(returned, (tuple, list, tl.core.tuple)) else [returned]
            for result, value in zip(results, values, strict=True):
                result[row] = value.handle.data
            accumulated = [
                tl.core.tensor(_handle(result[row], t), t)
                for result, t in zip(results, types, strict=True)
            ]
    return results


def _python_function(combine_fn: object) -> Callable:
    """Return the function whose statements have the meaning that Triton gives them."""
    # What is rewritten is compiled anew, which loses the variables of an enclosing function.
    if combine_fn.fn.__closure__ or not hasattr(combine_fn, "rewrite"):
        return combine_fn.fn
    return combine_fn.rewrite()
