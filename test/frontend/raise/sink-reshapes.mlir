// RUN: titan-opt %s --titan-import-sink-reshapes | FileCheck %s

// CHECK-LABEL: func.func @linear
// CHECK-SAME: %[[X:.*]]: tensor<2x3x4xf32>, %[[W:.*]]: tensor<5x4xf32>, %[[B:.*]]: tensor<5xf32>
func.func @linear(%x: tensor<2x3x4xf32>, %w: tensor<5x4xf32>, %bias: tensor<5xf32>) -> tensor<2x3x5xf32> {
  // CHECK-NEXT: %[[Y:.*]] = titan.contract %[[X]], %[[W]] batch [] x [] contracting [2] x [1]
  // CHECK-NEXT: %[[B2:.*]] = titan.broadcast %[[B]] [2] : tensor<5xf32> to tensor<2x3x5xf32>
  // CHECK-NEXT: %[[Z:.*]] = titan.add %[[Y]], %[[B2]] : tensor<2x3x5xf32>
  // CHECK-NEXT: return %[[Z]]
  %flat = titan.reshape %x : tensor<2x3x4xf32> to tensor<6x4xf32>
  %y = titan.contract %flat, %w batch [] x [] contracting [1] x [1] : (tensor<6x4xf32>, tensor<5x4xf32>) -> tensor<6x5xf32>
  %b = titan.broadcast %bias [1] : tensor<5xf32> to tensor<6x5xf32>
  %z = titan.add %y, %b : tensor<6x5xf32>
  %r = titan.reshape %z : tensor<6x5xf32> to tensor<2x3x5xf32>
  return %r : tensor<2x3x5xf32>
}

// Heads merge on the way: that part stays.
// CHECK-LABEL: func.func @heads
func.func @heads(%x: tensor<2x3x2x2xf32>, %w: tensor<5x4xf32>) -> tensor<2x3x5xf32> {
  // CHECK-NEXT: %[[C:.*]] = titan.reshape %{{.*}} : tensor<2x3x2x2xf32> to tensor<2x3x4xf32>
  // CHECK-NEXT: titan.contract %[[C]], %{{.*}} contracting [2] x [1] : {{.*}} -> tensor<2x3x5xf32>
  // CHECK-NEXT: return
  %flat = titan.reshape %x : tensor<2x3x2x2xf32> to tensor<6x4xf32>
  %y = titan.contract %flat, %w batch [] x [] contracting [1] x [1] : (tensor<6x4xf32>, tensor<5x4xf32>) -> tensor<6x5xf32>
  %r = titan.reshape %y : tensor<6x5xf32> to tensor<2x3x5xf32>
  return %r : tensor<2x3x5xf32>
}

// Batch and head as one dimension, through softmax, dropout and a transposition.
// CHECK-LABEL: func.func @batched
func.func @batched(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32> {
  // CHECK-NEXT: titan.transpose %{{.*}} [0, 1, 3, 2]
  // CHECK-NEXT: titan.contract %{{.*}} batch [0, 1] x [0, 1] contracting [3] x [2]
  // CHECK-NEXT: titan.softmax %{{.*}} dim 3 : tensor<2x4x3x3xf32>
  // CHECK-NEXT: titan.dropout %{{.*}} : tensor<2x4x3x3xf32>
  // CHECK-NEXT: titan.contract %{{.*}} batch [0, 1] x [0, 1] contracting [3] x [2]
  // CHECK-NEXT: return
  %0 = titan.reshape %q : tensor<2x4x3x8xf32> to tensor<8x3x8xf32>
  %1 = titan.reshape %k : tensor<2x4x3x8xf32> to tensor<8x3x8xf32>
  %2 = titan.transpose %1 [0, 2, 1] : tensor<8x3x8xf32> to tensor<8x8x3xf32>
  %3 = titan.contract %0, %2 batch [0] x [0] contracting [2] x [1] : (tensor<8x3x8xf32>, tensor<8x8x3xf32>) -> tensor<8x3x3xf32>
  %4 = titan.softmax %3 dim 2 : tensor<8x3x3xf32>
  %5 = titan.dropout %4 p 0.5 stream 3 : tensor<8x3x3xf32> to tensor<8x3x3xf32>
  %6 = titan.contract %5, %1 batch [0] x [0] contracting [2] x [1] : (tensor<8x3x3xf32>, tensor<8x3x8xf32>) -> tensor<8x3x8xf32>
  %7 = titan.reshape %6 : tensor<8x3x8xf32> to tensor<2x4x3x8xf32>
  return %7 : tensor<2x4x3x8xf32>
}

// Repeated heads stay one dimension with their repetition.
// CHECK-LABEL: func.func @repeated_heads
func.func @repeated_heads(%q: tensor<2x4x3x8xf32>, %k: tensor<2x2x3x8xf32>) -> tensor<8x3x3xf32> {
  // CHECK: titan.reshape %{{.*}} : tensor<2x2x2x3x8xf32> to tensor<2x4x3x8xf32>
  // CHECK: titan.contract %{{.*}} batch [0, 1] x [0, 1] contracting [3] x [3]
  %0 = titan.reshape %q : tensor<2x4x3x8xf32> to tensor<8x3x8xf32>
  %1 = titan.broadcast %k [0, 1, 3, 4] : tensor<2x2x3x8xf32> to tensor<2x2x2x3x8xf32>
  %2 = titan.reshape %1 : tensor<2x2x2x3x8xf32> to tensor<8x3x8xf32>
  %3 = titan.contract %0, %2 batch [0] x [0] contracting [2] x [2] : (tensor<8x3x8xf32>, tensor<8x3x8xf32>) -> tensor<8x3x3xf32>
  return %3 : tensor<8x3x3xf32>
}

// A dimension that is summed over does not split.
// CHECK-LABEL: func.func @contracted
func.func @contracted(%x: tensor<2x3x4xf32>, %w: tensor<5x6xf32>) -> tensor<4x5xf32> {
  // CHECK: titan.reshape
  // CHECK-NEXT: titan.contract
  // CHECK-NEXT: return
  %flat = titan.reshape %x : tensor<2x3x4xf32> to tensor<6x4xf32>
  %y = titan.contract %flat, %w batch [] x [] contracting [0] x [1] : (tensor<6x4xf32>, tensor<5x6xf32>) -> tensor<4x5xf32>
  return %y : tensor<4x5xf32>
}

// A tile that only repeats one dimension of extent 1.
// CHECK-LABEL: func.func @tile
func.func @tile(%x: tensor<2x2x1x8xf32>) -> tensor<2x4x8xf32> {
  // CHECK-NEXT: titan.reshape %{{.*}} : tensor<2x2x1x8xf32> to tensor<2x2x8xf32>
  // CHECK-NEXT: titan.broadcast %{{.*}} [0, 1, 3] : tensor<2x2x8xf32> to tensor<2x2x2x8xf32>
  // CHECK-NEXT: titan.reshape %{{.*}} to tensor<2x4x8xf32>
  %0 = titan.broadcast %x [1, 3, 5, 7] : tensor<2x2x1x8xf32> to tensor<1x2x1x2x2x1x1x8xf32>
  %1 = titan.reshape %0 : tensor<1x2x1x2x2x1x1x8xf32> to tensor<2x2x2x8xf32>
  %2 = titan.reshape %1 : tensor<2x2x2x8xf32> to tensor<2x4x8xf32>
  return %2 : tensor<2x4x8xf32>
}
