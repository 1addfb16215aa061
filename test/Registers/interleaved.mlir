// Where a thread holds several chunks of the axis with other lanes' chunks between them, the chunks
// are joined in the direction, and the last chunk's total is not combined with anything.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefixes=CHECK,FORWARD
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefixes=CHECK,REVERSE

#layout = #ttg.linear<{register = [[2]], lane = [[1], [0], [0], [0], [0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @chunks(%x: tensor<4xi32, #layout>) -> tensor<4xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<4xi32, #layout>) -> tensor<4xi32, #layout>
    tt.return %y : tensor<4xi32, #layout>
  }
}

// The scan of each chunk over its two lanes, the chunk met first before the other.
// CHECK-DAG: [[X0:%.+]] = llvm.extractvalue %{{.+}}[0]
// CHECK-DAG: [[X1:%.+]] = llvm.extractvalue %{{.+}}[1]
// FORWARD:   [[C0:%.+]] = arith.subi %{{.+}}, [[X0]]
// FORWARD:   [[Y0:%.+]] = llvm.select %{{.+}}, [[C0]], [[X0]]
// CHECK:     [[C1:%.+]] = arith.subi %{{.+}}, [[X1]]
// CHECK:     [[Y1:%.+]] = llvm.select %{{.+}}, [[C1]], [[X1]]
// REVERSE:   [[C0:%.+]] = arith.subi %{{.+}}, [[X0]]
// REVERSE:   [[Y0:%.+]] = llvm.select %{{.+}}, [[C0]], [[X0]]

// The total of the chunk met first goes before the other chunk.
// FORWARD:     [[T0:%.+]] = nvvm.shfl.sync idx %{{.+}}, [[Y0]],
// FORWARD:     [[Z1:%.+]] = arith.subi [[T0]], [[Y1]]
// FORWARD-DAG: llvm.insertvalue [[Y0]], %{{.+}}[0]
// FORWARD-DAG: llvm.insertvalue [[Z1]], %{{.+}}[1]

// REVERSE:     [[T1:%.+]] = nvvm.shfl.sync idx %{{.+}}, [[Y1]],
// REVERSE:     [[Z0:%.+]] = arith.subi [[T1]], [[Y0]]
// REVERSE-DAG: llvm.insertvalue [[Z0]], %{{.+}}[0]
// REVERSE-DAG: llvm.insertvalue [[Y1]], %{{.+}}[1]
