// The accumulator of an AMD mfma is scanned as it is, along the axis of its 32 lanes.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s

#layout = #ttg.amd_mfma<{version = 3, warpsPerCTA = [1, 1], instrShape = [32, 32, 8], isTransposed = false}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx942"} {
  tt.func public @mfma(%p: !tt.ptr<f32>) {
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>, #layout>
    %x = tt.load %ps : tensor<32x32x!tt.ptr<f32>, #layout>
    %y = "tt.scan"(%x) <{axis = 1 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.scan.return %c : f32
    }) : (tensor<32x32xf32, #layout>) -> tensor<32x32xf32, #layout>
    tt.store %ps, %y : tensor<32x32x!tt.ptr<f32>, #layout>
    tt.return
  }
}

// 16 registers hold other rows; 5 steps each, of which two take two moves.
// CHECK-COUNT-112: rocdl.update.dpp
// CHECK-NOT: rocdl.
// CHECK-NOT: ttg.convert_layout
// CHECK-NOT: ttg.local_alloc
