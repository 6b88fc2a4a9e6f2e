// The words of an exact norm are terms on the axes that cut the gradients, and are added as integers over these; what all ranks have is counted once.
// RUN: titan-opt %s --titan-shard-seed-placements --titan-shard-group-terms --titan-shard-propagate-placements --titan-shard-partition --titan-shard-verify | FileCheck %s

module attributes {titan.recipe = {batch = {micro = 1 : i64, global = 4 : i64}, mesh = {axes = {replicate = 2 : i64, shard = 2 : i64}, strategy = "hsdp"}}} {
  titan.state @w : tensor<17x3xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @scale : tensor<1xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}

// CHECK-LABEL: func.func @step(
// CHECK: %[[PART:.*]] = dist.reduce_scatter {{.*}} axes ["shard"] {{.*}} to tensor<9x3xf32>
// CHECK: %[[SUM:.*]] = dist.all_reduce sum %[[PART]] axes ["replicate"]
// CHECK: %[[SQUARES:.*]] = titan.mul %[[SUM]], %[[SUM]] {{.*}} : tensor<9x3xf32>
// CHECK: %[[ROWS:.*]] = titan.reduce sum %[[SQUARES]] [1] {{.*}} to tensor<9xf32>
// CHECK: %[[MINE:.*]] = titan.exact_sum %[[ROWS]] {{.*}} : tensor<9xf32> to tensor<10xi64>
// CHECK: %[[ALL:.*]] = dist.all_reduce sum %[[MINE]] axes ["shard"] {{.*}} : tensor<10xi64> to tensor<10xi64>
// CHECK: %[[BOTH:.*]] = titan.add %[[ALL]], %{{.*}} : tensor<10xi64>
// CHECK: titan.exact_value %[[BOTH]]
func.func @step(%w: tensor<17x3xf32> {titan.state = @w}, %scale: tensor<1xf32> {titan.state = @scale}, %x: tensor<4x17x3xf32> {titan.input = "x"}, %z: tensor<4x1xf32> {titan.input = "z"})
    -> (tensor<17x3xf32> {titan.state = @w}, tensor<1xf32> {titan.state = @scale}, tensor<f32> {titan.metric = "squares"}) {
  %zw = titan.constant dense<0.0> : tensor<17x3xf32>
  %zs = titan.constant dense<0.0> : tensor<1xf32>
  %s:2 = accum.loop %i in 4 running slices(%xi = %x : tensor<4x17x3xf32>, %zi = %z : tensor<4x1xf32>)
      accumulators(%a = %zw : tensor<17x3xf32>, %b = %zs : tensor<1xf32>) -> (tensor<17x3xf32>, tensor<1xf32>) {
    %gw = titan.mul %xi, %w {phase = #titan<phase backward>} : tensor<17x3xf32>
    %gs = titan.mul %zi, %scale {phase = #titan<phase backward>} : tensor<1xf32>
    %na = titan.add %a, %gw {phase = #titan<phase backward>} : tensor<17x3xf32>
    %nb = titan.add %b, %gs {phase = #titan<phase backward>} : tensor<1xf32>
    accum.yield %na, %nb : tensor<17x3xf32>, tensor<1xf32>
  }
  %w2 = titan.mul %s#0, %s#0 {phase = #titan<phase update>} : tensor<17x3xf32>
  %rows = titan.reduce sum %w2 [1] {phase = #titan<phase update>} : tensor<17x3xf32> to tensor<17xf32>
  %words = titan.exact_sum %rows {phase = #titan<phase update>} : tensor<17xf32> to tensor<10xi64>
  %s2 = titan.mul %s#1, %s#1 {phase = #titan<phase update>} : tensor<1xf32>
  %more = titan.exact_sum %s2 {phase = #titan<phase update>} : tensor<1xf32> to tensor<10xi64>
  %both = titan.add %words, %more {phase = #titan<phase update>} : tensor<10xi64>
  %squares = titan.exact_value %both {phase = #titan<phase update>} : tensor<10xi64> to tensor<f32>
  %one = titan.constant dense<1.0> : tensor<f32>
  %apply = titan.constant dense<true> : tensor<i1>
  %w1 = titan.sgd %w, %s#0 lr %one weight_decay %one scale %squares apply %apply {momentum = 0.0 : f64, nesterov = false, lr_scale = 1.0 : f64, path = ["w"], phase = #titan<phase update>}
      : (tensor<17x3xf32>, tensor<17x3xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> tensor<17x3xf32>
  %scale1 = titan.sgd %scale, %s#1 lr %one weight_decay %one scale %squares apply %apply {momentum = 0.0 : f64, nesterov = false, lr_scale = 1.0 : f64, path = ["scale"], phase = #titan<phase update>}
      : (tensor<1xf32>, tensor<1xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> tensor<1xf32>
  return %w1, %scale1, %squares : tensor<17x3xf32>, tensor<1xf32>, tensor<f32>
}
}
