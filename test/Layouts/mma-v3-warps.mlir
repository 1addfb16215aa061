// Along axis 0 the four warps of a wgmma's accumulator exchange their totals once; the source base's
// ttg.convert_layout takes a round for each of the 8 columns of a thread.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefix=%base
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s --check-prefix=%base

#layout = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 32, 16]}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @mma_v3_warps(%p: !tt.ptr<f32>) {
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x32x!tt.ptr<f32>, #layout>
    %x = tt.load %ps : tensor<64x32x!tt.ptr<f32>, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.scan.return %c : f32
    }) : (tensor<64x32xf32, #layout>) -> tensor<64x32xf32, #layout>
    tt.store %ps, %y : tensor<64x32x!tt.ptr<f32>, #layout>
    tt.return
  }
}

// WHEEL-NOT: bar.sync
// WHEEL: st.shared
// WHEEL: bar.sync
// WHEEL: ld.shared
// WHEEL-NOT: bar.sync
// WHEEL-NOT: shfl.sync.bfly

// SOURCE-COUNT-8: st.shared
// SOURCE-NOT: {{st\.shared|shfl\.sync\.bfly}}
