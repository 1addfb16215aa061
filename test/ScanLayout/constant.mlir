// A constant that ops outside the scan's reach use too is repeated in the new layout; theirs stays.

// RUN: triton-scan-opt --choose-scan-layout %s | FileCheck %s

#layout = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  // CHECK-LABEL: @constant
  tt.func public @constant(%p: !tt.ptr<f32>, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    // CHECK-DAG: [[OLD:%.+]] = arith.constant dense<5.000000e-01> : tensor<1024xf32, #blocked>
    // CHECK-DAG: [[NEW:%.+]] = arith.constant dense<5.000000e-01> : tensor<1024xf32, #linear>
    %half = arith.constant dense<0.5> : tensor<1024xf32, #layout>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #layout>
    %x = tt.load %ps : tensor<1024x!tt.ptr<f32>, #layout>
    %y = scf.for %i = %zero to %n step %one iter_args(%carried = %x) -> (tensor<1024xf32, #layout>) : i32 {
      %s = "tt.scan"(%carried) <{axis = 0 : i32, reverse = true}> ({
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %b : f32
        tt.scan.return %c : f32
      }) : (tensor<1024xf32, #layout>) -> tensor<1024xf32, #layout>
      // CHECK: arith.mulf {{%.+}}, [[NEW]] : tensor<1024xf32, #linear>
      %t = arith.mulf %s, %half : tensor<1024xf32, #layout>
      scf.yield %t : tensor<1024xf32, #layout>
    }
    // CHECK: tt.store {{%.+}}, [[OLD]] : tensor<1024x!tt.ptr<f32>, #blocked>
    tt.store %ps, %half : tensor<1024x!tt.ptr<f32>, #layout>
    tt.store %ps, %y : tensor<1024x!tt.ptr<f32>, #layout>
    tt.return
  }
}
