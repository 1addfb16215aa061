"""The state of one batch of CTAs, and the scheduler that runs it."""

from __future__ import annotations

import numpy as np

from . import barriers, memory
from .barriers import EXITED, RUNNING, WAITING
from .decode import ALU, MEM
from .errors import PtxSimError, PtxSyncError

_FAR = 1 << 60


def _garbage(width):
    """Value of a register that no instruction writes: LLVM's undef, legal to move around."""
    if width == 1:
        return np.array([True])
    words = np.array([0xBAD0BAD1BAD2BAD3] * 2, np.uint64)
    return words.reshape(1, 2) if width == 128 else words[:1].astype(f"u{width // 8}")


class Registers(list):
    """Register values by index; `params` holds .param bytes by number, (threads, size).
    `rank` is what a thread's CTA adds to its shared addresses, None outside clusters."""

    params: list
    rank: np.ndarray | None = None


class State:
    """Threads are numbered CTA after CTA, x fastest; a batch is whole clusters."""

    def __init__(
        self,
        program,
        arena,
        first_cta,
        nctas,
        grid,
        cta_threads,
        cluster,
        shared_bytes,
        equal_writes=False,
    ):
        self.program, self.arena, self.equal_writes = program, arena, equal_writes
        self.nctas, self.cluster, self.cta_threads = nctas, cluster, cta_threads
        self.cta_warps = cta_threads // 32
        self.domain_warps = self.cta_warps * cluster
        self.threads = n = nctas * cta_threads
        self.first_cta, self.grid = first_cta, grid
        self.tid = np.arange(n)
        self.lane = self.tid % 32
        self.cta = self.tid // cta_threads  # inside the batch
        self.gwarp = self.tid // 32
        self.pc = 0
        self.pcs = np.zeros(n, np.int64)
        self.state = np.zeros(n, np.int8)
        warps = nctas * self.cta_warps
        self._row, self._own = np.arange(warps), np.arange(warps) % self.domain_warps
        self.vc = np.zeros((warps, self.domain_warps), np.int32)
        self.vcflat = self.vc.reshape(-1)
        self.tick(slice(None))
        self.pending_barriers, self.cluster_waits = {}, []
        self.cluster_arrived = np.zeros(warps, np.int32)
        self.cluster_waited = np.zeros(warps, np.int32)
        self.cluster_clock = np.zeros((2, warps // self.domain_warps, self.domain_warps), np.int32)
        self.returns, self.results, self.frames = {}, {}, {}
        self.async_copies, self.async_groups = [], np.zeros(n, np.int64)
        self.mbarriers = {}
        self.printed = []
        self.waiting = False  # the group has asked in vain whether a phase of an mbarrier is over
        self.shared = memory.Shared(self, shared_bytes, program.granule) if shared_bytes else None
        self.local = memory.Local(self, program.local_bytes) if program.local_bytes else None
        self.regs = Registers([None] * len(program.module.regs))
        self.regs.params = program.param_storage(n)
        if cluster > 1:
            self.regs.rank = self.cta % cluster << memory.RANK_SHIFT
        for reg in program.undefined:
            self.regs[reg.index] = _garbage(reg.width)
        self._special_registers()

    # -- special registers ----------------------------------------------------------------
    def _special_registers(self):
        gx, gy, gz = self.grid
        linear = self.first_cta + self.cta
        x, y, z = linear % gx, linear // gx % gy, linear // gx // gy
        t, k, lane = self.tid % self.cta_threads, self.cluster, self.lane
        one = np.uint64(1)
        bit = one << lane.astype(np.uint64)
        values = {
            "tid.x": t,
            "ntid.x": self.cta_threads,
            "ctaid.x": x,
            "ctaid.y": y,
            "ctaid.z": z,
            "nctaid.x": gx,
            "nctaid.y": gy,
            "nctaid.z": gz,
            "clusterid.x": x // k,
            "clusterid.y": y,
            "clusterid.z": z,
            "nclusterid.x": gx // k,
            "nclusterid.y": gy,
            "nclusterid.z": gz,
            "cluster_ctaid.x": x % k,
            "cluster_nctaid.x": k,
            "cluster_ctarank": x % k,
            "cluster_nctarank": k,
            "laneid": lane,
            "warpid": t // 32,
            "nwarpid": self.cta_warps,
            "smid": linear,
            "nsmid": gx * gy * gz,
            "gridid": 0,
            "is_explicit_cluster": int(k > 1),
            "lanemask_eq": bit,
            "lanemask_lt": bit - one,
            "lanemask_le": (bit << one) - one,
            "lanemask_ge": ~(bit - one),
            "lanemask_gt": ~((bit << one) - one),
            "CC.CF": False,
        }
        for dim in "yz":
            values.update(
                {
                    f"tid.{dim}": 0,
                    f"ntid.{dim}": 1,
                    f"cluster_ctaid.{dim}": 0,
                    f"cluster_nctaid.{dim}": 1,
                }
            )
        shared = self.shared.size if self.shared else 0
        values.update({"dynamic_smem_size": shared, "total_smem_size": shared})
        for name, index in self.program.special.items():
            v = values[name[1:]]
            if name == "%CC.CF":
                self.regs[index] = np.array([False])
            else:
                self.regs[index] = np.atleast_1d(np.asarray(v)).astype(np.uint64)

    # -- helpers of the closures --------------------------------------------------------
    @property
    def alive(self):
        return self.state != EXITED

    @staticmethod
    def pack(lanes):
        """(warps, 32) bool -> (warps,) uint32."""
        return np.packbits(lanes, axis=1, bitorder="little").view(np.uint32)[:, 0]

    def merge(self, i, put, value, mask):
        """Writes a register for the threads of the mask."""
        if i < 0:
            return
        old = self.regs[i]
        put(self.regs, value)
        if mask is not None and old is not None:
            self.regs[i] = np.where(mask, self.regs[i], old)

    def put_selected(self, i, put, sel, value):
        old = self.regs[i]
        full = np.zeros(self.threads, value.dtype)
        full[sel] = value
        put(self.regs, full)
        if old is not None:
            merged = np.broadcast_to(old, (self.threads,)).copy()
            merged[sel] = self.regs[i][sel]
            self.regs[i] = merged

    def tick(self, warps):
        """Starts a new clock for the warps (None: only refreshes the per-thread copy)."""
        if warps is not None:
            rows = self._row[warps]
            self.vc[rows, self._own[warps]] += 1
        self.own = np.repeat(self.vc[self._row, self._own], 32)

    def physical(self, addr, cta):
        """One name for one byte of shared::cluster or generic memory."""
        base = addr - memory.SHARED_WINDOW if addr >= memory.SHARED_WINDOW else addr
        if addr >= memory.WINDOW_SIZE and not 0 <= addr - memory.SHARED_WINDOW < memory.WINDOW_SIZE:
            return addr
        rank = base >> memory.RANK_SHIFT
        home = cta // self.cluster * self.cluster + rank
        return home, base & ((1 << memory.RANK_SHIFT) - 1)

    def arrived_here(self, pc, mask):
        """The group, and the threads of earlier groups that wait at the same instruction."""
        if mask is None:
            return np.ones(self.threads, bool)
        return mask | ((self.state == WAITING) & (self.pcs == pc))

    def proceed(self, pc, here, go):
        self.pcs[here] = pc
        self.state[here] = WAITING
        self.pcs[go] = pc + 1
        self.state[go] = RUNNING
        return None

    def leave(self, mask):
        """ret or exit of the kernel."""
        self.state[slice(None) if mask is None else mask] = EXITED
        self.state[self.state == WAITING] = RUNNING  # fewer lanes are missing now: look again
        barriers.cluster_release(self)
        return None

    # -- errors ---------------------------------------------------------------------------
    def where(self, pc):
        return self.program.where(pc)

    def thread_name(self, t):
        cta = self.first_cta + t // self.cta_threads
        gx, gy, _ = self.grid
        t %= self.cta_threads
        return (
            f"CTA ({cta % gx}, {cta // gx % gy}, {cta // gx // gy}), warp {t // 32}, lane {t % 32}"
        )

    def fail(self, error, message, sel, row):
        t = int(row if sel is None else sel[row])
        raise error(f"{message}; {self.thread_name(t)}\n  at {self.where(self.pc)}")

    def deadlock(self):
        lines = []
        for pc in np.unique(self.pcs[self.alive]):
            at = self.alive & (self.pcs == pc)
            warps = np.unique(self.gwarp[at])
            more = f" and {len(warps) - 8} more" if len(warps) > 8 else ""
            names = "; ".join(
                f"CTA {self.first_cta + w // self.cta_warps} warp "
                f"{w % self.cta_warps} ({int(at[w * 32 : w * 32 + 32].sum())} lanes)"
                for w in map(int, warps[:8])
            )
            lines.append(f"  {names}{more} wait at {self.where(int(pc))}")
        gone = np.unique(self.gwarp[~self.alive])
        if gone.size:
            lines.append(f"  {gone.size} warps have exited (all or some lanes)")
        raise PtxSyncError("deadlock: no thread can go on\n" + "\n".join(lines))

    # -- scheduler --------------------------------------------------------------------------
    def pick(self, turn, spinning):
        """(pc, mask or None, pc where the next group may join). The lowest pc runs first, so
        groups meet again; every 64th turn another group has it, so a spin loop ends. `spinning`
        is where a group goes on to wait for others, or -1: the next one after it has the turn."""
        running = self.state == RUNNING
        if not running.any():
            if (self.state != EXITED).any():
                self.deadlock()
            return None
        pcs = self.pcs[running]
        pc = int(pcs.min())
        mask = running & (self.pcs == pc)
        if spinning >= 0 and (pcs > spinning).any():
            pc = int(pcs[pcs > spinning].min())
            mask = running & (self.pcs == pc)
        elif turn % 64 == 63 and (pcs != pc).any():
            others = np.unique(pcs)
            pc = int(others[turn // 64 % len(others)])
            mask = running & (self.pcs == pc)
        above = pcs[pcs > pc]
        limit = int(above.min()) if above.size else _FAR
        return pc, None if mask.all() else mask, limit

    def run(self, start, max_steps):
        """Runs until every thread has exited. Adds executed warps to program counts."""
        regs, code, counts = self.regs, self.program.code, self.program.counts
        warps = nw = self.nctas * self.cta_warps
        pc, mask, limit, turn, back = start, None, _FAR, 0, 0
        spinning = -1
        steps = 0
        while True:
            kind, fn, pred, neg, dsts = code[pc]
            counts[pc] += nw
            self.pc = pc
            steps += 1
            if kind == ALU:
                if pred < 0 and mask is None:
                    fn(regs)
                else:
                    self._masked(fn, regs, pred, neg, dsts, mask)
                pc += 1
            elif kind == MEM:
                if pred < 0:
                    fn(self, mask)
                else:
                    m = self._predicate(pred, neg, mask)
                    fn(self, None if m is True else m)
                pc += 1
            else:
                new = self._control(fn, pc, pred, neg, mask)
                if new is not None and (new > pc or mask is None):
                    pc = new
                elif new is not None and back < 256 and not self.waiting:
                    back += 1
                    pc = new
                else:
                    if new is not None:
                        self.pcs[mask] = spinning = new
                    self.waiting = False
                    pc = _FAR
            if pc >= limit or steps > max_steps:
                if steps > max_steps:
                    raise PtxSimError(f"more than {max_steps} steps; last at {self.where(self.pc)}")
                if pc != _FAR:
                    self.pcs[slice(None) if mask is None else mask] = pc
                turn += 1
                back = 0
                group = self.pick(turn, spinning)
                spinning = -1
                if group is None:
                    return
                pc, mask, limit = group
                nw = warps if mask is None else int(mask.reshape(-1, 32).any(axis=1).sum())

    def _predicate(self, pred, neg, mask):
        """Active threads under a predicate: True for all, or an array."""
        p = self.regs[pred]
        if neg:
            p = ~p
        if p.size == 1:
            if p[0]:
                return True if mask is None else mask
            return np.zeros(self.threads, bool)
        if mask is not None:
            return p & mask
        return True if p.all() else p

    def _masked(self, fn, regs, pred, neg, dsts, mask):
        m = self._predicate(pred, neg, mask) if pred >= 0 else mask
        if m is True:
            fn(regs)
            return
        old = [regs[d] for d in dsts]
        fn(regs)
        for d, before in zip(dsts, old, strict=True):
            if before is not None:
                new = regs[d]
                regs[d] = np.where(m if new.ndim == 1 else m[:, None], new, before)

    def _control(self, fn, pc, pred, neg, mask):
        if pred < 0:
            return fn(self, pc, mask)
        m = self._predicate(pred, neg, mask)
        if m is True or (mask is not None and m is mask):
            return fn(self, pc, mask)
        rest = ~m if mask is None else mask & ~m
        if not m.any():
            return pc + 1
        if not rest.any():
            return fn(self, pc, mask)
        self.pcs[rest] = pc + 1
        new = fn(self, pc, m)
        if new is not None:
            self.pcs[m] = new
        return None
