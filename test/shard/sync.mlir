// Where ranks sum, by each `sync`: right behind the loop that their axes divide, gradients; once behind all loops, the loss.
// RUN: titan-opt %s --titan-shard-nest-loops --titan-shard-seed-placements --titan-shard-propagate-placements --split-input-file | FileCheck %s --check-prefix=PLACED
// RUN: titan-opt %s --titan-shard-nest-loops --titan-shard-seed-placements --titan-shard-propagate-placements --titan-shard-partition --titan-shard-fold-contractions \
// RUN:   --titan-shard-verify --split-input-file --remarks-filter=shard 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// A round of microbatches is one of each rank. The outer loop runs on all ranks, and has the sums.
// REMARK: all_reduce of loss, stop over replicate, shard, 12 bytes: each rank has a term
// REMARK: all_reduce of fc.bias over replicate, shard, 8 bytes, 2 times a step: each rank has the gradients of its own microbatches
// PLACED: titan.reshape {{.*}} {dist.placements = [#dist.placement<["replicate" = shard(1), "shard" = shard(1)]>]} : tensor<8x3x2xf32> to tensor<2x4x3x2xf32>
// PLACED: titan.reduce {{.*}} {dist.placements = [#dist.placement<["replicate" = iteration, "shard" = iteration]>], path = ["fc"]
// PLACED: } {dist.placements = [#dist.placement<["replicate" = partial, "shard" = partial]>, #dist.placement<["replicate" = partial, "shard" = partial]>]}
// PLACED: titan.add {{.*}} {dist.placements = [#dist.placement<["replicate" = partial, "shard" = partial]>], path = ["loss"]}
// PLACED: titan.add %{{[a-z0-9]+}}, %{{[0-9]+}}#1 {path = ["fc"], phase
// PLACED: } {dist.placements = [#dist.placement<["replicate" = partial, "shard" = partial]>, #dist.placement<[]>]}
// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x3x2xf32> {titan.input = "x"}
// CHECK: %[[BATCH:.*]] = titan.reshape %[[X]] : tensor<2x3x2xf32> to tensor<2x1x3x2xf32>
// CHECK: %[[S:.*]]:2 = accum.loop %[[I:.*]] in 2 running slices(%{{.*}} = %[[BATCH]] : {{.*}}) accumulators(%[[A:[a-z0-9]+]] = {{.*}}, %[[B:[a-z0-9]+]] =
// CHECK: %[[T:.*]]:2 = accum.loop %{{.*}} in 1 running
// CHECK: dist.coordinate "replicate"
// CHECK: dist.coordinate "shard"
// CHECK: accum.yield
// CHECK: %[[SUM:.*]] = dist.all_reduce sum %[[T]]#1 axes ["replicate", "shard"] order rank {path = ["fc.bias"], phase = #titan<phase backward>}
// CHECK: titan.add %[[A]], %[[T]]#0
// CHECK: titan.add %[[B]], %[[SUM]]
// CHECK: accum.yield
// CHECK: dist.all_reduce sum %[[S]]#0, %{{.*}} axes ["replicate", "shard"] order rank {path = ["loss", "stop"], phase = #titan<phase update>}
// CHECK: titan.exp %[[S]]#1
module attributes {titan.recipe = {batch = {micro = 3 : i64, global = 24 : i64}, mesh = {sync = "immediate", axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}]}}} {
func.func @step(%x: tensor<8x3x2xf32> {titan.input = "x"}, %seed: tensor<i64> {titan.control = "train.seed"}) -> (tensor<2xf32>, tensor<f32>) {
  %z = titan.constant dense<0.0> : tensor<f32>
  %z64 = titan.constant dense<0> : tensor<i64>
  %z2 = titan.constant dense<0.0> : tensor<2xf32>
  %s:2 = accum.loop %i in 8 running slices(%xi = %x : tensor<8x3x2xf32>) accumulators(%a = %z : tensor<f32>, %d = %z2 : tensor<2xf32>) -> (tensor<f32>, tensor<2xf32>) {
    %c6 = arith.constant 6 : index
    %base = arith.muli %i, %c6 : index
    %y = titan.dropout %xi p 0.5 stream 7 seed %seed step %z64 base %base {window = #titan.window<[24, 2], multiple = 6>} : tensor<3x2xf32> to tensor<3x2xf32>
    %loss = titan.reduce sum %y [0, 1] {path = ["loss"]} : tensor<3x2xf32> to tensor<f32>
    %g = titan.reduce sum %y [0] {path = ["fc"], phase = #titan<phase backward>} : tensor<3x2xf32> to tensor<2xf32>
    %na = titan.add %a, %loss {path = ["loss"]} : tensor<f32>
    %nd = titan.add %d, %g {path = ["fc"], phase = #titan<phase backward>} : tensor<2xf32>
    accum.yield %na, %nd : tensor<f32>, tensor<2xf32>
  }
  %b = titan.exp %s#1 {path = ["fc.bias"], phase = #titan<phase update>} : tensor<2xf32>
  return %b, %s#0 : tensor<2xf32>, tensor<f32>
}
}

// -----

// Behind two of each rank: the inner loop is divided, m = 8 o + 4 j + 2 p + s.
// REMARK: all_reduce of loss, stop over replicate, shard, 12 bytes: each rank has a term
// REMARK: all_reduce of fc.bias over replicate, shard, 8 bytes, 3 times a step
// PLACED: titan.reshape {{.*}} {dist.placements = [#dist.placement<["replicate" = shard(1), "shard" = shard(1)]>]} : tensor<24x3x2xf32> to tensor<3x8x3x2xf32>
// CHECK-LABEL: func.func @step
// CHECK: titan.reshape {{.*}} : tensor<6x3x2xf32> to tensor<3x2x3x2xf32>
// CHECK: accum.loop %[[O:.*]] in 3 running
// CHECK: %[[T:.*]]:2 = accum.loop %[[J:.*]] in 2 running
// CHECK: arith.muli %[[J]], %
// CHECK: arith.muli %[[O]], %
// CHECK: accum.yield
// CHECK: dist.all_reduce sum %[[T]]#1 axes ["replicate", "shard"]
// CHECK: accum.yield
// CHECK: dist.all_reduce sum {{.*}}path = ["loss", "stop"]
// CHECK-NOT: dist.all_reduce
module attributes {titan.recipe = {batch = {micro = 3 : i64, global = 72 : i64}, mesh = {sync_every = 2 : i64, axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}]}}} {
func.func @step(%x: tensor<24x3x2xf32> {titan.input = "x"}, %seed: tensor<i64> {titan.control = "train.seed"}) -> (tensor<2xf32>, tensor<f32>) {
  %z = titan.constant dense<0.0> : tensor<f32>
  %z64 = titan.constant dense<0> : tensor<i64>
  %z2 = titan.constant dense<0.0> : tensor<2xf32>
  %s:2 = accum.loop %i in 24 running slices(%xi = %x : tensor<24x3x2xf32>) accumulators(%a = %z : tensor<f32>, %d = %z2 : tensor<2xf32>) -> (tensor<f32>, tensor<2xf32>) {
    %c6 = arith.constant 6 : index
    %base = arith.muli %i, %c6 : index
    %y = titan.dropout %xi p 0.5 stream 7 seed %seed step %z64 base %base {window = #titan.window<[72, 2], multiple = 6>} : tensor<3x2xf32> to tensor<3x2xf32>
    %loss = titan.reduce sum %y [0, 1] {path = ["loss"]} : tensor<3x2xf32> to tensor<f32>
    %g = titan.reduce sum %y [0] {path = ["fc"], phase = #titan<phase backward>} : tensor<3x2xf32> to tensor<2xf32>
    %na = titan.add %a, %loss {path = ["loss"]} : tensor<f32>
    %nd = titan.add %d, %g {path = ["fc"], phase = #titan<phase backward>} : tensor<2xf32>
    accum.yield %na, %nd : tensor<f32>, tensor<2xf32>
  }
  %b = titan.exp %s#1 {path = ["fc.bias"], phase = #titan<phase update>} : tensor<2xf32>
  return %b, %s#0 : tensor<2xf32>, tensor<f32>
}
}

// -----

// By axis: each loop is divided, by an axis of its own.
// REMARK: all_reduce of loss, stop over replicate, shard, 12 bytes: each rank has a term
// REMARK: all_reduce of fc.bias over replicate, 8 bytes: each rank
// REMARK: all_reduce of fc.bias over shard, 8 bytes, 2 times a step
// PLACED: titan.reshape {{.*}} {dist.placements = [#dist.placement<["replicate" = shard(0), "shard" = shard(1)]>]} : tensor<8x3x2xf32> to tensor<4x2x3x2xf32>
// PLACED: titan.add {{.*}} {dist.placements = [#dist.placement<["replicate" = iteration, "shard" = partial]>], path = ["fc"]
// PLACED: } {dist.placements = [#dist.placement<["replicate" = iteration, "shard" = partial]>, #dist.placement<["replicate" = iteration, "shard" = partial]>]}
// PLACED: titan.add {{.*}} {dist.placements = [#dist.placement<["replicate" = partial, "shard" = partial]>], path = ["loss"]}
// PLACED: titan.add {{.*}} {dist.placements = [#dist.placement<["replicate" = partial]>], path = ["fc"]
// PLACED: } {dist.placements = [#dist.placement<["replicate" = partial, "shard" = partial]>, #dist.placement<["replicate" = partial]>]}
// CHECK-LABEL: func.func @step
// CHECK: %[[S:.*]]:2 = accum.loop %{{.*}} in 2 running
// CHECK: dist.coordinate "replicate"
// CHECK: %[[T:.*]]:2 = accum.loop %{{.*}} in 1 running
// CHECK: dist.coordinate "shard"
// CHECK: accum.yield
// CHECK: dist.all_reduce sum %[[T]]#1 axes ["shard"] order rank {path = ["fc.bias"], phase = #titan<phase backward>}
// CHECK: accum.yield
// CHECK: dist.all_reduce sum %[[S]]#1 axes ["replicate"] order rank {path = ["fc.bias"], phase = #titan<phase backward>}
// CHECK: dist.all_reduce sum %[[S]]#0, {{.*}} axes ["replicate", "shard"] order rank {path = ["loss", "stop"]
module attributes {titan.recipe = {batch = {micro = 3 : i64, global = 24 : i64}, mesh = {sync = {shard = "immediate"}, axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}]}}} {
func.func @step(%x: tensor<8x3x2xf32> {titan.input = "x"}, %seed: tensor<i64> {titan.control = "train.seed"}) -> (tensor<2xf32>, tensor<f32>) {
  %z = titan.constant dense<0.0> : tensor<f32>
  %z64 = titan.constant dense<0> : tensor<i64>
  %z2 = titan.constant dense<0.0> : tensor<2xf32>
  %s:2 = accum.loop %i in 8 running slices(%xi = %x : tensor<8x3x2xf32>) accumulators(%a = %z : tensor<f32>, %d = %z2 : tensor<2xf32>) -> (tensor<f32>, tensor<2xf32>) {
    %c6 = arith.constant 6 : index
    %base = arith.muli %i, %c6 : index
    %y = titan.dropout %xi p 0.5 stream 7 seed %seed step %z64 base %base {window = #titan.window<[24, 2], multiple = 6>} : tensor<3x2xf32> to tensor<3x2xf32>
    %loss = titan.reduce sum %y [0, 1] {path = ["loss"]} : tensor<3x2xf32> to tensor<f32>
    %g = titan.reduce sum %y [0] {path = ["fc"], phase = #titan<phase backward>} : tensor<3x2xf32> to tensor<2xf32>
    %na = titan.add %a, %loss {path = ["loss"]} : tensor<f32>
    %nd = titan.add %d, %g {path = ["fc"], phase = #titan<phase backward>} : tensor<2xf32>
    accum.yield %na, %nd : tensor<f32>, tensor<2xf32>
  }
  %b = titan.exp %s#1 {path = ["fc.bias"], phase = #titan<phase update>} : tensor<2xf32>
  return %b, %s#0 : tensor<2xf32>, tensor<f32>
}
}
