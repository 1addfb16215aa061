// bf16 travels in one shuffle and is not widened before it.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s

#layout = #ttg.linear<{register = [], lane = [[1], [0], [0], [0], [0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @bf16(%p: !tt.ptr<bf16>) {
    %ps = tt.splat %p : !tt.ptr<bf16> -> tensor<2x!tt.ptr<bf16>, #layout>
    %x = tt.load %ps : tensor<2x!tt.ptr<bf16>, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: bf16, %b: bf16):
      %c = arith.subf %a, %b : bf16
      tt.scan.return %c : bf16
    }) : (tensor<2xbf16, #layout>) -> tensor<2xbf16, #layout>
    tt.store %ps, %y : tensor<2x!tt.ptr<bf16>, #layout>
    tt.return
  }
}

// CHECK: ld.global.b16
// CHECK-NOT: cvt.{{.*}}f32
// CHECK: shfl.sync
// CHECK-NOT: shfl
// CHECK: st.global.b16
