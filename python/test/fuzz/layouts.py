"""Random distributed layouts, as the text of TTGIR encodings."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from hypothesis import strategies as st

OWNERS = ("register", "lane", "warp", "block")
# Lanes of a warp.
TARGETS = {
    "cuda:90": 32,
    "hip:gfx90a": 64,
    "hip:gfx942": 64,
    "hip:gfx950": 64,
    "hip:gfx1100": 32,
    "hip:gfx1200": 32,
}


@dataclass(frozen=True)
class Machine:
    """What all layouts of a module share; each number is a power of two."""

    lanes: int
    warps: int
    ctas: int
    target: str = "cuda:90"

    def bits(self, owner: str) -> int:
        """Return the number of index bits of an owner of threads."""
        return {"lane": self.lanes, "warp": self.warps, "block": self.ctas}[owner].bit_length() - 1

    @property
    def thread_bits(self) -> int:
        return sum(self.bits(owner) for owner in OWNERS[1:])


@dataclass(frozen=True)
class Layout:
    """An encoding for tensors of `shape`.

    encoding: what the scanned tensor has.
    viewer: an encoding with one more dimension, in front, of `copies` elements, in which each
        thread that holds a copy of the tensor has an element of its own; None without copies.
        Without the first dimension it is the same layout as `encoding`.
    bases: by owner, where the layout was made of them.
    """

    shape: tuple[int, ...]
    encoding: str
    viewer: str | None = None
    copies: int = 1
    bases: dict[str, list[tuple[int, ...]]] | None = field(default=None, compare=False)


def sliced(encoding: str, dim: int) -> str:
    """Return the encoding without one dimension."""
    return f"#ttg.slice<{{dim = {dim}, parent = {encoding}}}>"


def _linear(bases: dict[str, list[tuple[int, ...]]]) -> str:
    parts = (f"{owner} = {[list(b) for b in bases[owner]]}" for owner in OWNERS)
    return f"#ttg.linear<{{{', '.join(parts)}}}>"


@st.composite
def shapes(draw, max_bits: int) -> tuple[int, ...]:
    """Shapes of rank 1 to 3 with at most 2^max_bits elements, each size a power of two."""
    rank = draw(st.sampled_from((1, 1, 2, 2, 3)))
    left = draw(st.integers(0, max_bits) | st.just(max_bits))
    sizes = []
    for _ in range(rank - 1):
        taken = draw(st.integers(0, left))
        sizes.append(taken)
        left -= taken
    return tuple(1 << bits for bits in (*sizes, left))


@st.composite
def linear_layouts(draw, machine: Machine, shape: tuple[int, ...], max_bits: int) -> Layout:
    """Each coordinate bit belongs to some bit of a register, lane, warp or CTA index; the index
    bits that are left over are zero bases, which make copies."""
    bits = [(dim, bit) for dim, size in enumerate(shape) for bit in range(size.bit_length() - 1)]
    # Copies in threads are as many as the threads need; further ones push bits into registers.
    spare = min(machine.thread_bits, max_bits - len(bits))
    thread_copies = max(machine.thread_bits - len(bits), draw(st.integers(0, max(spare, 0))))
    register_copies = draw(st.sampled_from((0, 0, 0, 0, 1, 2)))
    zeros = [None] * (thread_copies + register_copies)
    owners = OWNERS
    if draw(st.booleans()):
        order = draw(st.permutations([*bits, *zeros]))
    else:
        # Neighbouring bits to one owner, as in layouts that people write.
        cut = draw(st.integers(0, len(bits)))
        order = [*bits[:cut], *zeros, *bits[cut:]]
        owners = draw(st.just(OWNERS) | st.permutations(OWNERS))
    registers = len(order) - machine.thread_bits

    rank = len(shape)
    bases: dict[str, list[tuple[int, ...]]] = {owner: [] for owner in OWNERS}
    viewer: dict[str, list[tuple[int, ...]]] = {owner: [] for owner in OWNERS}
    copies = 1
    rest = list(order)
    for owner in owners:
        count = registers if owner == "register" else machine.bits(owner)
        for place in rest[:count]:
            basis = [0] * rank
            if place is not None:
                basis[place[0]] = 1 << place[1]
            bases[owner].append(tuple(basis))
            copy = 0
            if place is None and owner != "register":
                copy, copies = copies, copies * 2
            viewer[owner].append((copy, *basis))
        del rest[:count]
    parent = _linear(viewer)
    encoding = draw(st.sampled_from((_linear(bases), sliced(parent, 0))))
    return Layout(shape, encoding, parent if copies > 1 else None, copies, bases)


@st.composite
def blocked_layouts(draw, machine: Machine, shape: tuple[int, ...]) -> Layout:
    """Blocked layouts that may be larger or smaller than the tensor, or slices of them."""
    rank = len(shape)
    is_slice = rank < 3 and draw(st.booleans())
    parent_rank = rank + is_slice

    def split(total: int) -> list[int]:
        sizes = [1] * parent_rank
        for _ in range(total.bit_length() - 1):
            sizes[draw(st.integers(0, parent_rank - 1))] *= 2
        return sizes

    size_per_thread = split(draw(st.sampled_from((1, 2, 4, 8))))
    order = draw(st.permutations(range(parent_rank)))
    cta_bases = []
    if machine.ctas > 1:
        # Each CTA holds a part of one dimension.
        dim = draw(st.integers(0, parent_rank - 1))
        for bit in range(machine.ctas.bit_length() - 1):
            cta_bases.append([(1 << bit) if d == dim else 0 for d in range(parent_rank)])
    cga = f", CGALayout = {cta_bases}" if cta_bases else ""
    encoding = (
        f"#ttg.blocked<{{sizePerThread = {size_per_thread}, "
        f"threadsPerWarp = {split(machine.lanes)}, warpsPerCTA = {split(machine.warps)}, "
        f"order = {list(order)}{cga}}}>"
    )
    if is_slice:
        encoding = sliced(encoding, draw(st.integers(0, rank)))
    return Layout(shape, encoding)


@st.composite
def mma_layouts(draw, machine: Machine, max_bits: int) -> Layout:
    """Accumulators of mma.sync and wgmma, and slices of these."""
    row_bits = draw(st.integers(1, 6))
    column_bits = draw(st.integers(3, max(3, min(7, max_bits - row_bits))))
    shape = (1 << row_bits, 1 << column_bits)
    if machine.warps >= 4 and draw(st.booleans()):
        width = 1 << draw(st.integers(3, column_bits))
        text = f"versionMajor = 3, versionMinor = 0, warpsPerCTA = [{machine.warps}, 1], "
        text += f"instrShape = [16, {width}, 16]"
    else:
        down = 1 << draw(st.integers(0, machine.bits("warp")))
        text = f"versionMajor = 2, versionMinor = 0, warpsPerCTA = [{down}, "
        text += f"{machine.warps // down}], instrShape = [16, 8]"
    encoding = f"#ttg.nvidia_mma<{{{text}}}>"
    dim = draw(st.sampled_from((None, None, None, 0, 1)))
    if dim is None:
        return Layout(shape, encoding)
    return Layout((shape[1 - dim],), sliced(encoding, dim))


@st.composite
def layouts(draw, machine: Machine, max_bits: int) -> Layout:
    """Layouts in which all threads together hold at most 2^max_bits elements, copies included, or
    one each if that is more."""
    if machine.target.startswith("cuda") and machine.ctas == 1 and draw(st.integers(0, 11)) == 11:
        return draw(mma_layouts(machine, max_bits))
    shape = draw(shapes(max_bits))
    if draw(st.integers(0, 9)) < 8:
        return draw(linear_layouts(machine, shape, max_bits))
    return draw(blocked_layouts(machine, shape))


def size_of(layout: Layout) -> int:
    """Return how many elements the viewer, or else the tensor, has."""
    return prod(layout.shape) * layout.copies
