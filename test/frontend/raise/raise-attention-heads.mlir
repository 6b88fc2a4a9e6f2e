// RUN: titan-opt %s --titan-import-raise-attention --titan-import-fold-transposes --cse | FileCheck %s

// Where models keep the query heads that share a key head.

// einsum "bqgrd,bkgd->bgrqk": groups and the heads of a group are dimensions of their own; a transposition and a mask stand before the softmax.
// CHECK-LABEL: func.func @groups
// CHECK-SAME: %[[Q:.*]]: tensor<2x3x4x5x8xf32>, %[[K:.*]]: tensor<2x3x4x8xf32>, %[[V:.*]]: tensor<2x3x4x8xf32>
func.func @groups(%q: tensor<2x3x4x5x8xf32>, %k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>) -> tensor<2x4x5x3x8xf32> {
  // CHECK: %[[R:.*]] = titan.reshape %[[Q]] : tensor<2x3x4x5x8xf32> to tensor<2x3x20x8xf32>
  // CHECK: %[[A:.*]], %{{.*}} = titan.attention %[[R]], %[[K]], %[[V]] scale 1.000000e+00 causal
  // CHECK: %[[S:.*]] = titan.reshape %[[A]] : tensor<2x3x20x8xf32> to tensor<2x3x4x5x8xf32>
  // CHECK: titan.transpose %[[S]] [0, 2, 3, 1, 4]
  %causal = titan.constant dense<[[true, false, false], [true, true, false], [true, true, true]]> : tensor<3x3xi1>
  %0 = titan.contract %q, %k batch [0, 2] x [0, 2] contracting [4] x [3] : (tensor<2x3x4x5x8xf32>, tensor<2x3x4x8xf32>) -> tensor<2x4x3x5x3xf32>
  %keep = titan.broadcast %causal [2, 4] : tensor<3x3xi1> to tensor<2x4x3x5x3xi1>
  %inf = titan.constant dense<0xFF800000> : tensor<2x4x3x5x3xf32>
  %1 = titan.select %keep, %0, %inf : tensor<2x4x3x5x3xi1>, tensor<2x4x3x5x3xf32>
  %2 = titan.transpose %1 [0, 1, 3, 2, 4] : tensor<2x4x3x5x3xf32> to tensor<2x4x5x3x3xf32>
  %3 = titan.softmax %2 dim 4 : tensor<2x4x5x3x3xf32>
  %4 = titan.contract %3, %v batch [0, 1] x [0, 2] contracting [4] x [1] : (tensor<2x4x5x3x3xf32>, tensor<2x3x4x8xf32>) -> tensor<2x4x5x3x8xf32>
  return %4 : tensor<2x4x5x3x8xf32>
}

