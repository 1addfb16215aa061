// A scan near a loop to be specialised becomes an opaque op, and comes back as it was, also where the
// op was split along another axis, and with the constants of its region. A value that the region captures is
// an operand meanwhile.

// RUN: triton-scan-opt --outline-scans %s | FileCheck %s --check-prefix=OUT
// RUN: triton-scan-opt --outline-scans --inline-scans %s | FileCheck %s --check-prefix=BACK
// RUN: triton-scan-opt --outline-scans %s | sed '/triton_scan.outlined.0.*pure/s/128x64/64x64/g; /@rows/,/tt.return/s/128x64/64x64/g' \
// RUN:   | triton-scan-opt --inline-scans - | FileCheck %s --check-prefix=SPLIT

#l = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @rows(%x: tensor<128x64xf32, #l>, %n: i32) -> tensor<128x64xf32, #l> {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2.0 : f32
    %y = scf.for %i = %zero to %n step %one iter_args(%z = %x) -> (tensor<128x64xf32, #l>) : i32 {
      %s = "tt.scan"(%z) <{axis = 1 : i32, reverse = true}> ({
      ^bb0(%a: f32, %b: f32):
        %c = arith.mulf %a, %two : f32
        %d = arith.addf %c, %b : f32
        tt.scan.return %d : f32
      }) {async_task_id = array<i32: 1>} : (tensor<128x64xf32, #l>) -> tensor<128x64xf32, #l>
      scf.yield %s : tensor<128x64xf32, #l>
    } {tt.warp_specialize}
    tt.return %y : tensor<128x64xf32, #l>
  }

  // Where no loop is to be specialised, nothing changes.
  tt.func public @plain(%x: tensor<128x64xf32, #l>) -> tensor<128x64xf32, #l> {
    %s = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: f32, %b: f32):
      %d = arith.addf %a, %b : f32
      tt.scan.return %d : f32
    }) : (tensor<128x64xf32, #l>) -> tensor<128x64xf32, #l>
    tt.return %s : tensor<128x64xf32, #l>
  }

  tt.func public @captured(%x: tensor<128x64xf32, #l>, %n: i32, %g: f32) -> tensor<128x64xf32, #l> {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %y = scf.for %i = %zero to %n step %one iter_args(%z = %x) -> (tensor<128x64xf32, #l>) : i32 {
      %s = "tt.scan"(%z) <{axis = 1 : i32, reverse = true}> ({
      ^bb0(%a: f32, %b: f32):
        %c = arith.mulf %a, %g : f32
        %d = arith.addf %c, %b : f32
        tt.scan.return %d : f32
      }) : (tensor<128x64xf32, #l>) -> tensor<128x64xf32, #l>
      scf.yield %s : tensor<128x64xf32, #l>
    } {tt.warp_specialize}
    tt.return %y : tensor<128x64xf32, #l>
  }
}

// OUT-LABEL: @rows
// OUT-NOT: tt.scan
// OUT: tt.elementwise_inline_asm "triton_scan.outlined.0" {async_task_id = array<i32: 1>{{.*}}pure = true} %{{.*}} : tensor<128x64xf32
// OUT: tt.warp_specialize
// OUT-LABEL: @plain
// OUT: "tt.scan"
// OUT-LABEL: @captured(
// OUT-SAME: [[G:%[^:]+]]: f32)
// OUT-NOT: tt.scan
// OUT: tt.elementwise_inline_asm "triton_scan.outlined.1" {{.*}}pure = true} %{{.+}}, [[G]] : tensor<128x64xf32
// OUT-LABEL: tt.func private @triton_scan.outlined.0
// OUT: "tt.scan"{{.*}}reverse = true

// BACK-LABEL: @rows
// BACK: "tt.scan"{{.*}}axis = 1 : i32, reverse = true
// BACK: arith.constant 2.0
// BACK: arith.mulf
// BACK: }) {async_task_id = array<i32: 1>} : (tensor<128x64xf32
// BACK-LABEL: @captured(
// BACK-SAME: [[G:%[^:]+]]: f32)
// BACK: "tt.scan"(%{{[^,]+}}) <{axis = 1 : i32, reverse = true}>
// BACK: arith.mulf %{{.+}}, [[G]]
// BACK-NOT: outlined

// SPLIT-LABEL: @rows
// SPLIT: "tt.scan"{{.*}}axis = 1 : i32, reverse = true
// SPLIT: }) {async_task_id = array<i32: 1>} : (tensor<64x64xf32, #{{.*}}>) -> tensor<64x64xf32
