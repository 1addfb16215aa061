// All operands go through one combination: (a1, b1), (a2, b2) -> (a2 * a1, a2 * b1 + b2) with the
// pair met earlier as (a1, b1).

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefixes=CHECK,FORWARD
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefixes=CHECK,REVERSE

#layout = #ttg.linear<{register = [[1]], lane = [[0], [0], [0], [0], [0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @pairs(%a: tensor<2xf32, #layout>, %b: tensor<2xf32, #layout>) -> (tensor<2xf32, #layout>, tensor<2xf32, #layout>) {
    %y:2 = "tt.scan"(%a, %b) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a1: f32, %b1: f32, %a2: f32, %b2: f32):
      %aa = arith.mulf %a2, %a1 : f32
      %ab = arith.mulf %a2, %b1 : f32
      %bb = arith.addf %ab, %b2 : f32
      tt.scan.return %aa, %bb : f32, f32
    }) : (tensor<2xf32, #layout>, tensor<2xf32, #layout>) -> (tensor<2xf32, #layout>, tensor<2xf32, #layout>)
    tt.return %y#0, %y#1 : tensor<2xf32, #layout>, tensor<2xf32, #layout>
  }
}

// CHECK:   [[A:%.+]] = builtin.unrealized_conversion_cast %arg0
// CHECK-DAG:   [[A0:%.+]] = llvm.extractvalue [[A]][0]
// CHECK-DAG:   [[A1:%.+]] = llvm.extractvalue [[A]][1]
// CHECK:   [[B:%.+]] = builtin.unrealized_conversion_cast %arg1
// CHECK-DAG:   [[B0:%.+]] = llvm.extractvalue [[B]][0]
// CHECK-DAG:   [[B1:%.+]] = llvm.extractvalue [[B]][1]
// FORWARD: [[AA:%.+]] = arith.mulf [[A1]], [[A0]]
// FORWARD: [[AB:%.+]] = arith.mulf [[A1]], [[B0]]
// FORWARD: [[BB:%.+]] = arith.addf [[AB]], [[B1]]
// FORWARD-DAG: llvm.insertvalue [[A0]], %{{.+}}[0]
// FORWARD-DAG: llvm.insertvalue [[AA]], %{{.+}}[1]
// FORWARD-DAG: llvm.insertvalue [[B0]], %{{.+}}[0]
// FORWARD-DAG: llvm.insertvalue [[BB]], %{{.+}}[1]
// REVERSE: [[AA:%.+]] = arith.mulf [[A0]], [[A1]]
// REVERSE: [[AB:%.+]] = arith.mulf [[A0]], [[B1]]
// REVERSE: [[BB:%.+]] = arith.addf [[AB]], [[B0]]
// REVERSE-DAG: llvm.insertvalue [[AA]], %{{.+}}[0]
// REVERSE-DAG: llvm.insertvalue [[A1]], %{{.+}}[1]
// REVERSE-DAG: llvm.insertvalue [[BB]], %{{.+}}[0]
// REVERSE-DAG: llvm.insertvalue [[B1]], %{{.+}}[1]
