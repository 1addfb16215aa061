// The accumulator of an AMD wmma is scanned as it is, along the axis of its 16 lanes.

// RUN: sed -f %older -e 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s
// RUN: sed -f %older -e 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s

#layout = #ttg.amd_wmma<{version = 1, isTranspose = false, ctaLayout = {warp = []}}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "hip:gfx1100"} {
  tt.func public @wmma(%p: !tt.ptr<f32>) {
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

// 8 registers hold other rows; 4 steps each.
// CHECK-COUNT-32: {{rocdl.update.dpp|llvm.amdgcn.permlane16}}
// CHECK-NOT: rocdl.
// CHECK-NOT: amdgcn
// CHECK-NOT: ttg.convert_layout
// CHECK-NOT: ttg.local_alloc
