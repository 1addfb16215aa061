// Pointers travel as 64-bit integers and keep their type in the combine region.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s

#layout = #ttg.linear<{register = [], lane = [[1], [0], [0], [0], [0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @pointers(%p: !tt.ptr<i64>, %q: !tt.ptr<i32>) {
    %i = tt.make_range {start = 0 : i32, end = 2 : i32} : tensor<2xi32, #layout>
    %qs = tt.splat %q : !tt.ptr<i32> -> tensor<2x!tt.ptr<i32>, #layout>
    %x = tt.addptr %qs, %i : tensor<2x!tt.ptr<i32>, #layout>, tensor<2xi32, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: !tt.ptr<i32>, %b: !tt.ptr<i32>):
      %ai = tt.ptr_to_int %a : !tt.ptr<i32> -> i64
      %bi = tt.ptr_to_int %b : !tt.ptr<i32> -> i64
      %greater = arith.cmpi ugt, %ai, %bi : i64
      %c = arith.select %greater, %a, %b : !tt.ptr<i32>
      tt.scan.return %c : !tt.ptr<i32>
    }) : (tensor<2x!tt.ptr<i32>, #layout>) -> tensor<2x!tt.ptr<i32>, #layout>
    %z = tt.ptr_to_int %y : tensor<2x!tt.ptr<i32>, #layout> -> tensor<2xi64, #layout>
    %ps = tt.splat %p : !tt.ptr<i64> -> tensor<2x!tt.ptr<i64>, #layout>
    tt.store %ps, %z : tensor<2x!tt.ptr<i64>, #layout>
    tt.return
  }
}

// CHECK-COUNT-2: shfl.sync
// CHECK-NOT: shfl
// CHECK: st.global.b64
