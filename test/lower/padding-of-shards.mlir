// What rows or columns that do not divide among ranks cost: a padded term is written once, where others read it; what is gathered along the
// outermost dimension is cut by a view.
// RUN: titan-opt %s --titan-lower-form-kernels --titan-lower-classify-kernels --titan-lower-verify-kernels | FileCheck %s

// CHECK-DAG: #[[TAIL:.*]] = affine_map<(d0, d1) -> (d0 + 5, d1)>
// CHECK-DAG: #[[SAME:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[COLUMN:.*]] = affine_map<(d0, d1) -> (d0, d1 + 5)>
module attributes {dist.mesh = #dist.mesh<["shard" = 2]>} {

// CHECK-LABEL: func.func @sent
// CHECK: %[[T:.*]] = kernel.fused flat [1, 4] outs(%{{.*}} : tensor<6x4xf32>) maps [#[[TAIL]]]
// CHECK: %[[P:.*]] = kernel.fused flat [5, 4] ins(%arg0 : tensor<5x4xf32>) outs(%[[T]] : tensor<6x4xf32>) maps [#[[SAME]], #[[SAME]]]
// CHECK: dist.start reduce_scatter ins(%[[P]] :
func.func @sent(%g: tensor<5x4xf32>) -> tensor<3x4xf32> {
  %p = titan.pad %g low [0, 0] interior [0, 0] {value = 0.0 : f64} : tensor<5x4xf32> to tensor<6x4xf32>
  %r = dist.reduce_scatter sum %p axes ["shard"] dims [0] order rank : tensor<6x4xf32> to tensor<3x4xf32>
  return %r : tensor<3x4xf32>
}

// CHECK-LABEL: func.func @columns
// CHECK: kernel.fused {{.*}} [4, 1] outs(%{{.*}} : tensor<4x6xf32>) maps [#[[COLUMN]]]
func.func @columns(%g: tensor<4x5xf32>) -> tensor<4x3xf32> {
  %p = titan.pad %g low [0, 0] interior [0, 0] {value = 0.0 : f64} : tensor<4x5xf32> to tensor<4x6xf32>
  %r = dist.reduce_scatter sum %p axes ["shard"] dims [1] order rank : tensor<4x6xf32> to tensor<4x3xf32>
  return %r : tensor<4x3xf32>
}

// Along two dimensions, and for readers of this rank: the value everywhere first.
// CHECK-LABEL: func.func @everywhere
// CHECK: kernel.fused flat [6, 6] outs(
// CHECK: kernel.fused flat [6, 4] outs(
func.func @everywhere(%g: tensor<5x5xf32>, %h: tensor<5x4xf32>) -> (tensor<3x6xf32>, tensor<6x4xf32>) {
  %p = titan.pad %g low [0, 0] interior [0, 0] {value = 0.0 : f64} : tensor<5x5xf32> to tensor<6x6xf32>
  %r = dist.reduce_scatter sum %p axes ["shard"] dims [0] order rank : tensor<6x6xf32> to tensor<3x6xf32>
  %q = titan.pad %h low [0, 0] interior [0, 0] {value = 0.0 : f64} : tensor<5x4xf32> to tensor<6x4xf32>
  return %r, %q : tensor<3x6xf32>, tensor<6x4xf32>
}

// Equal pads of which others read one.
// CHECK-LABEL: func.func @equal
// CHECK: kernel.fused flat [6, 4] outs(
// CHECK: %[[T:.*]] = kernel.fused flat [1, 4] outs(
// CHECK: %[[P:.*]] = kernel.fused flat [5, 4] ins(%arg1 : tensor<5x4xf32>) outs(%[[T]] :
// CHECK: dist.start reduce_scatter ins(%[[P]] :
func.func @equal(%g: tensor<5x4xf32>, %h: tensor<5x4xf32>) -> (tensor<6x4xf32>, tensor<3x4xf32>) {
  %q = titan.pad %g low [0, 0] interior [0, 0] {value = 0.0 : f64} : tensor<5x4xf32> to tensor<6x4xf32>
  %p = titan.pad %h low [0, 0] interior [0, 0] {value = 0.0 : f64} : tensor<5x4xf32> to tensor<6x4xf32>
  %r = dist.reduce_scatter sum %p axes ["shard"] dims [0] order rank : tensor<6x4xf32> to tensor<3x4xf32>
  return %q, %r : tensor<6x4xf32>, tensor<3x4xf32>
}

// CHECK-LABEL: func.func @gathered
// CHECK: %[[F:.*]] = dist.wait
// CHECK: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK: %[[R:.*]] = kernel.rows %[[F]][%[[ZERO]]] : tensor<6x4xf32> to tensor<5x4xf32>
// CHECK-NOT: kernel.fused
// CHECK: kernel.call {{.*}} ins(%{{.*}}, %[[R]] :
func.func @gathered(%w: tensor<3x4xf32>, %x: tensor<8x4xf32>) -> tensor<8x5xf32> {
  %f = dist.all_gather %w axes ["shard"] dims [0] : tensor<3x4xf32> to tensor<6x4xf32>
  %s = titan.slice %f offsets [0, 0] strides [1, 1] : tensor<6x4xf32> to tensor<5x4xf32>
  %y = titan.contract %x, %s batch [] x [] contracting [1] x [1] : (tensor<8x4xf32>, tensor<5x4xf32>) -> tensor<8x5xf32>
  return %y : tensor<8x5xf32>
}
}
