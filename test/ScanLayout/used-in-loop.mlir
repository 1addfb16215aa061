// A scan whose operand is loaded, and whose result is stored, in every iteration keeps its layout.

// RUN: triton-scan-opt --choose-scan-layout %s | FileCheck %s

#layout = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>

// CHECK-NOT: convert_layout
module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @used_in_loop(%p: !tt.ptr<f32>, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #layout>
    scf.for %i = %zero to %n step %one : i32 {
      %x = tt.load %ps : tensor<1024x!tt.ptr<f32>, #layout>
      %s = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %b : f32
        tt.scan.return %c : f32
      }) : (tensor<1024xf32, #layout>) -> tensor<1024xf32, #layout>
      tt.store %ps, %s : tensor<1024x!tt.ptr<f32>, #layout>
    }
    tt.return
  }
}
