// CTAs that hold other rows do not talk to each other.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefixes=CHECK,%base
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefixes=CHECK,%base

#layout = #ttg.linear<{register = [], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]], block = [[0, 1]]}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 2 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @rows(%p: !tt.ptr<i32>) {
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<128x2x!tt.ptr<i32>, #layout>
    %x = tt.load %ps : tensor<128x2x!tt.ptr<i32>, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<128x2xi32, #layout>) -> tensor<128x2xi32, #layout>
    tt.store %ps, %y : tensor<128x2x!tt.ptr<i32>, #layout>
    tt.return
  }
}

// WHEEL: ld.shared.v4.b32
// SOURCE: ld.shared
// CHECK-NOT: cluster.arrive
// CHECK-NOT: shared::cluster
// CHECK: st.global
