// Warp bits take one exchange through shared memory, and the lane bits go with it.

// RUN: triton-scan-opt --lower-flip %s | FileCheck %s
// RUN: triton-scan-opt --lower-flip --ptx %s | FileCheck %s --check-prefix=PTX

#layout = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>

module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @warps(%p: !tt.ptr<i32>, %q: !tt.ptr<i32>) {
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #layout>
    %qs = tt.splat %q : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #layout>
    %x = tt.load %ps : tensor<512x!tt.ptr<i32>, #layout>
    %y = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: i32, %b: i32):
      %f = tt.extern_elementwise %a, %b {libname = "triton_scan", libpath = "", pure = true, symbol = "triton_scan_flip"} : (i32, i32) -> i32
      tt.scan.return %f : i32
    }) : (tensor<512xi32, #layout>) -> tensor<512xi32, #layout>
    tt.store %qs, %y : tensor<512x!tt.ptr<i32>, #layout>
    tt.return
  }
}

// CHECK:      ttg.warp_id
// CHECK:      [[MASK:%.+]] = llvm.mlir.constant(127 : i32)
// CHECK-NEXT: llvm.xor %{{.+}}, [[MASK]]
// CHECK:      [[BUFFER:%.+]] = ttg.local_alloc %{{.+}} -> !ttg.memdesc<128x4xi32
// CHECK:      ttg.local_gather [[BUFFER]][%{{.+}}] {axis = 0 : i32}
// CHECK-NOT:  shfl

// PTX-NOT: shfl
// PTX:     st.shared.v4.b32
// PTX:     bar.sync
// PTX:     ld.shared.v4.b32
// PTX-NOT: {{bar.sync|shfl|ld.shared|st.shared}}
