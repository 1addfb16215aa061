// A scan between conversions from and to another layout is done in that layout, here that of a dot's
// result, and the conversions are gone.

// RUN: triton-scan-opt --choose-scan-layout %s | FileCheck %s

#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#blocked = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:80"} {
  // CHECK-LABEL: @neighbour
  // CHECK-SAME: [[X:%[a-z0-9]+]]: tensor
  tt.func @neighbour(%x: tensor<64x64xf32, #mma>) -> tensor<64x64xf32, #mma> {
    // CHECK-NOT: convert_layout
    %in = ttg.convert_layout %x : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked>
    // CHECK: [[S:%.+]] = "tt.scan"([[X]])
    %s = "tt.scan"(%in) <{axis = 0 : i32, reverse = true}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.scan.return %c : f32
    }) : (tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked>
    %out = ttg.convert_layout %s : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #mma>
    // CHECK-NOT: convert_layout
    // CHECK: arith.mulf [[S]], [[X]] : tensor<64x64xf32, #mma>
    %y = arith.mulf %out, %x : tensor<64x64xf32, #mma>
    tt.return %y : tensor<64x64xf32, #mma>
  }
}
