// A tile smaller than the block: 16 elements in 4 warps with 4 lanes' registers each leave copies in
// lanes and in warps, and neither costs a step or an exchange.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s

#layout = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @small(%p: !tt.ptr<i32>) {
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>, #layout>
    %x = tt.load %ps : tensor<16x!tt.ptr<i32>, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<16xi32, #layout>) -> tensor<16xi32, #layout>
    tt.store %ps, %y : tensor<16x!tt.ptr<i32>, #layout>
    tt.return
  }
}

// 2 steps over 4 lanes, one for the previous lane.
// CHECK-COUNT-3: shfl.sync
// CHECK-NOT: shfl.sync
// CHECK-NOT: {{shared\.|bar\.}}
