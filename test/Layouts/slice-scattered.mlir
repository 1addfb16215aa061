// A slice along the other dimension keeps every eighth lane: the axis has lane bits 3 and 4.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefixes=CHECK,%base
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefixes=CHECK,%base

#parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#layout = #ttg.slice<{dim = 1, parent = #parent}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @slice_scattered(%p: !tt.ptr<i32>) {
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>, #layout>
    %x = tt.load %ps : tensor<16x!tt.ptr<i32>, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<16xi32, #layout>) -> tensor<16xi32, #layout>
    tt.store %ps, %y : tensor<16x!tt.ptr<i32>, #layout>
    tt.return
  }
}

// Two steps; the source base sends the last lane's total to the others, too.
// WHEEL-COUNT-2: shfl.sync
// SOURCE-COUNT-3: shfl.sync
// CHECK-NOT: shfl.sync
// CHECK: st.shared
// CHECK: bar.sync
// WHEEL: ld.shared.v4
// SOURCE: ld.shared
