// Lane bits that only make copies (a tile smaller than the warp) take no step: 8 elements need 3.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefixes=CHECK,FORWARD
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefixes=CHECK,REVERSE

#layout = #ttg.linear<{register = [], lane = [[1], [2], [4], [0], [0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @copies(%p: !tt.ptr<i32>) {
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>, #layout>
    %x = tt.load %ps : tensor<8x!tt.ptr<i32>, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<8xi32, #layout>) -> tensor<8xi32, #layout>
    tt.store %ps, %y : tensor<8x!tt.ptr<i32>, #layout>
    tt.return
  }
}

// FORWARD: shfl.sync.idx.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 0, 7711, -1;
// FORWARD: shfl.sync.idx.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 1, 7199, -1;
// FORWARD: shfl.sync.idx.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 3, 6175, -1;

// REVERSE: shfl.sync.idx.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 1, 7711, -1;
// REVERSE: shfl.sync.idx.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 2, 7199, -1;
// REVERSE: shfl.sync.idx.b32 %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 4, 6175, -1;

// CHECK-NOT: shfl
