// The source base's exchange: the last lane's total goes to all lanes, ttg.convert_layout brings the totals of
// all warps to every thread, and each folds them in the direction's order, taking in those of the warps
// before its own.

// REQUIRES: source-base
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

// A thread has its own warp's total, then the totals of all warps.
// CHECK:      [[ONE:#.+]] = #ttg.linear<{register = [], lane = {{.*}}, warp = {{\[}}[0, 0, 1], [0, 0, 2]], block = []}>
// CHECK:      [[ALL:#.+]] = #ttg.linear<{register = {{\[}}[0, 0, 1], [0, 0, 2]], lane = {{.*}}, warp = {{\[}}[0, 0, 0], [0, 0, 0]], block = []}>

// CHECK-COUNT-5: nvvm.shfl.sync
// CHECK:      [[OWN:%.+]] = llvm.select
// FORWARD:    [[LAST:%.+]] = llvm.mlir.constant(31 : i32)
// REVERSE:    [[LAST:%.+]] = llvm.mlir.constant(0 : i32)
// CHECK:      [[TOTAL:%.+]] = nvvm.shfl.sync idx %{{.+}}, [[OWN]], [[LAST]],
// CHECK:      llvm.insertvalue [[TOTAL]],
// CHECK:      ttg.convert_layout %{{.+}} : tensor<1x1x4xi32, [[ONE]]> -> tensor<1x1x4xi32, [[ALL]]>
// CHECK:      [[T0:%.+]] = llvm.extractvalue %{{.+}}[0]
// CHECK:      [[T1:%.+]] = llvm.extractvalue %{{.+}}[1]
// CHECK:      [[T2:%.+]] = llvm.extractvalue %{{.+}}[2]
// CHECK:      [[T3:%.+]] = llvm.extractvalue %{{.+}}[3]
// FORWARD:    [[C1:%.+]] = arith.subi [[T0]], [[T1]]
// FORWARD:    [[B1:%.+]] = llvm.select %{{.+}}, [[C1]], [[T0]]
// FORWARD:    [[C2:%.+]] = arith.subi [[B1]], [[T2]]
// REVERSE:    [[C1:%.+]] = arith.subi [[T3]], [[T2]]
// REVERSE:    [[B1:%.+]] = llvm.select %{{.+}}, [[C1]], [[T3]]
// REVERSE:    [[C2:%.+]] = arith.subi [[B1]], [[T1]]
// CHECK:      [[B2:%.+]] = llvm.select %{{.+}}, [[C2]], [[B1]]
// CHECK:      [[C3:%.+]] = arith.subi [[B2]], [[OWN]]
// CHECK:      llvm.select %{{.+}}, [[C3]], [[OWN]]
