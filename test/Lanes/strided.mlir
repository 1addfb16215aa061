// Where the lanes that follow each other on the axis lie four apart, blocks are made of lane bits 2,
// 3 and 4, bits 0 and 1 stay the reader's own, and the previous lane is four lanes away.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefixes=CHECK,FORWARD
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefixes=CHECK,REVERSE

#layout = #ttg.linear<{register = [[1, 0]], lane = [[0, 1], [0, 2], [2, 0], [4, 0], [8, 0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @strided(%p: !tt.ptr<i32>) {
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

// FORWARD: shfl.sync.idx.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 0, 6943, -1;
// FORWARD: shfl.sync.idx.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 4, 4895, -1;
// FORWARD: shfl.sync.idx.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 12, 799, -1;
// FORWARD: shfl.sync.up.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 4, 0, -1;

// REVERSE: shfl.sync.idx.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 4, 6943, -1;
// REVERSE: shfl.sync.idx.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 8, 4895, -1;
// REVERSE: shfl.sync.idx.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 16, 799, -1;
// REVERSE: shfl.sync.down.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 4, 31, -1;

// CHECK-NOT: shfl
