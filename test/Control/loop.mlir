// A scan in a loop uses the same shared memory in every iteration: each has one barrier before it
// reads and one before the next iteration writes.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s

#layout = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [2], order = [0]}>

module attributes {"ttg.num-warps" = 2 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @loop(%p: !tt.ptr<i32>, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>, #layout>
    %x = tt.load %ps : tensor<64x!tt.ptr<i32>, #layout>
    %y = scf.for %i = %zero to %n step %one iter_args(%carried = %x) -> (tensor<64xi32, #layout>) : i32 {
      %next = "tt.scan"(%carried) <{axis = 0 : i32, reverse = DIRECTION}> ({
      ^bb0(%a: i32, %b: i32):
        %c = arith.subi %a, %b : i32
        tt.scan.return %c : i32
      }) : (tensor<64xi32, #layout>) -> tensor<64xi32, #layout>
      scf.yield %next : tensor<64xi32, #layout>
    }
    tt.store %ps, %y : tensor<64x!tt.ptr<i32>, #layout>
    tt.return
  }
}

// CHECK: [[HEAD:\$L__BB[0-9_]+]]:{{.*}}Loop Header
// CHECK-NOT: bra
// CHECK: bar.sync
// CHECK-NOT: {{bra|bar\.}}
// CHECK: st.shared
// CHECK-NOT: {{bra|bar\.}}
// CHECK: bar.sync
// CHECK-NOT: {{bra|bar\.}}
// CHECK: ld.shared
// CHECK-NOT: bar.
// CHECK: bra{{.*}}[[HEAD]]
