// fp16 is combined in fp16.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s

#layout = #ttg.linear<{register = [], lane = [[1], [0], [0], [0], [0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @f16(%p: !tt.ptr<f16>) {
    %ps = tt.splat %p : !tt.ptr<f16> -> tensor<2x!tt.ptr<f16>, #layout>
    %x = tt.load %ps : tensor<2x!tt.ptr<f16>, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: f16, %b: f16):
      %c = arith.subf %a, %b : f16
      tt.scan.return %c : f16
    }) : (tensor<2xf16, #layout>) -> tensor<2xf16, #layout>
    tt.store %ps, %y : tensor<2x!tt.ptr<f16>, #layout>
    tt.return
  }
}

// CHECK: shfl.sync
// CHECK-NOT: shfl
// CHECK: sub{{(\.rn)?}}.f16
