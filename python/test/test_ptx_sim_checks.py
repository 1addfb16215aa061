"""Each checker catches a small faulty kernel, names its lines, and passes the repaired one."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_sim_harness import module
from triton.tools.ptx_sim import (
    PtxMemoryError,
    PtxRaceError,
    PtxSimError,
    PtxSyncError,
    PtxUnsupported,
    launch,
)

SHARED = ".extern .shared .align 16 .b8 smem[];\n"
PRELUDE = """.reg .pred %p, %q, %done;
.reg .b32 %t, %s, %a, %b, %c, %w, %n;
.reg .b64 %g, %o, %tok;
ld.param.u64 %g, [p0];
mov.u32 %t, %tid.x;
shr.u32 %w, %t, 5;
mul.wide.u32 %o, %t, 4;
add.s64 %g, %g, %o;
mov.u32 %s, smem;
mad.lo.u32 %s, %t, 4, %s;
mov.u32 %n, %laneid;
"""


def run(
    body: str,
    warps: int = 2,
    size: int | None = None,
    shared: int = 1024,
    cluster: int = 1,
    grid: int = 1,
):
    text = module(PRELUDE + body + "\nret;", ".param .u64 p0", before=SHARED)
    data = np.zeros(warps * 32 if size is None else size, np.uint32)
    launch(
        text, grid, [data], num_warps=warps, shared_bytes=shared, cluster=cluster, max_steps=200_000
    )
    return text, data


def fails(error, body: str, *lines: str, **more) -> str:
    """The body must fail with `error`, naming the PTX lines of the texts given."""
    with pytest.raises(error) as info:
        run(body, **more)
    message = str(info.value)
    text = module(PRELUDE + body + "\nret;", ".param .u64 p0", before=SHARED).splitlines()
    for line in lines:
        number = next(k for k, have in enumerate(text, 1) if have.strip() == line)
        assert f"PTX line {number}" in message, message
    return message


def test_read_of_unwritten_shared_memory():
    body = "st.shared.b32 [%s], %t;\nbar.sync 0;\nld.shared.b32 %a, [%s+{}];"
    message = fails(PtxMemoryError, body.format(128), "ld.shared.b32 %a, [%s+128];")
    assert "nobody wrote" in message and "byte 256" in message and "warp 1, lane 0" in message
    run("st.shared.b32 [%s], %t;\nbar.sync 0;\nld.shared.b32 %a, [%s];")


def test_bytes_that_the_pragma_calls_unused_may_be_unwritten():
    body = """mad.lo.u32 %s, %t, 12, %s;
