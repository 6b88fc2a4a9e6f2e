// What the recipe divides: microbatches among all data ranks. Each rank has a batch of its own in @eval. Each rank says whether it was asked to stop.
// RUN: titan-opt %s --titan-shard-seed-placements --split-input-file | FileCheck %s
// What is there already stays.
// RUN: titan-opt %s --titan-shard-seed-placements --titan-shard-seed-placements --split-input-file | FileCheck %s

// CHECK: module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 1, "tensor" = 1]>,
// CHECK: titan.state @w : tensor<4x2xf32>
// CHECK-NOT: placement
// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[W:.*]]: tensor<4x2xf32> {titan.state = @w},
// CHECK-SAME: tensor<8x3x2xf32> {dist.placement = #dist.placement<["replicate" = shard(0)]>, titan.input = "x"},
// CHECK-SAME: tensor<f32> {titan.control = "optimizer.lr"},
// CHECK-SAME: %[[STOP:[^:]*]]: tensor<i64> {dist.placement = #dist.placement<["replicate" = partial]>, titan.control = "stop"})
// CHECK-SAME: tensor<i64> {titan.metric = "stop"})
// CHECK: return %[[W]], %[[STOP]]
// CHECK-LABEL: func.func @eval
// CHECK-SAME: tensor<4x2xf32> {titan.state = @w},
// CHECK-SAME: tensor<3x2xf32> {dist.placement = #dist.placement<["replicate" = iteration]>, titan.input = "x"},
// CHECK-SAME: tensor<i64> {dist.placement = #dist.placement<["replicate" = iteration]>, titan.control = "valid_rows"})
module attributes {titan.recipe = {batch = {micro = 3 : i64, global = 24 : i64}, mesh = {axes = {replicate = 2 : i64}}}} {
  titan.state @w : tensor<4x2xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  func.func @step(%w: tensor<4x2xf32> {titan.state = @w}, %x: tensor<8x3x2xf32> {titan.input = "x"}, %lr: tensor<f32> {titan.control = "optimizer.lr"})
      -> (tensor<4x2xf32> {titan.state = @w}) {
    return %w : tensor<4x2xf32>
  }
  func.func @eval(%w: tensor<4x2xf32> {titan.state = @w}, %x: tensor<3x2xf32> {titan.input = "x"}, %rows: tensor<i64> {titan.control = "valid_rows"}) {
    return
  }
}

// -----

// Both axes are data axes; their order is the recipe's.
// CHECK: module attributes {dist.mesh = #dist.mesh<["shard" = 2, "replicate" = 3]>,
// CHECK: tensor<6x4xf32> {dist.placement = #dist.placement<["shard" = shard(0), "replicate" = shard(0)]>, titan.input = "x"},
// CHECK: tensor<i64> {dist.placement = #dist.placement<["shard" = partial, "replicate" = partial]>, titan.control = "stop"})
module attributes {titan.recipe = {batch = {micro = 4 : i64, global = 24 : i64},
    mesh = {axes = [{name = "shard", ranks = 2 : i64}, {name = "replicate", ranks = 3 : i64}], sync = "deferred"}}} {
  func.func @step(%x: tensor<6x4xf32> {titan.input = "x"}) {
    return
  }
}

// -----

// One rank: no mesh, no stop.
// CHECK: module attributes {titan.recipe = {batch = {global = 24 : i64, micro = 4 : i64}}}
// CHECK-NOT: dist
// CHECK: func.func @step(%{{.*}}: tensor<6x4xf32> {titan.input = "x"}) {
module attributes {titan.recipe = {batch = {micro = 4 : i64, global = 24 : i64}}} {
  func.func @step(%x: tensor<6x4xf32> {titan.input = "x"}) {
    return
  }
}
