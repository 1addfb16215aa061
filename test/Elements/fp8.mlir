// fp8 is held as i8, as in the rest of Triton, and the combine region sees its own type.

// RUN: sed 's/DIRECTION/false/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s
// RUN: sed 's/DIRECTION/true/' %s | triton-scan-opt --lower-scan --ptx - | FileCheck %s

#layout = #ttg.linear<{register = [], lane = [[1], [0], [0], [0], [0]], warp = [], block = []}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @fp8(%p: !tt.ptr<f8E4M3FN>) {
    %ps = tt.splat %p : !tt.ptr<f8E4M3FN> -> tensor<2x!tt.ptr<f8E4M3FN>, #layout>
    %x = tt.load %ps : tensor<2x!tt.ptr<f8E4M3FN>, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = DIRECTION}> ({
    ^bb0(%a: f8E4M3FN, %b: f8E4M3FN):
      %ai = tt.bitcast %a : f8E4M3FN -> i8
      %bi = tt.bitcast %b : f8E4M3FN -> i8
      %greater = arith.cmpi ugt, %ai, %bi : i8
      %c = arith.select %greater, %a, %b : f8E4M3FN
      tt.scan.return %c : f8E4M3FN
    }) : (tensor<2xf8E4M3FN, #layout>) -> tensor<2xf8E4M3FN, #layout>
    tt.store %ps, %y : tensor<2x!tt.ptr<f8E4M3FN>, #layout>
    tt.return
  }
}

// CHECK: ld.global.b8
// CHECK: shfl.sync
// CHECK-NOT: shfl
// CHECK: {{setp|max\.u}}
// CHECK: st.global.b8
