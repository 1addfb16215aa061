// A module with warps of another size than its target's is refused with one line that says both sizes: its
// layouts give half of the elements to lanes that are not there, or to no lane.

// RUN: not triton-scan-opt --target=hip:gfx942 --lower-scan %s 2>&1 | FileCheck %s --check-prefix=GFX9
// RUN: triton-scan-opt --target=hip:gfx1100 --lower-scan %s | FileCheck %s --check-prefix=GFX11
// RUN: sed 's/32\]/64]/; s/warp" = 32/warp" = 64/' %s > %t.64
// RUN: not triton-scan-opt --target=cuda:90 --lower-scan %t.64 2>&1 | FileCheck %s --check-prefix=CUDA
// RUN: not triton-scan-opt --target=hip:gfx1100 --lower-scan %t.64 2>&1 | FileCheck %s --check-prefix=LATER
// RUN: triton-scan-opt --target=hip:gfx942 --lower-scan %t.64 | FileCheck %s --check-prefix=GFX942

#layout = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @waves(%x: tensor<256xi32, #layout>) -> tensor<256xi32, #layout> {
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = true}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.addi %a, %b : i32
      tt.scan.return %c : i32
    }) : (tensor<256xi32, #layout>) -> tensor<256xi32, #layout>
    tt.return %y : tensor<256xi32, #layout>
  }
}

// GFX9: error: 'tt.scan' op cannot be lowered: a warp of hip:gfx942 has 64 threads, but the module's ttg.threads-per-warp is 32; write it and the layouts for 64
// GFX11-NOT: tt.scan
// CUDA: error: 'tt.scan' op cannot be lowered: a warp of cuda:90 has 32 threads, but the module's ttg.threads-per-warp is 64; write it and the layouts for 32
// LATER: a warp of hip:gfx1100 has 32 threads, but the module's ttg.threads-per-warp is 64
// GFX942-NOT: tt.scan
