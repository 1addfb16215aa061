// Register bits of the axis only rename registers.

// RUN: triton-scan-opt --lower-flip %s | FileCheck %s

#layout = #ttg.linear<{register = [[1, 0], [0, 1], [2, 0]], lane = [[0, 2], [0, 4], [0, 8], [0, 16], [0, 0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @registers(%x: tensor<4x32xi32, #layout>) -> tensor<4x32xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: i32, %b: i32):
      %f = tt.extern_elementwise %a, %b {libname = "triton_scan", libpath = "", pure = true, symbol = "triton_scan_flip"} : (i32, i32) -> i32
      tt.scan.return %f : i32
    }) : (tensor<4x32xi32, #layout>) -> tensor<4x32xi32, #layout>
    tt.return %y : tensor<4x32xi32, #layout>
  }
}

// CHECK-LABEL: @registers
// CHECK:      [[X:%.+]] = builtin.unrealized_conversion_cast
// CHECK-NEXT: [[E0:%.+]] = llvm.extractvalue [[X]][0]
// CHECK-NEXT: [[E1:%.+]] = llvm.extractvalue [[X]][1]
// CHECK-NEXT: [[E2:%.+]] = llvm.extractvalue [[X]][2]
// CHECK-NEXT: [[E3:%.+]] = llvm.extractvalue [[X]][3]
// CHECK-NEXT: [[E4:%.+]] = llvm.extractvalue [[X]][4]
// CHECK-NEXT: [[E5:%.+]] = llvm.extractvalue [[X]][5]
// CHECK-NEXT: [[E6:%.+]] = llvm.extractvalue [[X]][6]
// CHECK-NEXT: [[E7:%.+]] = llvm.extractvalue [[X]][7]
// CHECK-NOT:  shfl
// CHECK:      llvm.mlir.undef
// CHECK-NEXT: llvm.insertvalue [[E5]], %{{.+}}[0]
// CHECK-NEXT: llvm.insertvalue [[E4]], %{{.+}}[1]
// CHECK-NEXT: llvm.insertvalue [[E7]], %{{.+}}[2]
// CHECK-NEXT: llvm.insertvalue [[E6]], %{{.+}}[3]
// CHECK-NEXT: llvm.insertvalue [[E1]], %{{.+}}[4]
// CHECK-NEXT: llvm.insertvalue [[E0]], %{{.+}}[5]
// CHECK-NEXT: llvm.insertvalue [[E3]], %{{.+}}[6]
// CHECK-NEXT: llvm.insertvalue [[E2]], %{{.+}}[7]
