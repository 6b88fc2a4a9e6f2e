// The example of titan-shard-nest-loops: the loops of each `sync`, in the order of the microbatches.
// RUN: titan-opt %s --titan-shard-nest-loops --split-input-file | FileCheck %s

// Behind each round of microbatches: the inner loop is the round.
// CHECK: module attributes {{.*}}sync = "immediate"
// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[X:.*]]: tensor<8x3x2xf32> {titan.input = "x"}
// CHECK: %[[BATCH:.*]] = titan.reshape %[[X]] : tensor<8x3x2xf32> to tensor<2x4x3x2xf32>
// CHECK: %[[S:.*]]:2 = accum.loop %[[I:.*]] in 2 running slices(%[[ROUND:.*]] = %[[BATCH]] : tensor<2x4x3x2xf32>) accumulators(%[[A:[a-z0-9]+]] = {{.*}} : tensor<f32>, %[[B:[a-z0-9]+]] = {{.*}} : tensor<2xf32>)
// CHECK: %[[T:.*]]:2 = accum.loop %[[J:.*]] in 4 running slices(%{{.*}} = %[[ROUND]] : tensor<4x3x2xf32>) accumulators(%[[C:[a-z0-9]+]] = %[[ZERO:[a-z0-9_]+]] : tensor<f32>, %[[D:[a-z0-9]+]] = {{.*}} : tensor<2xf32>)
// CHECK: %[[FOUR:.*]] = arith.constant 4 : index
// CHECK: %[[FIRST:.*]] = arith.muli %[[I]], %[[FOUR]]
// CHECK: %[[M:.*]] = arith.addi %[[FIRST]], %[[J]]
// CHECK: %[[BASE:.*]] = arith.muli %[[M]], %{{.*}} : index
// CHECK: titan.dropout {{.*}} base %[[BASE]]
// CHECK: titan.add %[[C]],
// CHECK: titan.add %[[D]],
// CHECK: titan.add %[[A]], %[[T]]#0 {path = ["loss"]} : tensor<f32>
// CHECK: titan.add %[[B]], %[[T]]#1 {path = ["fc"], phase = #titan<phase backward>} : tensor<2xf32>
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

// Behind two microbatches of each rank.
// CHECK: accum.loop %{{.*}} in 3 running slices(%{{.*}} : tensor<3x8x3x2xf32>)
// CHECK: accum.loop %{{.*}} in 8 running slices(%{{.*}} : tensor<8x3x2xf32>)
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

