// Four bytes share a shuffle; where the axis has them all, they change places at once.

// RUN: triton-scan-opt --lower-flip --ptx %s | FileCheck %s

#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [1, 1], order = [1, 0]}>

module attributes {"ttg.num-warps" = 1 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func public @bytes(%p: !tt.ptr<i8>, %q: !tt.ptr<i8>) {
    %ps = tt.splat %p : !tt.ptr<i8> -> tensor<8x16x!tt.ptr<i8>, #blocked>
    %qs = tt.splat %q : !tt.ptr<i8> -> tensor<8x16x!tt.ptr<i8>, #blocked>
    %x = tt.load %ps : tensor<8x16x!tt.ptr<i8>, #blocked>
    %y = "tt.scan"(%x) <{axis = 1 : i32, reverse = false}> ({
    ^bb0(%a: i8, %b: i8):
      %f = tt.extern_elementwise %a, %b {libname = "triton_scan", libpath = "", pure = true, symbol = "triton_scan_flip"} : (i8, i8) -> i8
      tt.scan.return %f : i8
    }) : (tensor<8x16xi8, #blocked>) -> tensor<8x16xi8, #blocked>
    %z = "tt.scan"(%y) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: i8, %b: i8):
      %f = tt.extern_elementwise %a, %b {libname = "triton_scan", libpath = "", pure = true, symbol = "triton_scan_flip"} : (i8, i8) -> i8
      tt.scan.return %f : i8
    }) : (tensor<8x16xi8, #blocked>) -> tensor<8x16xi8, #blocked>
    tt.store %qs, %z : tensor<8x16x!tt.ptr<i8>, #blocked>
    tt.return
  }
}

// CHECK:     shfl.sync.bfly.b32 [[WORD:%.+]], %{{.+}}, 3, 31, -1;
// CHECK:     prmt.b32 %{{.+}}, [[WORD]], {{.+}}, 0x123
// CHECK:     shfl.sync.bfly.b32 %{{.+}}, %{{.+}}, 28, 31, -1;
// CHECK-NOT: shfl
