// Two scans that follow each other, one in each direction, become straight code without a trace of
// tt.scan or a reversal of data.

// RUN: triton-scan-opt --lower-scan %s | FileCheck %s --check-prefixes=CHECK,%base

#layout = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @twice(%x: tensor<128xi32, #layout>) -> tensor<128xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<128xi32, #layout>) -> tensor<128xi32, #layout>
    %z = "tt.scan"(%y) <{axis = 0 : i32, reverse = true}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.ori %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<128xi32, #layout>) -> tensor<128xi32, #layout>
    tt.return %z : tensor<128xi32, #layout>
  }
}

// CHECK-NOT: {{tt\.scan|shfl.sync bfly|convert_layout}}
// CHECK: arith.subi
// CHECK-NOT: {{tt\.scan|shfl.sync bfly|convert_layout}}
// WHEEL: ttg.local_scatter
// SOURCE: ttg.convert_layout
// CHECK-NOT: {{tt\.scan|shfl.sync bfly|convert_layout}}
// CHECK: arith.ori
// CHECK-NOT: {{tt\.scan|shfl.sync bfly|convert_layout}}
// WHEEL: ttg.local_scatter
// SOURCE: ttg.convert_layout
// CHECK-NOT: {{tt\.scan|shfl.sync bfly|convert_layout}}
