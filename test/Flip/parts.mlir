// At most 32 KiB go through shared memory at a time.

// RUN: triton-scan-opt --lower-flip %s | FileCheck %s

#layout = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @parts(%x: tensor<16384xi32, #layout>) -> tensor<16384xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: i32, %b: i32):
      %f = tt.extern_elementwise %a, %b {libname = "triton_scan", libpath = "", pure = true, symbol = "triton_scan_flip"} : (i32, i32) -> i32
      tt.scan.return %f : i32
    }) : (tensor<16384xi32, #layout>) -> tensor<16384xi32, #layout>
    tt.return %y : tensor<16384xi32, #layout>
  }
}

// CHECK-LABEL: @parts
// CHECK-COUNT-2: ttg.local_alloc %{{.+}} -> !ttg.memdesc<128x64xi32
// CHECK-NOT: ttg.local_alloc
