// What a scan becomes keeps the scan's location; combinations keep their own.

// RUN: triton-scan-opt --lower-scan --mlir-print-debuginfo %s | FileCheck %s --check-prefixes=CHECK,%base

#layout = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @located(%x: tensor<256xi32, #layout>) -> tensor<256xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = true}> ({
    ^bb0(%a: i32 loc("a"), %b: i32 loc("b")):
      %c = arith.subi %a, %b : i32 loc("combine.py":2:3)
      tt.scan.return %c : i32 loc("combine.py":2:3)
    }) : (tensor<256xi32, #layout>) -> tensor<256xi32, #layout> loc("kernel.py":7:11)
    tt.return %y : tensor<256xi32, #layout> loc("kernel.py":8:1)
  } loc("kernel.py":1:1)
} loc("kernel.py":1:1)

// CHECK: tt.func @located
// CHECK: llvm.extractvalue {{.*}} loc(#[[SCAN:loc[0-9]*]])
// CHECK: arith.subi {{.*}} loc(#[[COMBINE:loc[0-9]*]])
// CHECK: nvvm.shfl.sync {{.*}} loc(#[[SCAN]])
// CHECK: llvm.select {{.*}} loc(#[[SCAN]])
// SOURCE: ttg.convert_layout {{.*}} loc(#[[SCAN]])
// WHEEL: ttg.local_alloc {{.*}} loc(#[[SCAN]])
// WHEEL: ttg.local_scatter {{.*}} loc(#[[SCAN]])
// WHEEL: ttg.local_load {{.*}} loc(#[[SCAN]])
// CHECK: llvm.insertvalue {{.*}} loc(#[[SCAN]])
// CHECK-DAG: #[[SCAN]] = loc("kernel.py":7:11)
// CHECK-DAG: #[[COMBINE]] = loc("combine.py":2:3)
