// A combine region may return an argument, or the same value twice.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefixes=CHECK,FORWARD
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefixes=CHECK,REVERSE

#layout = #ttg.linear<{register = [[1]], lane = [[0], [0], [0], [0], [0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @keep(%x: tensor<2xi32, #layout>, %n: tensor<2xi32, #layout>) -> (tensor<2xi32, #layout>, tensor<2xi32, #layout>) {
    %y:2 = "tt.scan"(%x, %n) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %an: i32, %b: i32, %bn: i32):
      tt.scan.return %b, %b : i32, i32
    }) : (tensor<2xi32, #layout>, tensor<2xi32, #layout>) -> (tensor<2xi32, #layout>, tensor<2xi32, #layout>)
    tt.return %y#0, %y#1 : tensor<2xi32, #layout>, tensor<2xi32, #layout>
  }
}

// The second result takes the later element of the first operand; the element met first is kept.
// CHECK: [[X:%.+]] = builtin.unrealized_conversion_cast %arg0
// CHECK-DAG: [[X0:%.+]] = llvm.extractvalue [[X]][0]
// CHECK-DAG: [[X1:%.+]] = llvm.extractvalue [[X]][1]
// CHECK: [[N:%.+]] = builtin.unrealized_conversion_cast %arg1
// CHECK-DAG: [[N0:%.+]] = llvm.extractvalue [[N]][0]
// CHECK-DAG: [[N1:%.+]] = llvm.extractvalue [[N]][1]
// CHECK: llvm.insertvalue [[X0]], %{{.+}}[0]
// CHECK: llvm.insertvalue [[X1]], %{{.+}}[1]
// FORWARD: llvm.insertvalue [[N0]], %{{.+}}[0]
// FORWARD: llvm.insertvalue [[X1]], %{{.+}}[1]
// REVERSE: llvm.insertvalue [[X0]], %{{.+}}[0]
// REVERSE: llvm.insertvalue [[N1]], %{{.+}}[1]
