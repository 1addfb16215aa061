// In a step only the lanes of the later half of a block change: those whose bit of the step is 1, in
// reverse those whose bit is 0.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefixes=CHECK,FORWARD
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefixes=CHECK,REVERSE

#layout = #ttg.linear<{register = [], lane = [[1], [2], [0], [0], [0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @halves(%x: tensor<4xi32, #layout>) -> tensor<4xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<4xi32, #layout>) -> tensor<4xi32, #layout>
    tt.return %y : tensor<4xi32, #layout>
  }
}

// The first step.
// CHECK:   [[Y:%.+]] = llvm.select

// The second, whose halves lane bit 1 tells apart.
// CHECK:   [[TWO:%.+]] = llvm.mlir.constant(2 : i32)
// CHECK:   [[BIT:%.+]] = llvm.and %{{.+}}, [[TWO]] : i32
// CHECK:   [[ZERO:%.+]] = llvm.mlir.constant(0 : i32)
// FORWARD: [[LATER:%.+]] = llvm.icmp "ne" [[BIT]], [[ZERO]] : i32
// REVERSE: [[LATER:%.+]] = llvm.icmp "eq" [[BIT]], [[ZERO]] : i32
// CHECK:   [[EARLIER:%.+]] = nvvm.shfl.sync idx %{{.+}}, [[Y]],
// CHECK:   [[JOINED:%.+]] = arith.subi [[EARLIER]], [[Y]] : i32
// CHECK:   [[Z:%.+]] = llvm.select [[LATER]], [[JOINED]], [[Y]] : i1, i32
// CHECK:   llvm.insertvalue [[Z]],
