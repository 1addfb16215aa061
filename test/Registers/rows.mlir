// Registers that hold other rows are scanned apart: nothing of one row reaches another.

// RUN: triton-scan-opt --lower-scan %s | FileCheck %s

#layout = #ttg.linear<{register = [[1, 0], [0, 1]], lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @rows(%x: tensor<2x2xi32, #layout>) -> tensor<2x2xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 1 : i32, reverse = false}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<2x2xi32, #layout>) -> tensor<2x2xi32, #layout>
    tt.return %y : tensor<2x2xi32, #layout>
  }
}

// Register 1 is row 1, register 2 is column 1.
// CHECK-DAG: [[X00:%.+]] = llvm.extractvalue %{{.+}}[0]
// CHECK-DAG: [[X10:%.+]] = llvm.extractvalue %{{.+}}[1]
// CHECK-DAG: [[X01:%.+]] = llvm.extractvalue %{{.+}}[2]
// CHECK-DAG: [[X11:%.+]] = llvm.extractvalue %{{.+}}[3]
// CHECK-DAG: arith.subi [[X00]], [[X01]]
// CHECK-DAG: arith.subi [[X10]], [[X11]]
// CHECK-NOT: arith.subi
// CHECK:     tt.return
