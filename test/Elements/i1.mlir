// An i1 travels as a zero-extended word in one shuffle and is combined as an i1.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s

#layout = #ttg.linear<{register = [], lane = [[1], [0], [0], [0], [0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @i1(%x: tensor<2xi1, #layout>) -> tensor<2xi1, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i1, %b: i1):
      %c = arith.xori %a, %b : i1
      tt.scan.return %c : i1
    }) : (tensor<2xi1, #layout>) -> tensor<2xi1, #layout>
    tt.return %y : tensor<2xi1, #layout>
  }
}

// CHECK: [[X:%.+]] = llvm.extractvalue %{{.+}}[0] : !llvm.struct<(i1)>
// CHECK: [[SENT:%.+]] = llvm.zext [[X]] : i1 to i32
// CHECK: [[GOT:%.+]] = nvvm.shfl.sync idx %{{.+}}, [[SENT]],
// CHECK: [[EARLIER:%.+]] = llvm.trunc [[GOT]] : i32 to i1
// CHECK: [[JOINED:%.+]] = arith.xori [[EARLIER]], [[X]] : i1
// CHECK: llvm.select %{{.+}}, [[JOINED]], [[X]] : i1, i1
// CHECK-NOT: nvvm.shfl
