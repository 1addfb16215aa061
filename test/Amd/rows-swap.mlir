// CDNA 4 brings the even or the odd rows, and the lower or the upper lanes, to both (v_permlane*_swap).

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefix=FORWARD
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefix=REVERSE

#layout = #ttg.linear<{register = [], lane = [[0], [0], [0], [0], [1], [2]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx950"} {
  tt.func public @swap(%x: tensor<4xi32, #layout>) -> tensor<4xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<4xi32, #layout>) -> tensor<4xi32, #layout>
    tt.return %y : tensor<4xi32, #layout>
  }
}

// FORWARD: %[[ROWS:.+]] = rocdl.permlane16.swap %[[X:.+]], %[[X]], false, true
// FORWARD: llvm.extractvalue %[[ROWS]][0]
// FORWARD: rocdl.permlane16.swap
// FORWARD: rocdl.permlane32.swap
// FORWARD-NOT: rocdl.

// REVERSE: %[[ROWS:.+]] = rocdl.permlane16.swap %[[X:.+]], %[[X]], false, true
// REVERSE: llvm.extractvalue %[[ROWS]][1]
// REVERSE: rocdl.permlane16.swap
// REVERSE: rocdl.permlane32.swap
// REVERSE-NOT: rocdl.
