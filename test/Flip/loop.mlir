// A flip in a loop takes the layout that holds its axis in registers, where it is free; the conversions
// stay outside.

// RUN: triton-scan-opt --choose-scan-layout --lower-flip %s | FileCheck %s

#layout = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [1, 1], order = [1, 0]}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @loop(%x: tensor<64x8xf32, #layout>) -> tensor<64x8xf32, #layout> {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %n = arith.constant 64 : i32
    %y = scf.for %i = %zero to %n step %one iter_args(%v = %x) -> (tensor<64x8xf32, #layout>) : i32 {
      %f = "tt.scan"(%v) <{axis = 1 : i32, reverse = false}> ({
      ^bb0(%a: f32, %b: f32):
        %c = tt.extern_elementwise %a, %b {libname = "triton_scan", libpath = "", pure = true, symbol = "triton_scan_flip"} : (f32, f32) -> f32
        tt.scan.return %c : f32
      }) : (tensor<64x8xf32, #layout>) -> tensor<64x8xf32, #layout>
      %s = arith.addf %f, %v : tensor<64x8xf32, #layout>
      scf.yield %s : tensor<64x8xf32, #layout>
    }
    tt.return %y : tensor<64x8xf32, #layout>
  }
}

// CHECK:     ttg.convert_layout
// CHECK:     scf.for
// CHECK-NOT: {{shfl|convert_layout|local_alloc}}
// CHECK:     scf.yield
// CHECK:     ttg.convert_layout
