"""Products of positions, in many layouts: what is equal along a dimension is computed once.

Each element's number is the sum of a product for each dimension, which is constant along all the
others.  A register that is taken for another loses an element: its number is stored where another
one belongs.  The source base's Triton had this fault (patches/source-upstream/equal-registers).
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scan_values import compile_ttgir, like
from triton.tools.ptx_sim import run_compiled

# Sizes per thread, lanes and warps; 32 lanes and 4 warps each.
PLANES = [
    ([1, 4], [4, 8], [4, 1]),
    ([4, 1], [8, 4], [1, 4]),
    ([2, 2], [4, 8], [2, 2]),
    ([2, 4], [8, 4], [2, 2]),
    ([4, 2], [4, 8], [1, 4]),
]
CUBES = [
    ([2, 2, 1], [4, 2, 4], [1, 2, 2]),
    ([1, 2, 2], [2, 4, 4], [2, 2, 1]),
    ([2, 2, 2], [8, 2, 2], [1, 1, 4]),
]


def numbering(name: str, shape: tuple[int, ...]) -> str:
    """Return TTGIR that stores each element's number at %out + that number, in the layout #name."""
    rank, dims = len(shape), "x".join(map(str, shape))
    kind = f"tensor<{dims}xi32, #{name}>"
    lines, total = [], None
    for d, n in enumerate(shape):
        others = [other for other in range(rank) if other != d]
        # The range's layout is a slice along all the other dimensions, the last one first.
        encodings = [f"#{name}"]
        for other in reversed(others):
            encodings.append(f"#ttg.slice<{{dim = {other}, parent = {encodings[-1]}}}>")
        here, have = f"%{name}{d}", [n]
        old = f"tensor<{n}xi32, {encodings[-1]}>"
        lines.append(f"{here} = tt.make_range {{start = 0 : i32, end = {n} : i32}} : {old}")
        for encoding, other in zip(encodings[-2::-1], others, strict=True):
            have.insert(other, 1)
            new = f"tensor<{'x'.join(map(str, have))}xi32, {encoding}>"
            next_one = f"{here}_{other}"
            operands = f"{here} {{axis = {other} : i32}} : {old} -> {new}"
            lines.append(f"{next_one} = tt.expand_dims {operands}")
            here, old = next_one, new
        stride = int(np.prod(shape[d + 1 :]))
        wide, factor, product = (f"%{word}_{name}{d}" for word in ("wide", "factor", "product"))
        lines.append(f"{wide} = tt.broadcast {here} : {old} -> {kind}")
        lines.append(f"{factor} = arith.constant dense<{stride}> : {kind}")
        lines.append(f"{product} = arith.muli {wide}, {factor} : {kind}")
        if total:
            lines.append(f"%sum_{name}{d} = arith.addi {total}, {product} : {kind}")
        total = f"%sum_{name}{d}" if total else product
    pointers = f"tensor<{dims}x!tt.ptr<i32>, #{name}>"
    lines.append(f"%splat_{name} = tt.splat %out_{name} : !tt.ptr<i32> -> {pointers}")
    lines.append(f"%at_{name} = tt.addptr %splat_{name}, {total} : {pointers}, {kind}")
    lines.append(f"tt.store %at_{name}, {total} : {pointers}")
    return "\n    ".join(lines)


@pytest.mark.parametrize(
    ("layouts", "shapes"),
    [
        (PLANES, [(64, 32), (32, 64), (16, 16), (128, 8)]),
        (CUBES, [(16, 8, 16), (4, 32, 8)]),
    ],
    ids=["planes", "cubes"],
)
def test_numbers(layouts, shapes):
    orders = list(itertools.permutations(range(len(shapes[0]))))
    attributes, bodies, wanted = [], [], []
    for k, (layout, order, shape) in enumerate(itertools.product(layouts, orders, shapes)):
        size, lanes, warps = layout
        attributes.append(
            f"#l{k} = #ttg.blocked<{{sizePerThread = {size}, threadsPerWarp = {lanes}, "
            f"warpsPerCTA = {warps}, order = {list(order)}}}>"
        )
        bodies.append(numbering(f"l{k}", shape))
        wanted.append(np.arange(np.prod(shape), dtype=np.int32))
    arguments = ", ".join(f"%out_l{k}: !tt.ptr<i32>" for k in range(len(bodies)))
    text = "\n".join(attributes) + (
        '\nmodule attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, '
        '"ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {\n'
        f"  tt.func public @kernel({arguments}) {{\n    "
        + "\n    ".join(bodies)
        + "\n    tt.return\n  }\n}\n"
    )
    got = [like(x) for x in wanted]
    run_compiled(compile_ttgir(text), 1, got)
    for k, (mine, right) in enumerate(zip(got, wanted, strict=True)):
        bad = np.flatnonzero(mine != right)
        assert not bad.size, f"{attributes[k]}: {len(bad)} wrong, first {bad[0]}: {mine[bad[0]]}"
