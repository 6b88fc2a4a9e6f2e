// A rank's part of what all have: rows of its own place along the outermost dimension, else a kernel that brings its pieces together.
// RUN: titan-opt %s --titan-lower-form-kernels --titan-lower-classify-kernels --titan-lower-verify-kernels | FileCheck %s
// RUN: titan-opt %s --titan-lower-form-kernels --titan-lower-fuse-kernels --titan-lower-classify-kernels --titan-lower-verify-kernels | FileCheck %s --check-prefix=FUSED

module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 3]>} {

// CHECK-LABEL: func.func @outermost
// CHECK: %[[P:.*]] = dist.coordinate "replicate"
// CHECK: %[[S:.*]] = dist.coordinate "shard"
// CHECK: %[[C3:.*]] = arith.constant 3
// CHECK: %[[M:.*]] = arith.muli %[[P]], %[[C3]]
// CHECK: %[[D:.*]] = arith.addi %[[M]], %[[S]]
// CHECK: %[[R:.*]] = kernel.rows %{{.*}}[%[[D]]] : tensor<6x10xf32> to tensor<1x10xf32>
// CHECK: kernel.cast_shape %[[R]] : tensor<1x10xf32> to tensor<2x5xf32>
// CHECK-NOT: kernel.fused
// CHECK: return
func.func @outermost(%w: tensor<12x5xf32>) -> tensor<2x5xf32> {
  %p = dist.take_shard %w axes ["replicate", "shard"] dim 0 : tensor<12x5xf32> to tensor<2x5xf32>
  return %p : tensor<2x5xf32>
}

// From the row of this rank on, every third.
// CHECK-LABEL: func.func @inner
// CHECK: kernel.cast_shape %{{.*}} : tensor<4x6x5xf32> to tensor<12x10xf32>
// CHECK: %[[R:.*]] = kernel.rows %{{.*}}[%{{.*}}] : tensor<12x10xf32> to tensor<10x10xf32>
// CHECK: kernel.fused flat [4, 10] ins(%[[R]] : tensor<10x10xf32>) outs(%{{.*}} : tensor<4x10xf32>) maps [#[[MAP:.*]], #{{.*}}]
// CHECK: kernel.cast_shape %{{.*}} : tensor<4x10xf32> to tensor<4x2x5xf32>
func.func @inner(%w: tensor<4x6x5xf32>) -> tensor<4x2x5xf32> {
  %p = dist.take_shard %w axes ["shard"] dim 1 : tensor<4x6x5xf32> to tensor<4x2x5xf32>
  return %p : tensor<4x2x5xf32>
}

// The update reads its part where it lies.
// FUSED-LABEL: func.func @update
// FUSED-COUNT-2: kernel.fused
// FUSED-NOT: kernel.fused
func.func @update(%w: tensor<12x5xf32>, %v: tensor<4x6xf32>, %g: tensor<4x5xf32>, %h: tensor<4x2xf32>) -> (tensor<12x5xf32>, tensor<4x6xf32>) {
  %p = dist.take_shard %w axes ["shard"] dim 0 {phase = #titan<phase update>} : tensor<12x5xf32> to tensor<4x5xf32>
  %np = titan.sub %p, %g {phase = #titan<phase update>} : tensor<4x5xf32>
  %w1 = dist.all_gather %np axes ["shard"] dims [0] {phase = #titan<phase update>} : tensor<4x5xf32> to tensor<12x5xf32>
  %q = dist.take_shard %v axes ["shard"] dim 1 {phase = #titan<phase update>} : tensor<4x6xf32> to tensor<4x2xf32>
  %nq = titan.sub %q, %h {phase = #titan<phase update>} : tensor<4x2xf32>
  %v1 = dist.all_gather %nq axes ["shard"] dims [1] {phase = #titan<phase update>} : tensor<4x2xf32> to tensor<4x6xf32>
  return %w1, %v1 : tensor<12x5xf32>, tensor<4x6xf32>
}
}
