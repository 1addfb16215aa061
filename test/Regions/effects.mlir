// A combine region that asserts, or may not end, runs where its result is wanted only: a lane without one
// before it takes another branch. Registers are all neighbours.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s

#lanes = #ttg.linear<{register = [[1]], lane = [[2], [0], [0], [0], [0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  // CHECK-LABEL: @lanes
  // CHECK:       arith.cmpi slt
  // CHECK-NEXT:  tt.assert
  // CHECK-NOT:   tt.assert
  // CHECK:       scf.if {{%.+}} -> (i32) {
  // CHECK-NEXT:    arith.cmpi slt
  // CHECK-NEXT:    tt.assert
  // CHECK-NEXT:    scf.yield
  // CHECK-NEXT:  } else {
  // CHECK-NEXT:    scf.yield
  // CHECK-NEXT:  }
  // CHECK-NOT:   tt.assert
  // CHECK:       scf.if {{%.+}} -> (i32) {
  // CHECK-NEXT:    arith.cmpi slt
  // CHECK-NEXT:    tt.assert
  tt.func @lanes(%x: tensor<4xi32, #lanes>) -> tensor<4xi32, #lanes> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %less = arith.cmpi slt, %a, %b : i32
      tt.assert %less, "ordered" : i1
      tt.scan.return %b : i32
    }) : (tensor<4xi32, #lanes>) -> tensor<4xi32, #lanes>
    tt.return %y : tensor<4xi32, #lanes>
  }
}
