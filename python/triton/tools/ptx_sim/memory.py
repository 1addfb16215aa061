"""Global, shared, local and parameter memory, and the checks on every access.

Shared memory is tracked in granules (the smallest shared access of the module, 1 to 8
bytes). Every warp has a vector clock; a barrier joins the clocks of the warps that meet.
A granule remembers its last writer (warp, clock, instruction) and, per warp, its last read.
An access is a race if the other one is not ordered before it by barriers. Rules:
  * accesses of one warp are ordered by program order (cross-lane hazards inside a warp
    without bar.warp.sync are tolerated);
  * atomics do not race with atomics;
  * warps that store equal bytes to one granule with one instruction do not race: Triton
    stores every replica of a datum when a tile is smaller than the block. With `equal_writes`,
    of several instructions either: the source base's Triton stores the replicas in a thread's
    registers, too.
"""

from __future__ import annotations

import bisect

import numpy as np

from .errors import PtxMemoryError, PtxRaceError

GLOBAL_BASE = 0x7000_0000_0000
SHARED_WINDOW = 0x7E00_0000_0000
LOCAL_WINDOW = 0x7F00_0000_0000
WINDOW_SIZE = 1 << 32
SHARED_BASE = 1024  # offset of the first byte: 0 is never a shared variable
LOCAL_BASE = 64
# An address in shared memory is rank << 24 | offset, a CTA's own addresses included: kernels reach
# other CTAs by changing these bits, as mapa does.
RANK_SHIFT = 24
GUARD = 1 << 20  # unmapped bytes between global buffers
MODULE_BASE = GLOBAL_BASE  # variables of the module come first

