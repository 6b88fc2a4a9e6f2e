// FLOP of the model: products with the loops around them, pairs that a mask allows, nothing of the update or twice.
// RUN: titan-opt %s --titan-shard-count-flops | FileCheck %s

// 2 * 8 * 2 * 4 in each of 2 * 3 iterations, and again behind the loops; the update's product does not count.
// CHECK-LABEL: func.func @loops
// CHECK-SAME: attributes {titan.model_flops = 896 : i64}
func.func @loops(%x: tensor<2x3x8x2xf32>, %w: tensor<4x2xf32>, %zero: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %s = accum.loop %i in 2 running slices(%xi = %x : tensor<2x3x8x2xf32>) accumulators(%a = %zero : tensor<8x4xf32>) -> (tensor<8x4xf32>) {
    %t = accum.loop %j in 3 running slices(%xj = %xi : tensor<3x8x2xf32>) accumulators(%b = %a : tensor<8x4xf32>) -> (tensor<8x4xf32>) {
      %y = titan.contract %xj, %w batch [] x [] contracting [1] x [1] : (tensor<8x2xf32>, tensor<4x2xf32>) -> tensor<8x4xf32>
      %next = titan.add %b, %y : tensor<8x4xf32>
      accum.yield %next : tensor<8x4xf32>
    }
    accum.yield %t : tensor<8x4xf32>
  }
  %d = titan.contract %s, %w batch [] x [] contracting [1] x [0] {phase = #titan<phase backward>} : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  %u = titan.contract %d, %w batch [] x [] contracting [1] x [1] {phase = #titan<phase update>} : (tensor<8x2xf32>, tensor<4x2xf32>) -> tensor<8x4xf32>
  return %u : tensor<8x4xf32>
}

// Batch 2, 3 heads, 4 queries, 5 keys; a pair is 2 * (6 + 7) FLOP. All 20 pairs.
// CHECK-LABEL: func.func @whole
// CHECK-SAME: attributes {titan.model_flops = 3120 : i64}
func.func @whole(%q: tensor<2x4x3x6xf32>, %k: tensor<2x5x3x6xf32>, %v: tensor<2x5x3x7xf32>) -> tensor<2x4x3x7xf32> {
  %y, %l = titan.attention %q, %k, %v scale 1.0 : (tensor<2x4x3x6xf32>, tensor<2x5x3x6xf32>, tensor<2x5x3x7xf32>) -> (tensor<2x4x3x7xf32>, tensor<2x3x4xf32>)
  return %y : tensor<2x4x3x7xf32>
}

// Of query i the keys 0..i: 10 pairs. The backward pass has twice the products; the scores, which it computes again, do not count.
// CHECK-LABEL: func.func @causal
// CHECK-SAME: attributes {titan.model_flops = 4680 : i64}
func.func @causal(%q: tensor<2x4x3x6xf32>, %k: tensor<2x5x3x6xf32>, %v: tensor<2x5x3x7xf32>) -> tensor<2x4x3x6xf32> {
  %y, %l = titan.attention %q, %k, %v scale 1.0 causal : (tensor<2x4x3x6xf32>, tensor<2x5x3x6xf32>, tensor<2x5x3x7xf32>) -> (tensor<2x4x3x7xf32>, tensor<2x3x4xf32>)
  %dq, %dk, %dv = titan.attention_grad %q, %k, %v result %y, %l, %y scale 1.0 causal
    : (tensor<2x4x3x6xf32>, tensor<2x5x3x6xf32>, tensor<2x5x3x7xf32>, tensor<2x4x3x7xf32>, tensor<2x3x4xf32>, tensor<2x4x3x7xf32>)
    -> (tensor<2x4x3x6xf32>, tensor<2x5x3x6xf32>, tensor<2x5x3x7xf32>)
  return %dq : tensor<2x4x3x6xf32>
}

// A mask of one row that forbids two keys: 4 * 3 pairs. With `causal` the last key is forbidden anyhow, and key 2 to all but queries 2 and 3.
// CHECK-LABEL: func.func @row_mask
// CHECK-SAME: attributes {titan.model_flops = 1872 : i64}
func.func @row_mask(%q: tensor<2x4x3x6xf32>, %k: tensor<2x5x3x6xf32>, %v: tensor<2x5x3x7xf32>) -> tensor<2x4x3x7xf32> {
  %m = titan.constant dense<[[[[true, true, false, true, false]]]]> : tensor<1x1x1x5xi1>
  %y, %l = titan.attention %q, %k, %v mask %m scale 1.0 : (tensor<2x4x3x6xf32>, tensor<2x5x3x6xf32>, tensor<2x5x3x7xf32>, tensor<1x1x1x5xi1>) -> (tensor<2x4x3x7xf32>, tensor<2x3x4xf32>)
  return %y : tensor<2x4x3x7xf32>
}

// CHECK-LABEL: func.func @causal_row_mask
// CHECK-SAME: attributes {titan.model_flops = 1248 : i64}
func.func @causal_row_mask(%q: tensor<2x4x3x6xf32>, %k: tensor<2x5x3x6xf32>, %v: tensor<2x5x3x7xf32>) -> tensor<2x4x3x7xf32> {
  %m = titan.constant dense<[[[[true, true, false, true, false]]]]> : tensor<1x1x1x5xi1>
  %y, %l = titan.attention %q, %k, %v mask %m scale 1.0 causal : (tensor<2x4x3x6xf32>, tensor<2x5x3x6xf32>, tensor<2x5x3x7xf32>, tensor<1x1x1x5xi1>) -> (tensor<2x4x3x7xf32>, tensor<2x3x4xf32>)
  return %y : tensor<2x4x3x7xf32>
}

// Numbers that are added, one matrix for each of two heads: 3 and 4 pairs in each of 2 samples, 2 * (1 + 1) FLOP each. What is no constant may allow all.
// CHECK-LABEL: func.func @added_mask
// CHECK-SAME: attributes {titan.model_flops = 56 : i64}
func.func @added_mask(%q: tensor<2x2x2x1xf32>) -> tensor<2x2x2x1xf32> {
  %m = titan.constant dense<[[[[0.0, 0xFF800000], [0.0, -2.5]], [[1.0, -1.0e+4], [0.0, 0.0]]]]> : tensor<1x2x2x2xf32>
  %y, %l, %largest = titan.attention %q, %q, %q mask %m scale 1.0 : (tensor<2x2x2x1xf32>, tensor<2x2x2x1xf32>, tensor<2x2x2x1xf32>, tensor<1x2x2x2xf32>) -> (tensor<2x2x2x1xf32>, tensor<2x2x2xf32>, tensor<2x2x2xf32>)
  return %y : tensor<2x2x2x1xf32>
}

// CHECK-LABEL: func.func @mask_of_the_data
// CHECK-SAME: attributes {titan.model_flops = 64 : i64}
func.func @mask_of_the_data(%q: tensor<2x2x2x1xf32>, %m: tensor<2x1x1x2xi1>) -> tensor<2x2x2x1xf32> {
  %y, %l = titan.attention %q, %q, %q mask %m scale 1.0 : (tensor<2x2x2x1xf32>, tensor<2x2x2x1xf32>, tensor<2x2x2x1xf32>, tensor<2x1x1x2xi1>) -> (tensor<2x2x2x1xf32>, tensor<2x2x2xf32>)
  return %y : tensor<2x2x2x1xf32>
}

// What was counted before an edit is counted again.
// CHECK-LABEL: func.func @edited
// CHECK-SAME: attributes {titan.model_flops = 0 : i64}
func.func @edited(%x: tensor<4xf32>) -> tensor<4xf32> attributes {titan.model_flops = 1000 : i64} {
  %y = titan.exp %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
