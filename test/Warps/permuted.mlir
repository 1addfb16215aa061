// The warp bits of the axis may lie anywhere among the warps' numbers and in any order.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s

#layout = #ttg.linear<{register = [], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[64, 0], [0, 1], [32, 0]], block = []}>

module attributes {"ttg.num-warps" = 8 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @permuted(%x: tensor<128x2xi32, #layout>) -> tensor<128x2xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<128x2xi32, #layout>) -> tensor<128x2xi32, #layout>
    tt.return %y : tensor<128x2xi32, #layout>
  }
}

// The position has warp bit 2 as bit 0 and warp bit 0 as bit 1.
// CHECK:      [[WARP:%.+]] = ttg.warp_id
// CHECK-COUNT-5: nvvm.shfl.sync
// CHECK:      [[BIT2:%.+]] = llvm.and [[WARP]], %{{.+}} : i32
// CHECK:      [[LOW:%.+]] = llvm.lshr [[BIT2]],
// CHECK:      [[BIT0:%.+]] = llvm.and [[WARP]],
// CHECK:      [[HIGH:%.+]] = llvm.shl [[BIT0]],
// CHECK:      [[POSITION:%.+]] = llvm.or [[LOW]], [[HIGH]]
// 4 positions and 4 words beside them for each of 2 rows.
// CHECK:      ttg.local_alloc : () -> !ttg.memdesc<1x2x8xi32
