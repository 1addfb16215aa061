"""The checks of tl.associative_scan's arguments, which compiler and interpreter share."""

from __future__ import annotations

import inspect


def _unwrap(value: object) -> object:
    from .core import constexpr

    return value.value if isinstance(value, constexpr) else value


def _describe(value: object) -> str:
    from .core import tensor
    from .core import tuple as tl_tuple

    value = _unwrap(value)
    if isinstance(value, tensor):
        return f"a value known only at run time, of type {value.type}"
    is_tuple = isinstance(value, (tuple, list, tl_tuple))
    if is_tuple and any(isinstance(part, tensor) for part in value):
        return f"a tuple of {' and '.join(_describe(part) for part in value)}"
    kind = type(value)
    # Not the address of a function; and NumPy calls its types as Python does.
    text = getattr(value, "__name__", None) or repr(value)
    module = "numpy." if kind.__module__ == "numpy" else ""
    return f"{text} of type {module}{kind.__name__}"


def check_arguments(
    input: object, axis: object, combine_fn: object, reverse: object
) -> tuple[int, object, bool]:
    """Check the arguments of a scan and return (axis, combine_fn, reverse) without constexpr
    wrappers.

    `input` is a tensor or a tuple of tensors of one shape.  The returned axis is in [0, rank).
    Raises TypeError or ValueError, naming the argument, what was given and what is allowed.
    """
    from .core import tensor

    operands = [input] if isinstance(input, tensor) else list(_operands(input))
    for position, operand in enumerate(operands):
        if not isinstance(operand, tensor):
            raise TypeError(
                f"associative_scan: input must be a tensor or a tuple of tensors, "
                f"operand {position} is {_describe(operand)}"
            )
    shapes = [tuple(int(size) for size in operand.shape) for operand in operands]
    if not shapes[0]:
        raise ValueError("associative_scan: input must have at least one dimension, got a scalar")
    for position, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise ValueError(
                f"associative_scan: all operands of input must have the same shape, operand 0 has "
                f"{shapes[0]} and operand {position} has {shape}; use tl.broadcast_to first"
            )
    reverse = _unwrap(reverse)
    if not isinstance(reverse, bool):
        raise TypeError(
            f"associative_scan: reverse must be True or False, known at compile time, got "
            f"{_describe(reverse)}; a kernel argument that decides it must be a tl.constexpr bool"
        )
    combine_fn = _unwrap(combine_fn)
    if not callable(getattr(combine_fn, "fn", None)):
        raise TypeError(
            f"associative_scan: combine_fn must be a function marked with @triton.jit, got "
            f"{_describe(combine_fn)}"
        )
    _check_parameters(combine_fn, len(operands))
    return _check_axis(axis, len(shapes[0])), combine_fn, reverse


def _operands(input: object) -> object:
    from .core import tuple as tl_tuple

    if not isinstance(input, (tuple, list, tl_tuple)):
        raise TypeError(
            "associative_scan: input must be a tensor or a tuple of tensors, got "
            f"{_describe(input)}"
        )
    if len(input) == 0:
        raise ValueError(
            "associative_scan: input must have at least one operand, got an empty tuple"
        )
    return input


def _check_parameters(combine_fn: object, operands: int) -> None:
    signature = inspect.signature(combine_fn.fn)
    try:
        signature.bind(*range(2 * operands))
    except TypeError:
        name = getattr(combine_fn, "__name__", str(combine_fn))
        raise TypeError(
            f"associative_scan: combine_fn {name} must take {2 * operands} arguments, for each of "
            f"{operands} operand(s) what is accumulated and then for each the next element; it "
            f"takes {signature}"
        ) from None


def _check_axis(axis: object, rank: int) -> int:
    axis = _unwrap(axis)
    allowed = f"axis must be an int in [{-rank}, {rank - 1}] for an input of rank {rank}"
    if isinstance(axis, bool) or not isinstance(axis, int):
        hint = "; a scan has no default axis" if axis is None else ""
        raise TypeError(
            f"associative_scan: {allowed}, known at compile time, got {_describe(axis)}{hint}"
        )
    if not -rank <= axis < rank:
        raise ValueError(f"associative_scan: {allowed}, got {axis}")
    return axis % rank


def check_results(combine_fn: object, results: object, expected: list) -> None:
    """Check that `combine_fn` returned one scalar for each operand, with the operands' types.

    Raises TypeError, naming combine_fn, the operand and both types.
    """
    from .core import tensor
    from .core import tuple as tl_tuple

    name = getattr(combine_fn, "__name__", str(combine_fn))
    returned = list(results) if isinstance(results, (tuple, list, tl_tuple)) else [results]
    if len(returned) != len(expected):
        raise TypeError(
            f"associative_scan: combine_fn {name} must return {len(expected)} value(s), one for "
            f"each operand, it returns {len(returned)}"
        )
    for position, (value, wanted) in enumerate(zip(returned, expected, strict=True)):
        if not isinstance(value, tensor):
            raise TypeError(
                f"associative_scan: combine_fn {name} must return {wanted} for operand {position}, "
                f"it returns {_describe(value)}"
            )
        if value.type != wanted:
            raise TypeError(
                f"associative_scan: combine_fn {name} must return {wanted} for operand {position}, "
                f"it returns {value.type}; convert it with .to({wanted})"
            )


def check_verified(verified: bool, operands: list) -> None:
    """Check that the operation of a scan in Gluon is valid, of which the layouts are left.

    Raises TypeError, naming every operand's layout.
    """
    if not verified:
        layouts = ", ".join(str(operand.type.layout) for operand in operands)
        raise TypeError(
            f"associative_scan: all operands of input must have the same layout, whose warps do "
            f"not move in two dimensions at once, got {layouts}; use gl.convert_layout first"
        )
