// GFX9 before CDNA 2 has no row_newbcast: the steps that take it elsewhere go through the LDS unit.

// RUN: sed 's/DIRECTION/false/' %s | sed 's/TARGET/gfx908/' | triton-scan-opt --lower-scan - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | sed 's/TARGET/gfx908/' | triton-scan-opt --lower-scan - | FileCheck %s

#layout = #ttg.linear<{register = [], lane = [[1], [2], [4], [8], [0], [0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:TARGET"} {
  tt.func public @older(%x: tensor<16xi32, #layout>) -> tensor<16xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<16xi32, #layout>) -> tensor<16xi32, #layout>
    tt.return %y : tensor<16xi32, #layout>
  }
}

// CHECK-COUNT-4: rocdl.update.dpp
// CHECK-NOT: rocdl.update.dpp
// CHECK-COUNT-1: rocdl.ds_swizzle
// CHECK-NOT: rocdl.