st.shared.v2.b32 [%s], {%t, %t};
st.shared.b32 [%s+8], %t;
PRAGMA
ld.shared.v4.b32 {%a, %b, %c, %n}, [%s];"""
    with pytest.raises(PtxMemoryError, match="nobody wrote"):
        run(body.replace("PRAGMA", ""))
    run(body.replace("PRAGMA", '.pragma "used_bytes_mask 0xfff";'))


def race_body(middle):
    return f"""st.shared.b32 [%s], %t;
{middle}
xor.b32 %a, %t, 32;
sub.u32 %b, %s, %t;
shl.b32 %a, %a, 2;
mov.u32 %b, smem;
add.u32 %b, %b, %a;
ld.shared.b32 %c, [%b];
st.global.b32 [%g], %c;"""


def test_read_after_write_race():
    message = fails(
        PtxRaceError, race_body(""), "ld.shared.b32 %c, [%b];", "st.shared.b32 [%s], %t;"
    )
    assert "this read is not ordered by a barrier after the write of warp 1" in message
    _, data = run(race_body("bar.sync 0;"))
    np.testing.assert_array_equal(data, np.arange(64) ^ 32)


def test_write_after_read_race():
    tail = "\n{}\nst.shared.b32 [%s], 0;"
    message = fails(
        PtxRaceError,
        race_body("bar.sync 0;") + tail.format(""),
        "st.shared.b32 [%s], 0;",
        "ld.shared.b32 %c, [%b];",
    )
    assert "after the read of warp" in message
    run(race_body("bar.sync 0;") + tail.format("bar.sync 0;"))


def test_write_after_write_race():
    body = "mov.u32 %a, smem;\nmad.lo.u32 %a, %n, 4, %a;\n{}st.shared.b32 [%a], {};"
    message = fails(PtxRaceError, body.format("", "%t"), "st.shared.b32 [%a], %t;")
    assert "write" in message
    run(body.format("", "%n"))  # replicas: equal bytes from one instruction
    run(body.format("setp.eq.u32 %p, %w, 0;\n@%p ", "%t"))
    twice = (
        "mov.u32 %a, smem;\nsetp.eq.u32 %p, %w, 0;\n@%p st.shared.b32 [%a], 1;\n{}"
        "@!%p st.shared.b32 [%a], 1;"
    )
    fails(PtxRaceError, twice.format(""), "@!%p st.shared.b32 [%a], 1;")  # two instructions
    run(twice.format("bar.sync 0;\n"))


def test_partial_overlap_is_a_race():
    body = (
        "mov.u32 %a, smem;\nsetp.eq.u32 %p, %w, 0;\n@%p st.shared.v2.b32 [%a], {{%t, %t}};\n{}"
        "@!%p ld.shared.b32 %b, [%a+4];"
    )
    fails(PtxRaceError, body.format(""), "@!%p ld.shared.b32 %b, [%a+4];")
    run(body.format("bar.sync 0;\n"))


def test_lanes_of_one_warp_do_not_race():
    run(
        "st.shared.b32 [%s], %t;\nxor.b32 %a, %t, 1;\nmov.u32 %b, smem;\n"
        "mad.lo.u32 %b, %a, 4, %b;\nld.shared.b32 %c, [%b];",
        warps=1,
    )


def test_a_named_barrier_orders_only_its_warps():
    body = """st.shared.b32 [%s], %t;
setp.lt.u32 %p, %w, 2;
@%p bar.sync 1, 64;
bar.sync 2, {};
ld.shared.b32 %c, [%s];
mov.u32 %a, smem;
setp.eq.u32 %q, %w, 1;
@%q ld.shared.b32 %c, [%a];
@!%q ld.shared.b32 %c, [%s];"""
    run(body.format(96), warps=3)
    three = body.replace("setp.eq.u32 %q, %w, 1;", "setp.eq.u32 %q, %w, 2;").replace(
        "bar.sync 2, {};\n", ""
    )
    fails(PtxRaceError, three, "@%q ld.shared.b32 %c, [%a];", warps=3)


def test_arrive_does_not_order_the_arriver():
    body = """setp.eq.u32 %p, %w, 0;
