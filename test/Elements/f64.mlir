// fp64 travels in two shuffles and is combined in fp64.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s

#layout = #ttg.linear<{register = [], lane = [[1], [0], [0], [0], [0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @f64(%p: !tt.ptr<f64>) {
    %ps = tt.splat %p : !tt.ptr<f64> -> tensor<2x!tt.ptr<f64>, #layout>
    %x = tt.load %ps : tensor<2x!tt.ptr<f64>, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: f64, %b: f64):
      %c = arith.subf %a, %b : f64
      tt.scan.return %c : f64
    }) : (tensor<2xf64, #layout>) -> tensor<2xf64, #layout>
    tt.store %ps, %y : tensor<2x!tt.ptr<f64>, #layout>
    tt.return
  }
}

// CHECK-COUNT-2: shfl.sync
// CHECK-NOT: shfl
// CHECK: sub{{(\.rn)?}}.f64
