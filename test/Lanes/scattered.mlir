// Where the axis has lane bits 0, 2 and 4, a step costs one shuffle as ever: the mask of the blocks
// has gaps. The previous lane's number is computed and read with one more shuffle.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefixes=CHECK,FORWARD
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefixes=CHECK,REVERSE

#layout = #ttg.linear<{register = [[1, 0]], lane = [[2, 0], [0, 1], [4, 0], [0, 2], [8, 0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @scattered(%p: !tt.ptr<i32>) {
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<16x4x!tt.ptr<i32>, #layout>
    %x = tt.load %ps : tensor<16x4x!tt.ptr<i32>, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<16x4xi32, #layout>) -> tensor<16x4xi32, #layout>
    tt.store %ps, %y : tensor<16x4x!tt.ptr<i32>, #layout>
    tt.return
  }
}

// FORWARD: shfl.sync.idx.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 0, 7711, -1;
// FORWARD: shfl.sync.idx.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 1, 6687, -1;
// FORWARD: shfl.sync.idx.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 5, 2591, -1;

// REVERSE: shfl.sync.idx.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 1, 7711, -1;
// REVERSE: shfl.sync.idx.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 4, 6687, -1;
// REVERSE: shfl.sync.idx.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 16, 2591, -1;

// CHECK: shfl.sync.idx.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 31, -1;
// CHECK-NOT: shfl
