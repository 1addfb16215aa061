// In a loop one of 8 warps scans the totals of all threads, of which a lane has eight side by side:
// no other warp shuffles. Every fourth lane's two loads are swapped, so that eight lanes meet no bank
// twice.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefixes=CHECK,FORWARD
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefixes=CHECK,REVERSE

#layout = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [8], order = [0]}>

module attributes {"ttg.num-warps" = 8 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @raked(%x: tensor<512xf32, #layout>, %n: i32) -> tensor<512xf32, #layout> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %y = scf.for %k = %c0 to %n step %c1 iter_args(%t = %x) -> (tensor<512xf32, #layout>) : i32 {
      %s = "tt.scan"(%t) <{axis = 0 : i32, reverse = DIRECTION}> ({
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %b : f32
        tt.scan.return %c : f32
      }) : (tensor<512xf32, #layout>) -> tensor<512xf32, #layout>
      scf.yield %s : tensor<512xf32, #layout>
    }
    tt.return %y : tensor<512xf32, #layout>
  }
}

// CHECK:     [[MEMORY:#shared.*]] = #ttg.shared_linear<{offset = {{\[}}[0, 0, 1], [0, 0, 2], [0, 0, 4], [0, 0, 8], [0, 0, 16], [0, 0, 36], [0, 0, 64], [0, 0, 128]]
// CHECK:     scf.for
// CHECK-DAG: [[PREFIXES:%.+]] = ttg.local_alloc : () -> !ttg.memdesc<1x1x256xi32, [[MEMORY]]
// CHECK-DAG: [[TOTALS:%.+]] = ttg.local_alloc : () -> !ttg.memdesc<1x1x256xi32, [[MEMORY]]
// CHECK-NOT: nvvm.shfl
// CHECK:     ttg.local_store {{%.+}}, [[ALLOC:%.+]] :
// CHECK-NOT: nvvm.shfl
// CHECK:     ttg.barrier local
// CHECK:     scf.if
// CHECK:     ttg.local_load
// The lane's own eight totals, the lanes' totals, the prefix before the lane.
// CHECK-COUNT-7: arith.addf
// CHECK-COUNT-5: nvvm.shfl.sync idx
// FORWARD:   nvvm.shfl.sync up
// REVERSE:   nvvm.shfl.sync down
// CHECK-NOT: nvvm.shfl
// CHECK-NOT: ttg.barrier
// CHECK:     ttg.local_store
// CHECK-NEXT: }
// CHECK-NOT: nvvm.shfl
// CHECK:     ttg.local_load
// CHECK-NOT: nvvm.shfl
// CHECK:     tt.return
