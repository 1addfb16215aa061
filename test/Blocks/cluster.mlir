// An axis across CTAs and warps becomes PTX with cluster barriers and reads of the other CTA's memory.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s

#layout = #ttg.linear<{register = [], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = [[128]]}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 2 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @cluster(%p: !tt.ptr<i32>) {
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>, #layout>
    %x = tt.load %ps : tensor<256x!tt.ptr<i32>, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<256xi32, #layout>) -> tensor<256xi32, #layout>
    tt.store %ps, %y : tensor<256x!tt.ptr<i32>, #layout>
    tt.return
  }
}

// CHECK: st.shared.b32
// CHECK: bar.sync
// CHECK: ld.shared.v4.b32
// CHECK: barrier.cluster.arrive
// CHECK: barrier.cluster.wait
// CHECK: ld.shared::cluster
