"""Lanes, branches, calls, barriers, memory, atomics, async copies and matrix instructions."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_sim_harness import execute, integers, module
from triton.tools.ptx_sim import PtxUnsupported, count, launch

N = 128
LANE = np.arange(N) % 32


def shfl_statement(mode, a, b, c):
    """The PTX ISA's pseudo code, one lane at a time."""
    out, ok = np.zeros_like(a), np.zeros(len(a), bool)
    for t in range(len(a)):
        lane = t % 32
        bval, cval, seg = int(b[t]) & 31, int(c[t]) & 31, int(c[t]) >> 8 & 31
        max_lane = (lane & seg) | (cval & (~seg & 31))
        min_lane = lane & seg
        if mode == "up":
            j = lane - bval
            p = j >= max_lane
        elif mode == "down":
            j = lane + bval
            p = j <= max_lane
        elif mode == "bfly":
            j = lane ^ bval
            p = j <= max_lane
        else:
            j = min_lane | (bval & (~seg & 31))
            p = j <= max_lane
        out[t], ok[t] = a[t - lane + (j if p else lane)], p
    return out, ok


@pytest.mark.parametrize("mode", ["up", "down", "bfly", "idx"])
def test_shfl(mode):
    a = integers(np.uint32, N, 1)
    rng = np.random.default_rng(0)
    clamps = [0] if mode == "up" else [31]
    for width in (32, 16, 8, 4):
        seg = 32 - width << 8
        for c_value in [seg | (0 if mode == "up" else 31), *clamps, seg | 3]:
            b = rng.integers(0, 40, N).astype(np.uint32)
            c = np.full(N, c_value, np.uint32)
            for text_b, bb in (("%b", b), ("3", np.full(N, 3))):
                got = execute(
                    f"shfl.sync.{mode}.b32 %d|%p, %a, {text_b}, %c, -1;"
                    "selp.u32 %e, 1, 0, %p;"
                    f"shfl.sync.{mode}.b32 %f, %a, {text_b}, {c_value}, 0xffffffff;",
                    {"a": a, "b": b, "c": c},
                    dict.fromkeys("def", np.uint32),
                    ".reg .pred %p;",
                )
                want, ok = shfl_statement(mode, a, bb, c)
                np.testing.assert_array_equal(got["d"], want)
                np.testing.assert_array_equal(got["f"], want)
                np.testing.assert_array_equal(got["e"], ok)


def test_shfl_of_part_of_a_warp():
    """The lower half exchanges inside its own member mask, the upper half stays out."""
    a = integers(np.uint32, N, 2)
    body = """mov.u32 %l, %laneid; mov.b32 %d, %a; setp.gt.u32 %p, %l, 15; @%p bra OUT;
        shfl.sync.bfly.b32 %d, %a, 15, 31, 0xffff;
        OUT: shfl.sync.bfly.b32 %e, %d, 16, 31, -1;"""
    got = execute(body, {"a": a}, {"d": np.uint32, "e": np.uint32}, ".reg .pred %p; .reg .b32 %l;")
    t = np.arange(N)
    want = np.where(LANE < 16, a[t ^ 15], a)
    np.testing.assert_array_equal(got["d"], want)
    np.testing.assert_array_equal(got["e"], want[t ^ 16])


