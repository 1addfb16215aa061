// A row shift leaves the first lane of each row what v_permlanex16 has brought: the other row's last lane.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefix=FORWARD
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefix=REVERSE

#layout = #ttg.linear<{register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "hip:gfx1100"} {
  tt.func public @previous(%x: tensor<64xi32, #layout>) -> tensor<64xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<64xi32, #layout>) -> tensor<64xi32, #layout>
    tt.return %y : tensor<64xi32, #layout>
  }
}

// FORWARD: %[[STEPPED:.+]] = llvm.select
// FORWARD: %[[OTHER:.+]] = llvm.call_intrinsic "llvm.amdgcn.permlanex16"(%[[X:[0-9]+]], %[[X]],
// FORWARD: %[[SCANNED:.+]] = llvm.select
// FORWARD: %[[OTHER:.+]] = llvm.call_intrinsic "llvm.amdgcn.permlanex16"(%[[SCANNED]], %[[SCANNED]],
// FORWARD: rocdl.update.dpp %[[OTHER]], %[[SCANNED]] with 273, 15, 15, false

// REVERSE: llvm.call_intrinsic "llvm.amdgcn.permlanex16"
// REVERSE: %[[SCANNED:.+]] = llvm.select
// REVERSE: %[[OTHER:.+]] = llvm.call_intrinsic "llvm.amdgcn.permlanex16"(%[[SCANNED]], %[[SCANNED]],
// REVERSE: rocdl.update.dpp %[[OTHER]], %[[SCANNED]] with 257, 15, 15, false
