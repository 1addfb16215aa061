// Where the finest bit of the axis is lane bit 2, the next lane bit 0, the coarsest lane bit 1, the
// blocks grow in this order.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefixes=CHECK,FORWARD
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefixes=CHECK,REVERSE

#layout = #ttg.linear<{register = [], lane = [[2, 0], [4, 0], [1, 0], [0, 1], [0, 2]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @permuted(%p: !tt.ptr<i32>) {
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<8x4x!tt.ptr<i32>, #layout>
    %x = tt.load %ps : tensor<8x4x!tt.ptr<i32>, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<8x4xi32, #layout>) -> tensor<8x4xi32, #layout>
    tt.store %ps, %y : tensor<8x4x!tt.ptr<i32>, #layout>
    tt.return
  }
}

// The operands are the source's bits inside the block, then 256 * (lane bits outside it) + 31.
// FORWARD: shfl.sync.idx.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 0, 6943, -1;
// FORWARD: shfl.sync.idx.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 4, 6687, -1;
// FORWARD: shfl.sync.idx.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 5, 6175, -1;

// REVERSE: shfl.sync.idx.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 4, 6943, -1;
// REVERSE: shfl.sync.idx.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 1, 6687, -1;
// REVERSE: shfl.sync.idx.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 2, 6175, -1;

// CHECK-NOT: shfl
