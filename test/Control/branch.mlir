// A scan under a branch that the whole block takes or not keeps its barrier inside the branch.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s

#layout = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @branch(%p: !tt.ptr<i32>, %wanted: i1) {
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>, #layout>
    %x = tt.load %ps : tensor<128x!tt.ptr<i32>, #layout>
    %y = scf.if %wanted -> (tensor<128xi32, #layout>) {
      %scanned = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
      ^bb0(%a: i32, %b: i32):
        %c = arith.subi %a, %b : i32
        tt.scan.return %c : i32
      }) : (tensor<128xi32, #layout>) -> tensor<128xi32, #layout>
      scf.yield %scanned : tensor<128xi32, #layout>
    } else {
      scf.yield %x : tensor<128xi32, #layout>
    }
    tt.store %ps, %y : tensor<128x!tt.ptr<i32>, #layout>
    tt.return
  }
}

// CHECK-NOT: {{shfl|bar\.}}
// CHECK: bra
// CHECK-COUNT-5: shfl.sync
// CHECK: bar.sync
// CHECK-NOT: bar.
// CHECK: ld.shared
// CHECK: st.global
