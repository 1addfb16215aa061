// A loop-carried value that is scanned takes a layout with the axis in registers: the conversions
// stand before and after the loop, and the op between scan and yield comes along.

// RUN: triton-scan-opt --choose-scan-layout %s | FileCheck %s

// CHECK: [[BETTER:#[a-z0-9]+]] = #ttg.linear<{register = {{\[\[}}1], [2], [4], [8], [16]], lane = {{\[\[}}32], [64], [128], [256], [512]], warp = [], block = []}>
#layout = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  // CHECK-LABEL: @leaves_loop
  tt.func public @leaves_loop(%p: !tt.ptr<f32>, %n: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %half = arith.constant dense<0.5> : tensor<1024xf32, #layout>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #layout>
    // CHECK: [[X:%.+]] = tt.load
    // CHECK-NEXT: [[IN:%.+]] = ttg.convert_layout [[X]] : {{.*}} -> tensor<1024xf32, [[BETTER]]>
    %x = tt.load %ps : tensor<1024x!tt.ptr<f32>, #layout>
    // CHECK: [[LOOP:%.+]] = scf.for {{.*}} iter_args([[CARRIED:%.+]] = [[IN]])
    %y = scf.for %i = %zero to %n step %one iter_args(%carried = %x) -> (tensor<1024xf32, #layout>) : i32 {
      // CHECK-NOT: convert_layout
      // CHECK: "tt.scan"([[CARRIED]])
      %s = "tt.scan"(%carried) <{axis = 0 : i32, reverse = true}> ({
      ^bb0(%a: f32, %b: f32):
        %c = arith.addf %a, %b : f32
        tt.scan.return %c : f32
      }) : (tensor<1024xf32, #layout>) -> tensor<1024xf32, #layout>
      // CHECK-NOT: convert_layout
      // CHECK: arith.mulf {{.*}} : tensor<1024xf32, [[BETTER]]>
      %t = arith.mulf %s, %half : tensor<1024xf32, #layout>
      // CHECK-NOT: convert_layout
      // CHECK: scf.yield
      scf.yield %t : tensor<1024xf32, #layout>
    }
    // CHECK: [[OUT:%.+]] = ttg.convert_layout [[LOOP]]
    // CHECK: tt.store {{%.+}}, [[OUT]]
    tt.store %ps, %y : tensor<1024x!tt.ptr<f32>, #layout>
    tt.return
  }
}
