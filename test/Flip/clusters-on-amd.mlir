// CTAs exchange nothing on AMD.

// RUN: not triton-scan-opt --lower-flip %s 2>&1 | FileCheck %s

#layout = #ttg.linear<{register = [], lane = [[1], [2], [4], [8], [16]], warp = [], block = [[32]]}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 2 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "hip:gfx1250"} {
  tt.func @crossing(%x: tensor<64xi32, #layout>) -> tensor<64xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: i32, %b: i32):
      %f = tt.extern_elementwise %a, %b {libname = "triton_scan", libpath = "", pure = true, symbol = "triton_scan_flip"} : (i32, i32) -> i32
      tt.scan.return %f : i32
    }) : (tensor<64xi32, #layout>) -> tensor<64xi32, #layout>
    tt.return %y : tensor<64xi32, #layout>
  }
}

// CHECK: error: tl.flip cannot be lowered: axis 0 crosses CTAs, which cannot exchange elements on this target; use num_ctas=1
