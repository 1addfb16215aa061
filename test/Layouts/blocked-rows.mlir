// A blocked layout whose lanes and warps lie along the other axis is scanned in registers alone.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s

#layout = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @blocked_rows(%p: !tt.ptr<i32>) {
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<128x4x!tt.ptr<i32>, #layout>
    %x = tt.load %ps : tensor<128x4x!tt.ptr<i32>, #layout>
    %y = "tt.scan"(%x) <{axis = 1 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<128x4xi32, #layout>) -> tensor<128x4xi32, #layout>
    tt.store %ps, %y : tensor<128x4x!tt.ptr<i32>, #layout>
    tt.return
  }
}

// CHECK-COUNT-3: sub.s32
// CHECK-NOT: sub.s32
// CHECK-NOT: shfl
// CHECK-NOT: bar.
