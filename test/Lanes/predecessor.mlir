// A lane with registers of its own takes what is before them from the previous lane on the axis:
// the lane below it, in reverse the lane above it.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefixes=CHECK,FORWARD
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefixes=CHECK,REVERSE

#layout = #ttg.linear<{register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @predecessor(%p: !tt.ptr<i32>) {
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>, #layout>
    %x = tt.load %ps : tensor<64x!tt.ptr<i32>, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<64xi32, #layout>) -> tensor<64xi32, #layout>
    tt.store %ps, %y : tensor<64x!tt.ptr<i32>, #layout>
    tt.return
  }
}

// CHECK-COUNT-5: shfl.sync.idx.b32
// FORWARD: shfl.sync.up.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 1, 0, -1;
// REVERSE: shfl.sync.down.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 1, 31, -1;
// CHECK-NOT: shfl
