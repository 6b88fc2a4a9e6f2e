// RUN: titan-opt %s --titan-import-fold-transposes=sink=true | FileCheck %s

// A model with positions first: the transposition passes the linear layer, its bias, the slice and the split of heads, and meets its inverse.
// CHECK-LABEL: func.func @positions_first
// CHECK-SAME: %[[X:.*]]: tensor<2x3x8xf32>, %[[W:.*]]: tensor<16x8xf32>, %[[B:.*]]: tensor<16xf32>
func.func @positions_first(%x: tensor<2x3x8xf32>, %w: tensor<16x8xf32>, %bias: tensor<16xf32>) -> tensor<2x3x2x4xf32> {
  // CHECK-NOT: titan.transpose
  // CHECK: %[[Y:.*]] = titan.contract %[[X]], %[[W]] batch [] x [] contracting [2] x [1]
  // CHECK: titan.add %[[Y]], %{{.*}} : tensor<2x3x16xf32>
  // CHECK: titan.slice %{{.*}} offsets [0, 0, 8] strides [1, 1, 1] : tensor<2x3x16xf32> to tensor<2x3x8xf32>
  // CHECK: titan.reshape %{{.*}} : tensor<2x3x8xf32> to tensor<2x3x2x4xf32>
  // CHECK-NOT: titan.transpose
  %t = titan.transpose %x [1, 0, 2] : tensor<2x3x8xf32> to tensor<3x2x8xf32>
  %y = titan.contract %t, %w batch [] x [] contracting [2] x [1] : (tensor<3x2x8xf32>, tensor<16x8xf32>) -> tensor<3x2x16xf32>
  %b = titan.broadcast %bias [2] : tensor<16xf32> to tensor<3x2x16xf32>
  %z = titan.add %y, %b : tensor<3x2x16xf32>
  %s = titan.slice %z offsets [0, 0, 8] strides [1, 1, 1] : tensor<3x2x16xf32> to tensor<3x2x8xf32>
  %h = titan.reshape %s : tensor<3x2x8xf32> to tensor<3x2x2x4xf32>
  %r = titan.transpose %h [1, 0, 2, 3] : tensor<3x2x2x4xf32> to tensor<2x3x2x4xf32>
  return %r : tensor<2x3x2x4xf32>
}

// Heads merge behind the transposition, as neighbours that they were before.
// CHECK-LABEL: func.func @merged_heads
func.func @merged_heads(%x: tensor<2x3x2x4xf32>) -> tensor<2x3x8xf32> {
  // CHECK-NEXT: titan.reshape %{{.*}} : tensor<2x3x2x4xf32> to tensor<2x3x8xf32>
  // CHECK-NEXT: return
  %t = titan.transpose %x [1, 0, 2, 3] : tensor<2x3x2x4xf32> to tensor<3x2x2x4xf32>
  %m = titan.reshape %t : tensor<3x2x2x4xf32> to tensor<3x2x8xf32>
  %r = titan.transpose %m [1, 0, 2] : tensor<3x2x8xf32> to tensor<2x3x8xf32>
  return %r : tensor<2x3x8xf32>
}

// Dimensions that were apart do not merge before the transposition.
// CHECK-LABEL: func.func @apart
func.func @apart(%x: tensor<2x3x4xf32>) -> tensor<6x4xf32> {
  // CHECK-NEXT: titan.transpose
  // CHECK-NEXT: titan.reshape
  %t = titan.transpose %x [1, 0, 2] : tensor<2x3x4xf32> to tensor<3x2x4xf32>
  %m = titan.reshape %t : tensor<3x2x4xf32> to tensor<6x4xf32>
  return %m : tensor<6x4xf32>
}
