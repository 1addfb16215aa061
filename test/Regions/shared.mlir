// What all threads do together is refused in a combine region, and in what it calls.

// REQUIRES: wheel-base

// RUN: sed 's/BODY/ttg.barrier local/' %s | not triton-scan-opt --check-combines - 2>&1 | FileCheck %s --check-prefix=BARRIER
// RUN: sed 's/BODY/ttg.barrier local/' %s | not triton-scan-opt --lower-scan - 2>&1 | FileCheck %s --check-prefix=BARRIER
// RUN: sed 's/BODY/%%t = tt.splat %%b : i32 -> tensor<2xi32, #layout>/' %s | not triton-scan-opt --lower-scan - 2>&1 | FileCheck %s --check-prefix=BLOCK
// RUN: sed 's/BODY/%%t = tt.splat %%b : i32 -> tensor<1xi32, #layout>/' %s | triton-scan-opt --lower-scan - | FileCheck %s

// BARRIER: 'tt.scan' op cannot be lowered: its combine function waits at a barrier, which takes all threads together; it may use scalars only
// BLOCK: 'tt.scan' op cannot be lowered: its combine function computes with a block, which takes all threads together; it may use scalars only
// CHECK-NOT: tt.scan

#layout = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func private @later(%b: i32) -> i32 attributes {noinline = true} {
    BODY
    tt.return %b : i32
  }
  tt.func @shared(%x: tensor<32xi32, #layout>) -> tensor<32xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = true}> ({
    ^bb0(%a: i32, %b: i32):
      %c = tt.call @later(%b) : (i32) -> i32
      tt.scan.return %c : i32
    }) : (tensor<32xi32, #layout>) -> tensor<32xi32, #layout>
    tt.return %y : tensor<32xi32, #layout>
  }
}
