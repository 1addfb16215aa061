// 64 bits take two shuffles.

// RUN: triton-scan-opt --lower-flip %s | FileCheck %s

#layout = #ttg.linear<{register = [], lane = [[1], [2], [4], [8], [16]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @wide(%x: tensor<32xf64, #layout>) -> tensor<32xf64, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: f64, %b: f64):
      %f = tt.extern_elementwise %a, %b {libname = "triton_scan", libpath = "", pure = true, symbol = "triton_scan_flip"} : (f64, f64) -> f64
      tt.scan.return %f : f64
    }) : (tensor<32xf64, #layout>) -> tensor<32xf64, #layout>
    tt.return %y : tensor<32xf64, #layout>
  }
}

// CHECK-LABEL: @wide
// CHECK-COUNT-2: nvvm.shfl.sync bfly
// CHECK-NOT: shfl