// einsum "bqhd,bkd->bhqk": all heads read one key head, and each has a bias by distance.
// CHECK-LABEL: func.func @one_key_head
// CHECK-SAME: %[[Q:.*]]: tensor<2x3x4x8xf32>, %[[K:.*]]: tensor<2x3x8xf32>, %[[V:.*]]: tensor<2x3x8xf32>, %[[B:.*]]: tensor<4x3xf32>
func.func @one_key_head(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x8xf32>, %v: tensor<2x3x8xf32>, %bias: tensor<4x3xf32>) -> tensor<2x4x3x8xf32> {
  // CHECK-DAG: %[[KEY:.*]] = titan.reshape %[[K]] : tensor<2x3x8xf32> to tensor<2x3x1x8xf32>
  // CHECK-DAG: %[[VALUE:.*]] = titan.reshape %[[V]] : tensor<2x3x8xf32> to tensor<2x3x1x8xf32>
  // CHECK-DAG: %[[MASK:.*]] = titan.reshape %[[B]] : tensor<4x3xf32> to tensor<1x4x1x3xf32>
  // CHECK: titan.attention %[[Q]], %[[KEY]], %[[VALUE]] mask %[[MASK]] scale 1.000000e+00
  %0 = titan.contract %q, %k batch [0] x [0] contracting [3] x [2] : (tensor<2x3x4x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x4x3xf32>
  %1 = titan.transpose %0 [0, 2, 1, 3] : tensor<2x3x4x3xf32> to tensor<2x4x3x3xf32>
  %b = titan.broadcast %bias [1, 3] : tensor<4x3xf32> to tensor<2x4x3x3xf32>
  %2 = titan.add %1, %b : tensor<2x4x3x3xf32>
  %3 = titan.softmax %2 dim 3 : tensor<2x4x3x3xf32>
  %4 = titan.contract %3, %v batch [0] x [0] contracting [3] x [1] : (tensor<2x4x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x4x3x8xf32>
  return %4 : tensor<2x4x3x8xf32>
}

// A trained temperature for each head multiplies the queries.
// CHECK-LABEL: func.func @temperature
// CHECK-SAME: %[[Q:.*]]: tensor<2x3x4x8xf32>, %[[K:.*]]: tensor<2x3x4x8xf32>, %[[V:.*]]: tensor<2x3x4x8xf32>, %[[T:.*]]: tensor<4xf32>
func.func @temperature(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %t: tensor<4xf32>) -> tensor<2x4x3x8xf32> {
  // CHECK: %[[W:.*]] = titan.broadcast %[[T]] [2] : tensor<4xf32> to tensor<2x3x4x
  // CHECK: titan.mul %{{.*}}, %[[W]]
  // CHECK: titan.attention
  %0 = titan.contract %q, %k batch [0, 2] x [0, 2] contracting [3] x [3] : (tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) -> tensor<2x4x3x3xf32>
  %w = titan.broadcast %t [1] : tensor<4xf32> to tensor<2x4x3x3xf32>
  %1 = titan.mul %0, %w : tensor<2x4x3x3xf32>
  %2 = titan.softmax %1 dim 3 : tensor<2x4x3x3xf32>
  %3 = titan.contract %2, %v batch [0, 1] x [0, 2] contracting [3] x [1] : (tensor<2x4x3x3xf32>, tensor<2x3x4x8xf32>) -> tensor<2x4x3x8xf32>
  return %3 : tensor<2x4x3x8xf32>
}

// The same over masks would scale them too: left as it is.
// CHECK-LABEL: func.func @masked_before
func.func @masked_before(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %t: tensor<4xf32>, %mask: tensor<3x3xf32>) -> tensor<2x4x3x8xf32> {
  // CHECK-NOT: titan.attention
  %0 = titan.contract %q, %k batch [0, 2] x [0, 2] contracting [3] x [3] : (tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) -> tensor<2x4x3x3xf32>
  %m = titan.broadcast %mask [2, 3] : tensor<3x3xf32> to tensor<2x4x3x3xf32>
  %1 = titan.add %0, %m : tensor<2x4x3x3xf32>
  %w = titan.broadcast %t [1] : tensor<4xf32> to tensor<2x4x3x3xf32>
  %2 = titan.mul %1, %w : tensor<2x4x3x3xf32>
  %3 = titan.softmax %2 dim 3 : tensor<2x4x3x3xf32>
  %4 = titan.contract %3, %v batch [0, 1] x [0, 2] contracting [3] x [1] : (tensor<2x4x3x3xf32>, tensor<2x3x4x8xf32>) -> tensor<2x4x3x8xf32>
  return %4 : tensor<2x4x3x8xf32>
}

// A mask for each head of a group: the op would need one for each of all heads.
// CHECK-LABEL: func.func @masked_groups
func.func @masked_groups(%q: tensor<2x3x4x5x8xf32>, %k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %mask: tensor<5x3xf32>) -> tensor<2x4x3x5x8xf32> {
  // CHECK-NOT: titan.attention
  %0 = titan.contract %q, %k batch [0, 2] x [0, 2] contracting [4] x [3] : (tensor<2x3x4x5x8xf32>, tensor<2x3x4x8xf32>) -> tensor<2x4x3x5x3xf32>
  %m = titan.broadcast %mask [3, 4] : tensor<5x3xf32> to tensor<2x4x3x5x3xf32>
  %1 = titan.add %0, %m : tensor<2x4x3x5x3xf32>
  %2 = titan.softmax %1 dim 4 : tensor<2x4x3x5x3xf32>
  %3 = titan.contract %2, %v batch [0, 1] x [0, 2] contracting [4] x [1] : (tensor<2x4x3x5x3xf32>, tensor<2x3x4x8xf32>) -> tensor<2x4x3x5x8xf32>
  return %3 : tensor<2x4x3x5x8xf32>
}
