// Operands of different types share words: i1 and fp16 travel in one, i64 in two more.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s

#layout = #ttg.linear<{register = [], lane = [[1], [0], [0], [0], [0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @packed(%f: tensor<2xi1, #layout>, %x: tensor<2xf16, #layout>, %n: tensor<2xi64, #layout>) -> (tensor<2xi1, #layout>, tensor<2xf16, #layout>, tensor<2xi64, #layout>) {
    %y:3 = "tt.scan"(%f, %x, %n) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%fa: i1, %xa: f16, %na: i64, %fb: i1, %xb: f16, %nb: i64):
      %fc = arith.ori %fa, %fb : i1
      %xs = arith.addf %xa, %xb : f16
      %xc = arith.select %fb, %xb, %xs : f16
      %nc = arith.addi %na, %nb : i64
      tt.scan.return %fc, %xc, %nc : i1, f16, i64
    }) : (tensor<2xi1, #layout>, tensor<2xf16, #layout>, tensor<2xi64, #layout>) -> (tensor<2xi1, #layout>, tensor<2xf16, #layout>, tensor<2xi64, #layout>)
    tt.return %y#0, %y#1, %y#2 : tensor<2xi1, #layout>, tensor<2xf16, #layout>, tensor<2xi64, #layout>
  }
}

// The flag takes the first byte, fp16 the next two.
// CHECK:     [[FLAG:%.+]] = llvm.zext %{{.+}} : i1 to i32
// CHECK:     [[BITS:%.+]] = llvm.bitcast %{{.+}} : f16 to i16
// CHECK:     [[WIDE:%.+]] = llvm.zext [[BITS]] : i16 to i32
// CHECK:     [[EIGHT:%.+]] = llvm.mlir.constant(8 : i32)
// CHECK:     [[HIGH:%.+]] = llvm.shl [[WIDE]], [[EIGHT]]
// CHECK:     [[WORD:%.+]] = llvm.or [[FLAG]], [[HIGH]]
// CHECK:     nvvm.shfl.sync {{up|down|idx}} %{{.+}}, [[WORD]],
// CHECK-COUNT-2: nvvm.shfl.sync
// CHECK-NOT: nvvm.shfl
