// RUN: titan-opt %s --titan-schedule-split-collectives | FileCheck %s
// RUN: titan-opt %s --titan-schedule-order-ops | FileCheck %s --check-prefix=ORDER

module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 4]>} {

// The halves are neighbours, and say what the op said.
// CHECK-LABEL: func.func @kinds
// CHECK: %[[E0:.*]] = kernel.empty : tensor<8x12xf32>
// CHECK-NEXT: %[[E1:.*]] = kernel.empty : tensor<i64>
// CHECK-NEXT: %[[T:.*]] = dist.start all_reduce ins(%arg0, %arg1 : tensor<8x12xf32>, tensor<i64>) outs(%[[E0]], %[[E1]] : tensor<8x12xf32>, tensor<i64>)
// CHECK-SAME: axes ["replicate", "shard"] order tree {path = ["fc"], phase = #titan<phase backward>}
// CHECK-NEXT: %[[R:.*]]:2 = dist.wait %[[T]] ins(%arg0, %arg1 : tensor<8x12xf32>, tensor<i64>) outs(%[[E0]], %[[E1]] : tensor<8x12xf32>, tensor<i64>)
// CHECK-SAME: {path = ["fc"], phase = #titan<phase backward>} -> (tensor<8x12xf32>, tensor<i64>)
// CHECK: dist.start reduce_scatter ins(%[[R]]#0 : tensor<8x12xf32>) outs(%{{.*}} : tensor<8x3xf32>) axes ["shard"] dims [1] order rank
// CHECK-NEXT: %[[P:.*]] = dist.wait
// CHECK: dist.start all_gather ins(%[[P]] : tensor<8x3xf32>) outs(%{{.*}} : tensor<8x6xf32>) axes ["replicate"] dims [1]{{$}}
// CHECK-NEXT: %[[W:.*]] = dist.wait
// CHECK-NEXT: return %[[W]], %[[R]]#1
func.func @kinds(%g: tensor<8x12xf32>, %n: tensor<i64>) -> (tensor<8x6xf32>, tensor<i64>) {
  %r, %s = dist.all_reduce sum %g, %n axes ["replicate", "shard"] order tree {path = ["fc"], phase = #titan<phase backward>}
      : tensor<8x12xf32>, tensor<i64> to tensor<8x12xf32>, tensor<i64>
  %p = dist.reduce_scatter sum %r axes ["shard"] dims [1] order rank : tensor<8x12xf32> to tensor<8x3xf32>
  %w = dist.all_gather %p axes ["replicate"] dims [1] : tensor<8x3xf32> to tensor<8x6xf32>
  return %w, %s : tensor<8x6xf32>, tensor<i64>
}

// In a loop as well. A weight's gradient that ranks sum stands behind its factors all the same.
// CHECK-LABEL: func.func @step
// CHECK: accum.loop
// CHECK: dist.start all_reduce
// CHECK-NEXT: dist.wait
// CHECK: accum.yield
// ORDER-LABEL: func.func @step
// ORDER: %[[DY:.*]] = titan.mul
// ORDER-NEXT: titan.contract %[[DY]]
// ORDER-NEXT: titan.exp %[[DY]]
func.func @step(%x: tensor<2x8x4xf32>) -> (tensor<4x4xf32>, tensor<f32>) {
  %zero = titan.constant dense<0.0> : tensor<4x4xf32>
  %none = titan.constant dense<0.0> : tensor<f32>
  %s:2 = accum.loop %i in 2 running slices(%xi = %x : tensor<2x8x4xf32>) accumulators(%a = %zero : tensor<4x4xf32>, %b = %none : tensor<f32>) -> (tensor<4x4xf32>, tensor<f32>) {
    %dy = titan.mul %xi, %xi {phase = #titan<phase backward>} : tensor<8x4xf32>
    %dx = titan.exp %dy {phase = #titan<phase backward>} : tensor<8x4xf32>
    %n = titan.reduce sum %dx [0, 1] {phase = #titan<phase backward>} : tensor<8x4xf32> to tensor<f32>
    %dw = titan.contract %dy, %xi batch [] x [] contracting [0] x [0] {phase = #titan<phase backward>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    %all = dist.all_reduce sum %dw axes ["shard"] order rank {phase = #titan<phase backward>} : tensor<4x4xf32> to tensor<4x4xf32>
    %w = titan.add %a, %all {phase = #titan<phase backward>} : tensor<4x4xf32>
    %m = titan.add %b, %n {phase = #titan<phase backward>} : tensor<f32>
    accum.yield %w, %m : tensor<4x4xf32>, tensor<f32>
  }
  return %s#0, %s#1 : tensor<4x4xf32>, tensor<f32>
}

}
