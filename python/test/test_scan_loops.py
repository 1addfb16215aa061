"""Loops whose scans are worth another layout (lib/Transforms/ChooseScanLayout.cpp): what is carried
from round to round, by which ops and by how many loops.

Values are integers that wrap around, or floats in which every step is exact, so results have to be
equal bit for bit.
"""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
import triton
import triton.language as tl
from scan_values import check, fold
from test_scan_programs import RNG, add, affine, affine_numpy, integers, scanned
from triton.tools.ptx_sim import compile_kernel

TILES = [(1, 256), (4, 64), (32, 32), (64, 8), (2, 512), (16, 128)]


def check_tiles(kernel, inputs, reference, counts, outputs=None, **options):
    """As check(), for a kernel that gets tiles [T, D] and how often its loops run."""
    rows, columns = inputs[0].shape
    check(
        kernel,
        inputs,
        reference,
        axis=1,
        outputs=inputs if outputs is None else outputs,
        scalars=counts,
        constexprs={"T": rows, "D": columns},
        **options,
    )


@triton.jit
def carried(x, w, out, other, n, T: tl.constexpr, D: tl.constexpr, REVERSE: tl.constexpr):
    # Loop-carried scans between elementwise ops, with a value from outside and one used outside
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    v = tl.load(x + i)
    weight = tl.load(w + i)
    total = tl.zeros([T, D], tl.int32)
    for k in range(n):
        v = tl.associative_scan(v * 3 + weight, 1, add, reverse=REVERSE)
        v = tl.where(v > 0, v ^ k, v + weight)
        total += v >> 4
    tl.store(out + i, v)
    tl.store(other + i, total)


def carried_reference(n):
    def reference(x, w, reverse):
        total = np.zeros_like(x)
        for k in range(n):
            x = scanned(x * np.int32(3) + w, 1, reverse)
            x = np.where(x > 0, x ^ np.int32(k), x + w)
            total = total + (x >> 4)
        return [x, total]

    return reference


@pytest.mark.parametrize("shape", TILES, ids=str)
@pytest.mark.parametrize("num_warps", [1, 4, 8])
@pytest.mark.parametrize("n", [0, 9])
def test_loop_carried(shape, num_warps, n):
    x, w = integers(*shape), integers(*shape, seed=1)
    check_tiles(carried, [x, w], carried_reference(n), [n], num_warps=num_warps)


@triton.jit
def carried_affine(a, b, out_a, out_b, n, T: tl.constexpr, D: tl.constexpr, REVERSE: tl.constexpr):
    # A thread's total takes from one word (two int16) to four (int64)
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    v, w = tl.load(a + i), tl.load(b + i)
    for _ in range(n):
        v, w = tl.associative_scan((v, w), 1, affine, reverse=REVERSE)
        w = w * 5 + v
    tl.store(out_a + i, v)
    tl.store(out_b + i, w)


@pytest.mark.parametrize("shape", [(1, 256), (1, 512), (2, 128), (4, 256)], ids=str)
@pytest.mark.parametrize("num_warps", [4, 8])
@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.int64])
def test_loop_carried_pairs(shape, num_warps, dtype):
    def reference(a, b, reverse):
        for _ in range(3):
            a, b = fold(affine_numpy, [a, b], 1, reverse)
            b = b * dtype(5) + a
        return [a, b]

    a, b = (integers(*shape, seed=seed, dtype=dtype) for seed in range(2))
    check_tiles(carried_affine, [a, b], reference, [3], num_warps=num_warps)


@triton.jit
def crossing(x, out, n, T: tl.constexpr, D: tl.constexpr, REVERSE: tl.constexpr):
    # Scans along both axes of one carried tensor, and a second tensor scanned along one only
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    v = tl.load(x + i)
    u = v * 5
    for _ in range(n):
        v = tl.associative_scan(v, 0, add, reverse=REVERSE) + u
        v = tl.associative_scan(v, 1, add, reverse=REVERSE) - 7
        u = tl.associative_scan(u, 1, add, reverse=REVERSE) ^ 11
    tl.store(out + i, v)