// By axis: over shard's ranks at once, over replicate's at the end.
// CHECK: sync = {shard = "immediate"}
// CHECK: accum.loop %{{.*}} in 12 running slices(%{{.*}} : tensor<12x2x3x2xf32>)
// CHECK: accum.loop %{{.*}} in 2 running slices(%{{.*}} : tensor<2x3x2xf32>)
module attributes {titan.recipe = {batch = {micro = 3 : i64, global = 72 : i64}, mesh = {sync = {shard = "immediate"}, axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}]}}} {
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

// `auto` under ddp is once a step: the one loop.
// CHECK: sync = "deferred"
// CHECK: accum.loop %{{.*}} in 8 running slices(%{{.*}} : tensor<8x3x2xf32>)
// CHECK-NOT: accum.loop
module attributes {titan.recipe = {batch = {micro = 3 : i64, global = 24 : i64}, mesh = {axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}]}}} {
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

// With one microbatch a rank each is the last.
// CHECK: accum.loop %{{.*}} in 4 running slices(%{{.*}} : tensor<4x3x2xf32>)
// CHECK-NOT: accum.loop
module attributes {titan.recipe = {batch = {micro = 3 : i64, global = 12 : i64}, mesh = {sync = "immediate", axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}]}}} {
func.func @step(%x: tensor<4x3x2xf32> {titan.input = "x"}, %seed: tensor<i64> {titan.control = "train.seed"}) -> (tensor<2xf32>, tensor<f32>) {
  %z = titan.constant dense<0.0> : tensor<f32>
  %z64 = titan.constant dense<0> : tensor<i64>
  %z2 = titan.constant dense<0.0> : tensor<2xf32>
  %s:2 = accum.loop %i in 4 running slices(%xi = %x : tensor<4x3x2xf32>) accumulators(%a = %z : tensor<f32>, %d = %z2 : tensor<2xf32>) -> (tensor<f32>, tensor<2xf32>) {
    %c6 = arith.constant 6 : index
    %base = arith.muli %i, %c6 : index
    %y = titan.dropout %xi p 0.5 stream 7 seed %seed step %z64 base %base {window = #titan.window<[12, 2], multiple = 6>} : tensor<3x2xf32> to tensor<3x2xf32>
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

// One rank sums with nobody, and its recipe stays as it is.
// CHECK: mesh = {sync = "immediate", sync_every = 2 : i64}
// CHECK: accum.loop %{{.*}} in 8 running slices(%{{.*}} : tensor<8x3x2xf32>)
// CHECK-NOT: accum.loop
module attributes {titan.recipe = {batch = {micro = 3 : i64, global = 24 : i64}, mesh = {sync = "immediate", sync_every = 2 : i64}}} {
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

// A tree on one rank: each level is a loop of two that begins at zero. The index is that of the microbatch, a stack that of all loops.
// CHECK: func.func @step
// CHECK: %[[BATCH:.*]] = titan.reshape %{{.*}} : tensor<4x8xf32> to tensor<2x2x8xf32>
// CHECK: %[[OUTER:.*]]:2 = accum.loop %[[I:.*]] in 2 running stacked = 1 slices(%[[HALF:.*]] = %[[BATCH]] : tensor<2x2x8xf32>) accumulators(%[[A:.*]] = %[[ZERO:.*]] : tensor<8xf32>)
// CHECK: %[[INNER:.*]]:2 = accum.loop %[[J:.*]] in 2 running stacked = 1 slices(%[[X:.*]] = %[[HALF]] : tensor<2x8xf32>) accumulators(%[[B:.*]] = %[[NONE:.*]] : tensor<8xf32>)
// CHECK: titan.add %[[B]], %[[TERM:.*]] {path = ["fc"]
// CHECK: accum.yield %{{.*}}, %[[X]]
// CHECK: %[[SUM:.*]] = titan.add %[[A]], %[[INNER]]#0 {path = ["fc"]
// CHECK: accum.yield %[[SUM]], %[[INNER]]#1
// CHECK: %[[ROWS:.*]] = titan.reshape %[[OUTER]]#1 : tensor<2x2x8xf32> to tensor<4x8xf32>
// CHECK: return %[[OUTER]]#0, %[[ROWS]]
module attributes {titan.recipe = {batch = {micro = 8 : i64, global = 32 : i64}, mesh = {reduce = "tree"}}} {
func.func @step(%x: tensor<4x8xf32>) -> (tensor<8xf32>, tensor<4x8xf32>) {
  %s, %r = accum.loop %i in 4 tree stacked = 1 slices(%xi = %x : tensor<4x8xf32>) -> (tensor<8xf32>, tensor<4x8xf32>) {
    %t = titan.neg %xi {path = ["fc"]} : tensor<8xf32>
    accum.yield %t, %xi : tensor<8xf32>, tensor<8xf32>
  }
  return %s, %r : tensor<8xf32>, tensor<4x8xf32>
}
}

// -----

// One microbatch of one rank is a leaf, 0 + x.
// CHECK: func.func @step
// CHECK: accum.loop %{{.*}} in 1 running slices(%[[X:.*]] = %{{.*}}) accumulators(%[[A:.*]] =
// CHECK: titan.add %[[A]], %[[X]]
module attributes {titan.recipe = {batch = {micro = 8 : i64, global = 8 : i64}, mesh = {reduce = "tree"}}} {
func.func @step(%x: tensor<1x8xf32>) -> tensor<8xf32> {
  %s = accum.loop %i in 1 tree slices(%xi = %x : tensor<1x8xf32>) -> (tensor<8xf32>) {
    accum.yield %xi : tensor<8xf32>
  }
  return %s : tensor<8xf32>
}
}

// -----

// Ranks that sum once a step have the uppermost levels, which stay a tree; what is left is each rank's own.
// CHECK: func.func @step
// CHECK: titan.reshape %{{.*}} : tensor<8x3x2xf32> to tensor<4x2x3x2xf32>
// CHECK: accum.loop %[[R:.*]] in 4 tree slices(%{{.*}} : tensor<4x2x3x2xf32>) ->
// CHECK: accum.loop %[[I:.*]] in 2 running slices(%{{.*}} : tensor<2x3x2xf32>) accumulators(
// CHECK: %[[FIRST:.*]] = arith.muli %[[R]], %{{.*}} : index
// CHECK: arith.addi %[[FIRST]], %[[I]] : index
// CHECK-NOT: accum.loop
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

// Those that sum with each microbatch have the lowest levels.
// CHECK: func.func @step
// CHECK: accum.loop %[[R:.*]] in 2 tree slices(%{{.*}} : tensor<2x2x2x3x2xf32>) ->
// CHECK: accum.loop %[[I:.*]] in 2 running slices(%{{.*}} : tensor<2x2x3x2xf32>) accumulators(
// CHECK: accum.loop %[[S:.*]] in 2 tree slices(%{{.*}} : tensor<2x3x2xf32>) ->
// CHECK: %[[SUM:.*]] = arith.addi %{{.*}}, %[[I]] : index
// CHECK: %[[LEFT:.*]] = arith.muli %[[SUM]], %{{.*}} : index
// CHECK: arith.addi %[[LEFT]], %[[S]] : index
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
