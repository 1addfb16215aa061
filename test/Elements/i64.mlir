// Elements of 64 bits travel in two shuffles, low and high word, and are combined as a whole.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s

#layout = #ttg.linear<{register = [], lane = [[1], [0], [0], [0], [0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @i64(%p: !tt.ptr<i64>) {
    %ps = tt.splat %p : !tt.ptr<i64> -> tensor<2x!tt.ptr<i64>, #layout>
    %x = tt.load %ps : tensor<2x!tt.ptr<i64>, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i64, %b: i64):
      %c = arith.subi %a, %b : i64
      tt.scan.return %c : i64
    }) : (tensor<2xi64, #layout>) -> tensor<2xi64, #layout>
    tt.store %ps, %y : tensor<2x!tt.ptr<i64>, #layout>
    tt.return
  }
}

// CHECK-COUNT-2: shfl.sync
// CHECK-NOT: shfl
// CHECK: sub.s64
// CHECK-NOT: sub.s64
