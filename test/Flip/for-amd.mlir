// A loop carries a tensor of rank 2 from flip to flip. AMD's AxisInfo once asserted on it, so it is compiled to the end.

// RUN: triton-scan-opt --amdgcn %s | FileCheck %s

#layout = #ttg.linear<{register = [], lane = [[1, 0], [0, 1], [0, 4], [2, 0], [0, 2], [4, 0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx942"} {
  tt.func public @carried(%p: !tt.ptr<i32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<8x8x!tt.ptr<i32>, #layout>
    %x = tt.load %ps : tensor<8x8x!tt.ptr<i32>, #layout>
    %z = scf.for %i = %c0 to %n step %c1 iter_args(%v = %x) -> (tensor<8x8xi32, #layout>) : i32 {
      %y = "tt.scan"(%v) <{axis = 1 : i32, reverse = false}> ({
      ^bb0(%a: i32, %b: i32):
        %c = tt.extern_elementwise %a, %b {libname = "triton_scan", libpath = "", pure = true, symbol = "triton_scan_flip"} : (i32, i32) -> i32
        tt.scan.return %c : i32
      }) : (tensor<8x8xi32, #layout>) -> tensor<8x8xi32, #layout>
      scf.yield %y : tensor<8x8xi32, #layout>
    }
    tt.store %ps, %z : tensor<8x8x!tt.ptr<i32>, #layout>
    tt.return
  }
}

// CHECK-NOT: s_barrier
// CHECK: s_endpgm
