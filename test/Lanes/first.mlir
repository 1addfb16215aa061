// The first lane on the axis (lane 0, in reverse lane 31) has no previous lane: its registers stay as
// they are.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefixes=CHECK,FORWARD
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefixes=CHECK,REVERSE

#layout = #ttg.linear<{register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @first(%x: tensor<64xi32, #layout>) -> tensor<64xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<64xi32, #layout>) -> tensor<64xi32, #layout>
    tt.return %y : tensor<64xi32, #layout>
  }
}

// The steps over the lanes, then the lane's number against the first one's.
// CHECK-COUNT-5: nvvm.shfl.sync idx
// CHECK:   llvm.select
// CHECK:   [[MASK:%.+]] = llvm.mlir.constant(31 : i32)
// CHECK:   [[LANE:%.+]] = llvm.and %{{.+}}, [[MASK]] : i32
// FORWARD: [[FIRST:%.+]] = llvm.mlir.constant(0 : i32)
// REVERSE: [[FIRST:%.+]] = llvm.mlir.constant(31 : i32)
// CHECK:   [[EXISTS:%.+]] = llvm.icmp "ne" [[LANE]], [[FIRST]] : i32
// FORWARD: [[BEFORE:%.+]] = nvvm.shfl.sync up
// REVERSE: [[BEFORE:%.+]] = nvvm.shfl.sync down
// CHECK:   [[JOINED:%.+]] = arith.subi [[BEFORE]], [[OWN:%.+]] : i32
// CHECK:   llvm.select [[EXISTS]], [[JOINED]], [[OWN]] : i1, i32
