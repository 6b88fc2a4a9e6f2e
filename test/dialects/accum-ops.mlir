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

// CHECK-LABEL: func.func @stacked
// CHECK: accum.loop %{{.*}} in 4 running stacked = 1 slices({{.*}}) accumulators({{.*}}) -> (tensor<2xf32>, tensor<4x2xf32>)
func.func @stacked(%x: tensor<4x2xf32>, %zero: tensor<2xf32>) -> (tensor<2xf32>, tensor<4x2xf32>) {
  %s, %r = accum.loop %i in 4 running stacked = 1 slices(%xi = %x : tensor<4x2xf32>) accumulators(%a = %zero : tensor<2xf32>) -> (tensor<2xf32>, tensor<4x2xf32>) {
    %b = titan.add %a, %xi : tensor<2xf32>
    accum.yield %b, %xi : tensor<2xf32>, tensor<2xf32>
  }
  return %s, %r : tensor<2xf32>, tensor<4x2xf32>
}

// CHECK-LABEL: func.func @tree
// CHECK: accum.loop %{{.*}} in 4 tree slices({{.*}}) -> (tensor<2xf32>)
func.func @tree(%x: tensor<4x2xf32>) -> tensor<2xf32> {
  %s = accum.loop %i in 4 tree slices(%xi = %x : tensor<4x2xf32>) -> (tensor<2xf32>) {
    accum.yield %xi : tensor<2xf32>
  }
  return %s : tensor<2xf32>
}

// CHECK-LABEL: func.func @nested
// CHECK: accum.loop %{{.*}} in 2 running slices(%[[XI:.*]] = %{{.*}} : tensor<2x3x4xf32>)
// CHECK: accum.loop %{{.*}} in 3 running slices(%{{.*}} = %[[XI]] : tensor<3x4xf32>)
func.func @nested(%x: tensor<2x3x4xf32>, %zero: tensor<4xf32>) -> tensor<4xf32> {
  %s = accum.loop %i in 2 running slices(%xi = %x : tensor<2x3x4xf32>) accumulators(%a = %zero : tensor<4xf32>) -> (tensor<4xf32>) {
    %t = accum.loop %j in 3 running slices(%xj = %xi : tensor<3x4xf32>) accumulators(%b = %a : tensor<4xf32>) -> (tensor<4xf32>) {
      %n = titan.add %b, %xj : tensor<4xf32>
      accum.yield %n : tensor<4xf32>
    }
    accum.yield %t : tensor<4xf32>
  }
  return %s : tensor<4xf32>
}

// CHECK-LABEL: func.func @no_batch
// CHECK: accum.loop %{{.*}} in 2 unordered {
func.func @no_batch() {
  accum.loop %i in 2 unordered {
  }
  return
}
