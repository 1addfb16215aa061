// In a step of a lane run only the lanes of the later half of a block change: in reverse those whose
// bit of the step is 0.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefixes=CHECK,FORWARD
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefixes=CHECK,REVERSE

#layout = #ttg.linear<{register = [], lane = [[0], [1], [0], [0], [0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @halves(%x: tensor<2xi32, #layout>) -> tensor<2xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<2xi32, #layout>) -> tensor<2xi32, #layout>
    tt.return %y : tensor<2xi32, #layout>
  }
}

// CHECK:   [[X:%.+]] = llvm.extractvalue
// CHECK:   [[TWO:%.+]] = llvm.mlir.constant(2 : i32)
// CHECK:   [[BIT:%.+]] = llvm.and %{{.+}}, [[TWO]]
// FORWARD: [[WANTED:%.+]] = llvm.mlir.constant(2 : i32)
// REVERSE: [[WANTED:%.+]] = llvm.mlir.constant(0 : i32)
// CHECK:   [[LATER:%.+]] = llvm.icmp "eq" [[BIT]], [[WANTED]]
// CHECK:   [[EARLIER:%.+]] = nvvm.shfl.sync idx %{{.+}}, [[X]],
// CHECK:   [[JOINED:%.+]] = arith.subi [[EARLIER]], [[X]]
// CHECK:   [[Y:%.+]] = llvm.select [[LATER]], [[JOINED]], [[X]]
// CHECK:   llvm.insertvalue [[Y]]
