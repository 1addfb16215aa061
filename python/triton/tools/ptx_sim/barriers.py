"""Block, named and cluster barriers: who waits, and what a barrier orders.

vc[w] is the vector clock of warp w: vc[w][u] is the last clock of warp u (of the same
cluster) whose accesses are ordered before what w does now. Arriving publishes vc[w] and
starts a new clock for w; passing takes the maximum of what was published.
Threads are RUNNING, at a warp-synchronous instruction that lacks lanes (WAITING), in a
barrier (BLOCKED) or EXITED.
"""

from __future__ import annotations

import numpy as np

from .errors import PtxSyncError

RUNNING, WAITING, BLOCKED, EXITED = 0, 1, 2, 3


def join_ctas(S) -> None:
    """All warps of every CTA passed a barrier of their CTA."""
    clocks = S.vc.reshape(S.nctas, -1, S.domain_warps).max(axis=1)
    S.vc[:] = np.repeat(clocks, S.cta_warps, axis=0)
    S.tick(slice(None))


def _ready_warps(S, pc, mask):
    """Threads here, and the warps all of whose living lanes are here."""
    here = S.arrived_here(pc, mask)
    lanes = here.reshape(-1, 32)
    ready = lanes.any(axis=1) & (lanes | ~S.alive.reshape(-1, 32)).all(axis=1)
    S.pcs[here] = pc
    S.state[here] = WAITING
    return here, ready


def _lanes(S, warp, here):
    out = np.zeros(S.threads, bool)
    out[warp * 32 : warp * 32 + 32] = here[warp * 32 : warp * 32 + 32]
    return out


def arrive_at(S, pc, mask, number, want, arrive, aligned, finish=None):
    """The general case of bar.sync/bar.arrive. Without .aligned a warp still arrives as a
    whole, once its lanes have met."""
    here, ready = _ready_warps(S, pc, mask)
    number = np.broadcast_to(number, (S.threads,))
    want = None if want is None else np.broadcast_to(want, (S.threads,))
    for warp in np.flatnonzero(ready):
        lanes = _lanes(S, warp, here)
        t = int(np.argmax(lanes))
        num = int(number[t])
        if (number[lanes] != num).any():
            S.fail(PtxSyncError, "lanes of one warp name different barriers", None, t)
        if num > 15:
            S.fail(PtxSyncError, f"barrier {num}: there are 16", None, t)
        need = S.cta_threads if want is None else int(want[t])
        if need % 32 or need == 0:
            S.fail(PtxSyncError, f"thread count {need} is not a multiple of 32", None, t)
        key = (int(S.cta[t]), num)
        bar = S.pending_barriers.setdefault(
            key,
            {
                "need": need,
                "count": 0,
                "clock": np.zeros(S.domain_warps, np.int32),
                "waits": [],
                "pc": pc,
            },
        )
        if bar["need"] != need:
            S.fail(
                PtxSyncError,
                f"barrier {num}: {need} threads here, {bar['need']} at {S.where(bar['pc'])}",
                None,
                t,
            )
        bar["count"] += 32
        bar["clock"] = np.maximum(bar["clock"], S.vc[warp])
        S.tick(warp)
        if arrive:
            S.state[lanes], S.pcs[lanes] = RUNNING, pc + 1
        else:
            S.state[lanes] = BLOCKED
            bar["waits"].append((warp, lanes, pc, finish))
        if bar["count"] > need:
            S.fail(PtxSyncError, f"barrier {num}: more than {need} threads arrived", None, t)
        if bar["count"] == need:
            _release(S, key, bar)
    return None


def _release(S, key, bar):
    del S.pending_barriers[key]
    if bar["waits"] and bar["waits"][0][3] is not None:
        if len({w[2] for w in bar["waits"]}) > 1:
            S.fail(PtxSyncError, "bar.red met from different instructions", None, 0)
        bar["waits"][0][3](np.logical_or.reduce([w[1] for w in bar["waits"]]))
    for warp, lanes, pc, _ in bar["waits"]:
        S.vc[warp] = np.maximum(S.vc[warp], bar["clock"])
        S.state[lanes], S.pcs[lanes] = RUNNING, pc + 1
    S.tick(None)


def cluster_arrive(S, pc, mask, relaxed):
    if mask is None:
        here, ready = None, np.ones(S.nctas * S.cta_warps, bool)
    else:
        here, ready = _ready_warps(S, pc, mask)
    if not ready.any():
        return None
    late = ready & (S.cluster_arrived != S.cluster_waited)
    if late.any():
        S.fail(
            PtxSyncError,
            "second barrier.cluster.arrive without a wait",
            None,
            int(np.flatnonzero(late)[0]) * 32,
        )
    S.cluster_arrived[ready] += 1
    if not relaxed:
        warps = np.flatnonzero(ready)
        slot = S.cluster_arrived[warps] & 1
        np.maximum.at(S.cluster_clock, (slot, warps // S.domain_warps), S.vc[warps])
        S.tick(warps)
    if mask is None:
        return pc + 1
    go = here & np.repeat(ready, 32)
    S.state[go], S.pcs[go] = RUNNING, pc + 1
    cluster_release(S)
    return None


def _complete(S, warps):
    """Which of the waiting warps may pass: every living warp of the cluster has arrived."""
    living = S.alive.reshape(-1, 32).any(axis=1)
    phase = np.where(living, S.cluster_arrived, np.iinfo(np.int32).max)
    slowest = phase.reshape(-1, S.domain_warps).min(axis=1)
    return slowest[warps // S.domain_warps] > S.cluster_waited[warps]


def _pass(S, warps):
    S.cluster_waited[warps] += 1
    slot = S.cluster_waited[warps] & 1
    S.vc[warps] = np.maximum(S.vc[warps], S.cluster_clock[slot, warps // S.domain_warps])
    S.tick(None)


def cluster_wait(S, pc, mask):
    if mask is None:
        warps = np.arange(S.nctas * S.cta_warps)
        if (S.cluster_arrived > S.cluster_waited).all() and _complete(S, warps).all():
            _pass(S, warps)
            return pc + 1
        mask = np.ones(S.threads, bool)
    here, ready = _ready_warps(S, pc, mask)
    early = ready & (S.cluster_arrived <= S.cluster_waited)
    if early.any():
        S.fail(
            PtxSyncError,
            "barrier.cluster.wait without an arrive",
            None,
            int(np.flatnonzero(early)[0]) * 32,
        )
    for warp in np.flatnonzero(ready):
        lanes = _lanes(S, warp, here)
        S.state[lanes] = BLOCKED
        S.cluster_waits.append((int(warp), lanes, pc))
    cluster_release(S)
    return None


def cluster_release(S):
    """Lets pass whoever waits for a cluster barrier that is complete now."""
    if not S.cluster_waits:
        return
    done = _complete(S, np.array([w[0] for w in S.cluster_waits]))
    left = []
    for ok, (warp, lanes, pc) in zip(done, S.cluster_waits, strict=True):
        if ok:
            _pass(S, np.array([warp]))
            S.state[lanes], S.pcs[lanes] = RUNNING, pc + 1
        else:
            left.append((warp, lanes, pc))
    S.cluster_waits = left
