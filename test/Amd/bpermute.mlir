// Lanes 32 apart have neither a move of the ALU nor a swizzle on CDNA 3.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s

#layout = #ttg.linear<{register = [], lane = [[0], [0], [0], [0], [0], [1]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx942"} {
  tt.func public @bpermute(%x: tensor<2xi32, #layout>) -> tensor<2xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<2xi32, #layout>) -> tensor<2xi32, #layout>
    tt.return %y : tensor<2xi32, #layout>
  }
}

// CHECK-COUNT-1: rocdl.ds_bpermute
// CHECK-NOT: rocdl.
