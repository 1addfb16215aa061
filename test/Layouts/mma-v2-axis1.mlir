// The accumulator of an mma v2 is scanned as it is, along axis 1: no conversion through memory.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s

#layout = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 8]}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:80"} {
  tt.func public @mma_v2_axis1(%p: !tt.ptr<f32>) {
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>, #layout>
    %x = tt.load %ps : tensor<16x16x!tt.ptr<f32>, #layout>
    %y = "tt.scan"(%x) <{axis = 1 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.scan.return %c : f32
    }) : (tensor<16x16xf32, #layout>) -> tensor<16x16xf32, #layout>
    tt.store %ps, %y : tensor<16x16x!tt.ptr<f32>, #layout>
    tt.return
  }
}

// Columns: 4 lanes with 2 registers each, in 2 chunks.
// CHECK-NOT: shared.
// CHECK: shfl.sync
// CHECK-NOT: shfl.sync.bfly
// CHECK-NOT: shared.
// CHECK-NOT: bar.
