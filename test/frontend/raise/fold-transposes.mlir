// RUN: titan-opt %s --titan-import-fold-transposes | FileCheck %s
// RUN: titan-opt %s '--titan-import-fold-transposes=sink=true' | FileCheck %s --check-prefix=SINK

// CHECK-LABEL: func.func @weight
// CHECK-SAME: %[[X:.*]]: tensor<3x4xf32>, %[[W:.*]]: tensor<5x4xf32>
func.func @weight(%x: tensor<3x4xf32>, %w: tensor<5x4xf32>) -> tensor<3x5xf32> {
  // CHECK-NEXT: titan.contract %[[X]], %[[W]] batch [] x [] contracting [1] x [1]
  %t = titan.transpose %w [1, 0] : tensor<5x4xf32> to tensor<4x5xf32>
  %y = titan.contract %x, %t batch [] x [] contracting [1] x [0] : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  return %y : tensor<3x5xf32>
}

// The result's dimensions would change places.
// CHECK-LABEL: func.func @free_dimensions_change_places
func.func @free_dimensions_change_places(%x: tensor<2x3x4xf32>, %w: tensor<5x4xf32>) -> tensor<3x2x5xf32> {
  // CHECK: titan.transpose
  // CHECK: titan.contract
  %t = titan.transpose %x [1, 0, 2] : tensor<2x3x4xf32> to tensor<3x2x4xf32>
  %y = titan.contract %t, %w batch [] x [] contracting [2] x [1] : (tensor<3x2x4xf32>, tensor<5x4xf32>) -> tensor<3x2x5xf32>
  return %y : tensor<3x2x5xf32>
}

