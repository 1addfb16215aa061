#blocked = #ttg.blocked<{sizePerThread = [2, 4], threadsPerWarp = [4, 8], warpsPerCTA = [2, 2], order = [1, 0]}>
#line = #ttg.slice<{dim = 0, parent = #blocked}>
#linear = #ttg.linear<{register = [[1], [64]], lane = [[2], [4], [8], [16], [32]], warp = [[0], [128]], block = []}>
#mma2 = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#dot = #ttg.dot_op<{opIdx = 0, parent = #mma2, kWidth = 2}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @rich(%in: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f16>, %n: i32, %flag: i1) -> i64 attributes {noinline = false} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %wide = arith.constant 170141183460469231731687303715884105727 : i128
    %lo = arith.constant -5 : i64
    %half = arith.constant 1.500000e+00 : f16
    %splat = arith.constant dense<2.500000e-01> : tensor<16x32xf32, #blocked>
    %mask = arith.constant dense<true> : tensor<16x32xi1, #blocked>
    %list = arith.constant dense<[3, -1, 4, 1]> : vector<4xi32>
    %range = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #line>
    %rangel = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32, #linear>
    %row = tt.expand_dims %range {axis = 0 : i32} : tensor<32xi32, #line> -> tensor<1x32xi32, #blocked>
    %rows = tt.broadcast %row : tensor<1x32xi32, #blocked> -> tensor<16x32xi32, #blocked>
    %base = tt.splat %in : !tt.ptr<f32> -> tensor<16x32x!tt.ptr<f32>, #blocked>
    %ptrs = tt.addptr %base, %rows : tensor<16x32x!tt.ptr<f32>, #blocked>, tensor<16x32xi32, #blocked>
    %x = "tt.load"(%ptrs, %mask, %splat) <{isVolatile = true, operandSegmentSizes = array<i32: 1, 1, 1>}> : (tensor<16x32x!tt.ptr<f32>, #blocked>, tensor<16x32xi1, #blocked>, tensor<16x32xf32, #blocked>) -> tensor<16x32xf32, #blocked>
    %scan:2 = "tt.scan"(%x, %rows) <{axis = 1 : i32, reverse = true}> ({
    ^bb0(%a: f32, %i: i32, %b: f32, %j: i32):
      %s = arith.addf %a, %b : f32
      %k = arith.addi %i, %n : i32
      %c = arith.cmpi slt, %k, %j : i32
      %m = arith.select %c, %k, %j : i32
      tt.scan.return %s, %m : f32, i32
    }) : (tensor<16x32xf32, #blocked>, tensor<16x32xi32, #blocked>) -> (tensor<16x32xf32, #blocked>, tensor<16x32xi32, #blocked>)
    %fwd = "tt.scan"(%rangel) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: i32, %b: i32):
      %s = arith.addi %a, %b : i32
      tt.scan.return %s : i32
    }) : (tensor<256xi32, #linear>) -> tensor<256xi32, #linear>
    %red = "tt.reduce"(%scan#0) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %s = arith.maximumf %a, %b : f32
      tt.reduce.return %s : f32
    }) : (tensor<16x32xf32, #blocked>) -> tensor<32xf32, #line>
    %lin = ttg.convert_layout %scan#1 : tensor<16x32xi32, #blocked> -> tensor<16x32xi32, #mma2>
    %h = arith.truncf %scan#0 : tensor<16x32xf32, #blocked> to tensor<16x32xf16, #blocked>
    %buf = ttg.local_alloc %h {alignment = 64 : i32} : (tensor<16x32xf16, #blocked>) -> !ttg.memdesc<16x32xf16, #shared, #smem, mutable>
    %opnd = ttg.local_load %buf : !ttg.memdesc<16x32xf16, #shared, #smem, mutable> -> tensor<16x32xf16, #dot>
    %sum:2 = scf.for %iv = %c0 to %n step %c1 iter_args(%u = %lo, %v = %half) -> (i64, f16) : i32 {
      %y = arith.extsi %iv : i32 to i64
      %z = arith.addi %u, %y : i64
      scf.yield %z, %v : i64, f16
    }
    tt.store %ptrs, %scan#0, %mask : tensor<16x32x!tt.ptr<f32>, #blocked>
    %struct = builtin.unrealized_conversion_cast %fwd : tensor<256xi32, #linear> to !llvm.struct<(i32, i32, i32, i32)>
    %e = llvm.extractvalue %struct[2] : !llvm.struct<(i32, i32, i32, i32)>
    %all = llvm.mlir.constant(-1 : i32) : i32
    %sh = nvvm.shfl.sync down %all, %e, %c1, %all {return_value_and_is_valid} : i32 -> !llvm.struct<(i32, i1)>
    %ok = llvm.extractvalue %sh[1] : !llvm.struct<(i32, i1)>
    cf.cond_br %flag, ^then(%sum#0 : i64), ^else
  ^then(%t: i64):
    tt.return %t : i64
  ^else:
    cf.br ^then(%lo : i64)
  }
}
