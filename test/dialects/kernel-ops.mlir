// RUN: titan-opt %s --verify-roundtrip | titan-opt | FileCheck %s

// CHECK-LABEL: func.func @fused
// CHECK: kernel.empty : tensor<3x5xf32>
// CHECK: kernel.fused row [3, 5] ins(%{{.*}}, %{{.*}} : tensor<3x5xf32>, tensor<i64>) outs(%{{.*}} : tensor<3x5xf32>)
// CHECK-SAME: scalars(%{{.*}}) maps
// CHECK: kernel.index 1
// CHECK: kernel.random_half stream 7 seed
// CHECK: kernel.reduce max %{{.*}} over [1] : f32
func.func @fused(%x: tensor<3x5xf32>, %seed: tensor<i64>, %i: index) -> tensor<3x5xf32> {
  %o = kernel.empty : tensor<3x5xf32>
  %y = kernel.fused row [3, 5] ins(%x, %seed : tensor<3x5xf32>, tensor<i64>) outs(%o : tensor<3x5xf32>) scalars(%i)
      maps [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> ()>, affine_map<(r, c) -> (r, c)>]
      attributes {path = ["act"], phase = #titan<phase backward>} -> (tensor<3x5xf32>) {
  ^bb0(%v: f32, %s: i64, %offset: index):
    %c = kernel.index 1
    %e = arith.addi %c, %offset : index
    %h = kernel.random_half stream 7 seed %s step %s element %e
    %f = arith.uitofp %h : i32 to f32
    %max = kernel.reduce max %v over [1] : f32
    %p = arith.mulf %max, %f : f32
    kernel.yield %p : f32
  }
  return %y : tensor<3x5xf32>
}

// CHECK-LABEL: func.func @call
// CHECK: kernel.call #kernel.gemm<batch = 1, m = 4, n = 3, k = 6
func.func @call(%x: tensor<4x6xf32>, %w: tensor<3x6xf32>, %c: tensor<4x3xf32>) -> tensor<12xf32> {
  %y = kernel.call #kernel.gemm<batch = 1, m = 4, n = 3, k = 6, lda = 6, ldb = 6, ldc = 3, strideA = 0, strideB = 0,
      strideC = 0, transposeA = false, transposeB = true, accumulate = true, bias = false, relu = false, tileM = 4, tileN = 3>
      ins(%x, %w : tensor<4x6xf32>, tensor<3x6xf32>) outs(%c : tensor<4x3xf32>) -> (tensor<4x3xf32>)
  // CHECK: kernel.cast_shape %{{.*}} : tensor<4x3xf32> to tensor<12xf32>
  %r = kernel.cast_shape %y : tensor<4x3xf32> to tensor<12xf32>
  return %r : tensor<12xf32>
}

// CHECK-LABEL: func.func @patches
// CHECK: kernel.call #kernel.gemm<{{.*}} tileM = 4, tileN = 3, patchesA = <lines = [2, 2] by [20, 4], columns = [3, 2] by [4, 1], offset = 6>>
func.func @patches(%x: tensor<40xf32>, %w: tensor<3x6xf32>, %c: tensor<4x3xf32>) -> tensor<4x3xf32> {
  %y = kernel.call #kernel.gemm<batch = 1, m = 4, n = 3, k = 6, lda = 6, ldb = 6, ldc = 3, strideA = 0, strideB = 0,
      strideC = 0, transposeA = false, transposeB = true, accumulate = false, bias = false, relu = false, tileM = 4, tileN = 3,
      patchesA = <lines = [2, 2] by [20, 4], columns = [3, 2] by [4, 1], offset = 6>>
      ins(%x, %w : tensor<40xf32>, tensor<3x6xf32>) outs(%c : tensor<4x3xf32>) -> (tensor<4x3xf32>)
  return %y : tensor<4x3xf32>
}

// CHECK-LABEL: func.func @rows
// CHECK: kernel.rows %{{.*}}[%{{.*}}] : tensor<4x2xf32> to tensor<3x2xf32>
// CHECK: kernel.rows %{{.*}}[%{{.*}}] : memref<4x2xf32> to memref<1x2xf32>
func.func @rows(%x: tensor<4x2xf32>, %y: memref<4x2xf32>, %i: index) -> (tensor<3x2xf32>, memref<1x2xf32>) {
  %r = kernel.rows %x[%i] : tensor<4x2xf32> to tensor<3x2xf32>
  %s = kernel.rows %y[%i] : memref<4x2xf32> to memref<1x2xf32>
  return %r, %s : tensor<3x2xf32>, memref<1x2xf32>
}

// CHECK-LABEL: func.func @buffers
// CHECK: kernel.buffer 128 : memref<2xf32>
// CHECK: kernel.slice %{{.*}}[%{{.*}}] : memref<4x2xf32> to memref<2xf32>
func.func @buffers(%x: memref<4x2xf32> {kernel.offset = 0 : i64}, %i: index) {
  %t = kernel.buffer 128 : memref<2xf32>
  %s = kernel.slice %x[%i] : memref<4x2xf32> to memref<2xf32>
  kernel.fused flat [2] ins(%s : memref<2xf32>) outs(%t : memref<2xf32>) maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] {
  ^bb0(%v: f32):
    kernel.yield %v : f32
  }
  return
}
