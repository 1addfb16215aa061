// A module without scans is left as it is, whatever its target.

// RUN: triton-scan-opt --target=cuda:90 %s > %t.before
// RUN: triton-scan-opt --target=cuda:90 --lower-scan %s > %t.after
// RUN: diff %t.before %t.after

#layout = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @plain(%x: tensor<128xi32, #layout>) -> i32 {
    %y = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.addi %a, %b : i32
      tt.reduce.return %c : i32
    }) : (tensor<128xi32, #layout>) -> i32
    tt.return %y : i32
  }
}
