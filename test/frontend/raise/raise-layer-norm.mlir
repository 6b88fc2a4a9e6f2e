// RUN: titan-opt %s --cse --titan-import-raise-layer-norm --cse | FileCheck %s

// The reduced dimension is put back by a reshape, as keepdims = 1 does.
// CHECK-LABEL: func.func @affine
// CHECK-SAME: %[[X:.*]]: tensor<2x4xf32>, %[[W:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<4xf32>
func.func @affine(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<2x4xf32> {
  // CHECK: %[[Y:.*]], %{{.*}}, %{{.*}} = titan.layer_norm %[[X]] scale %[[W]] bias %[[B]] over [1] epsilon 1.000000e-05
  // CHECK: return %[[Y]]
  %n = titan.constant dense<0.25> : tensor<2xf32>
  %eps = titan.constant dense<1.0e-5> : tensor<2x1xf32>
  %0 = titan.reduce sum %x [1] : tensor<2x4xf32> to tensor<2xf32>
  %1 = titan.mul %0, %n : tensor<2xf32>
  %m = titan.broadcast %1 [0] : tensor<2xf32> to tensor<2x4xf32>
  %d = titan.sub %x, %m : tensor<2x4xf32>
  %sq = titan.mul %d, %d : tensor<2x4xf32>
  %2 = titan.reduce sum %sq [1] : tensor<2x4xf32> to tensor<2xf32>
  %3 = titan.mul %2, %n : tensor<2xf32>
  %4 = titan.reshape %3 : tensor<2xf32> to tensor<2x1xf32>
  %5 = titan.add %4, %eps : tensor<2x1xf32>
  %6 = titan.sqrt %5 : tensor<2x1xf32>
  %7 = titan.reshape %6 : tensor<2x1xf32> to tensor<2xf32>
  %s = titan.broadcast %7 [0] : tensor<2xf32> to tensor<2x4xf32>
  %8 = titan.div %d, %s : tensor<2x4xf32>
  %wb = titan.broadcast %w [1] : tensor<4xf32> to tensor<2x4xf32>
  %9 = titan.mul %8, %wb : tensor<2x4xf32>
  %bb = titan.broadcast %b [1] : tensor<4xf32> to tensor<2x4xf32>
  %y = titan.add %9, %bb : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @times_rsqrt
func.func @times_rsqrt(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // CHECK: titan.layer_norm %{{.*}} over [1] epsilon 1.000000e-03
  %n = titan.constant dense<0.25> : tensor<2xf32>
  %eps = titan.constant dense<1.0e-3> : tensor<2xf32>
  %0 = titan.reduce sum %x [1] : tensor<2x4xf32> to tensor<2xf32>
  %1 = titan.mul %0, %n : tensor<2xf32>
  %m = titan.broadcast %1 [0] : tensor<2xf32> to tensor<2x4xf32>
  %d = titan.sub %x, %m : tensor<2x4xf32>
  %sq = titan.mul %d, %d : tensor<2x4xf32>
  %2 = titan.reduce sum %sq [1] : tensor<2x4xf32> to tensor<2xf32>
  %3 = titan.mul %2, %n : tensor<2xf32>
  %4 = titan.add %eps, %3 : tensor<2xf32>
  %5 = titan.rsqrt %4 : tensor<2xf32>
  %s = titan.broadcast %5 [0] : tensor<2xf32> to tensor<2x4xf32>
  %y = titan.mul %s, %d : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// A sum that is divided by something else than the number of elements is no mean.
// CHECK-LABEL: func.func @not_a_mean
func.func @not_a_mean(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // CHECK-NOT: titan.layer_norm
  // CHECK: titan.div
  %n = titan.constant dense<0.33333333> : tensor<2xf32>
  %eps = titan.constant dense<1.0e-5> : tensor<2xf32>
  %0 = titan.reduce sum %x [1] : tensor<2x4xf32> to tensor<2xf32>
  %1 = titan.mul %0, %n : tensor<2xf32>
  %m = titan.broadcast %1 [0] : tensor<2xf32> to tensor<2x4xf32>
  %d = titan.sub %x, %m : tensor<2x4xf32>
  %sq = titan.mul %d, %d : tensor<2x4xf32>
  %2 = titan.reduce sum %sq [1] : tensor<2x4xf32> to tensor<2xf32>
  %3 = titan.mul %2, %n : tensor<2xf32>
  %4 = titan.add %3, %eps : tensor<2xf32>
  %5 = titan.sqrt %4 : tensor<2xf32>
  %s = titan.broadcast %5 [0] : tensor<2xf32> to tensor<2x4xf32>
  %y = titan.div %d, %s : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// A bias before a scale cannot be one op.
// CHECK-LABEL: func.func @scale_after_bias
func.func @scale_after_bias(%x: tensor<2x4xf32>, %w: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<2x4xf32> {
  // CHECK: titan.layer_norm %{{.*}} bias %{{.*}} over [1]
  // CHECK: titan.mul
  %r, %mean, %rstd = titan.layer_norm %x over [1] epsilon 1.0e-5
    : (tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>, tensor<2xf32>)
  %bb = titan.broadcast %b [1] : tensor<4xf32> to tensor<2x4xf32>
  %0 = titan.add %r, %bb : tensor<2x4xf32>
  %wb = titan.broadcast %w [1] : tensor<4xf32> to tensor<2x4xf32>
  %1 = titan.mul %0, %wb : tensor<2x4xf32>
  return %1 : tensor<2x4xf32>
}