@pytest.mark.parametrize("shape", TILES, ids=str)
@pytest.mark.parametrize("num_warps", [1, 4])
def test_two_axes_in_one_loop(shape, num_warps):
    x = integers(*shape)

    def reference(x, reverse):
        v, u = x, x * np.int32(5)
        for _ in range(3):
            v = scanned(v, 0, reverse) + u
            v = scanned(v, 1, reverse) - np.int32(7)
            u = scanned(u, 1, reverse) ^ np.int32(11)
        return [v]

    check_tiles(
        crossing,
        [x],
        reference,
        [3],
        num_warps=num_warps,
        mirrored=False,  # two axes
    )


@triton.jit
def nested(x, out, mid, n, m, T: tl.constexpr, D: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    v = tl.load(x + i)
    row = tl.zeros([D], tl.int32)
    for k in range(n):
        v = tl.associative_scan(v, 1, add, reverse=REVERSE) + k
        u = v
        for j in range(m):
            u = tl.associative_scan(u - j, 1, add, reverse=REVERSE)
            if j == 1:
                u = u ^ v
        # Used by a reduction, by the outer loop and by a store
        row += tl.sum(u, 0)
        v = v + (u >> 1)
        tl.store(mid + k * T * D + i, u)
    tl.store(out + i, v + row[None, :])


@pytest.mark.parametrize("shape", [(4, 64), (2, 512), (64, 8)], ids=str)
@pytest.mark.parametrize("num_warps", [1, 4])
def test_loop_in_a_loop(shape, num_warps):
    x = integers(*shape)
    n, m = 2, 3

    def reference(x, reverse):
        v, row, mid = x, np.zeros_like(x[0]), []
        for k in range(n):
            v = scanned(v, 1, reverse) + np.int32(k)
            u = v
            for j in range(m):
                u = scanned(u - np.int32(j), 1, reverse)
                if j == 1:
                    u = u ^ v
            row = row + u.sum(0, dtype=np.int32)
            v = v + (u >> 1)
            mid.append(u)
        return [v + row, np.stack(mid)]

    check_tiles(
        nested,
        [x],
        reference,
        [n, m],
        outputs=[x, np.stack([x] * n)],
        num_warps=num_warps,
        mirrored=False,  # the second output has another rank
    )


@triton.jit
def doubly_carried(x, y, out, other, n, m, T: tl.constexpr, D: tl.constexpr, REVERSE: tl.constexpr):
    # The inner loop's values are the outer loop's, and one is from outside of both.
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    v, w = tl.load(x + i), tl.load(y + i)
    total = tl.zeros([T, D], tl.int32)
    for k in range(n):
        u = v ^ k
        for j in range(m):
            u = tl.associative_scan(u + w, 1, add, reverse=REVERSE)
            total += u * j
        v = tl.associative_scan(v - u, 1, add, reverse=REVERSE)
    tl.store(out + i, v)
    tl.store(other + i, total)


@pytest.mark.parametrize("shape", [(4, 64), (2, 512), (64, 8)], ids=str)
@pytest.mark.parametrize("num_warps", [1, 4])
def test_values_of_two_loops(shape, num_warps):
    def reference(v, w, reverse):
        total = np.zeros_like(v)
        for k in range(3):
            u = v ^ np.int32(k)
            for j in range(2):
                u = scanned(u + w, 1, reverse)
                total = total + u * np.int32(j)
            v = scanned(v - u, 1, reverse)
        return [v, total]

    x, y = integers(*shape), integers(*shape, seed=1)
    check_tiles(doubly_carried, [x, y], reference, [3, 2], num_warps=num_warps)


@triton.jit
def swapped(x, y, out_x, out_y, n, T: tl.constexpr, D: tl.constexpr, REVERSE: tl.constexpr):
    # Carried variables that change places, one that never changes, and one that only starts equal
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    a, b = tl.load(x + i), tl.load(y + i)
    start = a
    c = a
    for _ in range(n):
        s = tl.associative_scan(a, 1, add, reverse=REVERSE)
        a, b = b, s + start
        c = c * 3
    tl.store(out_x + i, a + c)
    tl.store(out_y + i, b)


@triton.jit
def pair_carried(x, y, out_x, out_y, n, T: tl.constexpr, D: tl.constexpr, REVERSE: tl.constexpr):
    # Operands of 64 and 16 bits, and conversions between elements' types in the loop
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    a, b = tl.load(x + i).to(tl.int16), tl.load(y + i).to(tl.int64)
    for _ in range(n):
        a, b = tl.associative_scan((a, b), 1, both, reverse=REVERSE)
        a = (a.to(tl.int32) + 40000).to(tl.int16)
        b = b * 3 + a.to(tl.int64)
    tl.store(out_x + i, a.to(tl.int32))
    tl.store(out_y + i, b.to(tl.int32))


@triton.jit
def both(a1, b1, a2, b2):
    return a1 + a2, b1 ^ b2


@pytest.mark.parametrize("shape", TILES, ids=str)
@pytest.mark.parametrize("num_warps", [1, 4])
class TestCarriedVariables:
    def test_swapped(self, shape, num_warps):
        def reference(x, y, reverse):
            a, b, c = x, y, x
            for _ in range(5):
                a, b, c = b, scanned(a, 1, reverse) + x, c * np.int32(3)
            return [a + c, b]

        x, y = integers(*shape), integers(*shape, seed=1)
        check_tiles(swapped, [x, y], reference, [5], num_warps=num_warps)

    def test_pair_of_two_widths(self, shape, num_warps):
        def reference(x, y, reverse):
            a, b = x.astype(np.int16), y.astype(np.int64)
            for _ in range(3):
                a, b = fold(lambda a1, b1, a2, b2: (a1 + a2, b1 ^ b2), [a, b], 1, reverse)
                a = (a.astype(np.int32) + 40000).astype(np.int16)
                b = b * 3 + a.astype(np.int64)
            return [a.astype(np.int32), b.astype(np.int32)]

        x, y = integers(*shape), integers(*shape, seed=1)
        check_tiles(pair_carried, [x, y], reference, [3], num_warps=num_warps)


@triton.jit
def conditional(x, out, n, T: tl.constexpr, D: tl.constexpr, REVERSE: tl.constexpr):
    # The carried tensor is scanned on some turns only, summed on others, and its address is carried
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    v = tl.load(x + i)
    place = out + i
    for k in range(n):
        v = tl.associative_scan(v, 1, add, reverse=REVERSE)
        if k % 3 == 1:
            v = tl.associative_scan(v + 1, 0, add, reverse=REVERSE)
        elif k % 3 == 2:
            v = v - tl.sum(v, 1)[:, None]
        tl.store(place, v)
        place += T * D


@triton.jit
def masked_addresses(x, out, n, T: tl.constexpr, D: tl.constexpr, REVERSE: tl.constexpr):
    # The scans' results are addresses and masks of loads in the loop, and zeros are carried
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    v = tl.zeros([T, D], tl.int32)
    for k in range(n):
        v = tl.associative_scan(v + 1, 1, add, reverse=REVERSE)
        mask = v % 3 != k
        v = v + tl.load(x + v % (T * D), mask=mask, other=-5)
    tl.store(out + i, v)


@pytest.mark.parametrize("shape", TILES, ids=str)
@pytest.mark.parametrize("num_warps", [1, 4])
class TestUsesInLoops:
    def test_conditional(self, shape, num_warps):
        n = 6

        def reference(x, reverse):
            v, stored = x, []
            for k in range(n):
                v = scanned(v, 1, reverse)
                if k % 3 == 1:
                    v = scanned(v + np.int32(1), 0, reverse)
                elif k % 3 == 2:
                    v = v - v.sum(1, keepdims=True, dtype=np.int32)
                stored.append(v)
            return [np.stack(stored)]

        x = integers(*shape)
        check_tiles(
            conditional,
            [x],
            reference,
            [n],
            outputs=[np.stack([x] * n)],
            num_warps=num_warps,
            mirrored=False,  # the output has another rank
        )

    def test_addresses(self, shape, num_warps):
        def reference(x, reverse):
            v = np.zeros_like(x)
            flat = x.reshape(-1)
            for k in range(3):
                v = scanned(v + np.int32(1), 1, reverse)
                # As in C, the remainder has the sign of the dividend.
                mask = np.fmod(v, 3) != k
                v = v + np.where(mask, flat[np.fmod(v, x.size)], np.int32(-5))
            return [v]

        x = np.abs(integers(*shape) % 100)
        check_tiles(
            masked_addresses,
            [x],
            reference,
            [3],
            num_warps=num_warps,
            mirrored=False,  # x is looked up by address
        )


@triton.jit
def in_while_loop(x, out, n, m, T: tl.constexpr, D: tl.constexpr, REVERSE: tl.constexpr):
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    v = tl.load(x + i)
    while n > 0:
        for k in range(m):
            v = tl.associative_scan(v + k, 1, add, reverse=REVERSE)
        v = v ^ 5
        n -= 1
    tl.store(out + i, v)


@triton.jit
def float_carried(x, out, n, T: tl.constexpr, D: tl.constexpr, REVERSE: tl.constexpr):
    # Floats with math ops; the doubled maximum is exact
    i = tl.arange(0, T)[:, None] * D + tl.arange(0, D)[None, :]
    v = tl.load(x + i)
    for _ in range(n):
        v = tl.associative_scan(v, 1, greatest, reverse=REVERSE)
        v = tl.abs(v.to(tl.bfloat16).to(tl.float32)) * 2.0 - tl.floor(tl.sqrt(v * v))
    tl.store(out + i, v)


@triton.jit
def greatest(a, b):
    return tl.maximum(a, b)


@pytest.mark.parametrize("shape", TILES, ids=str)
def test_loop_in_a_while(shape):
    def reference(x, reverse):
        for _ in range(3):
            for k in range(2):
                x = scanned(x + np.int32(k), 1, reverse)
            x = x ^ np.int32(5)
        return [x]

    x = integers(*shape)
    check_tiles(in_while_loop, [x], reference, [3, 2])


@pytest.mark.parametrize("shape", TILES, ids=str)
def test_floats_with_math(shape):
    def reference(x, reverse):
        for _ in range(3):
            x = fold(np.maximum, [x], 1, reverse)[0]
            x = np.abs(x) * 2.0 - np.floor(np.sqrt(x * x))
        return [x]

    x = RNG(3).integers(-128, 128, shape).astype(np.float32)
    check_tiles(float_carried, [x], reference, [3])


def layouts_of_scans(kernel, arrays, constexprs, num_warps) -> list[str]:
    """Return the names of the layouts that choose_scan_layout gives a kernel's scans."""
    ttgir = compile_kernel(kernel, arrays, constexprs, num_warps=num_warps)[0].asm["ttgir"]
    command = [sys.executable, "-m", "triton.tools.scan_opt", "--choose-scan-layout", "-"]
    done = subprocess.run(command, input=ttgir, capture_output=True, text=True, check=True)
    # The type of a scan stands at the end of its region.
    return re.findall(r"\}\) : \(tensor<\w+, #(\w+)>", done.stdout)


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize(
    ("kernel", "pointers", "counts"),
    [
        (carried, 4, ["n"]),
        (crossing, 2, ["n"]),
        (doubly_carried, 4, ["n", "m"]),
        (swapped, 4, ["n"]),
        (pair_carried, 4, ["n"]),
        (float_carried, 2, ["n"]),
    ],
)
def test_layouts_are_chosen(kernel, pointers, counts, num_warps):
    """The loops above are worth their name: with enough turns their scans get another layout."""
    arrays = [np.zeros(8, np.float32 if kernel is float_carried else np.int32)] * pointers
    constexprs = {"T": 32, "D": 32, "REVERSE": True} | dict.fromkeys(counts, 4096)
    names = layouts_of_scans(kernel, arrays, constexprs, num_warps)
    assert all(name.startswith("linear") for name in names), names


@pytest.mark.parametrize("num_warps", [1, 4])
def test_many_turns(num_warps):
    """As many turns, known to the compiler, as a change of layouts pays for."""
    x, w = integers(32, 32), integers(32, 32, seed=1)
    constexprs = {"T": 32, "D": 32, "n": 60}
    (name,) = layouts_of_scans(carried, [x, w, x, x], constexprs | {"REVERSE": True}, num_warps)
    assert name.startswith("linear")
    check(
        carried,
        [x, w],
        carried_reference(60),
        axis=1,
        outputs=[x, x],
        constexprs=constexprs,
        num_warps=num_warps,
    )
