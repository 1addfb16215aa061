// A layout whose bits move two dimensions is a generic linear one, and tt.scan itself refuses those:
// no valid input needs a conversion before it can be scanned.

// RUN: not triton-scan-opt --lower-scan %s 2>&1 | FileCheck %s

#layout = #ttg.generic_linear<{register = [[1, 0]], lane = [[2, 0], [4, 0], [8, 0], [0, 1], [0, 2]], warp = [[16, 4], [0, 4]], block = []}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @swizzled(%x: tensor<32x8xi32, #layout>) -> tensor<32x8xi32, #layout> {
    // CHECK: error: Operand 0 {{.*}} has an invalid layout: Encoding not compatible with LinearEncodingAttr
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = true}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<32x8xi32, #layout>) -> tensor<32x8xi32, #layout>
    tt.return %y : tensor<32x8xi32, #layout>
  }
}
