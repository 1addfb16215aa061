// The lanes of a row change places in one move (row_mirror).

// RUN: triton-scan-opt --lower-flip %s | FileCheck %s

#layout = #ttg.linear<{register = [], lane = [[1], [2], [4], [8], [0], [0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx942"} {
  tt.func public @row(%x: tensor<16xi32, #layout>) -> tensor<16xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: i32, %b: i32):
      %f = tt.extern_elementwise %a, %b {libname = "triton_scan", libpath = "", pure = true, symbol = "triton_scan_flip"} : (i32, i32) -> i32
      tt.scan.return %f : i32
    }) : (tensor<16xi32, #layout>) -> tensor<16xi32, #layout>
    tt.return %y : tensor<16xi32, #layout>
  }
}

// CHECK-COUNT-1: rocdl.update.dpp %{{.+}}, %{{.+}} with 320, 15, 15, true
// CHECK-NOT: rocdl.
