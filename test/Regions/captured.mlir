// A combine region may use values from outside: they are used as they are in every copy of it.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s

#layout = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @captured(%p: !tt.ptr<i32>, %gamma: i32) {
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>, #layout>
    %x = tt.load %ps : tensor<64x!tt.ptr<i32>, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %s = arith.xori %a, %b : i32
      %c = arith.xori %s, %gamma : i32
      tt.scan.return %c : i32
    }) : (tensor<64xi32, #layout>) -> tensor<64xi32, #layout>
    tt.store %ps, %y : tensor<64x!tt.ptr<i32>, #layout>
    tt.return
  }
}

// CHECK: ld.param.b32 [[GAMMA:%r[0-9]+]], [captured_param_1]
// CHECK: xor.b32 %{{r[0-9]+, %r[0-9]+}}, [[GAMMA]];
// CHECK-COUNT-6: shfl.sync
// CHECK-NOT: shfl.sync
