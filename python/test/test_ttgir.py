"""TTGIR files, whose module may say little, or something else, of what it is compiled for."""

from __future__ import annotations

import numpy as np
import pytest
import triton
from scan_values import compile_ttgir, fold
from triton import native_scan
from triton.backends.compiler import GPUTarget
from triton.tools.ptx_sim import run_compiled

N = 512
FILE = """
#layout = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {ATTRIBUTES} {
  tt.func public @kernel(%p: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #layout>
    %s = tt.splat %p : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #layout>
    %a = tt.addptr %s, %i : tensor<512x!tt.ptr<i32>, #layout>, tensor<512xi32, #layout>
    %x = tt.load %a : tensor<512x!tt.ptr<i32>, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = REVERSE}> ({
    ^bb0(%b: i32, %c: i32):
      %d = arith.addi %b, %c : i32
      tt.scan.return %d : i32
    }) : (tensor<512xi32, #layout>) -> tensor<512xi32, #layout>
    tt.store %a, %y : tensor<512x!tt.ptr<i32>, #layout>
    tt.return
  }
}
"""
WARPS = '"ttg.num-warps" = 4 : i32'
ALL = f'{WARPS}, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32'
ATTRIBUTES = {
    "no target": ALL,
    "warps only": WARPS,
    "older target": f'{ALL}, ttg.target = "cuda:80"',
    "other backend's": f'{ALL}, ttg.target = "hip:gfx942"',
    "unknown target": f'{ALL}, ttg.target = "toaster:1"',
}


def text(attributes: str, reverse: bool) -> str:
    return FILE.replace("ATTRIBUTES", attributes).replace("REVERSE", str(reverse).lower())


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("attributes", ATTRIBUTES.values(), ids=ATTRIBUTES)
def test_compiled_for_the_given_target(attributes, reverse):
    x = np.random.default_rng(1).integers(-(2**31), 2**31, N).astype(np.int32)
    (wanted,) = fold(lambda a, b: a + b, [x], 0, reverse)
    run_compiled(compile_ttgir(text(attributes, reverse)), 1, [x])
    np.testing.assert_array_equal(x, wanted)


@pytest.mark.parametrize("attributes", ATTRIBUTES.values(), ids=ATTRIBUTES)
def test_compiled_for_amd(attributes, tmp_path):
    """With the moves between lanes of the given target, which gfx942 and NVIDIA do not have."""
    path = tmp_path / "kernel.ttgir"
    path.write_text(text(attributes, True))
    kernel = triton.compile(str(path), target=GPUTarget("hip", "gfx1100", 32))
    assert "v_permlanex16_b32" in kernel.asm["amdgcn"]


@pytest.mark.parametrize("attributes", [ALL, WARPS])
def test_warps_of_another_size_are_refused(attributes, tmp_path):
    path = tmp_path / "kernel.ttgir"
    path.write_text(text(attributes, True))
    words = "a warp of hip:gfx942 has 64 threads, but the module's ttg.threads-per-warp is 32"
    with pytest.raises(native_scan.ScanLoweringError, match=words):
        triton.compile(str(path), target=GPUTarget("hip", "gfx942", 64))


def test_warps_of_the_given_target(tmp_path):
    path = tmp_path / "kernel.ttgir"
    path.write_text(text(ALL.replace("32 :", "64 :"), True).replace("[32]", "[64]"))
    kernel = triton.compile(str(path), target=GPUTarget("hip", "gfx942", 64))
    assert "wave_rol" in kernel.asm["amdgcn"]
