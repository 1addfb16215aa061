"""How the compiler splits a scan: compiles a kernel, reads its remark and the tensor's layout."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import triton
from triton.backends.compiler import GPUTarget
from triton.experimental.gluon.language import BlockedLayout, DistributedLinearLayout
from triton.experimental.gluon.language._layouts import DistributedLayout

REMARK = re.compile(
    r"(?P<direction>forward|reverse) scan along axis (?P<axis>\d+) of "
    r"'tensor<(?P<shape>[\dx]+)x\w+, (?P<encoding>#ttg\..*)>'; "
    r"axis bits, finest first: (?P<runs>.*); a thread executes (?P<shuffles>\d+) shuffles, "
    r"(?P<exchanges>\d+) exchanges, (?P<combines>\d+) combines"
)


@dataclass(frozen=True)
class Place:
    """Where an element is: its register, lane and warp."""

    register: int
    lane: int
    warp: int


@dataclass(frozen=True)
class Plan:
    """What the compiler reported of one scan.

    runs: (owner, bits) of the axis, finest first; places: where each position along the axis is,
    of the first row; rows: the rows that a thread has elements of.
    """

    reverse: bool
    shape: tuple[int, ...]
    axis: int
    encoding: str
    runs: tuple[tuple[str, int], ...]
    places: tuple[Place, ...]
    rows: int
    shuffles: int
    exchanges: int
    combines: int


@contextmanager
def _captured_stderr() -> Iterator[list[str]]:
    """What the process writes to file descriptor 2, as one string in the list, afterwards."""
    texts: list[str] = []
    with tempfile.TemporaryFile() as file:
        saved = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield texts
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            file.seek(0)
            texts.append(file.read().decode())


def layout_of(encoding: str, shape: list[int]) -> DistributedLayout:
    """The layout of a #ttg.blocked or #ttg.linear attribute.  Raises ValueError for another."""

    def numbers(name: str) -> list:
        return json.loads(re.search(rf"\b{name} = (\[.*?\])(?=, \w+ =|\}})", encoding)[1])

    if encoding.startswith("#ttg.linear<"):
        return DistributedLinearLayout(*map(numbers, ("register", "lane", "warp", "block")), shape)
    if encoding.startswith("#ttg.blocked<"):
        names = ("sizePerThread", "threadsPerWarp", "warpsPerCTA", "order")
        return BlockedLayout(*map(numbers, names))
    raise ValueError(f"no drawing is known of {encoding}")


def places_of(encoding: str, shape: list[int]) -> np.ndarray:
    """Where each element of a tensor is, an array of Place; the first holder if there are several.

    Read from Triton's own view of the layout, "T33:2" for register 2 of thread 33.
    """
    view = layout_of(encoding, shape).format_tensor_view(shape)
    found = [
        (int(thread), int(register))
        for thread, register in re.findall(r"(?:[\[,]|^)\s*T(\d+):(\d+)", view)
    ]
    places = np.empty(len(found), object)
    places[:] = [Place(register, thread % 32, thread // 32) for thread, register in found]
    return places.reshape(shape)


def plan_of(kernel, types: dict, constexprs: dict, num_warps: int) -> Plan:
    """Compile a kernel with one scan for sm_90; return what the compiler said of it."""
    signature = types | dict.fromkeys(constexprs, "constexpr")
    source = triton.compiler.ASTSource(
        kernel,
        signature=signature,
        constexprs=constexprs,
        attrs={(i,): [["tt.divisibility", 16]] for i, t in enumerate(types.values()) if "*" in t},
    )
    with triton.knobs.scan.scope(), triton.knobs.compilation.scope(), _captured_stderr() as said:
        triton.knobs.scan.native = triton.knobs.scan.remarks = True
        triton.knobs.compilation.always_compile = True
        target = GPUTarget("cuda", 90, 32)
        triton.compile(source, target=target, options={"num_warps": num_warps})
    (match,) = REMARK.finditer(said[0])
    shape, axis = [int(n) for n in match["shape"].split("x")], int(match["axis"])
    places = places_of(match["encoding"], shape)
    line = np.moveaxis(places, axis, -1).reshape(-1, shape[axis])[0]
    runs = tuple((owner, int(n)) for n, owner in re.findall(r"(\d+) (\w+)", match["runs"]))

    def held_by_first(group: np.ndarray) -> int:
        first = line[0]
        return sum((p.lane, p.warp) == (first.lane, first.warp) for p in group.flat)

    return Plan(
        reverse=match["direction"] == "reverse",
        shape=tuple(shape),
        axis=axis,
        encoding=match["encoding"],
        runs=runs,
        places=tuple(line),
        rows=held_by_first(places) // held_by_first(line),
        shuffles=int(match["shuffles"]),
        exchanges=int(match["exchanges"]),
        combines=int(match["combines"]),
    )
