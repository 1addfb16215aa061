// The accumulator of a wmma of RDNA 3 is scanned as it is: the layouts are those of tl.dot of 64x64 tiles.

// RUN: sed -f %older -e 's/AXIS/0/;s/DIRECTION/false/' %s | triton-scan-opt --choose-scan-layout - | FileCheck %s
// RUN: sed -f %older -e 's/AXIS/0/;s/DIRECTION/true/' %s | triton-scan-opt --choose-scan-layout - | FileCheck %s
// RUN: sed -f %older -e 's/AXIS/1/;s/DIRECTION/false/' %s | triton-scan-opt --choose-scan-layout - | FileCheck %s
// RUN: sed -f %older -e 's/AXIS/1/;s/DIRECTION/true/' %s | triton-scan-opt --choose-scan-layout - | FileCheck %s

#mma = #ttg.amd_wmma<{version = 1, isTranspose = true, ctaLayout = {warp = [[0, 1], [1, 0]]}}>
#blocked = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "hip:gfx1100"} {
  tt.func public @after_wmma(%z: tensor<64x64xf32, #mma>) -> tensor<64x64xf32, #mma> {
    %c = ttg.convert_layout %z : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked>
    %s = "tt.scan"(%c) <{axis = AXIS : i32, reverse = DIRECTION}> ({
    ^bb0(%a: f32, %b: f32):
      %t = arith.addf %a, %b : f32
      tt.scan.return %t : f32
    }) : (tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked>
    %d = ttg.convert_layout %s : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #mma>
    %y = arith.mulf %d, %z : tensor<64x64xf32, #mma>
    tt.return %y : tensor<64x64xf32, #mma>
  }
}

// CHECK-NOT: ttg.convert_layout
// CHECK: "tt.scan"(%arg0)
// CHECK: (tensor<64x64xf32, #mma>) -> tensor<64x64xf32, #mma>
// CHECK-NOT: ttg.convert_layout
