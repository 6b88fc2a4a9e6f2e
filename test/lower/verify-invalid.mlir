// RUN: titan-opt %s --split-input-file --titan-lower-verify-kernels --verify-diagnostics

func.func @titan_op(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{remains after lower: only func, accum and kernel ops may}}
  %y = titan.relu %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @wrong_class(%x: tensor<4xf32>) -> tensor<4xf32> {
  %o = kernel.empty : tensor<4xf32>
  // expected-error @below {{is called row but its body is flat}}
  %y = kernel.fused row [4] ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>)
      maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> (tensor<4xf32>) {
  ^bb0(%v: f32):
    kernel.yield %v : f32
  }
  return %y : tensor<4xf32>
}

// -----

// The product has gone behind the wait.
module attributes {dist.mesh = #dist.mesh<["shard" = 2]>} {
func.func @moved_product(%x: tensor<4x8xf32>, %v: tensor<16x8xf32>, %part: tensor<8xf32>) -> (tensor<4x16xf32>, tensor<16xf32>) {
  %e = kernel.empty : tensor<16xf32>
  // expected-error @below {{has products of 0 FLOP between it and the next start or wait, *schedule* put 1024 there}}
  %t = dist.start all_gather ins(%part : tensor<8xf32>) outs(%e : tensor<16xf32>) axes ["shard"] dims [0] {kernel.products = 1024 : i64}
  %full = dist.wait %t ins(%part : tensor<8xf32>) outs(%e : tensor<16xf32>) {kernel.products = 0 : i64} -> (tensor<16xf32>)
  %o = kernel.empty : tensor<4x16xf32>
  %y = kernel.call #kernel.gemm<batch = 1, m = 4, n = 16, k = 8, lda = 8, ldb = 8, ldc = 16, strideA = 0, strideB = 0, strideC = 0,
      transposeA = false, transposeB = true, accumulate = false, bias = false, relu = false, tileM = 4, tileN = 16> ins(%x, %v : tensor<4x8xf32>, tensor<16x8xf32>) outs(%o : tensor<4x16xf32>) -> (tensor<4x16xf32>)
  return %y, %full : tensor<4x16xf32>, tensor<16xf32>
}
}
