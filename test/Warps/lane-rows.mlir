// Where the lanes hold other rows, each thread writes its own total and reads those of its row; no
// thread needs a place beside them.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s

#layout = #ttg.linear<{register = [[1, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = [[2, 0], [4, 0]], block = []}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @lanes(%x: tensor<8x32xi32, #layout>) -> tensor<8x32xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<8x32xi32, #layout>) -> tensor<8x32xi32, #layout>
    tt.return %y : tensor<8x32xi32, #layout>
  }
}

// 4 positions of 32 rows.
// CHECK-NOT: nvvm.shfl
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<1x32x4xi32
// CHECK: ttg.local_load
// CHECK-SAME: 1x32x4xi32
// CHECK-NOT: nvvm.shfl
