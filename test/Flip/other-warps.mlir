// A flip in a module with warps of another size than its target's is refused with one line.

// RUN: not triton-scan-opt --lower-flip %s 2>&1 | FileCheck %s

#layout = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "hip:gfx942"} {
  tt.func @waves(%x: tensor<256xi32, #layout>) -> tensor<256xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: i32, %b: i32):
      %f = tt.extern_elementwise %a, %b {libname = "triton_scan", libpath = "", pure = true, symbol = "triton_scan_flip"} : (i32, i32) -> i32
      tt.scan.return %f : i32
    }) : (tensor<256xi32, #layout>) -> tensor<256xi32, #layout>
    tt.return %y : tensor<256xi32, #layout>
  }
}

// CHECK: error: tl.flip cannot be lowered: a warp of hip:gfx942 has 64 threads, but the module's ttg.threads-per-warp is 32; write it and the layouts for 64
