// One barrier, one store and one vector load a thread carry the totals of 4 warps across.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefixes=CHECK,%base
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefixes=CHECK,%base

#layout = #ttg.linear<{register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = [[64], [128]], block = []}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @barrier(%p: !tt.ptr<i32>) {
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>, #layout>
    %x = tt.load %ps : tensor<256x!tt.ptr<i32>, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<256xi32, #layout>) -> tensor<256xi32, #layout>
    tt.store %ps, %y : tensor<256x!tt.ptr<i32>, #layout>
    tt.return
  }
}

// CHECK:     st.shared.b32
// CHECK-NOT: {{(st|ld)\.shared|bar\.}}
// CHECK:     bar.sync
// CHECK-NOT: {{(st|ld)\.shared|bar\.}}
// WHEEL:     ld.shared.v4.b32
// SOURCE:    ld.shared
// WHEEL-NOT: {{(st|ld)\.shared|bar\.}}
// SOURCE-NOT: {{st\.shared|bar\.}}
