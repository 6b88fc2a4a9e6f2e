// RUN: titan-opt %s --verify-roundtrip | titan-opt | FileCheck %s

// CHECK: module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 4]>}
module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 4]>} {

// CHECK-LABEL: func.func @coordinate
// CHECK: dist.coordinate "shard"
func.func @coordinate() -> index {
  %s = dist.coordinate "shard"
  return %s : index
}

// CHECK-LABEL: func.func @take_shard
// CHECK: dist.take_shard %{{.*}} axes ["replicate", "shard"] dim 0 : tensor<16x12xf32> to tensor<2x12xf32>
func.func @take_shard(%w: tensor<16x12xf32>) -> tensor<2x12xf32> {
  %p = dist.take_shard %w axes ["replicate", "shard"] dim 0 : tensor<16x12xf32> to tensor<2x12xf32>
  return %p : tensor<2x12xf32>
}

// CHECK-LABEL: func.func @all_gather
// CHECK: dist.all_gather %{{.*}}, %{{.*}} axes ["shard"] dims [0, 1] {path = ["fc1"]} : tensor<4x12xf32>, tensor<3x2xbf16> to tensor<16x12xf32>, tensor<3x8xbf16>
func.func @all_gather(%w: tensor<4x12xf32>, %v: tensor<3x2xbf16>) -> (tensor<16x12xf32>, tensor<3x8xbf16>) {
  %full:2 = dist.all_gather %w, %v axes ["shard"] dims [0, 1] {path = ["fc1"]} : tensor<4x12xf32>, tensor<3x2xbf16> to tensor<16x12xf32>, tensor<3x8xbf16>
  return %full#0, %full#1 : tensor<16x12xf32>, tensor<3x8xbf16>
}

// CHECK-LABEL: func.func @reduce_scatter
// CHECK: dist.reduce_scatter sum %{{.*}} axes ["shard"] dims [0] order tree {phase = #titan<phase backward>} : tensor<16x12xf32> to tensor<4x12xf32>
func.func @reduce_scatter(%g: tensor<16x12xf32>) -> tensor<4x12xf32> {
  %p = dist.reduce_scatter sum %g axes ["shard"] dims [0] order tree {phase = #titan<phase backward>} : tensor<16x12xf32> to tensor<4x12xf32>
  return %p : tensor<4x12xf32>
}

// CHECK-LABEL: func.func @all_reduce
// CHECK: dist.all_reduce sum %{{.*}}, %{{.*}} axes ["replicate", "shard"] order rank : tensor<f32>, tensor<i64> to tensor<f32>, tensor<i64>
func.func @all_reduce(%loss: tensor<f32>, %count: tensor<i64>) -> (tensor<f32>, tensor<i64>) {
  %s:2 = dist.all_reduce sum %loss, %count axes ["replicate", "shard"] order rank : tensor<f32>, tensor<i64> to tensor<f32>, tensor<i64>
  return %s#0, %s#1 : tensor<f32>, tensor<i64>
}

// CHECK-LABEL: func.func @halves
// CHECK: %[[E:.*]] = kernel.empty : tensor<16x12xf32>
// CHECK: %[[T:.*]] = dist.start all_gather ins(%{{.*}} : tensor<4x12xf32>) outs(%[[E]] : tensor<16x12xf32>) axes ["shard"] dims [0]
// CHECK: dist.wait %[[T]] ins(%{{.*}} : tensor<4x12xf32>) outs(%[[E]] : tensor<16x12xf32>) -> (tensor<16x12xf32>)
func.func @halves(%w: tensor<4x12xf32>) -> tensor<16x12xf32> {
  %e = kernel.empty : tensor<16x12xf32>
  %t = dist.start all_gather ins(%w : tensor<4x12xf32>) outs(%e : tensor<16x12xf32>) axes ["shard"] dims [0]
  %full = dist.wait %t ins(%w : tensor<4x12xf32>) outs(%e : tensor<16x12xf32>) -> (tensor<16x12xf32>)
  return %full : tensor<16x12xf32>
}

// CHECK-LABEL: func.func @halves_on_buffers
// CHECK: dist.start all_reduce ins(%{{.*}} : memref<4xf32>) outs(%{{.*}} : memref<4xf32>) axes ["shard"] order rank
// CHECK: dist.wait %{{.*}} ins(%{{.*}} : memref<4xf32>) outs(%{{.*}} : memref<4xf32>)
func.func @halves_on_buffers(%x: memref<4xf32>, %y: memref<4xf32>) {
  %t = dist.start all_reduce ins(%x : memref<4xf32>) outs(%y : memref<4xf32>) axes ["shard"] order rank
  dist.wait %t ins(%x : memref<4xf32>) outs(%y : memref<4xf32>)
  return
}

// CHECK-LABEL: func.func @placed
// CHECK-SAME: %{{.*}}: tensor<4xf32> {dist.placement = #dist.placement<["replicate" = partial, "shard" = shard(0)]>}
// CHECK: titan.neg %{{.*}} {dist.placements = [#dist.placement<["replicate" = iteration]>]}
func.func @placed(%x: tensor<4xf32> {dist.placement = #dist.placement<["replicate" = partial, "shard" = shard(0)]>}) -> tensor<4xf32> {
  %y = titan.neg %x {dist.placements = [#dist.placement<["replicate" = iteration]>]} : tensor<4xf32>
  return %y : tensor<4xf32>
}

}
