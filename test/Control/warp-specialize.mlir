// In a partition of ttg.warp_specialize lanes and warps are numbered within the partition, and its
// barrier is one of its own that only its warps reach.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --ptx - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --ptx - | FileCheck %s

#layout = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#narrow = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [2], order = [0]}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @partition(%p: !tt.ptr<i32>, %q: !tt.ptr<i32>) {
    ttg.warp_specialize(%p, %q)
    default {
      %ps = tt.splat %p : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>, #layout>
      %x = tt.load %ps : tensor<128x!tt.ptr<i32>, #layout>
      tt.store %ps, %x : tensor<128x!tt.ptr<i32>, #layout>
      ttg.warp_yield
    }
    partition0(%pp: !tt.ptr<i32>, %qp: !tt.ptr<i32>) num_warps(2) {
      %ps = tt.splat %qp : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>, #narrow>
      %x = tt.load %ps : tensor<64x!tt.ptr<i32>, #narrow>
      %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
      ^bb0(%a: i32, %b: i32):
        %c = arith.subi %a, %b : i32
        tt.scan.return %c : i32
      }) : (tensor<64xi32, #narrow>) -> tensor<64xi32, #narrow>
      tt.store %ps, %y : tensor<64x!tt.ptr<i32>, #narrow>
      ttg.warp_return
    } : (!tt.ptr<i32>, !tt.ptr<i32>) -> ()
    tt.return
  }
}

// CHECK: sub.s32
// CHECK: shfl.sync
// CHECK: st.shared
// CHECK: bar{{(rier)?}}.sync{{(\.aligned)?}} {{.*}}[[#]], 64{{ ?}};
// CHECK: ld.shared