def test_vote_match_redux_elect():
    a = (integers(np.uint32, N, 3) % 5).astype(np.uint32)
    body = """setp.gt.u32 %p, %a, 2; vote.sync.ballot.b32 %d, %p, -1; vote.sync.any.pred %q, %p, -1;
        selp.u32 %e, 1, 0, %q; vote.sync.all.pred %q, %p, -1; selp.u32 %x, 2, 0, %q;
        or.b32 %e, %e, %x; match.any.sync.b32 %f, %a, -1; elect.sync _|%q, -1;
        selp.u32 %g, 1, 0, %q; activemask.b32 %h; match.all.sync.b32 %i|%q, %a, -1;"""
    got = execute(
        body, {"a": a}, dict.fromkeys("defghi", np.uint32), ".reg .pred %p, %q; .reg .b32 %x;"
    )
    for w in range(N // 32):
        v = a[w * 32 : w * 32 + 32]
        at = slice(w * 32, w * 32 + 32)
        assert set(got["d"][at]) == {sum(1 << k for k in range(32) if v[k] > 2)}
        assert set(got["e"][at]) == {int((v > 2).any()) + 2 * int((v > 2).all())}
        assert [int(x) for x in got["f"][at]] == [
            sum(1 << k for k in range(32) if v[k] == x) for x in v
        ]
        assert got["g"][at].sum() == 1
        assert set(got["i"][at]) == {0xFFFFFFFF if len(set(v)) == 1 else 0}
    assert set(got["h"]) == {0xFFFFFFFF}


@pytest.mark.parametrize(
    ("op", "ty"),
    [
        ("add", "u32"),
        ("add", "s32"),
        ("min", "s32"),
        ("max", "s32"),
        ("min", "u32"),
        ("max", "u32"),
        ("and", "b32"),
        ("or", "b32"),
        ("xor", "b32"),
    ],
)
def test_redux(op, ty):
    dtype = np.int32 if ty == "s32" else np.uint32
    a = integers(dtype, N, 4)
    got = execute(f"redux.sync.{op}.{ty} %d, %a, -1;", {"a": a}, {"d": dtype})["d"]
    fn = {
        "add": np.add,
        "min": np.minimum,
        "max": np.maximum,
        "and": np.bitwise_and,
        "or": np.bitwise_or,
        "xor": np.bitwise_xor,
    }[op]
    want = np.repeat(fn.reduce(a.reshape(-1, 32), axis=1, dtype=dtype), 32)
    np.testing.assert_array_equal(got, want)


def test_loops_with_different_trip_counts():
    a = (integers(np.uint32, N, 5) % 37).astype(np.uint32)
    body = """mov.u32 %d, 0; mov.u32 %k, 0;
        LOOP: setp.ge.u32 %p, %k, %a; @%p bra DONE; add.u32 %k, %k, 1; and.b32 %x, %k, 1;
        setp.eq.u32 %q, %x, 0; @!%q bra ODD; add.u32 %d, %d, %k; bra LOOP;
        ODD: add.u32 %d, %d, 100; bra.uni LOOP;
        DONE: shfl.sync.idx.b32 %e, %d, 0, 31, -1;"""
    got = execute(
        body, {"a": a}, {"d": np.uint32, "e": np.uint32}, ".reg .pred %p, %q; .reg .b32 %k, %x;"
    )
    want = np.array([sum(k if k % 2 == 0 else 100 for k in range(1, int(n) + 1)) for n in a])
    np.testing.assert_array_equal(got["d"], want)
    np.testing.assert_array_equal(got["e"], np.repeat(want[::32], 32))  # all lanes are back


def test_branches_through_a_list_of_targets():
    a = (integers(np.uint32, N, 7) % 3).astype(np.uint32)
    body = """TARGETS: .branchtargets ZERO, ONE, ZERO;
        mov.u32 %d, 0; brx.idx %a, TARGETS; ZERO: add.u32 %d, %d, 10; bra DONE;
        ONE: add.u32 %d, %d, 200; DONE: shfl.sync.idx.b32 %e, %d, 1, 31, -1;"""
    got = execute(body, {"a": a}, {"d": np.uint32, "e": np.uint32})
    want = np.where(a == 1, 200, 10)
    assert set(a) == {0, 1, 2}
    np.testing.assert_array_equal(got["d"], want)
    np.testing.assert_array_equal(got["e"], np.repeat(want[1::32], 32))  # all lanes are back
    same = execute(body, {"a": np.ones(N, np.uint32)}, {"d": np.uint32, "e": np.uint32})
    np.testing.assert_array_equal(same["d"], 200)


def test_predicated_instructions_keep_other_lanes():
    a = integers(np.uint32, N, 6)
    got = execute(
        "setp.lt.u32 %p, %a, 1000; mov.u32 %d, 7; @%p mov.u32 %d, %a;@!%p add.u32 %d, %d, 1;",
        {"a": a},
        {"d": np.uint32},
        ".reg .pred %p;",
    )["d"]
    np.testing.assert_array_equal(got, np.where(a < 1000, a, 8))


def test_calls():
    before = """.func (.param .b32 out) twice(.param .b32 x) {
        .reg .b32 %v; ld.param.b32 %v, [x]; add.u32 %v, %v, %v; st.param.b32 [out], %v; ret; }
        .func (.param .align 4 .b8 out[8]) both(.param .b32 x, .param .b32 y) {
        .reg .b32 %v, %w; .reg .pred %p; ld.param.b32 %v, [x]; setp.gt.u32 %p, %v, 50;
        @%p bra BIG; { .param .b32 p0; .param .b32 r0; st.param.b32 [p0], %v;
        call.uni (r0), twice, (p0); ld.param.b32 %v, [r0]; }
        BIG: ld.param.b32 %w, [y]; st.param.v2.b32 [out], {%v, %w}; ret; }"""
    a = (integers(np.uint32, N, 7) % 100).astype(np.uint32)
    body = """{ .param .b32 p0; .param .b32 p1; .param .align 4 .b8 r0[8];
        st.param.b32 [p0], %a; st.param.b32 [p1], 5; call (r0), both, (p0, p1);
        ld.param.b32 %d, [r0]; ld.param.b32 %e, [r0+4]; }"""
    got = execute(body, {"a": a}, {"d": np.uint32, "e": np.uint32}, before=before)
    np.testing.assert_array_equal(got["d"], np.where(a > 50, a, a * 2))
    assert set(got["e"]) == {5}


def test_local_and_generic_memory():
    a = integers(np.uint32, N, 8)
    body = """.local .align 8 .b8 stack[64]; mov.b64 %sp, stack; st.local.b32 [%sp+8], %a;
        st.local.v2.b16 [stack+16], {%lo, %lo}; cvta.local.u64 %g, %sp; ld.b32 %d, [%g+8];
        cvta.to.local.u64 %sp, %g; ld.local.b32 %e, [%sp+16];"""
    body = "mov.b32 {%lo, _}, %a;" + body
    got = execute(
        body, {"a": a}, {"d": np.uint32, "e": np.uint32}, ".reg .b64 %sp, %g; .reg .b16 %lo;"
    )
    np.testing.assert_array_equal(got["d"], a)
    np.testing.assert_array_equal(got["e"], (a & 0xFFFF) * 0x10001)


SHARED = ".extern .shared .align 16 .b8 smem[];\n"


def test_shared_memory_with_vectors():
    a = integers(np.uint32, N, 9)
    text = module(
        """
        .reg .b32 %t, %s, %a, %b, %c, %d, %e; .reg .b64 %p, %q;
        mov.u32 %t, %tid.x; mul.wide.u32 %q, %t, 4; ld.param.u64 %p, [p0]; add.s64 %p, %p, %q;
        ld.global.b32 %a, [%p]; shl.b32 %s, %t, 2; mov.u32 %b, smem; add.u32 %s, %s, %b;
        st.shared.b32 [%s], %a; bar.sync 0; and.b32 %c, %t, 124; shl.b32 %c, %c, 2;
        add.u32 %c, %c, %b; ld.shared.v4.b32 {%b, %c, %d, %e}, [%c];
        add.u32 %b, %b, %c; add.u32 %b, %b, %d; add.u32 %b, %b, %e;
        ld.param.u64 %p, [p1]; add.s64 %p, %p, %q; st.global.b32 [%p], %b; ret;""",
        ".param .u64 p0, .param .u64 p1",
        before=SHARED,
    )
    out = np.zeros_like(a)
    launch(text, 1, [a, out], num_warps=4, shared_bytes=512)
    want = np.repeat(a.reshape(-1, 4).sum(axis=1, dtype=np.uint32), 4)
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize(
    ("op", "ty"),
    [
        ("add", "u32"),
        ("min", "s32"),
        ("max", "u64"),
        ("and", "b32"),
        ("or", "b32"),
        ("xor", "b64"),
        ("exch", "b32"),
        ("add", "f32"),
        ("inc", "u32"),
        ("dec", "u32"),
    ],
)
def test_atomics(space, op, ty):
    """128 threads, 8 addresses: the final value does not depend on the order of turns."""
    bits = int(ty[1:])
    dtype = (
        {"u": np.uint64, "s": np.int64, "b": np.uint64, "f": np.float64}[ty[0]]
        if bits == 64
        else {"u": np.uint32, "s": np.int32, "b": np.uint32, "f": np.float32}[ty[0]]
    )
    a = (np.arange(N) % 50).astype(dtype) if op in ("add", "inc", "dec") else integers(dtype, N, 1)
    if op == "inc" or op == "dec":
        a[:] = 11
    size = bits // 8
    where = "%q" if space == "global" else "%s"
    text = module(
        f"""
        .reg .pred %first; .reg .b32 %t, %s, %k; .reg .b64 %p, %q, %o;
        .reg .b{bits} %a, %old, %zero;
        mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, {size}; ld.param.u64 %p, [p0];
        add.s64 %p, %p, %o; ld.global.b{bits} %a, [%p];
        and.b32 %k, %t, 7; mul.lo.u32 %s, %k, {size}; mul.wide.u32 %q, %k, {size};
        ld.param.u64 %o, [p1]; add.s64 %q, %q, %o; mov.u32 %k, smem; add.u32 %s, %s, %k;
        ld.global.b{bits} %zero, [%q];
        setp.lt.u32 %first, %t, 8; @%first st.shared.b{bits} [%s], %zero; bar.sync 0;
        atom.{space}.{op}.{ty} %old, [{where}], %a; bar.sync 0;
        ld.{space}.b{bits} %a, [{where}]; st.global.b{bits} [%p], %a; ret;""",
        ".param .u64 p0, .param .u64 p1",
        before=SHARED,
    )
    start = np.full(8, 9, dtype)
    data = a.copy()
    launch(text, 1, [data, start.copy()], num_warps=4, shared_bytes=64)
    for k in range(8):
        v, x = start[k], a[k::8]
        if op == "exch":
            assert set(data[k::8]) <= set(x)
            continue
        for y in x:
            with np.errstate(over="ignore"):
                v = {
                    "add": lambda v=v, y=y: v + y,
                    "min": lambda v=v, y=y: min(v, y),
                    "max": lambda v=v, y=y: max(v, y),
                    "and": lambda v=v, y=y: v & y,
                    "or": lambda v=v, y=y: v | y,
                    "xor": lambda v=v, y=y: v ^ y,
                    "inc": lambda v=v, y=y: 0 if v >= y else v + 1,
                    "dec": lambda v=v, y=y: y if v == 0 or v > y else v - 1,
                }[op]()
        assert set(data[k::8].tolist()) == {v.item() if hasattr(v, "item") else v}


def test_compare_and_swap_counts_every_thread():
    """Each thread retries until its cas succeeds: the counter reaches the thread count."""
    text = module(
        """
        .reg .b32 %v, %n, %old; .reg .b64 %p; .reg .pred %q;
        ld.param.u64 %p, [p0];
        AGAIN: ld.global.b32 %v, [%p]; add.u32 %n, %v, 1;
        atom.global.cas.b32 %old, [%p], %v, %n; setp.ne.u32 %q, %old, %v; @%q bra AGAIN; ret;""",
        ".param .u64 p0",
    )
    counter = np.zeros(1, np.uint32)
    launch(text, 3, [counter], num_warps=2)
    assert counter[0] == 192


def test_spin_on_another_thread():
    """Thread 0 waits for a flag that a later instruction of thread 1 sets."""
    text = module(
        """
        .reg .b32 %t, %v; .reg .b64 %p; .reg .pred %q;
        ld.param.u64 %p, [p0]; mov.u32 %t, %tid.x; setp.ne.u32 %q, %t, 0; @%q bra SET;
        WAIT: ld.global.b32 %v, [%p]; setp.eq.u32 %q, %v, 0; @%q bra WAIT; bra END;
        SET: st.global.b32 [%p], 1; END: ret;""",
        ".param .u64 p0",
    )
    flag = np.zeros(1, np.uint32)
    launch(text, 1, [flag], num_warps=1)
    assert flag[0] == 1


def test_grid_and_special_registers():
    text = module(
        """
        .reg .b32 %x, %y, %n, %i, %t; .reg .b64 %p, %o;
        mov.u32 %x, %ctaid.x; mov.u32 %y, %ctaid.y; mov.u32 %n, %nctaid.x;
        mad.lo.u32 %i, %y, %n, %x; mov.u32 %t, %ntid.x; mul.lo.u32 %i, %i, %t;
        mov.u32 %t, %tid.x; add.u32 %i, %i, %t; mul.wide.u32 %o, %i, 4; ld.param.u64 %p, [p0];
        add.s64 %p, %p, %o; mov.u32 %t, %warpid; shl.b32 %t, %t, 8; mov.u32 %n, %laneid;
        or.b32 %t, %t, %n; shl.b32 %y, %y, 16; or.b32 %t, %t, %y; st.global.b32 [%p], %t; ret;""",
        ".param .u64 p0",
    )
    out = np.zeros((2, 3, 64), np.uint32)
    stats = launch(text, (3, 2), [out], num_warps=2, max_threads=128)  # several batches
    y, _, t = np.indices(out.shape)
    np.testing.assert_array_equal(out, y << 16 | t // 32 << 8 | t % 32)
    assert stats.executed["global_store"] == 12 and stats.static["global_store"] == 1


@pytest.mark.parametrize(
    "reach",
    [
        "xor.b32 %r, %r, 1; mapa.shared::cluster.u32 %s, %s, %r;",
        "xor.b32 %s, %s, 0x1000000;",  # the rank is in bits 24 and up, also of own addresses
    ],
)
def test_cluster_reads_its_neighbour(reach):
    text = module(
        f"""
        .reg .b32 %t, %s, %r, %v, %i, %b; .reg .b64 %p, %o;
        mov.u32 %t, %tid.x; mov.u32 %i, %ctaid.x; mad.lo.u32 %i, %i, 32, %t;
        mul.wide.u32 %o, %i, 4; ld.param.u64 %p, [p0]; add.s64 %p, %p, %o;
        ld.global.b32 %v, [%p]; shl.b32 %s, %t, 2; mov.u32 %b, smem; add.u32 %s, %s, %b;
        st.shared.b32 [%s], %v; barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
        mov.u32 %r, %cluster_ctarank; {reach}
        ld.shared::cluster.b32 %v, [%s]; getctarank.shared::cluster.u32 %r, %s;
        shl.b32 %r, %r, 24; xor.b32 %v, %v, %r;
        barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
        st.global.b32 [%p], %v; ret;""",
        ".param .u64 p0",
        before=SHARED,
    )
    data = np.arange(4 * 32, dtype=np.uint32)
    launch(text, 2, [data], num_warps=1, shared_bytes=128, cluster=2)
    want = (
        np.arange(128, dtype=np.uint32).reshape(2, 2, 32)[:, ::-1]
        ^ (np.array([1, 0], np.uint32) << 24)[None, :, None]
    )
    np.testing.assert_array_equal(data, want.reshape(-1))


def test_named_barriers_order_producer_and_consumer():
    text = module(
        """
        .reg .b32 %t, %v, %s; .reg .b64 %p, %o; .reg .pred %q;
        mov.u32 %t, %tid.x; mov.u32 %s, smem; setp.ge.u32 %q, %t, 32; @%q bra CONSUMER;
        mad.lo.u32 %v, %t, 4, %s; st.shared.b32 [%v], %t; barrier.cta.arrive 1, 64; ret;
        CONSUMER: barrier.cta.sync 1, 64; sub.u32 %v, 63, %t; mad.lo.u32 %v, %v, 4, %s;
        ld.shared.b32 %v, [%v]; sub.u32 %t, %t, 32; mul.wide.u32 %o, %t, 4; ld.param.u64 %p, [p0];
        add.s64 %p, %p, %o; st.global.b32 [%p], %v; ret;""",
        ".param .u64 p0",
        before=SHARED,
    )
    out = np.zeros(32, np.uint32)
    launch(text, 1, [out], num_warps=2, shared_bytes=128)
    np.testing.assert_array_equal(out, np.arange(32)[::-1])


def test_bar_red():
    a = (np.arange(N) < 5).astype(np.uint32)
    got = execute(
        "setp.ne.u32 %p, %a, 0; bar.red.popc.u32 %d, 0, %p; bar.red.or.pred %q, 0, %p;"
        "selp.u32 %e, 1, 0, %q; bar.red.and.pred %q, 0, %p; selp.u32 %f, 1, 0, %q;",
        {"a": a},
        dict.fromkeys("def", np.uint32),
        ".reg .pred %p, %q;",
    )
    assert set(got["d"]) == {5} and set(got["e"]) == {1} and set(got["f"]) == {0}


def test_cp_async_groups():
    """Two groups in flight; waiting for all but one makes the first readable."""
    a = integers(np.uint32, 64, 1)
    text = module(
        """
        .reg .pred %q; .reg .b32 %t, %s, %x, %y, %n; .reg .b64 %p, %o;
        mov.u32 %t, %tid.x; shl.b32 %s, %t, 2; mov.u32 %x, smem; add.u32 %s, %s, %x;
        mul.wide.u32 %o, %t, 4; ld.param.u64 %p, [p0]; add.s64 %p, %p, %o;
        cp.async.ca.shared.global [%s], [%p], 4; cp.async.commit_group;
        setp.lt.u32 %q, %t, 16; selp.u32 %n, 4, 0, %q;
        cp.async.ca.shared.global [%s + 128], [%p + 128], 0x4, %n; cp.async.commit_group;
        cp.async.wait_group 1; ld.shared.b32 %x, [%s];
        cp.async.wait_group 0; ld.shared.b32 %y, [%s+128];
        st.global.b32 [%p], %y; st.global.b32 [%p+128], %x; ret;""",
        ".param .u64 p0",
        before=SHARED,
    )
    data = a.copy()
    launch(text, 1, [data], num_warps=1, shared_bytes=256)
    np.testing.assert_array_equal(data[32:], a[:32])
    np.testing.assert_array_equal(data[:32], np.where(np.arange(32) < 16, a[32:], 0))  # zero fill


def test_mbarrier():
    text = module(
        """
        .reg .b32 %t, %s, %v; .reg .b64 %p, %o, %tok; .reg .pred %q, %done;
        mov.u32 %t, %tid.x; mov.u32 %s, smem; setp.eq.u32 %q, %t, 0;
        @%q mbarrier.init.shared::cta.b64 [%s], 64; bar.sync 0;
        mad.lo.u32 %v, %t, 4, %s; st.shared.b32 [%v+16], %t;
        mbarrier.arrive.shared::cta.b64 %tok, [%s];
        WAIT: mbarrier.try_wait.parity.shared::cta.b64 %done, [%s], 0; @!%done bra WAIT;
        sub.u32 %v, 63, %t; mad.lo.u32 %v, %v, 4, %s; ld.shared.b32 %v, [%v+16];
        mul.wide.u32 %o, %t, 4; ld.param.u64 %p, [p0]; add.s64 %p, %p, %o;
        st.global.b32 [%p], %v; ret;""",
        ".param .u64 p0",
        before=SHARED,
    )
    out = np.zeros(64, np.uint32)
    launch(text, 1, [out], num_warps=2, shared_bytes=272)
    np.testing.assert_array_equal(out, np.arange(64)[::-1])


@pytest.mark.parametrize("trans", ["", ".trans"])
def test_ldmatrix_stmatrix(trans):
    """Lane l holds row l/4, columns 2(l%4) and 2(l%4)+1 of each 8x8 matrix (of the transposed
    matrix with .trans); stmatrix is the inverse."""
    m = np.arange(4 * 64, dtype=np.uint16)
    text = module(
        f"""
        .reg .b32 %t, %s, %a, %b, %c, %d, %r; .reg .b64 %p, %o;
        mov.u32 %t, %tid.x; mov.u32 %s, smem; mad.lo.u32 %r, %t, 16, %s;
        mul.wide.u32 %o, %t, 16; ld.param.u64 %p, [p0]; add.s64 %p, %p, %o;
        ld.global.v4.b32 {{%a, %b, %c, %d}}, [%p]; st.shared.v4.b32 [%r], {{%a, %b, %c, %d}};
        bar.warp.sync -1;
        ldmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 {{%a, %b, %c, %d}}, [%r];
        st.global.v4.b32 [%p], {{%a, %b, %c, %d}};
        stmatrix.sync.aligned.m8n8.x4{trans}.shared.b16 [%r+512], {{%a, %b, %c, %d}};
        bar.warp.sync -1; ld.shared.v4.b32 {{%a, %b, %c, %d}}, [%r+512];
        ld.param.u64 %p, [p1]; add.s64 %p, %p, %o; st.global.v4.b32 [%p], {{%a, %b, %c, %d}}; ret;
        """,
        ".param .u64 p0, .param .u64 p1",
        before=SHARED,
    )
    got, back = m.copy(), np.zeros_like(m)
    launch(text, 1, [got, back], num_warps=1, shared_bytes=1024)
    got = got.reshape(32, 4, 2)  # lane, matrix, element
    matrices = m.reshape(4, 8, 8)
    for lane in range(32):
        for k in range(4):
            for e in range(2):
                row, col = lane // 4, 2 * (lane % 4) + e
                want = matrices[k, col, row] if trans else matrices[k, row, col]
                assert got[lane, k, e] == want
    np.testing.assert_array_equal(back, m)


MMA = [
    ("f16", "m16n8k16", 2, 4, 2),
    ("bf16", "m16n8k16", 2, 4, 2),
    ("f16", "m16n8k8", 2, 2, 1),
    ("tf32", "m16n8k8", 1, 4, 2),
    ("tf32", "m16n8k4", 1, 2, 1),
    ("s8", "m16n8k32", 4, 4, 2),
    ("e5m2", "m16n8k32", 4, 4, 2),
    ("e4m3", "m16n8k32", 4, 4, 2),
]


@pytest.mark.parametrize(("ty", "shape", "per", "na", "nb"), MMA)
def test_mma(ty, shape, per, na, nb):
    """Small integers, so that every product and sum is exact whatever the order."""
    k = int(shape.split("k")[1])
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (16, k)), rng.integers(-4, 5, (k, 8))
    c = rng.integers(-9, 9, (16, 8))
    codes = {
        "f16": lambda v: v.astype(np.float16).view(np.uint16),
        "bf16": lambda v: (v.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16),
        "tf32": lambda v: v.astype(np.float32).view(np.uint32),
        "s8": lambda v: v.astype(np.int8).view(np.uint8),
        "e5m2": lambda v: (v.astype(np.float16).view(np.uint16) >> 8).astype(np.uint8),
        "e4m3": lambda v: np.array([e4m3_small(int(x)) for x in v.reshape(-1)], np.uint8).reshape(
            v.shape
        ),
    }[ty]
    ab, bb = codes(a), codes(b)
    ra = np.zeros((32, na, per), ab.dtype)
    rb = np.zeros((32, nb, per), bb.dtype)
    for lane in range(32):
        g, t = lane // 4, lane % 4
        for r in range(na):
            for e in range(per):
                ra[lane, r, e] = ab[g + 8 * (r % 2), r // 2 * 4 * per + t * per + e]
        for r in range(nb):
            for e in range(per):
                rb[lane, r, e] = bb[r * 4 * per + t * per + e, g]
    acc = np.int32 if ty == "s8" else np.float32
    rc = np.zeros((32, 4), acc)
    for lane in range(32):
        for r in range(4):
            rc[lane, r] = c[lane // 4 + 8 * (r // 2), 2 * (lane % 4) + r % 2]
    names, data = [], {}
    for prefix, v in (("a", ra), ("b", rb), ("c", rc)):
        words = np.ascontiguousarray(v).view(np.uint32).reshape(32, -1)
        group = [f"{prefix}{i}" for i in range(words.shape[1])]
        data.update({n: np.ascontiguousarray(words[:, i]) for i, n in enumerate(group)})
        names.append("{" + ", ".join("%" + n for n in group) + "}")
    dt = "s32" if ty == "s8" else "f32"
    text = f"mma.sync.aligned.{shape}.row.col.{dt}.{ty}.{ty}.{dt} {{%d0, %d1, %d2, %d3}}, "
    got = execute(text + ", ".join(names) + ";", data, {f"d{i}": acc for i in range(4)})
    want = a @ b + c
    for lane in range(32):
        for r in range(4):
            assert got[f"d{r}"][lane] == want[lane // 4 + 8 * (r // 2), 2 * (lane % 4) + r % 2]


def e4m3_small(v: int) -> int:
    """e4m3 code of an integer of magnitude 0 to 4."""
    return (0x80 if v < 0 else 0) | {0: 0, 1: 0x38, 2: 0x40, 3: 0x44, 4: 0x48}[abs(v)]


def test_module_variables_and_printf():
    before = """.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
        .global .align 4 .u32 table[4] = {10, 0x20, 30, 40};
        .global .align 1 .b8 fmt[10] = {116, 32, 37, 100, 32, 37, 46, 49, 102, 0};"""
    text = module(
        """
        .local .align 8 .b8 stack[16]; .reg .pred %q; .reg .b32 %t, %v; .reg .b64 %p, %o;
        .reg .f64 %f; mov.u32 %t, %tid.x; and.b32 %v, %t, 3;
        mul.wide.u32 %o, %v, 4; mov.u64 %p, table;
        add.s64 %p, %p, %o; ld.global.u32 %v, [%p];
        setp.ne.u32 %q, %t, 1; @%q bra END; st.local.u32 [stack], %v;
        mov.f64 %f, 0d4004000000000000;
        st.local.f64 [stack+8], %f; { .param .b64 a0; .param .b64 a1; .param .b32 r0;
        mov.u64 %p, fmt; cvta.global.u64 %p, %p; st.param.b64 [a0], %p; mov.u64 %p, stack;
        cvta.local.u64 %p, %p; st.param.b64 [a1], %p; call.uni (r0), vprintf, (a0, a1); }
        END: ret;""",
        before=before,
    )
    assert launch(text, 1, [], num_warps=1).printed == ["t 32 2.5"]


def test_static_counts():
    text = module(".reg .b32 %a; mov.u32 %a, 1; shfl.sync.up.b32 %a, %a, 1, 0, -1; bar.sync 0;")
    stats = count(text)
    assert stats.static["shuffle"] == 1 and stats.static["barrier"] == 1
    assert stats.opcodes["shfl.sync.up.b32"] == 1


@pytest.mark.parametrize(
    "line",
    [
        "frobnicate.b32 %a, %a;",
        "add.rx.f32 %a, %a, %a;",
        "ld.global.v3.b32 %a, [%a];",
        "shfl.up.b32 %a, %a, 1, 0;",
        "cvt.f16.f32 %h, %a;",
        ".frob 3;",
        "mov.b32 %a, %nope;",
        "bra NOWHERE;",
        "add.u32 %a, %a;",
        "mov.b64 %a, 1;",
        '.pragma "what";',
        "setp.foo.s32 %p, %a, 0;",
        "mul.u32 %a, %a, %a;",
        "call nothing;",
        "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 %a, %a;",
    ],
)
def test_unknown_text_stops_with_its_line(line):
    text = module(f".reg .b32 %a; .reg .b16 %h; .reg .pred %p;\nmov.u32 %a, 0;\n{line}\nret;")
    number = text.splitlines().index(line) + 1
    with pytest.raises(PtxUnsupported, match=f"PTX line {number}: .*"):
        launch(text, 1, [], num_warps=1)
