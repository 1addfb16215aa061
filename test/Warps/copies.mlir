// Warps that hold copies (a tile smaller than the block) write to words of their own, so that no two
// warps write the same word, and they read the same total as their originals: of two, only the first.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefixes=CHECK,FORWARD
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefixes=CHECK,REVERSE

#layout = #ttg.linear<{register = [], lane = [[1], [2], [4], [8], [16]], warp = [[32], [0]], block = []}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @copies(%x: tensor<64xi32, #layout>) -> tensor<64xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<64xi32, #layout>) -> tensor<64xi32, #layout>
    tt.return %y : tensor<64xi32, #layout>
  }
}

// The bits of the write index: position, copy, whether the thread is not the one that holds a total.
// CHECK: [[WARP:%.+]] = ttg.warp_id
// CHECK-COUNT-5: nvvm.shfl.sync
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<1x1x8xi32
// CHECK: [[THREE:%.+]] = llvm.mlir.constant(3 : i32)
// CHECK: [[POSITION_AND_COPY:%.+]] = llvm.and [[WARP]], [[THREE]]
// FORWARD: [[INDEX:%.+]] = llvm.xor [[POSITION_AND_COPY]],
// REVERSE: [[ONE:%.+]] = llvm.mlir.constant(1 : i32)
// REVERSE: [[REVERSED:%.+]] = llvm.xor [[POSITION_AND_COPY]], [[ONE]]
// REVERSE: [[INDEX:%.+]] = llvm.xor [[REVERSED]],
// CHECK: llvm.insertvalue [[INDEX]]
// CHECK: ttg.local_scatter
// CHECK: ttg.local_load
// CHECK-SAME: 1x1x1xi32
