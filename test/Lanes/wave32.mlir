// On AMD's targets with 32 lanes a lane run has 5 steps and one for the previous lane, none of which goes
// through the LDS unit; LLVM lets the subtraction itself read another lane.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --amdgcn - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --amdgcn - | FileCheck %s

#layout = #ttg.linear<{register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "hip:gfx1100"} {
  tt.func public @wave32(%p: !tt.ptr<i32>) {
    %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #layout>
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>, #layout>
    %pi = tt.addptr %ps, %i : tensor<64x!tt.ptr<i32>, #layout>, tensor<64xi32, #layout>
    %x = tt.load %pi : tensor<64x!tt.ptr<i32>, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<64xi32, #layout>) -> tensor<64xi32, #layout>
    tt.store %pi, %y : tensor<64x!tt.ptr<i32>, #layout>
    tt.return
  }
}

// CHECK-LABEL: wave32:
// CHECK-NOT: ds_
// CHECK-COUNT-2: v_sub_nc_u32_dpp
// CHECK: v_permlane16_b32
// CHECK: v_sub_nc_u32_dpp
// CHECK-COUNT-2: v_permlanex16_b32
// CHECK: v_mov_b32_dpp
// CHECK-NOT: ds_
// CHECK-NOT: s_barrier
// CHECK: s_endpgm
