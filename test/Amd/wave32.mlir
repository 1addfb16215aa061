// The 32 lanes of a wave on RDNA 3 and 4: one move a step.

// RUN: sed 's/DIRECTION/false/' %s | sed 's/TARGET/gfx1100/' | triton-scan-opt --lower-scan - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | sed 's/TARGET/gfx1100/' | triton-scan-opt --lower-scan - | FileCheck %s
// RUN: sed 's/DIRECTION/false/' %s | sed 's/TARGET/gfx1200/' | triton-scan-opt --lower-scan - | FileCheck %s

#layout = #ttg.linear<{register = [], lane = [[1], [2], [4], [8], [16]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "hip:TARGET"} {
  tt.func public @wave32(%x: tensor<32xi32, #layout>) -> tensor<32xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<32xi32, #layout>) -> tensor<32xi32, #layout>
    tt.return %y : tensor<32xi32, #layout>
  }
}

// CHECK: rocdl.update.dpp %[[X:.+]], %[[X]] with {{[0-9]+}}, 15, 15, true
// CHECK: rocdl.update.dpp %[[X:.+]], %[[X]] with {{[0-9]+}}, 15, 15, true
// CHECK: llvm.call_intrinsic "llvm.amdgcn.permlane16"
// CHECK: rocdl.update.dpp %[[X:.+]], %[[X]] with {{34[34]}}, 15, 15, true
// CHECK: llvm.call_intrinsic "llvm.amdgcn.permlanex16"
// CHECK-NOT: amdgcn
// CHECK-NOT: rocdl.
