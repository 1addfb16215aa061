// The 32 lanes of a wave on RDNA change places in one move.

// RUN: triton-scan-opt --lower-flip %s | FileCheck %s

#layout = #ttg.linear<{register = [], lane = [[1], [2], [4], [8], [16]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "hip:gfx1100"} {
  tt.func public @wave(%x: tensor<32xi32, #layout>) -> tensor<32xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: i32, %b: i32):
      %f = tt.extern_elementwise %a, %b {libname = "triton_scan", libpath = "", pure = true, symbol = "triton_scan_flip"} : (i32, i32) -> i32
      tt.scan.return %f : i32
    }) : (tensor<32xi32, #layout>) -> tensor<32xi32, #layout>
    tt.return %y : tensor<32xi32, #layout>
  }
}

// CHECK-COUNT-1: llvm.call_intrinsic "llvm.amdgcn.permlanex16"
// CHECK-NOT: amdgcn
// CHECK-NOT: rocdl.
