// Over lanes that follow each other on the axis: log2 steps of one shuffle each, upwards or, in
// reverse, downwards, and no other shuffle. Each step's predicate says whose earlier half exists.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefixes=CHECK,FORWARD
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefixes=CHECK,REVERSE

#layout = #ttg.linear<{register = [], lane = [[1], [2], [4], [8], [16]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @contiguous(%p: !tt.ptr<i32>) {
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>, #layout>
    %x = tt.load %ps : tensor<32x!tt.ptr<i32>, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<32xi32, #layout>) -> tensor<32xi32, #layout>
    tt.store %ps, %y : tensor<32x!tt.ptr<i32>, #layout>
    tt.return
  }
}

// The last operand but one is 256 * (lane bits that stay the reader's) + bound.
// FORWARD: shfl.sync.up.b32 %{{[a-z0-9]+}}|%{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 1, 7680, -1;
// FORWARD: shfl.sync.up.b32 %{{[a-z0-9]+}}|%{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 0, -1;
// FORWARD: shfl.sync.up.b32 %{{[a-z0-9]+}}|%{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 0, -1;
// FORWARD: shfl.sync.up.b32 %{{[a-z0-9]+}}|%{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 0, -1;
// FORWARD: shfl.sync.up.b32 %{{[a-z0-9]+}}|%{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 0, -1;

// REVERSE: shfl.sync.down.b32 %{{[a-z0-9]+}}|%{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 1, 7711, -1;
// REVERSE: shfl.sync.down.b32 %{{[a-z0-9]+}}|%{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 31, -1;
// REVERSE: shfl.sync.down.b32 %{{[a-z0-9]+}}|%{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 31, -1;
// REVERSE: shfl.sync.down.b32 %{{[a-z0-9]+}}|%{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 31, -1;
// REVERSE: shfl.sync.down.b32 %{{[a-z0-9]+}}|%{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 31, -1;

// CHECK-NOT: shfl
// CHECK-NOT: bar.
