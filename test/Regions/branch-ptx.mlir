// A branch in a combine region reaches PTX, also between shuffles, which all lanes take part in.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s

#layout = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [2], order = [0]}>

module attributes {"ttg.num-warps" = 2 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @branch(%p: !tt.ptr<i32>) {
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>, #layout>
    %x = tt.load %ps : tensor<64x!tt.ptr<i32>, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: i32, %b: i32):
      %greater = arith.cmpi sgt, %a, %b : i32
      %c = scf.if %greater -> (i32) {
        %d = arith.subi %a, %b : i32
        scf.yield %d : i32
      } else {
        scf.yield %b : i32
      }
      tt.scan.return %c : i32
    }) : (tensor<64xi32, #layout>) -> tensor<64xi32, #layout>
    tt.store %ps, %y : tensor<64x!tt.ptr<i32>, #layout>
    tt.return
  }
}

// CHECK-COUNT-5: shfl.sync
// CHECK: bar.sync
// CHECK-NOT: shfl.sync
