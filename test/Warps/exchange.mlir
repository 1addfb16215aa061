// The totals of the warps cross through shared memory: the last lane in the direction writes its
// warp's total at the warp's position in the direction, every thread reads the totals of all warps
// and folds them in this order, taking in those of the warps before its own.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefixes=CHECK,FORWARD
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefixes=CHECK,REVERSE

#layout = #ttg.linear<{register = [], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @exchange(%x: tensor<128xi32, #layout>) -> tensor<128xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<128xi32, #layout>) -> tensor<128xi32, #layout>
    tt.return %y : tensor<128xi32, #layout>
  }
}

// CHECK:      [[LANE:%.+]] = llvm.urem
// CHECK:      [[WARP:%.+]] = ttg.warp_id
// CHECK-COUNT-5: nvvm.shfl.sync
// CHECK:      [[TOTAL:%.+]] = llvm.select

// Lane 31 writes to word `warp`, the others to 4 + (warp ^ 1), another bank; in reverse lane 0 to
// word 3 ^ warp.
// CHECK:      llvm.and [[LANE]],
// FORWARD:    [[LAST:%.+]] = llvm.mlir.constant(31 : i32)
// REVERSE:    [[LAST:%.+]] = llvm.mlir.constant(0 : i32)
// CHECK:      [[HOLDS:%.+]] = llvm.icmp "eq" %{{.+}}, [[LAST]]
// CHECK:      [[BUFFER:%.+]] = ttg.local_alloc : () -> !ttg.memdesc<1x1x8xi32
// CHECK:      [[OWN:%.+]] = llvm.and [[WARP]],
// REVERSE:    [[THREE:%.+]] = llvm.mlir.constant(3 : i32)
// REVERSE:    [[POSITION:%.+]] = llvm.xor [[OWN]], [[THREE]]
// CHECK:      [[OTHER:%.+]] = llvm.icmp "ne" [[HOLDS]],
// CHECK-DAG:  [[WIDE:%.+]] = llvm.zext [[OTHER]] : i1 to i32
// CHECK-DAG:  [[FIVE:%.+]] = llvm.mlir.constant(5 : i32)
// CHECK:      [[BESIDE:%.+]] = llvm.mul [[WIDE]], [[FIVE]]
// FORWARD:    [[INDEX:%.+]] = llvm.xor [[OWN]], [[BESIDE]]
// REVERSE:    [[INDEX:%.+]] = llvm.xor [[POSITION]], [[BESIDE]]
// CHECK-DAG:  llvm.insertvalue [[INDEX]]
// CHECK-DAG:  llvm.insertvalue [[TOTAL]]
// CHECK:      ttg.local_scatter [[BUFFER]][
// CHECK:      [[ALL:%.+]] = ttg.local_load
// CHECK-SAME: 1x1x4xi32

// CHECK-DAG:  [[T0:%.+]] = llvm.extractvalue %{{.+}}[0] : !llvm.struct<(i32, i32, i32, i32)>
// CHECK-DAG:  [[T1:%.+]] = llvm.extractvalue %{{.+}}[1] : !llvm.struct<(i32, i32, i32, i32)>
// CHECK-DAG:  [[T2:%.+]] = llvm.extractvalue %{{.+}}[2] : !llvm.struct<(i32, i32, i32, i32)>
// CHECK:      [[C1:%.+]] = arith.subi [[T0]], [[T1]]
// CHECK:      [[B1:%.+]] = llvm.select %{{.+}}, [[C1]], [[T0]]
// CHECK:      [[C2:%.+]] = arith.subi [[B1]], [[T2]]
// CHECK:      [[B2:%.+]] = llvm.select %{{.+}}, [[C2]], [[B1]]
// CHECK:      [[C3:%.+]] = arith.subi [[B2]], [[TOTAL]]
// CHECK:      llvm.select %{{.+}}, [[C3]], [[TOTAL]]
