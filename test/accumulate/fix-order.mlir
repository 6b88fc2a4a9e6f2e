// The example of titan-accumulate-fix-order.
// RUN: titan-opt %s --titan-accumulate-fix-order | FileCheck %s

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
