// A thread's registers are walked from the first to the last, and in reverse from the last to the
// first; what was met earlier is the first argument of the combine function.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefixes=CHECK,FORWARD
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefixes=CHECK,REVERSE

#layout = #ttg.linear<{register = [[1], [2]], lane = [[0], [0], [0], [0], [0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @walk(%x: tensor<4xi32, #layout>) -> tensor<4xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<4xi32, #layout>) -> tensor<4xi32, #layout>
    tt.return %y : tensor<4xi32, #layout>
  }
}

// CHECK-DAG: [[X0:%.+]] = llvm.extractvalue %{{.+}}[0]
// CHECK-DAG: [[X1:%.+]] = llvm.extractvalue %{{.+}}[1]
// CHECK-DAG: [[X2:%.+]] = llvm.extractvalue %{{.+}}[2]
// CHECK-DAG: [[X3:%.+]] = llvm.extractvalue %{{.+}}[3]

// FORWARD:     [[Y1:%.+]] = arith.subi [[X0]], [[X1]] : i32
// FORWARD:     [[Y2:%.+]] = arith.subi [[Y1]], [[X2]] : i32
// FORWARD:     [[Y3:%.+]] = arith.subi [[Y2]], [[X3]] : i32
// FORWARD-DAG: llvm.insertvalue [[X0]], %{{.+}}[0]
// FORWARD-DAG: llvm.insertvalue [[Y1]], %{{.+}}[1]
// FORWARD-DAG: llvm.insertvalue [[Y2]], %{{.+}}[2]
// FORWARD-DAG: llvm.insertvalue [[Y3]], %{{.+}}[3]

// REVERSE:     [[Y2:%.+]] = arith.subi [[X3]], [[X2]] : i32
// REVERSE:     [[Y1:%.+]] = arith.subi [[Y2]], [[X1]] : i32
// REVERSE:     [[Y0:%.+]] = arith.subi [[Y1]], [[X0]] : i32
// REVERSE-DAG: llvm.insertvalue [[Y0]], %{{.+}}[0]
// REVERSE-DAG: llvm.insertvalue [[Y1]], %{{.+}}[1]
// REVERSE-DAG: llvm.insertvalue [[Y2]], %{{.+}}[2]
// REVERSE-DAG: llvm.insertvalue [[X3]], %{{.+}}[3]

// CHECK-NOT: arith.subi
// CHECK-NOT: shfl
// CHECK-NOT: local_alloc
