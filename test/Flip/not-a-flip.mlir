// Only the marked region stands for a flip; other pure calls are combine functions.

// RUN: triton-scan-opt --lower-flip %s | FileCheck %s

#layout = #ttg.linear<{register = [], lane = [[1], [2], [4], [8], [16]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @other(%x: tensor<32xf32, #layout>) -> tensor<32xf32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: f32, %b: f32):
      %f = tt.extern_elementwise %a, %b {libname = "triton_scan", libpath = "", pure = true, symbol = "__nv_hypotf"} : (f32, f32) -> f32
      tt.scan.return %f : f32
    }) : (tensor<32xf32, #layout>) -> tensor<32xf32, #layout>
    tt.return %y : tensor<32xf32, #layout>
  }
  tt.func @flip(%x: tensor<32xf32, #layout>) -> tensor<32xf32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: f32, %b: f32):
      %f = tt.extern_elementwise %a, %b {libname = "triton_scan", libpath = "", pure = true, symbol = "triton_scan_flip"} : (f32, f32) -> f32
      tt.scan.return %f : f32
    }) : (tensor<32xf32, #layout>) -> tensor<32xf32, #layout>
    tt.return %y : tensor<32xf32, #layout>
  }
}

// CHECK-LABEL: @other
// CHECK:         tt.scan
// CHECK-LABEL: @flip
// CHECK-NOT:     tt.scan
