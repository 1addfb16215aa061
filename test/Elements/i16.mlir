// Elements of 16 bits travel in one shuffle.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s

#layout = #ttg.linear<{register = [], lane = [[1], [0], [0], [0], [0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @i16(%p: !tt.ptr<i16>) {
    %ps = tt.splat %p : !tt.ptr<i16> -> tensor<2x!tt.ptr<i16>, #layout>
    %x = tt.load %ps : tensor<2x!tt.ptr<i16>, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i16, %b: i16):
      %c = arith.subi %a, %b : i16
      tt.scan.return %c : i16
    }) : (tensor<2xi16, #layout>) -> tensor<2xi16, #layout>
    tt.store %ps, %y : tensor<2x!tt.ptr<i16>, #layout>
    tt.return
  }
}

// CHECK: shfl.sync
// CHECK-NOT: shfl
// CHECK: {{sub\.s16|sub\.s32}}
// CHECK: st.global.b16
