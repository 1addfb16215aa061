// Elements of 8 bits travel in one shuffle and wrap around in their own arithmetic.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s

#layout = #ttg.linear<{register = [], lane = [[1], [0], [0], [0], [0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @i8(%p: !tt.ptr<i8>) {
    %ps = tt.splat %p : !tt.ptr<i8> -> tensor<2x!tt.ptr<i8>, #layout>
    %x = tt.load %ps : tensor<2x!tt.ptr<i8>, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i8, %b: i8):
      %c = arith.subi %a, %b : i8
      tt.scan.return %c : i8
    }) : (tensor<2xi8, #layout>) -> tensor<2xi8, #layout>
    tt.store %ps, %y : tensor<2x!tt.ptr<i8>, #layout>
    tt.return
  }
}

// CHECK: ld.global.b8
// CHECK: shfl.sync
// CHECK-NOT: shfl
// CHECK: st.global.b8
