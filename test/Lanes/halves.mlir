// In a step over several lanes the lanes of the later half of a block read the last lane of the earlier
// half (in reverse the first of it); those of the earlier half ask for a lane that does not exist, so
// that the shuffle's predicate says whose element is to change.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefixes=CHECK,FORWARD
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan - | FileCheck %s --check-prefixes=CHECK,REVERSE

#layout = #ttg.linear<{register = [], lane = [[1], [2], [0], [0], [0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @halves(%x: tensor<4xi32, #layout>) -> tensor<4xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.subi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<4xi32, #layout>) -> tensor<4xi32, #layout>
    tt.return %y : tensor<4xi32, #layout>
  }
}

// The first step, between neighbours.
// CHECK:   [[X:%.+]] = llvm.extractvalue %{{.+}}[0]
// FORWARD: [[BOTH:%.+]] = nvvm.shfl.sync up %{{.+}}, [[X]],
// REVERSE: [[BOTH:%.+]] = nvvm.shfl.sync down %{{.+}}, [[X]],
// CHECK-DAG: [[EARLIER:%.+]] = llvm.extractvalue [[BOTH]][0]
// CHECK-DAG: [[EXISTS:%.+]] = llvm.extractvalue [[BOTH]][1]
// CHECK:   [[JOINED:%.+]] = arith.subi [[EARLIER]], [[X]]
// CHECK:   [[Y:%.+]] = llvm.select [[EXISTS]], [[JOINED]], [[X]]

// The second: bit 1 tells the halves; the distance is lane - 1, in reverse 2 - lane, in the block.
// FORWARD: [[LATER:%.+]] = llvm.icmp "ne"
// REVERSE: [[LATER:%.+]] = llvm.icmp "eq"
// CHECK-DAG: [[PLACE:%.+]] = llvm.and %{{.+}}, %{{.+}} : i32
// FORWARD: [[DISTANCE:%.+]] = llvm.sub [[PLACE]], %{{.+}}
// REVERSE: [[DISTANCE:%.+]] = llvm.sub %{{.+}}, [[PLACE]]
// CHECK:   [[ASKED:%.+]] = llvm.select [[LATER]], [[DISTANCE]], %{{.+}}
// CHECK:   [[BOTH2:%.+]] = nvvm.shfl.sync {{up|down}} %{{.+}}, [[Y]], [[ASKED]],
// CHECK-DAG: [[EARLIER2:%.+]] = llvm.extractvalue [[BOTH2]][0]
// CHECK-DAG: [[EXISTS2:%.+]] = llvm.extractvalue [[BOTH2]][1]
// CHECK:   [[JOINED2:%.+]] = arith.subi [[EARLIER2]], [[Y]]
// CHECK:   [[Z:%.+]] = llvm.select [[EXISTS2]], [[JOINED2]], [[Y]]
// CHECK:   llvm.insertvalue [[Z]]
