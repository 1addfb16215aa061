// The totals of 16 warps are scanned by one of them: each of its lanes reads one, and 4 steps later
// writes it to where the next warp reads what is before it. Two barriers, and five shuffles a warp. In the
// source base the last lane's total goes to all lanes first, and each thread reads all totals.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefix=%base
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefix=%base

#layout = #ttg.linear<{register = [], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64], [128], [256]], block = []}>

module attributes {"ttg.num-warps" = 16 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @many(%p: !tt.ptr<i32>) {
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

// WHEEL-COUNT-5: shfl.sync
// WHEEL-NOT: {{shfl|bar\.}}
// WHEEL: st.shared.b32
// WHEEL: bar.sync
// WHEEL: bra
// WHEEL: {{ld\.shared|ldmatrix}}
// WHEEL-NOT: bar.
// WHEEL-COUNT-4: shfl.sync
// WHEEL-NOT: {{shfl|bar\.}}
// WHEEL: st.shared.b32
// WHEEL: bar.sync
// WHEEL-NOT: {{shfl|bar\.}}
// WHEEL: ld.shared.b32
// WHEEL-NOT: {{shfl|bar\.|shared\.}}

// SOURCE-COUNT-6: shfl.sync
// SOURCE-NOT: {{shfl|bar\.}}
// SOURCE: st.shared.b32
// SOURCE: bar.sync
// SOURCE: ld.shared
// SOURCE-NOT: {{shfl|bar\.|st\.shared}}
