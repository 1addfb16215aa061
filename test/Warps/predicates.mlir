// Where warps are folded, a shuffle from a neighbour returns its own predicate if it is the only one
// to need it; with several slots, one comparison serves all of them.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s

#one = #ttg.linear<{register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = [[64], [128]], block = []}>
#two = #ttg.linear<{register = [[128]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]], block = []}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  // CHECK-LABEL: @one_slot
  // CHECK:       [[STEP:%.+]] = nvvm.shfl.sync {{.*}}{return_value_and_is_valid} : i32 -> !llvm.struct<(i32, i1)>
  // CHECK:       [[EXISTS:%.+]] = llvm.extractvalue [[STEP]][1]
  // CHECK:       llvm.select [[EXISTS]]
  tt.func @one_slot(%x: tensor<256xf32, #one>) -> tensor<256xf32, #one> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.scan.return %c : f32
    }) : (tensor<256xf32, #one>) -> tensor<256xf32, #one>
    tt.return %y : tensor<256xf32, #one>
  }

  // CHECK-LABEL: @two_slots
  // CHECK-NOT:   return_value_and_is_valid
  // CHECK:       tt.return
  tt.func @two_slots(%x: tensor<256xf32, #two>) -> tensor<256xf32, #two> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.scan.return %c : f32
    }) : (tensor<256xf32, #two>) -> tensor<256xf32, #two>
    tt.return %y : tensor<256xf32, #two>
  }
}
