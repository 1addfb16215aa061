// All lane bits of the axis take one shuffle, wherever in the lane's number they are.

// RUN: triton-scan-opt --lower-flip %s | FileCheck %s

#layout = #ttg.linear<{register = [[0, 1], [1, 0]], lane = [[0, 2], [2, 0], [0, 4], [8, 0], [4, 0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @rows(%x: tensor<16x8xi32, #layout>) -> tensor<16x8xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: i32, %b: i32):
      %f = tt.extern_elementwise %a, %b {libname = "triton_scan", libpath = "", pure = true, symbol = "triton_scan_flip"} : (i32, i32) -> i32
      tt.scan.return %f : i32
    }) : (tensor<16x8xi32, #layout>) -> tensor<16x8xi32, #layout>
    tt.return %y : tensor<16x8xi32, #layout>
  }
  tt.func @columns(%x: tensor<16x8xi32, #layout>) -> tensor<16x8xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 1 : i32, reverse = false}> ({
    ^bb0(%a: i32, %b: i32):
      %f = tt.extern_elementwise %a, %b {libname = "triton_scan", libpath = "", pure = true, symbol = "triton_scan_flip"} : (i32, i32) -> i32
      tt.scan.return %f : i32
    }) : (tensor<16x8xi32, #layout>) -> tensor<16x8xi32, #layout>
    tt.return %y : tensor<16x8xi32, #layout>
  }
}

// Lane bits 1, 3 and 4 (26), and register bit 1.
// CHECK-LABEL: @rows
// CHECK:      [[M0:%.+]] = llvm.mlir.constant(26 : i32)
// CHECK:      [[S0:%.+]] = nvvm.shfl.sync bfly %{{.+}}, %{{.+}}, [[M0]], 
// CHECK:      [[M1:%.+]] = llvm.mlir.constant(26 : i32)
// CHECK:      [[S1:%.+]] = nvvm.shfl.sync bfly %{{.+}}, %{{.+}}, [[M1]], 
// CHECK:      [[M2:%.+]] = llvm.mlir.constant(26 : i32)
// CHECK:      [[S2:%.+]] = nvvm.shfl.sync bfly %{{.+}}, %{{.+}}, [[M2]], 
// CHECK:      [[M3:%.+]] = llvm.mlir.constant(26 : i32)
// CHECK:      [[S3:%.+]] = nvvm.shfl.sync bfly %{{.+}}, %{{.+}}, [[M3]], 
// CHECK-NOT:  shfl
// CHECK:      llvm.mlir.undef
// CHECK-NEXT: llvm.insertvalue [[S2]], %{{.+}}[0]
// CHECK-NEXT: llvm.insertvalue [[S3]], %{{.+}}[1]
// CHECK-NEXT: llvm.insertvalue [[S0]], %{{.+}}[2]
// CHECK-NEXT: llvm.insertvalue [[S1]], %{{.+}}[3]

// Lane bits 0 and 2 (5), and register bit 0.
// CHECK-LABEL: @columns
// CHECK:      [[M0:%.+]] = llvm.mlir.constant(5 : i32)
// CHECK:      [[S0:%.+]] = nvvm.shfl.sync bfly %{{.+}}, %{{.+}}, [[M0]], 
// CHECK:      [[M1:%.+]] = llvm.mlir.constant(5 : i32)
// CHECK:      [[S1:%.+]] = nvvm.shfl.sync bfly %{{.+}}, %{{.+}}, [[M1]], 
// CHECK:      [[M2:%.+]] = llvm.mlir.constant(5 : i32)
// CHECK:      [[S2:%.+]] = nvvm.shfl.sync bfly %{{.+}}, %{{.+}}, [[M2]], 
// CHECK:      [[M3:%.+]] = llvm.mlir.constant(5 : i32)
// CHECK:      [[S3:%.+]] = nvvm.shfl.sync bfly %{{.+}}, %{{.+}}, [[M3]], 
// CHECK-NOT:  shfl
// CHECK:      llvm.mlir.undef
// CHECK-NEXT: llvm.insertvalue [[S1]], %{{.+}}[0]
// CHECK-NEXT: llvm.insertvalue [[S0]], %{{.+}}[1]
// CHECK-NEXT: llvm.insertvalue [[S3]], %{{.+}}[2]
// CHECK-NEXT: llvm.insertvalue [[S2]], %{{.+}}[3]
