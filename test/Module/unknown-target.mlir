// A scan in a module for a target that nobody knows is refused with one line that says so, unless another
// target is given.

// RUN: not triton-scan-opt --lower-scan %s 2>&1 | FileCheck %s --check-prefix=NAMED
// RUN: triton-scan-opt --target=cuda:90 --lower-scan %s | FileCheck %s --check-prefix=GIVEN

#layout = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "toaster:1"} {
  tt.func @toaster(%x: tensor<128xi32, #layout>) -> tensor<128xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = true}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.addi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<128xi32, #layout>) -> tensor<128xi32, #layout>
    tt.return %y : tensor<128xi32, #layout>
  }
}

// NAMED: triton-scan-opt: error: target must be cuda:<number> or hip:gfx<number>, such as cuda:90, got 'toaster:1'
// GIVEN: ttg.target = "cuda:90"
// GIVEN: nvvm.shfl
