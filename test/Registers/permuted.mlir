// The walk follows the positions on the axis, not the numbers of the registers.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefixes=CHECK,FORWARD
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefixes=CHECK,REVERSE

#layout = #ttg.linear<{register = [[2], [1]], lane = [[0], [0], [0], [0], [0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @permuted(%x: tensor<4xi32, #layout>) -> tensor<4xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<4xi32, #layout>) -> tensor<4xi32, #layout>
    tt.return %y : tensor<4xi32, #layout>
  }
}

// Position 1 is in register 2 and position 2 in register 1.
// CHECK-DAG: [[P0:%.+]] = llvm.extractvalue %{{.+}}[0]
// CHECK-DAG: [[P1:%.+]] = llvm.extractvalue %{{.+}}[2]
// CHECK-DAG: [[P2:%.+]] = llvm.extractvalue %{{.+}}[1]
// CHECK-DAG: [[P3:%.+]] = llvm.extractvalue %{{.+}}[3]

// FORWARD:     [[Y1:%.+]] = arith.subi [[P0]], [[P1]] : i32
// FORWARD:     [[Y2:%.+]] = arith.subi [[Y1]], [[P2]] : i32
// FORWARD:     arith.subi [[Y2]], [[P3]] : i32
// FORWARD-DAG: llvm.insertvalue [[Y1]], %{{.+}}[2]
// FORWARD-DAG: llvm.insertvalue [[Y2]], %{{.+}}[1]

// REVERSE:     [[Y2:%.+]] = arith.subi [[P3]], [[P2]] : i32
// REVERSE:     [[Y1:%.+]] = arith.subi [[Y2]], [[P1]] : i32
// REVERSE:     arith.subi [[Y1]], [[P0]] : i32
// REVERSE-DAG: llvm.insertvalue [[Y1]], %{{.+}}[2]
// REVERSE-DAG: llvm.insertvalue [[Y2]], %{{.+}}[1]
