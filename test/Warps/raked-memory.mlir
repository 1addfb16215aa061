// Threads are not raked where the totals of all would take more than 4 KiB, twice: of two rows of four
// warps they take 2 KiB, of eight 8 KiB. Then each warp scans its lanes.

// RUN: sed 's/WARPS/2, 4/; s/TOTAL/8/; s/ROWS/2/g' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefix=RAKED
// RUN: sed 's/WARPS/8, 4/; s/TOTAL/32/; s/ROWS/8/g' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefix=FOLDED

#layout = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [WARPS], order = [1, 0]}>

module attributes {"ttg.num-warps" = TOTAL : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @memory(%x: tensor<ROWSx128xi64, #layout>, %n: i32) -> tensor<ROWSx128xi64, #layout> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %y = scf.for %k = %c0 to %n step %c1 iter_args(%t = %x) -> (tensor<ROWSx128xi64, #layout>) : i32 {
      %s = "tt.scan"(%t) <{axis = 1 : i32, reverse = true}> ({
      ^bb0(%a: i64, %b: i64):
        %c = arith.addi %a, %b : i64
        tt.scan.return %c : i64
      }) : (tensor<ROWSx128xi64, #layout>) -> tensor<ROWSx128xi64, #layout>
      scf.yield %s : tensor<ROWSx128xi64, #layout>
    }
    tt.return %y : tensor<ROWSx128xi64, #layout>
  }
}

// RAKED:      scf.for
// RAKED-NOT:  nvvm.shfl
// RAKED:      ttg.local_store
// RAKED:      scf.if

// FOLDED:     scf.for
// FOLDED:     nvvm.shfl
// FOLDED:     ttg.local_scatter
// FOLDED-NOT: scf.if
