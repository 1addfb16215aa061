// The 64 lanes of a wave on CDNA 3: steps that double the blocks, and the previous lane.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefix=FORWARD
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefix=REVERSE

#layout = #ttg.linear<{register = [[1]], lane = [[2], [4], [8], [16], [32], [64]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx942"} {
  tt.func public @wave64(%x: tensor<128xi32, #layout>) -> tensor<128xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<128xi32, #layout>) -> tensor<128xi32, #layout>
    tt.return %y : tensor<128xi32, #layout>
  }
}

// Within four lanes, any permutation (quad_perm).
// FORWARD: %[[A:.+]] = rocdl.update.dpp %[[X:.+]], %[[X]] with 128, 15, 15, true
// FORWARD: %[[B:.+]] = rocdl.update.dpp %[[X:.+]], %[[X]] with 85, 15, 15, true
// Lane 3 to all four (quad_perm:[3,3,3,3]), then four lanes up (row_ror:4).
// FORWARD: %[[C:.+]] = rocdl.update.dpp %[[X:.+]], %[[X]] with 255, 15, 15, true
// FORWARD: rocdl.update.dpp %[[C]], %[[C]] with 292, 15, 15, true
// Lane 7 to its row (row_newbcast:7).
// FORWARD: rocdl.update.dpp %[[X:.+]], %[[X]] with 343, 15, 15, true
// Lane 15 to lane 16 (wave_ror:1), and on to that row (row_newbcast:0).
// FORWARD: %[[D:.+]] = rocdl.update.dpp %[[X:.+]], %[[X]] with 316, 15, 15, true
// FORWARD: rocdl.update.dpp %[[D]], %[[D]] with 336, 15, 15, true
// FORWARD: llvm.icmp
// FORWARD-NEXT: %[[LANE:.+]] = llvm.mlir.constant(31 : i32)
// FORWARD-NEXT: rocdl.readlane %{{.+}}, %[[LANE]]
// The previous lane (wave_ror:1).
// FORWARD: rocdl.update.dpp %[[X:.+]], %[[X]] with 316, 15, 15, true
// FORWARD-NOT: rocdl.

// The same, mirrored.
// REVERSE: rocdl.update.dpp %[[X:.+]], %[[X]] with 117, 15, 15, true
// REVERSE: rocdl.update.dpp %[[X:.+]], %[[X]] with 170, 15, 15, true
// REVERSE: %[[C:.+]] = rocdl.update.dpp %[[X:.+]], %[[X]] with 0, 15, 15, true
// REVERSE: rocdl.update.dpp %[[C]], %[[C]] with 300, 15, 15, true
// REVERSE: rocdl.update.dpp %[[X:.+]], %[[X]] with 344, 15, 15, true
// REVERSE: %[[D:.+]] = rocdl.update.dpp %[[X:.+]], %[[X]] with 308, 15, 15, true
// REVERSE: rocdl.update.dpp %[[D]], %[[D]] with 351, 15, 15, true
// REVERSE: llvm.icmp
// REVERSE-NEXT: %[[LANE:.+]] = llvm.mlir.constant(32 : i32)
// REVERSE-NEXT: rocdl.readlane %{{.+}}, %[[LANE]]
// REVERSE: rocdl.update.dpp %[[X:.+]], %[[X]] with 308, 15, 15, true
// REVERSE-NOT: rocdl.
