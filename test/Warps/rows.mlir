// Warps that hold other rows exchange nothing: no shared memory, no barrier.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s

#layout = #ttg.linear<{register = [[1, 0]], lane = [[2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], warp = [[0, 1], [0, 2]], block = []}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @rows(%p: !tt.ptr<i32>) {
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<64x4x!tt.ptr<i32>, #layout>
    %x = tt.load %ps : tensor<64x4x!tt.ptr<i32>, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<64x4xi32, #layout>) -> tensor<64x4xi32, #layout>
    tt.store %ps, %y : tensor<64x4x!tt.ptr<i32>, #layout>
    tt.return
  }
}

// CHECK-COUNT-6: shfl.sync
// CHECK-NOT: shfl.sync
// CHECK-NOT: {{(st|ld)\.shared|bar\.}}
