// Registers that only repeat elements are left out: the thread's struct has unique registers (not so in
// the source base), and each element is combined once.

// RUN: triton-scan-opt --lower-scan %s | FileCheck %s --check-prefixes=CHECK,%base
// RUN: triton-scan-opt --lower-scan --ptx %s | FileCheck %s --check-prefix=PTX

#layout = #ttg.linear<{register = [[0], [1], [0]], lane = [[0], [0], [0], [0], [0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @copies(%p: !tt.ptr<i32>) {
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<2x!tt.ptr<i32>, #layout>
    %x = tt.load %ps : tensor<2x!tt.ptr<i32>, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<2xi32, #layout>) -> tensor<2xi32, #layout>
    tt.store %ps, %y : tensor<2x!tt.ptr<i32>, #layout>
    tt.return
  }
}

// WHEEL: tensor<2xi32, {{.*}}> to !llvm.struct<(i32, i32)>
// SOURCE: tensor<2xi32, {{.*}}> to !llvm.struct<(i32, i32, i32, i32, i32, i32, i32, i32)>
// CHECK:     arith.subi
// CHECK-NOT: arith.subi
// WHEEL: !llvm.struct<(i32, i32)> to tensor<2xi32, {{.*}}>
// SOURCE: !llvm.struct<(i32, i32, i32, i32, i32, i32, i32, i32)> to tensor<2xi32, {{.*}}>

// PTX:     sub.s32
// PTX-NOT: sub.s32
