// With more registers behind the lanes every lane needs the total: on CDNA, one lane to a scalar register.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefix=FORWARD
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefix=REVERSE

#layout = #ttg.linear<{register = [[1], [128]], lane = [[2], [4], [8], [16], [32], [64]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx90a"} {
  tt.func public @total(%x: tensor<256xi32, #layout>) -> tensor<256xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<256xi32, #layout>) -> tensor<256xi32, #layout>
    tt.return %y : tensor<256xi32, #layout>
  }
}

// FORWARD-COUNT-2: rocdl.readlane
// FORWARD: llvm.select
// FORWARD-NEXT: %[[LAST:.+]] = llvm.mlir.constant(63 : i32)
// FORWARD-NEXT: rocdl.readlane %{{.+}}, %[[LAST]]

// REVERSE-COUNT-2: rocdl.readlane
// REVERSE: llvm.select
// REVERSE-NEXT: %[[LAST:.+]] = llvm.mlir.constant(0 : i32)
// REVERSE-NEXT: rocdl.readlane %{{.+}}, %[[LAST]]
