// RUN: titan-opt %s --titan-schedule-note-products | FileCheck %s
// RUN: titan-opt %s --pass-pipeline='builtin.module(titan-schedule-note-products,func.func(titan-lower-form-kernels,cse,titan-lower-fuse-kernels,titan-lower-fuse-epilogues,titan-lower-classify-kernels,titan-lower-remove-barriers,titan-lower-verify-kernels))' | FileCheck %s --check-prefix=LOWER

module attributes {dist.mesh = #dist.mesh<["shard" = 2]>} {

// 2·4·16·8 = 1024 FLOP between the halves, 2·4·4·16 = 512 behind. A product that nobody reads, and those of f64, which are kernels like any other,
// do not count; what a loop holds counts once.
// CHECK-LABEL: func.func @products
// CHECK: dist.start all_gather {{.*}} {kernel.products = 1024 : i64}
// CHECK: titan.contract
// CHECK: dist.wait {{.*}} {kernel.products = 512 : i64}
// LOWER-LABEL: func.func @products
// LOWER: dist.start all_gather
// LOWER: kernel.call #kernel.gemm<{{.*}}bias = false
// LOWER: dist.wait
// LOWER: kernel.fused
// LOWER: arith.maximumf
// LOWER: kernel.call
func.func @products(%x: tensor<4x8xf32>, %v: tensor<16x8xf32>, %part: tensor<8xf32>, %d: tensor<4x8xf64>, %xs: tensor<3x4x16xf32>, %u: tensor<4x16xf32>)
    -> (tensor<4x16xf32>, tensor<4x4xf64>, tensor<4x4xf32>) {
  %dead = titan.contract %v, %v batch [] x [] contracting [1] x [1] : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x16xf32>
  %deader = titan.neg %dead : tensor<16x16xf32>
  %e = kernel.empty : tensor<16xf32>
  %t = dist.start all_gather ins(%part : tensor<8xf32>) outs(%e : tensor<16xf32>) axes ["shard"] dims [0]
  %y = titan.contract %x, %v batch [] x [] contracting [1] x [1] : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
  %full = dist.wait %t ins(%part : tensor<8xf32>) outs(%e : tensor<16xf32>) -> (tensor<16xf32>)
  // Bias and relu would take the product behind the wait.
  %bias = titan.broadcast %full [1] : tensor<16xf32> to tensor<4x16xf32>
  %z = titan.add %y, %bias : tensor<4x16xf32>
  %r = titan.relu %z : tensor<4x16xf32>
  %dd = titan.contract %d, %d batch [] x [] contracting [1] x [1] : (tensor<4x8xf64>, tensor<4x8xf64>) -> tensor<4x4xf64>
  %zero = titan.constant dense<0.0> : tensor<4x4xf32>
  %s = accum.loop %i in 3 running slices(%xi = %xs : tensor<3x4x16xf32>) accumulators(%a = %zero : tensor<4x4xf32>) -> (tensor<4x4xf32>) {
    %n = titan.contract %xi, %u acc %a batch [] x [] contracting [1] x [1] : (tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    accum.yield %n : tensor<4x4xf32>
  }
  return %r, %dd, %s : tensor<4x16xf32>, tensor<4x4xf64>, tensor<4x4xf32>
}

// Two products for each pair of a query and a key, four for the gradient. Of causal ones there are 21 a head: 2·2·21·(4 + 4) = 672, and twice that.
// CHECK-LABEL: func.func @attention
// CHECK: dist.start {{.*}} {kernel.products = 672 : i64}
// CHECK: dist.wait {{.*}} {kernel.products = 1344 : i64}
func.func @attention(%q: tensor<1x6x2x4xf32>, %k: tensor<1x6x2x4xf32>, %v: tensor<1x6x2x4xf32>, %part: tensor<8xf32>)
    -> (tensor<1x6x2x4xf32>, tensor<1x6x2x4xf32>, tensor<16xf32>) {
  %e = kernel.empty : tensor<16xf32>
  %t = dist.start all_gather ins(%part : tensor<8xf32>) outs(%e : tensor<16xf32>) axes ["shard"] dims [0]
  %o, %l = titan.attention %q, %k, %v scale 0.5 causal : (tensor<1x6x2x4xf32>, tensor<1x6x2x4xf32>, tensor<1x6x2x4xf32>) -> (tensor<1x6x2x4xf32>, tensor<1x2x6xf32>)
  %full = dist.wait %t ins(%part : tensor<8xf32>) outs(%e : tensor<16xf32>) -> (tensor<16xf32>)
  %dq, %dk, %dv = titan.attention_grad %q, %k, %v result %o, %l, %q scale 0.5 causal
      : (tensor<1x6x2x4xf32>, tensor<1x6x2x4xf32>, tensor<1x6x2x4xf32>, tensor<1x6x2x4xf32>, tensor<1x2x6xf32>, tensor<1x6x2x4xf32>) -> (tensor<1x6x2x4xf32>, tensor<1x6x2x4xf32>, tensor<1x6x2x4xf32>)
  return %o, %dq, %full : tensor<1x6x2x4xf32>, tensor<1x6x2x4xf32>, tensor<16xf32>
}

}
