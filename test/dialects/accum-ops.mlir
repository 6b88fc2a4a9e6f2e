// RUN: titan-opt %s --verify-roundtrip | titan-opt | FileCheck %s

// CHECK-LABEL: func.func @unordered
// CHECK: accum.loop %{{.*}} in 4 unordered slices(%{{.*}} = %{{.*}} : tensor<4x2xf32>) -> (tensor<2xf32>)
func.func @unordered(%x: tensor<4x2xf32>) -> tensor<2xf32> {
  %s = accum.loop %i in 4 unordered slices(%xi = %x : tensor<4x2xf32>) -> (tensor<2xf32>) {
    %y = titan.mul %xi, %xi : tensor<2xf32>
    accum.yield %y : tensor<2xf32>
  }
  return %s : tensor<2xf32>
}

// CHECK-LABEL: func.func @running
// CHECK: accum.loop %{{.*}} in 4 running slices({{.*}}) accumulators(%{{.*}} = %{{.*}} : tensor<2xf32>) -> (tensor<2xf32>)
func.func @running(%x: tensor<4x2xf32>, %zero: tensor<2xf32>) -> tensor<2xf32> {
  %s = accum.loop %i in 4 running slices(%xi = %x : tensor<4x2xf32>) accumulators(%a = %zero : tensor<2xf32>) -> (tensor<2xf32>) {
    %b = titan.add %a, %xi : tensor<2xf32>
    accum.yield %b : tensor<2xf32>
  }
  return %s : tensor<2xf32>
}

// CHECK-LABEL: func.func @no_batch
// CHECK: accum.loop %{{.*}} in 2 unordered {
func.func @no_batch() {
  accum.loop %i in 2 unordered {
  }
  return
}
