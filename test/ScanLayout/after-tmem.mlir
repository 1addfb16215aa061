// What tcgen05 leaves in tensor memory is scanned in the layout in which it is loaded: those of tl.dot of 64x64
// tiles on sm_100.

// RUN: sed -f %older -e 's/AXIS/0/;s/DIRECTION/false/' %s | triton-scan-opt --choose-scan-layout - | FileCheck %s
// RUN: sed -f %older -e 's/AXIS/0/;s/DIRECTION/true/' %s | triton-scan-opt --choose-scan-layout - | FileCheck %s
// RUN: sed -f %older -e 's/AXIS/1/;s/DIRECTION/false/' %s | triton-scan-opt --choose-scan-layout - | FileCheck %s
// RUN: sed -f %older -e 's/AXIS/1/;s/DIRECTION/true/' %s | triton-scan-opt --choose-scan-layout - | FileCheck %s

#linear = #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 32]], warp = [[16, 0], [32, 0]], block = []}>
#blocked = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#tmem = #ttng.tensor_memory_encoding<blockM = 64, blockN = 64, colStride = 1>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:100"} {
  tt.func public @after_tmem() -> tensor<64x64xf32, #linear> {
    %m = ttng.tmem_alloc : () -> !ttg.memdesc<64x64xf32, #tmem, #ttng.tensor_memory, mutable>
    %z = ttng.tmem_load %m : !ttg.memdesc<64x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<64x64xf32, #linear>
    %c = ttg.convert_layout %z : tensor<64x64xf32, #linear> -> tensor<64x64xf32, #blocked>
    %s = "tt.scan"(%c) <{axis = AXIS : i32, reverse = DIRECTION}> ({
    ^bb0(%a: f32, %b: f32):
      %t = arith.addf %a, %b : f32
      tt.scan.return %t : f32
    }) : (tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked>
    %d = ttg.convert_layout %s : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #linear>
    %y = arith.mulf %d, %z : tensor<64x64xf32, #linear>
    tt.return %y : tensor<64x64xf32, #linear>
  }
}

// CHECK: %[[Z:.+]] = ttng.tmem_load
// CHECK-NOT: ttg.convert_layout
// CHECK: "tt.scan"(%[[Z]])
// CHECK: (tensor<64x64xf32, #linear>) -> tensor<64x64xf32, #linear>
// CHECK-NOT: ttg.convert_layout