@%p bra A;
ld.shared.b32 %c, [%s];
bar.sync 1, 64;
bra E;
A: st.shared.b32 [%s+128], %t;
{} 1, 64;
{}
E:"""
    # warp 1 reads what warp 0 writes: with the read first in time, only order counts
    with pytest.raises((PtxRaceError, PtxMemoryError)):
        run(body.format("bar.arrive", ""))


def test_atomics_race_with_plain_accesses_only():
    body = (
        "mov.u32 %a, smem;\nsetp.eq.u32 %p, %t, 0;\n@%p st.shared.b32 [%a], 0;\n{}"
        "atom.shared.add.u32 %b, [%a], 1;\n{}ld.shared.b32 %c, [%a];\nst.global.b32 [%g], %c;"
    )
    fails(PtxRaceError, body.format("", "bar.sync 0;\n"), "atom.shared.add.u32 %b, [%a], 1;")
    fails(PtxRaceError, body.format("bar.sync 0;\n", ""), "ld.shared.b32 %c, [%a];")
    _, data = run(body.format("bar.sync 0;\n", "bar.sync 0;\n"))
    assert set(data) == {64}


def test_barrier_that_a_warp_skips():
    body = "setp.eq.u32 %p, %w, 0;\n{}bar.sync 0;\nst.global.b32 [%g], %t;"
    message = fails(PtxSyncError, body.format("@%p "), "@%p bar.sync 0;")
    assert "deadlock" in message and "CTA 0 warp 0 (32 lanes)" in message
    assert "1 warps have exited" in message
    run(body.format(""))


def test_barrier_after_an_exit():
    body = "setp.eq.u32 %p, %w, 1;\n@%p ret;\n{};"
    fails(PtxSyncError, body.format("bar.sync 0"), "bar.sync 0;")
    run(body.format("bar.sync 0, 32"))


def test_barrier_that_lanes_of_a_warp_skip():
    body = (
        "setp.lt.u32 %p, %n, 16;\n@%p bra SKIP;\nbar.sync {};\nbra END;\nSKIP: bar.sync {};\nEND:"
    )
    fails(PtxSyncError, body.format(0, 1), "bar.sync 0;")
    run("setp.lt.u32 %p, %n, 16;\n@%p bra SKIP;\nadd.u32 %a, %t, 1;\nSKIP: bar.sync 0;")


def test_barrier_with_two_thread_counts():
    body = "setp.eq.u32 %p, %w, 0;\n@%p bra A;\nbar.sync 1, 64;\nbra E;\nA: bar.sync 1, {};\nE:"
    message = fails(PtxSyncError, body.format(96))
    assert "96" in message and "64" in message
    run(body.format(64))


def test_shfl_from_a_lane_that_does_not_take_part():
    body = (
        "mov.b32 %a, %t;\nsetp.lt.u32 %p, %n, 16;\n@!%p bra END;\n"
        "shfl.sync.bfly.b32 %b, %a, {}, 31, 0xffff;\nEND:"
    )
    message = fails(PtxSyncError, body.format(16))
    assert "reads lane 16, which does not take part" in message
    run(body.format(8))


def test_shfl_outside_its_own_mask():
    message = fails(
        PtxSyncError,
        "shfl.sync.bfly.b32 %b, %t, 1, 31, 0xffff;",
        "shfl.sync.bfly.b32 %b, %t, 1, 31, 0xffff;",
    )
    assert "not in its own member mask" in message


def test_shfl_that_lanes_never_reach():
    body = (
        "setp.lt.u32 %p, %n, 16;\n@%p bra A;\nshfl.sync.bfly.b32 %b, %t, 1, 31, {};\n"
        "bra END;\nA: bar.sync 0;\nEND:"
    )
    message = fails(PtxSyncError, body.format(-1), "shfl.sync.bfly.b32 %b, %t, 1, 31, -1;")
    assert "deadlock" in message


def test_shfl_from_an_exited_lane():
    body = "setp.ge.u32 %p, %n, 16;\n@%p ret;\nshfl.sync.bfly.b32 %b, %t, {}, 31, -1;"
    assert "lane 16" in fails(PtxSyncError, body.format(16))
    run(body.format(8))


def test_global_bounds_and_alignment():
    body = "st.global.b32 [%g{}], %t;"
    assert "byte 256 of argument 0 (256 bytes)" in fails(
        PtxMemoryError, body.format("+4"), "st.global.b32 [%g+4], %t;"
    )
    assert "byte -4" in fails(PtxMemoryError, body.format("+-4"))
    assert "misaligned" in fails(PtxMemoryError, body.format("+2"))
    fails(PtxMemoryError, "ld.global.v4.b32 {%a, %b, %c, %n}, [%g];")
    fails(PtxMemoryError, body.format("+4000000"))
    run(body.format(""))
    run("setp.lt.u32 %p, %t, 63;\n@%p st.global.b32 [%g+4], %t;")


def test_null_pointer():
    fails(PtxMemoryError, "mov.u64 %g, 0;\nld.global.b32 %a, [%g];", "ld.global.b32 %a, [%g];")


def test_read_only_arrays():
    text = module(PRELUDE + "st.global.b32 [%g], %t;\nret;", ".param .u64 p0", before=SHARED)
    data = np.zeros(32, np.uint32)
    data.flags.writeable = False
    with pytest.raises(PtxMemoryError, match="read-only argument 0"):
        launch(text, 1, [data], num_warps=1, shared_bytes=4)


def test_shared_bounds_and_alignment():
    run("st.shared.b32 [%s], %t;", shared=256)
    assert "byte 252 of 252" in fails(PtxMemoryError, "st.shared.b32 [%s], %t;", shared=252)
    assert "misaligned" in fails(PtxMemoryError, "st.shared.v2.b32 [%s+4], {%t, %t};")
    fails(PtxMemoryError, "mov.u32 %s, 0;\nst.shared.b32 [%s], %t;")


CLUSTER = """mov.u32 %a, %cluster_ctarank;
st.shared.b32 [%s], %t;
{}
xor.b32 %a, %a, 1;
mapa.shared::cluster.u32 %s, %s, %a;
ld.shared::cluster.b32 %b, [%s];
{}"""
MEET = "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;"


def test_cluster_races():
    size = {"cluster": 2, "size": 64, "warps": 2}
    fails(
        PtxRaceError,
        CLUSTER.format("bar.sync 0;", ""),
        "ld.shared::cluster.b32 %b, [%s];",
        "st.shared.b32 [%s], %t;",
        **size,
    )
    fails(PtxRaceError, CLUSTER.format(MEET.replace("arrive", "arrive.relaxed"), ""), **size)
    run(CLUSTER.format(MEET, ""), **size)
    again = "mov.u32 %s, smem;\nmad.lo.u32 %s, %t, 4, %s;\nst.shared.b32 [%s], 5;"
    fails(
        PtxRaceError,
        CLUSTER.format(MEET, again),
        "st.shared.b32 [%s], 5;",
        "ld.shared::cluster.b32 %b, [%s];",
        **size,
    )
    run(CLUSTER.format(MEET, MEET + "\n" + again), **size)


def test_cluster_barrier_misuse():
    size = {"cluster": 2, "size": 64}
    fails(PtxSyncError, "barrier.cluster.wait.aligned;", "barrier.cluster.wait.aligned;", **size)
    fails(PtxSyncError, "barrier.cluster.arrive.aligned;\nbarrier.cluster.arrive.aligned;", **size)
    body = (
        "mov.u32 %a, %cluster_ctarank;\nsetp.eq.u32 %p, %a, 1;\n@%p bra L;\n"
        + MEET
        + "\nbra E;\nL: bar.sync 0;\n{}\nE:"
    )
    assert "deadlock" in fails(PtxSyncError, body.format("bar.sync 1, 96;"), **size)
    run(body.format(MEET), **size)
    assert "mapa to rank 2" in fails(PtxMemoryError, "mapa.shared::cluster.u32 %s, %s, 2;", **size)


def test_plain_shared_access_stays_in_its_cta():
    fails(
        PtxMemoryError,
        CLUSTER.format(MEET, "").replace("ld.shared::cluster", "ld.shared"),
        cluster=2,
        size=64,
    )


def test_copy_that_has_not_arrived():
    body = (
        "cp.async.ca.shared.global [%s], [%g], 4;\ncp.async.commit_group;\n{}\n"
        "ld.shared.b32 %a, [%s];"
    )
    message = fails(PtxMemoryError, body.format(""), "ld.shared.b32 %a, [%s];")
    assert "cp.async has not been waited for" in message
    fails(PtxMemoryError, body.format("cp.async.wait_group 1;"))
    run(body.format("cp.async.wait_group 0;"))
    other = body.format("cp.async.wait_all;\n{}\nmov.u32 %s, smem;")
    fails(PtxRaceError, other.format(""), "ld.shared.b32 %a, [%s];")
    run(other.format("bar.sync 0;"))


def test_mbarrier_misuse():
    fails(PtxSyncError, "mov.u32 %s, smem;\nmbarrier.arrive.shared.b64 %tok, [%s];")
    fails(
        PtxSyncError,
        "mov.u32 %s, smem;\nsetp.eq.u32 %p, %t, 0;\n"
        "@%p mbarrier.init.shared.b64 [%s], 8;\nbar.sync 0;\n"
        "mbarrier.arrive.shared.b64 %tok, [%s], 9;",
    )


def test_wgmma_misuse():
    regs = ", ".join(f"%f{i}" for i in range(4))
    text = """.reg .b32 %f<4>; .reg .b64 %da, %db;
