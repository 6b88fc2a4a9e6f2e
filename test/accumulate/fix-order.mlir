// The example of titan-accumulate-fix-order.
// RUN: titan-opt %s --titan-accumulate-fix-order --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<4x8xf32>) -> tensor<8xf32> {
  // CHECK: %[[ZERO:.*]] = titan.constant dense<0.000000e+00> : tensor<8xf32>
  // CHECK: accum.loop %{{.*}} in 4 running slices(%[[SLICE:.*]] = %{{.*}} : tensor<4x8xf32>) accumulators(%[[ACC:.*]] = %[[ZERO]] : tensor<8xf32>)
  // CHECK: %[[NEXT:.*]] = titan.add %[[ACC]], %[[SLICE]]
  // CHECK: accum.yield %[[NEXT]]
  %s = accum.loop %i in 4 unordered slices(%xi = %x : tensor<4x8xf32>) -> (tensor<8xf32>) {
    accum.yield %xi : tensor<8xf32>
  }
  return %s : tensor<8xf32>
}

// A tree over four: two loops of two, whose sums start at zero; its stack is that of both. The index is that of the microbatch.
// CHECK-LABEL: func.func @tree
func.func @tree(%x: tensor<4x8xf32>) -> (tensor<8xf32>, tensor<4x8xf32>) {
  // CHECK: %[[BATCH:.*]] = titan.reshape %{{.*}} : tensor<4x8xf32> to tensor<2x2x8xf32>
  // CHECK: %[[OUTER:.*]]:2 = accum.loop %[[I:.*]] in 2 running stacked = 1 slices(%[[HALF:.*]] = %[[BATCH]] : tensor<2x2x8xf32>) accumulators(%[[A:.*]] = %{{.*}} : tensor<8xf32>)
  // CHECK: %[[INNER:.*]]:2 = accum.loop %[[J:.*]] in 2 running stacked = 1 slices(%[[X:.*]] = %[[HALF]] : tensor<2x8xf32>) accumulators(%[[B:.*]] = %{{.*}} : tensor<8xf32>)
  // CHECK: titan.add %[[B]], %[[TERM:.*]] {path = ["fc"]
  // CHECK: accum.yield %{{.*}}, %[[X]]
  // CHECK: %[[SUM:.*]] = titan.add %[[A]], %[[INNER]]#0 {path = ["fc"]
  // CHECK: accum.yield %[[SUM]], %[[INNER]]#1
  // CHECK: %[[ROWS:.*]] = titan.reshape %[[OUTER]]#1 : tensor<2x2x8xf32> to tensor<4x8xf32>
  // CHECK: return %[[OUTER]]#0, %[[ROWS]]
  %s, %r = accum.loop %i in 4 tree stacked = 1 slices(%xi = %x : tensor<4x8xf32>) -> (tensor<8xf32>, tensor<4x8xf32>) {
    %t = titan.neg %xi {path = ["fc"]} : tensor<8xf32>
    accum.yield %t, %xi : tensor<8xf32>, tensor<8xf32>
  }
  return %s, %r : tensor<8xf32>, tensor<4x8xf32>
}

// With mesh.reduce = "tree" the leaves are the terms: who adds which of them, *shard* says.
// -----

// CHECK: reduce = "tree"
// CHECK-LABEL: func.func @step
// CHECK: accum.loop %{{.*}} in 4 tree stacked = 1 slices
// CHECK: accum.yield %[[X:.*]], %[[X]]
// CHECK-NOT: titan.add
module attributes {titan.recipe = {batch = {micro = 8 : i64, global = 32 : i64}, mesh = {reduce = "tree"}}} {
func.func @step(%x: tensor<4x8xf32>) -> (tensor<8xf32>, tensor<4x8xf32>) {
  %s, %r = accum.loop %i in 4 unordered stacked = 1 slices(%xi = %x : tensor<4x8xf32>) -> (tensor<8xf32>, tensor<4x8xf32>) {
    accum.yield %xi, %xi : tensor<8xf32>, tensor<8xf32>
  }
  return %s, %r : tensor<8xf32>, tensor<4x8xf32>
}
}
