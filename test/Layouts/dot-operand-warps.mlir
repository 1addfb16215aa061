// An operand of a dot that two warps hold twice: the second warp is a copy, nothing crosses warps.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s

#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 2], instrShape = [16, 8]}>
#layout = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>

module attributes {"ttg.num-warps" = 2 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:80"} {
  tt.func public @dot_operand_warps(%p: !tt.ptr<f16>) {
    %ps = tt.splat %p : !tt.ptr<f16> -> tensor<16x32x!tt.ptr<f16>, #layout>
    %x = tt.load %ps : tensor<16x32x!tt.ptr<f16>, #layout>
    %y = "tt.scan"(%x) <{axis = 1 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: f16, %b: f16):
      %c = arith.addf %a, %b : f16
      tt.scan.return %c : f16
    }) : (tensor<16x32xf16, #layout>) -> tensor<16x32xf16, #layout>
    tt.store %ps, %y : tensor<16x32x!tt.ptr<f16>, #layout>
    tt.return
  }
}

// CHECK: shfl.sync
// CHECK-NOT: shared.
// CHECK-NOT: bar.