mov.u64 %da, {:#x}; mov.u64 %db, {:#x};
{}
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{{}}}, %da, %db, 0, 1, 1, 0, 0;"""
    fill = (
        "mov.u32 %a, 0;\nL: st.shared.b32 [%s], 0;\nadd.u32 %s, %s, 512;\n"
        "add.u32 %a, %a, 1;\nsetp.lt.u32 %p, %a, 8;\n@%p bra L;\nbar.sync 0;"
    )
    matrix = 1024 >> 4 | 8 << 16 | 16 << 32  # at byte 1024, no swizzle
    other = matrix + (2048 >> 4)
    size = {"warps": 4, "shared": 4096}
    message = fails(PtxMemoryError, text.format(matrix, other, "", regs), **size)
    assert "nobody wrote" in message
    fails(PtxRaceError, text.format(matrix, other, fill.replace("bar.sync 0;", ""), regs), **size)
    run(text.format(matrix, other, fill, regs), **size)
    part = fill + "\nsetp.gt.u32 %p, %w, 2;\n@%p ret;"
    assert "part of a warpgroup" in fails(
        PtxSyncError, text.format(matrix, other, part, regs), **size
    )


def test_a_value_that_was_never_computed():
    message = fails(PtxSimError, "bra L;\nmov.u32 %a, 1;\nL: add.u32 %b, %a, 1;")
    assert "register %a may be read before anything wrote it" in message


def test_branch_beyond_the_list_of_targets():
    message = fails(PtxSimError, "T: .branchtargets A; brx.idx %t, T; A: mov.u32 %a, 0;")
    assert "index 1 into a list of 1 targets" in message and "warp 0, lane 1" in message


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("T: .branchtargets A; brx.idx %t, T;", "unknown label A"),
        ("A: brx.idx %t, A;", "unknown list of targets A"),
        (".branchtargets A; A: mov.u32 %a, 0;", "without a label"),
    ],
)
def test_branches_to_nowhere(body, message):
    assert message in fails(PtxUnsupported, body)


def test_runaway_loop():
    assert "steps" in fails(PtxSimError, "LOOP: bra LOOP;")


def test_arrays_stay_as_they_were_when_a_kernel_fails():
    text = module(
        PRELUDE + "st.global.b32 [%g], %t;\nld.shared.b32 %a, [%s];\nret;",
        ".param .u64 p0",
        before=SHARED,
    )
    data = np.full(32, 7, np.uint32)
    with pytest.raises(PtxMemoryError):
        launch(text, 1, [data], num_warps=1, shared_bytes=128)
    assert set(data) == {7}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_warps": 4}, "requires 64 threads"),
        ({"cluster": 2}, "clusters"),
        ({"args": []}, "takes 1 arguments"),
        ({"args": [np.zeros((4, 4), np.uint32).T]}, "contiguous"),
        ({"args": ["x"]}, "str is neither"),
        ({"args": [2**80]}, "does not fit"),
        ({"grid": (1, 2, 3, 4)}, "grid"),
        ({"num_warps": 0}, "num_warps"),
        ({"shared_bytes": 10**6}, "shared memory"),
    ],
)
def test_bad_launches(change, message):
    text = module("ret;", ".param .u64 p0").replace(
        "p0)", "p0)\n.reqntid 64\n.explicitcluster\n.reqnctapercluster 1"
    )
    call = {"grid": 1, "args": [0], "num_warps": 2, **change}
    with pytest.raises(PtxSimError, match=message):
        launch(text, call.pop("grid"), call.pop("args"), **call)


def test_source_lines_are_named():
    body = '.loc 1 12 5\nld.shared.b32 %a, [%s];\n.file 1 "kernel.py"'
    with pytest.raises(PtxMemoryError, match=r"kernel\.py:12:5"):
        run(body)


def test_overlapping_arrays_share_memory():
    text = module(
        """
        .reg .b32 %t, %a; .reg .b64 %p, %q, %o; mov.u32 %t, %tid.x; mul.wide.u32 %o, %t, 4;
        ld.param.u64 %p, [p0]; ld.param.u64 %q, [p1]; add.s64 %p, %p, %o; add.s64 %q, %q, %o;
        st.global.b32 [%p], %t; ld.global.b32 %a, [%q]; add.u32 %a, %a, 100;
        st.global.b32 [%q], %a; ret;""",
        ".param .u64 p0, .param .u64 p1",
    )
    data = np.zeros(64, np.uint32)
    launch(text, 1, [data[:32], data[16:48]], num_warps=1)
    t = np.arange(64)
    want = np.where(t < 16, t, np.where(t < 32, t + 100, np.where(t < 48, 100, 0)))
    np.testing.assert_array_equal(data, want)
