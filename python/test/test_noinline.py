"""Scans and flips in functions that ask not to be inlined and take and return tensors.

Triton's frontend makes no such functions, so this one is TTGIR.  It runs in the simulator.
"""

from __future__ import annotations

import numpy as np
import pytest
from scan_values import compile_ttgir, fold
from triton.tools.ptx_sim import run_compiled

TTGIR = """
#l = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]CTAS}>
module attributes {"ttg.num-ctas" = NUM_CTAS : i32, "ttg.num-warps" = 4 : i32,
                   "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func private @twice(%x: tensor<512xi32, #l>) -> tensor<512xi32, #l>
      attributes {noinline = true} {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = REVERSE}> ({
    ^bb0(%a: i32, %b: i32):
      %s = COMBINE
      tt.scan.return %s : i32
    }) : (tensor<512xi32, #l>) -> tensor<512xi32, #l>
    tt.return %y : tensor<512xi32, #l>
  }
  tt.func public @kernel(%x: !tt.ptr<i32>, %out: !tt.ptr<i32>) {
    %i = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32, #l>
    %xs = tt.splat %x : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #l>
    %px = tt.addptr %xs, %i : tensor<512x!tt.ptr<i32>, #l>, tensor<512xi32, #l>
    %v = tt.load %px : tensor<512x!tt.ptr<i32>, #l>
    %y = tt.call @twice(%v) : (tensor<512xi32, #l>) -> tensor<512xi32, #l>
    %w = arith.muli %y, %v : tensor<512xi32, #l>
    %z = tt.call @twice(%w) : (tensor<512xi32, #l>) -> tensor<512xi32, #l>
    %os = tt.splat %out : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #l>
    %po = tt.addptr %os, %i : tensor<512x!tt.ptr<i32>, #l>, tensor<512xi32, #l>
    tt.store %po, %z : tensor<512x!tt.ptr<i32>, #l>
    tt.return
  }
}
"""


ADD = "arith.addi %a, %b : i32"
FLIP = (
    'tt.extern_elementwise %a, %b {libname = "triton_scan", libpath = "", pure = true, '
    'symbol = "triton_scan_flip"} : (i32, i32) -> i32'
)


def source(combine, reverse, num_ctas=1):
    bases = [[1 << i] for i in range(num_ctas.bit_length() - 1)]
    ctas = f", CGALayout = {bases}" if bases else ""
    text = TTGIR.replace("NUM_CTAS", str(num_ctas)).replace("CTAS", ctas)
    return text.replace("COMBINE", combine).replace("REVERSE", str(reverse).lower())


def check_values(compiled, function):
    x = np.random.default_rng(0).integers(-(2**31), 2**31, 512).astype(np.int32)
    out = np.zeros_like(x)
    run_compiled(compiled, 1, [x, out])
    np.testing.assert_array_equal(out, function(function(x) * x))


@pytest.mark.parametrize("reverse", [False, True])
def test_called_with_tensors(reverse):
    """Twice, so that both calls use the same shared memory."""
    compiled = compile_ttgir(source(ADD, reverse))
    assert compiled.asm["ptx"].count("call.uni") == 2
    check_values(compiled, lambda x: fold(np.add, [x], 0, reverse)[0])


@pytest.mark.parametrize("num_ctas", [2, 4])
class TestInlinedWhereItCrossesCtas:
    """Triton's barriers of a cluster have to be in the kernel."""

    @pytest.mark.parametrize("reverse", [False, True])
    def test_scan(self, reverse, num_ctas):
        compiled = compile_ttgir(source(ADD, reverse, num_ctas))
        assert "call.uni" not in compiled.asm["ptx"]
        check_values(compiled, lambda x: fold(np.add, [x], 0, reverse)[0])

    def test_flip(self, num_ctas):
        compiled = compile_ttgir(source(FLIP, False, num_ctas))
        assert "call.uni" not in compiled.asm["ptx"]
        check_values(compiled, np.flip)
