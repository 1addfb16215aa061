// Chunks of the axis whose totals differ share one exchange: 4 chunks of 4 warps take 4 stores, 4
// vector loads and one barrier. The source base's ttg.convert_layout takes a round for each chunk.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefix=%base
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefix=%base

#layout = #ttg.linear<{register = [[128], [256]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @chunks(%p: !tt.ptr<i32>) {
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #layout>
    %x = tt.load %ps : tensor<512x!tt.ptr<i32>, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<512xi32, #layout>) -> tensor<512xi32, #layout>
    tt.store %ps, %y : tensor<512x!tt.ptr<i32>, #layout>
    tt.return
  }
}

// WHEEL-NOT: bar.
// WHEEL-COUNT-4: st.shared.b32
// WHEEL-NOT: {{(st|ld)\.shared}}
// WHEEL:     bar.sync
// WHEEL-NOT: bar.
// WHEEL-COUNT-4: ld.shared.v4.b32
// WHEEL-NOT: {{(st|ld)\.shared|bar\.}}

// SOURCE-COUNT-4: st.shared
// SOURCE-NOT: st.shared
