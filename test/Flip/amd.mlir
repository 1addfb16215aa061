// Lanes of a 64-lane wave exchange at once too; the bytes of a word change places in one v_perm.

// RUN: triton-scan-opt --lower-flip --amdgcn %s | FileCheck %s

#layout = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [1], order = [0]}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx942"} {
  tt.func public @wave(%p: !tt.ptr<i8>, %q: !tt.ptr<i8>) {
    %r = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #layout>
    %ps = tt.splat %p : !tt.ptr<i8> -> tensor<256x!tt.ptr<i8>, #layout>
    %pp = tt.addptr %ps, %r : tensor<256x!tt.ptr<i8>, #layout>, tensor<256xi32, #layout>
    %qs = tt.splat %q : !tt.ptr<i8> -> tensor<256x!tt.ptr<i8>, #layout>
    %qq = tt.addptr %qs, %r : tensor<256x!tt.ptr<i8>, #layout>, tensor<256xi32, #layout>
    %x = tt.load %pp : tensor<256x!tt.ptr<i8>, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: i8, %b: i8):
      %f = tt.extern_elementwise %a, %b {libname = "triton_scan", libpath = "", pure = true, symbol = "triton_scan_flip"} : (i8, i8) -> i8
      tt.scan.return %f : i8
    }) : (tensor<256xi8, #layout>) -> tensor<256xi8, #layout>
    tt.store %qq, %y : tensor<256x!tt.ptr<i8>, #layout>
    tt.return
  }
}

// CHECK-COUNT-1: ds_bpermute_b32
// CHECK-NOT:     ds_bpermute_b32
