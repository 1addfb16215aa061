// What lies in another CTA comes through a conversion that gives each CTA all positions.

// RUN: triton-scan-opt --lower-flip %s | FileCheck %s

#layout = #ttg.linear<{register = [], lane = [[1], [2], [4], [8], [16]], warp = [], block = [[32], [64]]}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @blocks(%x: tensor<128xi32, #layout>) -> tensor<128xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: i32, %b: i32):
      %f = tt.extern_elementwise %a, %b {libname = "triton_scan", libpath = "", pure = true, symbol = "triton_scan_flip"} : (i32, i32) -> i32
      tt.scan.return %f : i32
    }) : (tensor<128xi32, #layout>) -> tensor<128xi32, #layout>
    tt.return %y : tensor<128xi32, #layout>
  }
}

// CHECK-LABEL: @blocks
// CHECK:         nvvm.shfl.sync bfly
// CHECK:         ttg.convert_layout
// CHECK-COUNT-3: llvm.select
// CHECK-NOT:     llvm.select