_VIEW = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def views(data: np.ndarray) -> dict:
    """bytes (uint8, length a multiple of 64) -> {access size: array to index by addr/size}."""
    out = {size: data.view(dtype) for size, dtype in _VIEW.items()}
    for size in (16, 32):
        out[size] = data.view(np.uint64).reshape(-1, size // 8)
    return out


class Arena:
    """All global memory of a launch: one byte array with guard gaps between buffers."""

    def __init__(self):
        self.starts, self.ends, self.names, self.writable = [], [], [], []
        self.top = 0
        self.data = None
        self.views = None

    def reserve(self, size: int, name: str, writable: bool = True) -> int:
        """Address (256-aligned) of a new buffer of `size` bytes."""
        start = self.top
        self.starts.append(start)
        self.ends.append(start + size)
        self.names.append(name)
        self.writable.append(writable)
        self.top = (start + size + GUARD + 255) // 256 * 256
        return GLOBAL_BASE + start

    def commit(self) -> None:
        self.data = np.zeros(self.top + GUARD, np.uint8)[: (self.top + GUARD) // 64 * 64]
        self.views = views(self.data)
        self.np_starts = np.array(self.starts, np.int64)
        self.np_ends = np.array(self.ends, np.int64)
        self.all_writable = all(self.writable)

    def check(self, S, off, size, store, sel):
        """Offsets (int64 array) of accesses must lie in one buffer each, aligned."""
        if (off & (size - 1)).any():
            bad = int(np.flatnonzero(off & (size - 1))[0])
            S.fail(
                PtxMemoryError,
                f"misaligned global access: address "
                f"{GLOBAL_BASE + int(off[bad]):#x} is not a multiple of {size} bytes",
                sel,
                bad,
            )
        lo, hi = int(off.min()), int(off.max())
        i = bisect.bisect_right(self.starts, lo) - 1
        if i >= 0 and hi + size <= self.ends[i]:
            if store and not self.writable[i]:
                S.fail(PtxMemoryError, f"store to read-only {self.names[i]}", sel, 0)
            return
        if not self.starts:
            S.fail(PtxMemoryError, "global access, but there is no global buffer", sel, 0)
        k = np.searchsorted(self.np_starts, off, side="right") - 1
        ok = (k >= 0) & (off + size <= self.np_ends[np.maximum(k, 0)])
        if not ok.all():
            bad = int(np.flatnonzero(~ok)[0])
            near, at = self._nearest(int(off[bad]), size)
            S.fail(
                PtxMemoryError,
                f"out-of-bounds global access of {size} bytes at byte {at} of "
                f"{self.names[near]} ({self.ends[near] - self.starts[near]} bytes)",
                sel,
                bad,
            )
        if store and not self.all_writable:
            w = np.array(self.writable)[k]
            if not w.all():
                bad = int(np.flatnonzero(~w)[0])
                S.fail(PtxMemoryError, f"store to read-only {self.names[int(k[bad])]}", sel, bad)

    def _nearest(self, off, size):
        """The buffer closest to an access, and the access's position relative to it."""
        gap = np.maximum(self.np_starts - off - size, off - self.np_ends)
        near = int(np.argmin(gap))
        return near, off - self.starts[near]


class Shared:
    """Shared memory of all CTAs of a batch, with the race and initialisation checks."""

    def __init__(self, S, size: int, granule: int):
        self.size = size
        self.stride = (SHARED_BASE + size + 255) // 256 * 256
        self.data = np.zeros(S.nctas * self.stride, np.uint8)
        self.views = views(self.data)
        self.shift = granule.bit_length() - 1
        n = (S.nctas * self.stride) >> self.shift
        self.wclk = np.zeros(n, np.int32)  # clock of the last write, 0: never written
        self.wwarp = np.zeros(n, np.int32)  # its warp inside the cluster
        self.wpc = np.zeros(n, np.int32)
        self.watomic = np.zeros(n, bool)
        self.flight = np.zeros(n, bool)  # cp.async destination not arrived yet
        self.rclk = np.zeros((S.domain_warps, n), np.int32)
        self.rpc = np.zeros((S.domain_warps, n), np.int32)

    def flat(self, S, addr, size, sel, cluster):
        """shared address (int64) -> index into data; checks bounds and alignment."""
        rank = addr >> RANK_SHIFT
        off = addr & ((1 << RANK_SHIFT) - 1)
        if (addr & (size - 1)).any():
            bad = int(np.flatnonzero(addr & (size - 1))[0])
            S.fail(
                PtxMemoryError,
                f"misaligned shared access: address {int(addr[bad]):#x} is not "
                f"a multiple of {size} bytes",
                sel,
                bad,
            )
        ok = (
            (off >= SHARED_BASE)
            & (off + size <= SHARED_BASE + self.size)
            & (rank >= 0)
            & (rank < S.cluster)
        )
        if not ok.all():
            bad = int(np.flatnonzero(~ok)[0])
            S.fail(
                PtxMemoryError,
                f"out-of-bounds shared access of {size} bytes at byte "
                f"{int(off[bad]) - SHARED_BASE} of {self.size} bytes of shared memory",
                sel,
                bad,
            )
        cta = S.cta if sel is None else S.cta[sel]
        if S.cluster > 1:
            if not cluster:
                own = rank == cta % S.cluster
                if not own.all():
                    S.fail(
                        PtxMemoryError,
                        "shared::cta access to another CTA's memory",
                        sel,
                        int(np.flatnonzero(~own)[0]),
                    )
            cta = cta // S.cluster * S.cluster + rank
        return cta * self.stride + off

    def granules(self, flat, size, used=None):
        g = flat >> self.shift
        n = size >> self.shift
        if n <= 1:
            return g[:, None]
        parts = np.arange(n)
        if used is not None:
            gran = 1 << self.shift
            parts = np.array([p for p in parts if used >> p * gran & ((1 << gran) - 1)], np.int64)
        return g[:, None] + parts

    def note_read(self, S, flat, size, sel, used=None):
        g = self.granules(flat, size, used)
        gw = (S.gwarp if sel is None else S.gwarp[sel])[:, None]
        clk = self.wclk[g]
        if not clk.all():
            bad = int(np.flatnonzero((clk == 0).any(axis=1))[0])
            gran = int(g[bad][np.flatnonzero(clk[bad] == 0)[0]])
            why = (
                "read of shared memory whose cp.async has not been waited for"
                if self.flight[gran]
                else "read of shared memory that nobody wrote"
            )
            S.fail(PtxMemoryError, f"{why}: byte {self.byte(gran)}", sel, bad)
        ok = clk <= S.vcflat[gw * S.domain_warps + self.wwarp[g]]
        if not ok.all():
            self.race(S, "read", "write", g, ~ok, sel, self.wwarp[g], self.wpc[g])
        w = gw % S.domain_warps
        self.rclk[w, g] = (S.own if sel is None else S.own[sel])[:, None]
        self.rpc[w, g] = S.pc

    def store(self, S, flat, size, sel, raw, atomic=False):
        """Writes `raw` ((n or 1,) unsigned or (n or 1, size/8) uint64), checks and records."""
        g = self.granules(flat, size)
        cells = self.views[1 << self.shift]
        new = np.ascontiguousarray(raw).view(cells.dtype).reshape(raw.shape[0], -1)
        self._order_write(S, g, sel, atomic, same=lambda: cells[g] == new)
        self.views[size][flat >> _LOG[size]] = raw
        gw = (S.gwarp if sel is None else S.gwarp[sel])[:, None]
        w = gw % S.domain_warps
        self.wwarp[g] = w
        if not atomic:
            bad = self.wwarp[g] != w
            if bad.any():
                bad &= cells[g] != new
                if bad.any():
                    self.race(S, "write", "write", g, bad, sel, self.wwarp[g], S.pc)
        self._record_write(S, g, sel, S.own if sel is None else S.own[sel], atomic, False)

    def start_copy(self, S, flat, size, sel):
        """cp.async was issued: the bytes are being written, and hold nothing yet."""
        g = self.granules(flat, size)
        self._order_write(S, g, sel, False)
        w = S.gwarp[sel][:, None] % S.domain_warps
        self.wwarp[g] = w
        if (self.wwarp[g] != w).any():
            self.race(S, "write", "write", g, self.wwarp[g] != w, sel, self.wwarp[g], S.pc)
        self._record_write(S, g, sel, np.zeros(len(sel), np.int32), False, True)

    def _order_write(self, S, g, sel, atomic, same=None):
        """Every earlier access of these granules must be ordered before this write."""
        d = S.domain_warps
        gw = (S.gwarp if sel is None else S.gwarp[sel])[:, None]
        ok = self.wclk[g] <= S.vcflat[gw * d + self.wwarp[g]]
        if atomic:
            ok |= self.watomic[g]
        if not ok.all() and same is not None:
            ok |= (S.equal_writes | (self.wpc[g] == S.pc)) & same()  # the replicas of a datum
        if not ok.all():
            self.race(S, "write", "write", g, ~ok, sel, self.wwarp[g], self.wpc[g])
        if d > 1:
            seen = self.rclk[:, g]  # (warps, n, k)
            ok = seen <= S.vc[gw[:, 0]].T[:, :, None]
            if not ok.all():
                by = np.argmax(~ok, axis=0)
                self.race(S, "write", "read", g, ~ok.all(axis=0), sel, by, self.rpc[by, g])

    def _record_write(self, S, g, sel, clock, atomic, flight):
        self.wclk[g] = clock[:, None]
        self.wpc[g] = S.pc
        self.watomic[g] = atomic
        self.flight[g] = flight

    def byte(self, granule: int) -> str:
        at = granule << self.shift
        cta, off = divmod(at, self.stride)
        return f"{off - SHARED_BASE} (CTA {cta})"

    def race(self, S, this, other, g, bad, sel, by, pc):
        row, col = (int(v[0]) for v in np.nonzero(bad))
        by, pc = np.broadcast_to(by, g.shape), np.broadcast_to(pc, g.shape)
        S.fail(
            PtxRaceError,
            f"race in shared memory at byte {self.byte(int(g[row, col]))}: this "
            f"{this} is not ordered by a barrier after the {other} of warp "
            f"{int(by[row, col])} at {S.where(int(pc[row, col]))}",
            sel,
            row,
        )


class Local:
    """Per-thread memory."""

    def __init__(self, S, size: int):
        self.size = size
        self.stride = (LOCAL_BASE + size + 63) // 64 * 64
        self.data = np.zeros(S.threads * self.stride, np.uint8)
        self.views = views(self.data)

    def flat(self, S, addr, size, sel):
        if (addr & (size - 1)).any():
            bad = int(np.flatnonzero(addr & (size - 1))[0])
            S.fail(PtxMemoryError, f"misaligned local access of {size} bytes", sel, bad)
        ok = (addr >= LOCAL_BASE) & (addr + size <= LOCAL_BASE + self.size)
        if not ok.all():
            bad = int(np.flatnonzero(~ok)[0])
            S.fail(
                PtxMemoryError,
                f"out-of-bounds local access of {size} bytes at byte "
                f"{int(addr[bad]) - LOCAL_BASE} of {self.size}",
                sel,
                bad,
            )
        return (S.tid if sel is None else S.tid[sel]) * self.stride + addr


_LOG = {1: 0, 2: 1, 4: 2, 8: 3, 16: 4, 32: 5}


def read(S, space, addr, size, sel, used=None, atomic=False):
    """Raw bytes as an array indexed like `addr`: (n,) unsigned, or (n, size/8) uint64."""
    if space == "generic":
        return _generic(S, addr, size, sel, lambda sp, a, s: read(S, sp, a, size, s, used, atomic))
    if space == "global":
        off = addr - GLOBAL_BASE
        S.arena.check(S, off, size, False, sel)
        return S.arena.views[size][off >> _LOG[size]]
    if space == "local":
        return S.local.views[size][S.local.flat(S, addr, size, sel) >> _LOG[size]]
    if addr.size == 1:
        addr = np.broadcast_to(addr, (S.threads if sel is None else len(sel),))
    sh = S.shared
    if sh is None:
        S.fail(PtxMemoryError, "shared access, but the kernel has no shared memory", sel, 0)
    flat = sh.flat(S, addr, size, sel, space == "shared::cluster")
    if not atomic:
        sh.note_read(S, flat, size, sel, used)
    return sh.views[size][flat >> _LOG[size]]


def write(S, space, addr, size, sel, raw, atomic=False):
    """`raw`: (n,) unsigned or (n, size/8) uint64, for every selected thread."""
    n = S.threads if sel is None else len(sel)
    if addr.shape[0] != n:
        addr = np.broadcast_to(addr, (n,))
    if space == "generic":

        def part(sp, a, s, rows):
            write(
                S, sp, a, size, s, raw if rows is None or raw.shape[0] == 1 else raw[rows], atomic
            )

        _generic(S, addr, size, sel, part, store=True)
        return
    if space == "global":
        off = addr - GLOBAL_BASE
        S.arena.check(S, off, size, True, sel)
        S.arena.views[size][off >> _LOG[size]] = raw
        return
    if space == "local":
        S.local.views[size][S.local.flat(S, addr, size, sel) >> _LOG[size]] = raw
        return
    sh = S.shared
    if sh is None:
        S.fail(PtxMemoryError, "shared access, but the kernel has no shared memory", sel, 0)
    flat = sh.flat(S, addr, size, sel, space == "shared::cluster")
    sh.store(S, flat, size, sel, raw, atomic)


def _generic(S, addr, size, sel, part, store=False):
    """Splits generic addresses by window."""
    lo, hi = int(addr.min()), int(addr.max())
    for space, base in (("shared::cluster", SHARED_WINDOW), ("local", LOCAL_WINDOW)):
        if base <= lo and hi < base + WINDOW_SIZE:
            return part(space, addr - base, sel, None) if store else part(space, addr - base, sel)
    if hi < SHARED_WINDOW or lo >= LOCAL_WINDOW + WINDOW_SIZE:
        return part("global", addr, sel, None) if store else part("global", addr, sel)
    n = S.threads if sel is None else len(sel)
    threads = np.arange(S.threads) if sel is None else sel
    out = None
    kind = np.where(
        (addr >= SHARED_WINDOW) & (addr < SHARED_WINDOW + WINDOW_SIZE),
        1,
        np.where((addr >= LOCAL_WINDOW) & (addr < LOCAL_WINDOW + WINDOW_SIZE), 2, 0),
    )
    for k, (space, base) in enumerate(
        (("global", 0), ("shared::cluster", SHARED_WINDOW), ("local", LOCAL_WINDOW))
    ):
        rows = np.flatnonzero(kind == k)
        if not rows.size:
            continue
        if store:
            part(space, addr[rows] - base, threads[rows], rows)
            continue
        got = part(space, addr[rows] - base, threads[rows])
        if out is None:
            out = np.zeros((n, *got.shape[1:]), got.dtype)
        out[rows] = got
    return out
