// An axis of length 1 has nothing to combine: the elements pass through.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s

#layout = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @one(%x: tensor<128x1xi32, #layout>) -> tensor<128x1xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 1 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<128x1xi32, #layout>) -> tensor<128x1xi32, #layout>
    tt.return %y : tensor<128x1xi32, #layout>
  }
}

// CHECK:     [[X:%.+]] = llvm.extractvalue %{{.+}}[0]
// CHECK-NOT: arith.subi
// CHECK-NOT: nvvm.shfl
// CHECK-NOT: ttg.local_alloc
// CHECK:     llvm.insertvalue [[X]], %{{.+}}[0]
