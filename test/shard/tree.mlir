// Sums that depend on the microbatches alone: each axis is some levels of one tree, for gradients and for the loss; integers are summed once.
// RUN: titan-opt %s --titan-shard-nest-loops --titan-shard-seed-placements --titan-shard-propagate-placements --split-input-file | FileCheck %s --check-prefix=PLACED
// RUN: titan-opt %s --titan-shard-nest-loops --titan-shard-seed-placements --titan-shard-propagate-placements --titan-shard-partition --titan-shard-fold-contractions \
// RUN:   --titan-shard-verify --split-input-file | FileCheck %s

// Once a step: over both axes at once, neighbours first.
// PLACED: accum.yield
// PLACED: } {dist.placements = [#dist.placement<["replicate" = iteration, "shard" = iteration]>, #dist.placement<["replicate" = iteration, "shard" = iteration]>, #dist.placement<["replicate" = iteration, "shard" = iteration]>]}
// PLACED: } {dist.placements = [#dist.placement<["replicate" = partial, "shard" = partial]>, #dist.placement<["replicate" = partial, "shard" = partial]>, #dist.placement<["replicate" = partial, "shard" = partial]>]}
// CHECK-LABEL: func.func @step
// CHECK: %[[S:.*]]:3 = accum.loop %{{.*}} in 1 running
// CHECK: dist.coordinate "replicate"
// CHECK: dist.coordinate "shard"
// CHECK: accum.loop %{{.*}} in 2 running
// CHECK: accum.yield
// CHECK: accum.yield
// CHECK: %[[SUMS:.*]]:2 = dist.all_reduce sum %[[S]]#0, %[[S]]#2 axes ["replicate", "shard"] order tree {path = ["loss", "fc.bias"], phase = #titan<phase backward>}
// CHECK: dist.all_reduce sum %[[S]]#1, %{{.*}} axes ["replicate", "shard"] order tree {path = [{{.*}}"stop"], phase = #titan<phase update>}
module attributes {titan.recipe = {batch = {micro = 3 : i64, global = 24 : i64}, mesh = {reduce = "tree", axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}]}}} {
func.func @step(%x: tensor<8x3x2xf32> {titan.input = "x"}, %seed: tensor<i64> {titan.control = "train.seed"}) -> (tensor<2xf32>, tensor<f32>, tensor<i64>) {
  %z64 = titan.constant dense<0> : tensor<i64>
  %three = titan.constant dense<3> : tensor<i64>
  %s:3 = accum.loop %i in 8 tree slices(%xi = %x : tensor<8x3x2xf32>) -> (tensor<f32>, tensor<i64>, tensor<2xf32>) {
    %c6 = arith.constant 6 : index
    %base = arith.muli %i, %c6 : index
    %y = titan.dropout %xi p 0.5 stream 7 seed %seed step %z64 base %base {window = #titan.window<[24, 2], multiple = 6>} : tensor<3x2xf32> to tensor<3x2xf32>
    %loss = titan.reduce sum %y [0, 1] {path = ["loss"]} : tensor<3x2xf32> to tensor<f32>
    %g = titan.reduce sum %y [0] {path = ["fc"], phase = #titan<phase backward>} : tensor<3x2xf32> to tensor<2xf32>
    accum.yield %loss, %three, %g : tensor<f32>, tensor<i64>, tensor<2xf32>
  }
  %b = titan.exp %s#2 {path = ["fc.bias"], phase = #titan<phase update>} : tensor<2xf32>
  return %b, %s#0, %s#1 : tensor<2xf32>, tensor<f32>, tensor<i64>
}
}

// -----

// By axis: each loop that ranks divide is a level of their sums, of the loss as well.
// PLACED: } {dist.placements = [#dist.placement<["replicate" = iteration, "shard" = partial]>, #dist.placement<["replicate" = iteration, "shard" = partial]>, #dist.placement<["replicate" = iteration, "shard" = partial]>]}
// PLACED: } {dist.placements = [#dist.placement<["replicate" = iteration]>, #dist.placement<["replicate" = iteration, "shard" = partial]>, #dist.placement<["replicate" = iteration]>]}
// PLACED: } {dist.placements = [#dist.placement<["replicate" = partial]>, #dist.placement<["replicate" = partial, "shard" = partial]>, #dist.placement<["replicate" = partial]>]}
// CHECK-LABEL: func.func @step
// CHECK: %[[S:.*]]:3 = accum.loop %{{.*}} in 1 running
// CHECK: %[[T:.*]]:3 = accum.loop %{{.*}} in 2 running {{.*}} accumulators(%[[A:[a-z0-9]+]] = %{{[^,]*}}, %[[N:[a-z0-9]+]] = %{{[^,]*}}, %[[B:[a-z0-9]+]] =
// CHECK: %[[U:.*]]:3 = accum.loop %{{.*}} in 1 running
// CHECK: accum.yield
// CHECK: %[[PAIR:.*]]:2 = dist.all_reduce sum %[[U]]#0, %[[U]]#2 axes ["shard"] order tree {path = ["loss", "fc.bias"], phase = #titan<phase backward>}
// CHECK: titan.add %[[A]], %[[PAIR]]#0 {path = ["loss"]
// CHECK: titan.add %[[N]], %[[U]]#1
// CHECK: titan.add %[[B]], %[[PAIR]]#1 {path = ["fc"]
// CHECK: accum.yield
// CHECK: dist.all_reduce sum %[[S]]#0, %[[S]]#2 axes ["replicate"] order tree {path = ["loss", "fc.bias"], phase = #titan<phase backward>}
// CHECK: dist.all_reduce sum %[[S]]#1, %{{.*}} axes ["replicate", "shard"] order tree {path = [{{.*}}"stop"], phase = #titan<phase update>}
module attributes {titan.recipe = {batch = {micro = 3 : i64, global = 24 : i64}, mesh = {reduce = "tree", sync = {shard = "immediate"}, axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}]}}} {
func.func @step(%x: tensor<8x3x2xf32> {titan.input = "x"}, %seed: tensor<i64> {titan.control = "train.seed"}) -> (tensor<2xf32>, tensor<f32>, tensor<i64>) {
  %z64 = titan.constant dense<0> : tensor<i64>
  %three = titan.constant dense<3> : tensor<i64>
  %s:3 = accum.loop %i in 8 tree slices(%xi = %x : tensor<8x3x2xf32>) -> (tensor<f32>, tensor<i64>, tensor<2xf32>) {
    %c6 = arith.constant 6 : index
    %base = arith.muli %i, %c6 : index
    %y = titan.dropout %xi p 0.5 stream 7 seed %seed step %z64 base %base {window = #titan.window<[24, 2], multiple = 6>} : tensor<3x2xf32> to tensor<3x2xf32>
    %loss = titan.reduce sum %y [0, 1] {path = ["loss"]} : tensor<3x2xf32> to tensor<f32>
    %g = titan.reduce sum %y [0] {path = ["fc"], phase = #titan<phase backward>} : tensor<3x2xf32> to tensor<2xf32>
    accum.yield %loss, %three, %g : tensor<f32>, tensor<i64>, tensor<2xf32>
  }
  %b = titan.exp %s#2 {path = ["fc.bias"], phase = #titan<phase update>} : tensor<2xf32>
  return %b, %s#0, %s#1 : tensor<2xf32>, tensor<f32>, tensor<i64>
}
}

// -----

// Behind the loops floats are summed before anything rounds: a term of neither is added to one of another, nor scaled. Their sign is no rounding. Integers are.
// PLACED: titan.neg {{.*}}partial
// PLACED: titan.mul %{{[^{]*}} {phase = #titan<phase update>}
// PLACED: titan.add %{{[^{]*}} {phase = #titan<phase update>} : tensor<2xf32>
// PLACED: titan.add {{.*}}partial{{.*}} : tensor<i64>
// CHECK-LABEL: func.func @step
// CHECK: %[[S:.*]]:3 = accum.loop %{{.*}} in 1 running
// CHECK: dist.all_reduce sum %[[S]]#0, %[[S]]#1 axes ["shard"] order tree
// CHECK: %[[N:.*]] = titan.neg %[[S]]#0
// CHECK: %[[C:.*]] = titan.add %[[S]]#2, %[[S]]#2
// CHECK: dist.all_reduce sum %[[N]], %[[C]], %{{.*}} axes ["shard"] order tree
module attributes {titan.recipe = {batch = {micro = 3 : i64, global = 6 : i64}, mesh = {reduce = "tree", axes = [{name = "shard", ranks = 2 : i64}]}}} {
func.func @step(%x: tensor<2x3x2xf32> {titan.input = "x"}) -> (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<i64>) {
  %three = titan.constant dense<3> : tensor<i64>
  %third = titan.constant dense<0.3> : tensor<2xf32>
  %s:3 = accum.loop %i in 2 tree slices(%xi = %x : tensor<2x3x2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<i64>) {
    %g = titan.reduce sum %xi [0] {path = ["fc"], phase = #titan<phase backward>} : tensor<3x2xf32> to tensor<2xf32>
    %h = titan.reduce max %xi [0] {path = ["fd"], phase = #titan<phase backward>} : tensor<3x2xf32> to tensor<2xf32>
    accum.yield %g, %h, %three : tensor<2xf32>, tensor<2xf32>, tensor<i64>
  }
  %n = titan.neg %s#0 {phase = #titan<phase update>} : tensor<2xf32>
  %m = titan.mul %s#0, %third {phase = #titan<phase update>} : tensor<2xf32>
  %a = titan.add %s#0, %s#1 {phase = #titan<phase update>} : tensor<2xf32>
  %c = titan.add %s#2, %s#2 {phase = #titan<phase update>} : tensor<i64>
  return %n, %m, %a, %c : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<i64>
}
}
