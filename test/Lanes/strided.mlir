// Where the lanes of a row lie four apart, a step of the finest bit goes to the lane four away and no
// further than the two lanes of its block, and so does the previous lane within the row.

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

// FORWARD: shfl.sync.up.b32 %{{[a-z0-9]+}}|%{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 4, 6912, -1;
// FORWARD: shfl.sync.up.b32 %{{[a-z0-9]+}}|%{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 0, -1;
// FORWARD: shfl.sync.up.b32 %{{[a-z0-9]+}}|%{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 0, -1;
// FORWARD: shfl.sync.up.b32 %{{[a-z0-9]+}}|%{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 4, 768, -1;

// REVERSE: shfl.sync.down.b32 %{{[a-z0-9]+}}|%{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 4, 6943, -1;
// REVERSE: shfl.sync.down.b32 %{{[a-z0-9]+}}|%{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 31, -1;
// REVERSE: shfl.sync.down.b32 %{{[a-z0-9]+}}|%{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 31, -1;
// REVERSE: shfl.sync.down.b32 %{{[a-z0-9]+}}|%{{[a-z0-9]+}}, %{{[a-z0-9]+}}, 4, 799, -1;

// CHECK-NOT: shfl
