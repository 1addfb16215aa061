// Bits that hold copies are left alone: their threads have what they need in copies of their own.

// RUN: triton-scan-opt --lower-flip %s | FileCheck %s

#layout = #ttg.linear<{register = [[1], [0], [2]], lane = [[4], [0], [8], [0], [0]], warp = [[0], [0]], block = []}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @copies(%x: tensor<16xi32, #layout>) -> tensor<16xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: i32, %b: i32):
      %f = tt.extern_elementwise %a, %b {libname = "triton_scan", libpath = "", pure = true, symbol = "triton_scan_flip"} : (i32, i32) -> i32
      tt.scan.return %f : i32
    }) : (tensor<16xi32, #layout>) -> tensor<16xi32, #layout>
    tt.return %y : tensor<16xi32, #layout>
  }
}

// Lane bits 0 and 2; each of the 4 different registers moves once.
// CHECK-LABEL: @copies
// CHECK: llvm.mlir.constant(5 : i32)
// CHECK-COUNT-4: nvvm.shfl.sync bfly
// CHECK-NOT: shfl
// CHECK-NOT: local_alloc
