// In a loop one of 8 warps scans the totals. A round has the two barriers that it would have in any
// case; the conversion before the loop is awaited there, not in each round.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s

#loaded = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [8], order = [0]}>
#layout = #ttg.linear<{register = [[256]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64], [128]], block = []}>

module attributes {"ttg.num-warps" = 8 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @loop(%p: !tt.ptr<i32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %i = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32, #loaded>
    %base = tt.splat %p : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #loaded>
    %ps = tt.addptr %base, %i : tensor<512x!tt.ptr<i32>, #loaded>, tensor<512xi32, #loaded>
    %loaded = tt.load %ps : tensor<512x!tt.ptr<i32>, #loaded>
    %x = ttg.convert_layout %loaded : tensor<512xi32, #loaded> -> tensor<512xi32, #layout>
    %y = scf.for %k = %c0 to %n step %c1 iter_args(%t = %x) -> (tensor<512xi32, #layout>) : i32 {
      %s = "tt.scan"(%t) <{axis = 0 : i32, reverse = DIRECTION}> ({
      ^bb0(%a: i32, %b: i32):
        %c = arith.subi %a, %b : i32
        tt.scan.return %c : i32
      }) : (tensor<512xi32, #layout>) -> tensor<512xi32, #layout>
      scf.yield %s : tensor<512xi32, #layout>
    }
    %z = ttg.convert_layout %y : tensor<512xi32, #layout> -> tensor<512xi32, #loaded>
    tt.store %ps, %z : tensor<512x!tt.ptr<i32>, #loaded>
    tt.return
  }
}

// The conversion's barrier and the one before the loop; LLVM puts the end of a round first.
// CHECK-COUNT-2: bar.sync
// CHECK-NOT: bar.sync
// CHECK:     in Loop
// CHECK:     bar.sync
// CHECK:     ld.shared
// CHECK-NOT: bar.sync
// CHECK:     Loop Header
// CHECK:     st.shared
// CHECK:     bar.sync
// CHECK-NOT: bar.sync
// CHECK:     ldmatrix
// CHECK:     st.shared
// CHECK-NOT: bar.sync
// CHECK:     crit_edge
