// A module that does not say its target is lowered for the one that is given, and refused if none is.

// RUN: triton-scan-opt --target=cuda:90 --lower-scan %s | FileCheck %s --check-prefix=CUDA
// RUN: triton-scan-opt --target=hip:gfx1100 --lower-scan %s | FileCheck %s --check-prefix=HIP
// RUN: not triton-scan-opt --lower-scan %s 2>&1 | FileCheck %s --check-prefix=NONE

#layout = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @untargeted(%x: tensor<128xi32, #layout>) -> tensor<128xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = true}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.addi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<128xi32, #layout>) -> tensor<128xi32, #layout>
    tt.return %y : tensor<128xi32, #layout>
  }
}

// CUDA: ttg.target = "cuda:90"
// CUDA: nvvm.shfl
// HIP: ttg.target = "hip:gfx1100"
// HIP: rocdl.
// NONE: triton-scan-opt: error: the module has no ttg.target; give --target=cuda:90 or --target=hip:gfx942
