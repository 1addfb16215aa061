// AMD's targets cannot read another CTA's memory: an axis that crosses CTAs is refused in one line that
// names num_ctas, and one that does not is lowered.

// RUN: not triton-scan-opt --lower-scan %s 2>&1 | FileCheck %s
// RUN: sed 's/axis = 0/axis = 1/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefix=ROWS

#layout = #ttg.linear<{register = [], lane = [[1, 0], [2, 0], [4, 0], [0, 1], [0, 2]], warp = [], block = [[8, 0]]}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 2 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "hip:gfx1100"} {
  tt.func @clusters(%x: tensor<16x4xi32, #layout>) -> tensor<16x4xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = true}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.addi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<16x4xi32, #layout>) -> tensor<16x4xi32, #layout>
    tt.return %y : tensor<16x4xi32, #layout>
  }
}

// CHECK: error: {{.*}}'tt.scan' op cannot be lowered: axis 0 crosses CTAs, which cannot share totals on this target; use num_ctas=1

// ROWS: rocdl.update.dpp
// ROWS-NOT: tt.scan
