// An axis that crosses the CTAs of a cluster is joined through a layout conversion that hands every
// CTA the totals of all; in reverse the highest CTA comes first.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefixes=CHECK,FORWARD
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefixes=CHECK,REVERSE

#layout = #ttg.linear<{register = [], lane = [[1], [2], [4], [8], [16]], warp = [], block = [[32]]}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 2 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @across(%x: tensor<64xi32, #layout>) -> tensor<64xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<64xi32, #layout>) -> tensor<64xi32, #layout>
    tt.return %y : tensor<64xi32, #layout>
  }
}

// CHECK-COUNT-6: nvvm.shfl.sync
// CHECK:      ttg.convert_layout
// CHECK-DAG:  [[CTA0:%.+]] = llvm.extractvalue %{{.+}}[0] : !llvm.struct<(i32, i32)>
// CHECK-DAG:  [[CTA1:%.+]] = llvm.extractvalue %{{.+}}[1] : !llvm.struct<(i32, i32)>
// FORWARD:    [[JOINED:%.+]] = arith.subi [[CTA0]], [[OWN:%[0-9]+]] : i32
// REVERSE:    [[JOINED:%.+]] = arith.subi [[CTA1]], [[OWN:%[0-9]+]] : i32
// CHECK:      llvm.select %{{.+}}, [[JOINED]], [[OWN]]