// Behind a scale and a sign two transpositions meet and cancel.
// CHECK-LABEL: func.func @cancel
func.func @cancel(%x: tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32> {
  // CHECK-NOT: titan.transpose
  // CHECK: titan.mul %{{.*}} : tensor<2x3x4x8xf32>
  // CHECK-NOT: titan.transpose
  %c = titan.constant dense<0.5> : tensor<2x4x3x8xf32>
  %0 = titan.transpose %x [0, 2, 1, 3] : tensor<2x3x4x8xf32> to tensor<2x4x3x8xf32>
  %1 = titan.mul %c, %0 : tensor<2x4x3x8xf32>
  %2 = titan.neg %1 : tensor<2x4x3x8xf32>
  %3 = titan.transpose %2 [0, 2, 1, 3] : tensor<2x4x3x8xf32> to tensor<2x3x4x8xf32>
  return %3 : tensor<2x3x4x8xf32>
}

// CHECK-LABEL: func.func @units
func.func @units(%x: tensor<2x1x3xf32>) -> tensor<1x2x3xf32> {
  // CHECK-NEXT: titan.reshape %{{.*}} : tensor<2x1x3xf32> to tensor<1x2x3xf32>
  %0 = titan.transpose %x [1, 0, 2] : tensor<2x1x3xf32> to tensor<1x2x3xf32>
  return %0 : tensor<1x2x3xf32>
}

// CHECK-LABEL: func.func @bias_second
// CHECK-SAME: %[[X:.*]]: tensor<2x3xf32>
func.func @bias_second(%x: tensor<2x3xf32>, %bias: tensor<3xf32>) -> tensor<2x3xf32> {
  // CHECK: %[[B:.*]] = titan.broadcast
  // CHECK: titan.add %[[X]], %[[B]]
  %b = titan.broadcast %bias [1] : tensor<3xf32> to tensor<2x3xf32>
  %y = titan.add %b, %x : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// What stands between two convolutions has channels last.
// SINK-LABEL: func.func @between_convolutions
// SINK: titan.transpose %{{.*}} [0, 2, 3, 1] : tensor<2x3x8x8xf32>
// SINK-NOT: titan.transpose
// SINK: titan.pad %{{.*}} low [0, 1, 0, 0]
// SINK: titan.concat %{{.*}} dim 3
// SINK: titan.reduce sum %{{.*}} [1, 2]
// SINK-NOT: titan.transpose
// SINK: return
func.func @between_convolutions(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>) -> tensor<2x8xf32> {
  %last = titan.transpose %x [0, 2, 3, 1] : tensor<2x3x8x8xf32> to tensor<2x8x8x3xf32>
  %y = titan.convolution %last, %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1] groups 1
      : (tensor<2x8x8x3xf32>, tensor<4x3x3x3xf32>) -> tensor<2x6x6x4xf32>
  %first = titan.transpose %y [0, 3, 1, 2] : tensor<2x6x6x4xf32> to tensor<2x4x6x6xf32>
  %a = titan.relu %first : tensor<2x4x6x6xf32>
  %p = titan.pad %a low [0, 0, 1, 0] interior [0, 0, 0, 0] : tensor<2x4x6x6xf32> to tensor<2x4x7x6xf32>
  %n = titan.neg %p : tensor<2x4x7x6xf32>
  %j = titan.concat %p, %n dim 1 : (tensor<2x4x7x6xf32>, tensor<2x4x7x6xf32>) -> tensor<2x8x7x6xf32>
  %s = titan.reduce sum %j [2, 3] : tensor<2x8x7x6xf32> to tensor<2x8xf32>
  return %s : tensor<2x8xf32>
}

// A norm is over the same dimensions wherever they are, and so is one that a reshape cuts into groups of channels.
// SINK-LABEL: func.func @norms_of_groups
// SINK-NOT: titan.transpose
// SINK: titan.reshape %{{.*}} : tensor<2x5x5x6xf32> to tensor<2x5x5x3x2xf32>
// SINK: titan.layer_norm %{{.*}} over [1, 2, 4]
// SINK: titan.broadcast %{{.*}} [3, 4] : tensor<3x2xf32> to tensor<2x5x5x3x2xf32>
// SINK: titan.reshape %{{.*}} : tensor<2x5x5x3x2xf32> to tensor<2x5x5x6xf32>
// SINK-NOT: titan.transpose
// SINK: return
func.func @norms_of_groups(%x: tensor<2x5x5x6xf32>, %w: tensor<3x2xf32>) -> tensor<2x5x5x6xf32> {
  %first = titan.transpose %x [0, 3, 1, 2] : tensor<2x5x5x6xf32> to tensor<2x6x5x5xf32>
  %groups = titan.reshape %first : tensor<2x6x5x5xf32> to tensor<2x3x2x5x5xf32>
  %n, %mean, %rstd = titan.layer_norm %groups over [2, 3, 4] epsilon 1.0e-5
      : (tensor<2x3x2x5x5xf32>) -> (tensor<2x3x2x5x5xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  %wide = titan.broadcast %w [1, 2] : tensor<3x2xf32> to tensor<2x3x2x5x5xf32>
  %scaled = titan.mul %n, %wide : tensor<2x3x2x5x5xf32>
  %whole = titan.reshape %scaled : tensor<2x3x2x5x5xf32> to tensor<2x6x5x5xf32>
  %last = titan.transpose %whole [0, 2, 3, 1] : tensor<2x6x5x5xf32> to tensor<2x5x5x6xf32>
  return %last : tensor<2x5x5x6xf32>
}

// A batch of one is no neighbour of what a reshape cuts.
// SINK-LABEL: func.func @norms_of_groups_of_one
// SINK-NOT: titan.transpose
// SINK: titan.layer_norm %{{.*}} over [1, 2, 4]
// SINK-NOT: titan.transpose
// SINK: return
func.func @norms_of_groups_of_one(%x: tensor<1x5x5x6xf32>) -> tensor<1x5x5x6xf32> {
  %first = titan.transpose %x [0, 3, 1, 2] : tensor<1x5x5x6xf32> to tensor<1x6x5x5xf32>
  %groups = titan.reshape %first : tensor<1x6x5x5xf32> to tensor<1x3x2x5x5xf32>
  %n, %mean, %rstd = titan.layer_norm %groups over [2, 3, 4] epsilon 1.0e-5
      : (tensor<1x3x2x5x5xf32>) -> (tensor<1x3x2x5x5xf32>, tensor<1x3xf32>, tensor<1x3xf32>)
  %whole = titan.reshape %n : tensor<1x3x2x5x5xf32> to tensor<1x6x5x5xf32>
  %last = titan.transpose %whole [0, 2, 3, 1] : tensor<1x6x5x5xf32> to tensor<1x5x5x6xf32>
  return %last : tensor<1x5x5x6xf32>
}

// Scale, bias and statistics follow their dimensions.
// SINK-LABEL: func.func @norm_of_images
// SINK-SAME: %[[X:.*]]: tensor<2x5x4x6xf32>, %[[W:.*]]: tensor<6x5x4xf32>
// SINK: %[[TURNED:.*]] = titan.transpose %[[W]] [1, 2, 0]
// SINK: titan.layer_norm %[[X]] scale %[[TURNED]] over [1, 2, 3]
// SINK-NOT: titan.transpose
// SINK: return
func.func @norm_of_images(%x: tensor<2x5x4x6xf32>, %w: tensor<6x5x4xf32>) -> (tensor<2x5x4x6xf32>, tensor<2xf32>) {
  %first = titan.transpose %x [0, 3, 1, 2] : tensor<2x5x4x6xf32> to tensor<2x6x5x4xf32>
  %n, %mean, %rstd = titan.layer_norm %first scale %w over [1, 2, 3] epsilon 1.0e-5
      : (tensor<2x6x5x4xf32>, tensor<6x5x4xf32>) -> (tensor<2x6x5x4xf32>, tensor<2xf32>, tensor<2xf32>)
  %last = titan.transpose %n [0, 2, 3, 1] : tensor<2x6x5x4xf32> to tensor<2x5x4x6xf32>
  return %last, %rstd : tensor<2x5x4x6xf32>, tensor<2xf32>
}

// The norm of a feature, which a product reads next, keeps its rows together.
// SINK-LABEL: func.func @norm_of_features
// SINK: titan.transpose
// SINK: titan.layer_norm %{{.*}} over [2]
func.func @norm_of_features(%x: tensor<2x6x5xf32>, %w: tensor<6xf32>) -> tensor<2x5x6xf32> {
  %t = titan.transpose %x [0, 2, 1] : tensor<2x6x5xf32> to tensor<2x5x6xf32>
  %n, %mean, %rstd = titan.layer_norm %t scale %w over [2] epsilon 1.0e-5
      : (tensor<2x5x6xf32>, tensor<6xf32>) -> (tensor<2x5x6xf32>, tensor<2x5xf32>, tensor<2x5xf32>)
  return %n : tensor<2x5x6xf32>
}
