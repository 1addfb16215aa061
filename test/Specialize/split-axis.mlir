// A scan whose axis was split between groups of warps is refused at its own place.

// RUN: triton-scan-opt --outline-scans %s | sed 's/32x64/16x64/g; /private/,$s/16x64/32x64/g' > %t
// RUN: not triton-scan-opt --inline-scans %t 2>&1 | FileCheck %s

#l = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @columns(%x: tensor<32x64xf32, #l>, %n: i32) -> tensor<32x64xf32, #l> {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %y = scf.for %i = %zero to %n step %one iter_args(%z = %x) -> (tensor<32x64xf32, #l>) : i32 {
      %s = "tt.scan"(%z) <{axis = 0 : i32, reverse = false}> ({
      ^bb0(%a: f32, %b: f32):
        %d = arith.addf %a, %b : f32
        tt.scan.return %d : f32
      }) : (tensor<32x64xf32, #l>) -> tensor<32x64xf32, #l>
      scf.yield %s : tensor<32x64xf32, #l>
    } {tt.warp_specialize}
    tt.return %y : tensor<32x64xf32, #l>
  }
}

// CHECK: error: {{.*}}:[[#]]:[[#]]: 'tt.scan' op cannot be lowered: axis 0 is split between groups of warps; use warp_specialize=False for the loop
