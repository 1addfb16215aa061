// On a target whose moves are not known, lanes are named by addresses.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s

#layout = #ttg.linear<{register = [], lane = [[1], [2], [4], [8], [16]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "hip:gfx1250"} {
  tt.func public @unknown(%x: tensor<32xi32, #layout>) -> tensor<32xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<32xi32, #layout>) -> tensor<32xi32, #layout>
    tt.return %y : tensor<32xi32, #layout>
  }
}

// CHECK-COUNT-5: rocdl.ds_bpermute
// CHECK-NOT: rocdl.
