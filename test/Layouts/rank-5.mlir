// In a tile of rank 5 each axis is scanned by what holds it: axis 0 by registers, 1 and 3 by lanes, 2
// by warps; axis 4 has length 1.
// RUN: sed 's/AXIS/0/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefix=AXIS0
// RUN: sed 's/AXIS/1/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefix=AXIS1
// RUN: sed 's/AXIS/2/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefix=AXIS2-%base
// RUN: sed 's/AXIS/3/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefix=AXIS3
// RUN: sed 's/AXIS/4/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefix=AXIS4

#layout = #ttg.linear<{register = [[1, 0, 0, 0, 0]], lane = [[0, 0, 0, 1, 0], [0, 0, 0, 2, 0], [0, 0, 0, 4, 0], [0, 1, 0, 0, 0], [0, 2, 0, 0, 0]], warp = [[0, 0, 1, 0, 0], [0, 0, 2, 0, 0]], block = []}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @rank_5(%p: !tt.ptr<i32>) {
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<2x4x4x8x1x!tt.ptr<i32>, #layout>
    %x = tt.load %ps : tensor<2x4x4x8x1x!tt.ptr<i32>, #layout>
    %y = "tt.scan"(%x) <{axis = AXIS : i32, reverse = true}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<2x4x4x8x1xi32, #layout>) -> tensor<2x4x4x8x1xi32, #layout>
    tt.store %ps, %y : tensor<2x4x4x8x1x!tt.ptr<i32>, #layout>
    tt.return
  }
}

// AXIS0: sub.s32
// AXIS0-NOT: {{sub\.s32|shfl|bar\.}}

// Two steps for each of the two registers.
// AXIS1-COUNT-4: shfl.sync
// AXIS1-NOT: {{shfl|bar\.}}

// AXIS2-WHEEL-NOT: shfl
// AXIS2-WHEEL-COUNT-2: st.shared
// AXIS2-WHEEL: bar.sync
// AXIS2-WHEEL-COUNT-2: ld.shared.v4
// AXIS2-WHEEL-NOT: {{shfl|bar\.}}

// A round of the source base's ttg.convert_layout for each register.
// AXIS2-SOURCE-NOT: shfl
// AXIS2-SOURCE-COUNT-2: st.shared
// AXIS2-SOURCE-NOT: {{shfl|st\.shared}}

// AXIS3-COUNT-6: shfl.sync
// AXIS3-NOT: {{shfl|bar\.}}

// AXIS4-NOT: {{sub\.s32|shfl|bar\.}}
// AXIS4: st.global
