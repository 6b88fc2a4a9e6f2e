// RUN: titan-opt %s --titan-shard-verify --split-input-file --verify-diagnostics

titan.state @w : tensor<4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
// expected-error @+1 {{takes state @w as 'tensor<2xf32>', a rank has 'tensor<4xf32>' of it}}
func.func @step(%w: tensor<2xf32> {titan.state = @w}) {
  return
}

// -----

// expected-error @+1 {{'titan.state' of an argument is @v, which the module does not declare}}
func.func @step(%w: tensor<2xf32> {titan.state = @v}) {
  return
}

// -----

// A placement on axes of one rank cuts nothing off.
titan.state @w : tensor<4x3xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>,
  placement = #titan.placement<["shard" = shard(0), "tensor" = shard(1)]>}
func.func @step(%w: tensor<4x3xf32> {titan.state = @w}, %x: tensor<1x4x3xf32>) -> (tensor<4x3xf32> {titan.state = @w}) {
  %s = accum.loop %i in 1 running slices(%xi = %x : tensor<1x4x3xf32>) accumulators(%a = %w : tensor<4x3xf32>) -> (tensor<4x3xf32>) {
    %n = titan.add %a, %xi : tensor<4x3xf32>
    accum.yield %n : tensor<4x3xf32>
  }
  return %s : tensor<4x3xf32>
}

// -----

titan.state @w : tensor<4x3xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>,
  placement = #titan.placement<["shard" = shard(0)]>}
// expected-error @+1 {{returns state @w as 'tensor<2x3xf32>', a rank has 'tensor<4x3xf32>' of it}}
func.func @eval(%w: tensor<4x3xf32> {titan.state = @w}, %v: tensor<2x3xf32>) -> (tensor<2x3xf32> {titan.state = @w}) {
  return %v : tensor<2x3xf32>
}

// -----

// expected-error @+1 {{is cut by mesh axis "rows", which the recipe does not have}}
titan.state @w : tensor<4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>,
  placement = #titan.placement<["rows" = shard(0)]>}
func.func @eval(%w: tensor<4xf32> {titan.state = @w}) {
  return
}

// -----

module attributes {titan.recipe = {batch = {micro = 8 : i64, global = 32 : i64}}} {
  func.func @step(%x: tensor<2x8xf32>, %zero: tensor<8xf32>) -> tensor<8xf32> {
    // expected-error @+1 {{runs 2 microbatches, the recipe says 4}}
    %s = accum.loop %i in 2 running slices(%xi = %x : tensor<2x8xf32>) accumulators(%a = %zero : tensor<8xf32>) -> (tensor<8xf32>) {
      %next = titan.add %a, %xi : tensor<8xf32>
      accum.yield %next : tensor<8xf32>
    }
    return %s : tensor<8xf32>
  }
}

// -----

// expected-error @+1 {{is the program of one rank, the recipe has 4}}
module attributes {titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = {replicate = 2 : i64, shard = 2 : i64}}}} {
}

// -----

// expected-error @+1 {{is the program of the ranks of #dist.mesh<["shard" = 2]>, the recipe has another mesh of 4}}
module attributes {dist.mesh = #dist.mesh<["shard" = 2]>,
    titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = [{name = "shard", ranks = 4 : i64}]}}} {
}

// -----

// expected-error @+1 {{is the program of the ranks of #dist.mesh<["replicate" = 1, "shard" = 1, "tensor" = 1]>, the recipe has another mesh of 1}}
module attributes {dist.mesh = #dist.mesh<["replicate" = 1, "shard" = 1, "tensor" = 1]>} {
}

// -----

module attributes {dist.mesh = #dist.mesh<["shard" = 2]>, titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = [{name = "shard", ranks = 2 : i64}]}}} {
// expected-error @+1 {{argument 0 is still placed by #dist.placement<["shard" = shard(0)]>}}
func.func @step(%x: tensor<4x8xf32> {dist.placement = #dist.placement<["shard" = shard(0)]>}) {
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["shard" = 2]>, titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = [{name = "shard", ranks = 2 : i64}]}}} {
func.func @eval(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{is still placed by [#dist.placement<["shard" = partial]>]}}
  %y = titan.neg %x {dist.placements = [#dist.placement<["shard" = partial]>]} : tensor<4x8xf32>
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["shard" = 2]>, titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = [{name = "shard", ranks = 2 : i64}]}}} {
// expected-error @+1 {{takes input 'x' as 'tensor<4x8xf32>', a rank runs 2 microbatches}}
func.func @step(%x: tensor<4x8xf32> {titan.input = "x"}) {
  accum.loop %i in 2 running {
  }
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["shard" = 2]>, titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = [{name = "shard", ranks = 2 : i64}]}}} {
func.func @step(%x: tensor<2x8xf32> {titan.input = "x"}) -> tensor<8xf32> {
  %zero = titan.constant dense<0.0> : tensor<8xf32>
  %s = accum.loop %i in 2 running slices(%xi = %x : tensor<2x8xf32>) accumulators(%a = %zero : tensor<8xf32>) -> (tensor<8xf32>) {
    %next = titan.add %a, %xi : tensor<8xf32>
    accum.yield %next : tensor<8xf32>
  }
  // expected-error @+1 {{takes operand 0 as #dist.placement<[]>, a rank has #dist.placement<["shard" = partial]>}}
  return %s : tensor<8xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["shard" = 2]>, titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = [{name = "shard", ranks = 2 : i64}]}}} {
func.func @step(%x: tensor<2x8xf32> {titan.input = "x"}) -> tensor<8xf32> {
  %zero = titan.constant dense<0.0> : tensor<8xf32>
  %s = accum.loop %i in 2 running slices(%xi = %x : tensor<2x8xf32>) accumulators(%a = %zero : tensor<8xf32>) -> (tensor<8xf32>) {
    %next = titan.add %a, %xi : tensor<8xf32>
    accum.yield %next : tensor<8xf32>
  }
  %t = dist.all_reduce sum %s axes ["shard"] order rank : tensor<8xf32> to tensor<8xf32>
  // expected-error @+1 {{takes operand 0 as #dist.placement<["shard" = partial]>, a rank has #dist.placement<[]>}}
  %u = dist.all_reduce sum %t axes ["shard"] order rank {path = ["again"]} : tensor<8xf32> to tensor<8xf32>
  return %u : tensor<8xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["shard" = 2]>, titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = [{name = "shard", ranks = 2 : i64}]}}} {
func.func @step(%x: tensor<2x8xf32> {titan.input = "x"}, %stop: tensor<i64> {titan.control = "stop"}) -> tensor<i64> {
  %zero = titan.constant dense<0.0> : tensor<8xf32>
  %s = accum.loop %i in 2 running slices(%xi = %x : tensor<2x8xf32>) accumulators(%a = %zero : tensor<8xf32>) -> (tensor<8xf32>) {
    %next = titan.add %a, %xi : tensor<8xf32>
    accum.yield %next : tensor<8xf32>
  }
  // expected-error @+1 {{takes operand 0 as #dist.placement<[]>, a rank has #dist.placement<["shard" = partial]>}}
  return %stop : tensor<i64>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["shard" = 2]>, titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = [{name = "shard", ranks = 2 : i64}]}}} {
func.func @step(%x: tensor<2x8xf32> {titan.input = "x"}) -> tensor<8xf32> {
  %zero = titan.constant dense<0.0> : tensor<8xf32>
  %s = accum.loop %i in 2 running slices(%xi = %x : tensor<2x8xf32>) accumulators(%a = %zero : tensor<8xf32>) -> (tensor<8xf32>) {
    // expected-error @+1 {{sums over "shard" inside of 1 loops, by mesh.sync and mesh.sync_every it is inside of 0}}
    %t = dist.all_reduce sum %xi axes ["shard"] order rank : tensor<8xf32> to tensor<8xf32>
    %next = titan.add %a, %t : tensor<8xf32>
    accum.yield %next : tensor<8xf32>
  }
  return %s : tensor<8xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["shard" = 2]>, titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = [{name = "shard", ranks = 2 : i64}]}}} {
// This is one.
func.func @step(%x: tensor<2x8xf32> {titan.input = "x"}, %stop: tensor<i64> {titan.control = "stop"}) -> (tensor<8xf32>, tensor<i64>) {
  %zero = titan.constant dense<0.0> : tensor<8xf32>
  %s = accum.loop %i in 2 running slices(%xi = %x : tensor<2x8xf32>) accumulators(%a = %zero : tensor<8xf32>) -> (tensor<8xf32>) {
    %next = titan.add %a, %xi : tensor<8xf32>
    accum.yield %next : tensor<8xf32>
  }
  %t:2 = dist.all_reduce sum %s, %stop axes ["shard"] order rank : tensor<8xf32>, tensor<i64> to tensor<8xf32>, tensor<i64>
  return %t#0, %t#1 : tensor<8xf32>, tensor<i64>
}
}

// -----

// The whole of a parameter is read, of which a rank has a part.
#w = #titan.placement<["shard" = shard(0)]>
module attributes {dist.mesh = #dist.mesh<["shard" = 2]>, titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = [{name = "shard", ranks = 2 : i64}], strategy = "fsdp"}}} {
titan.state @w : tensor<4x8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>, placement = #w}
func.func @predict(%w: tensor<2x8xf32> {titan.state = @w}, %x: tensor<3x8xf32> {titan.input = "x"}) -> tensor<3x2xf32> {
  // expected-error @+1 {{takes operand 1 as #dist.placement<[]>, a rank has #dist.placement<["shard" = shard(0)]>}}
  %y = titan.contract %x, %w batch [] x [] contracting [1] x [1] : (tensor<3x8xf32>, tensor<2x8xf32>) -> tensor<3x2xf32>
  return %y : tensor<3x2xf32>
}
}

// -----

// What is gathered already is whole.
#w = #titan.placement<["shard" = shard(0)]>
module attributes {dist.mesh = #dist.mesh<["shard" = 2]>, titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = [{name = "shard", ranks = 2 : i64}], strategy = "fsdp"}}} {
titan.state @w : tensor<4x8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>, placement = #w}
func.func @predict(%w: tensor<2x8xf32> {titan.state = @w}) -> tensor<8x8xf32> {
  %g = dist.all_gather %w axes ["shard"] dims [0] : tensor<2x8xf32> to tensor<4x8xf32>
  // expected-error @+1 {{takes operand 0 as #dist.placement<["shard" = shard(0)]>, a rank has #dist.placement<[]>}}
  %h = dist.all_gather %g axes ["shard"] dims [0] : tensor<4x8xf32> to tensor<8x8xf32>
  return %h : tensor<8x8xf32>
}
}

// -----

// This is one, too: the update of a part gives back the whole.
#w = #titan.placement<["shard" = shard(0)]>
module attributes {dist.mesh = #dist.mesh<["shard" = 2]>, titan.recipe = {batch = {micro = 2 : i64, global = 4 : i64}, mesh = {axes = [{name = "shard", ranks = 2 : i64}], strategy = "zero1"}}} {
titan.state @w : tensor<4x8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
titan.state @w.momentum_buffer : tensor<4x8xf32> {kind = #titan<kind slot>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>, placement = #w}
func.func @step(%w: tensor<4x8xf32> {titan.state = @w}, %v: tensor<2x8xf32> {titan.state = @w.momentum_buffer}, %x: tensor<1x4x8xf32> {titan.input = "x"}, %s: tensor<f32>, %b: tensor<i1>)
    -> (tensor<4x8xf32> {titan.state = @w}, tensor<2x8xf32> {titan.state = @w.momentum_buffer}) {
  %zero = titan.constant dense<0.0> : tensor<4x8xf32>
  %g = accum.loop %i in 1 running slices(%xi = %x : tensor<1x4x8xf32>) accumulators(%a = %zero : tensor<4x8xf32>) -> (tensor<4x8xf32>) {
    %next = titan.add %a, %xi : tensor<4x8xf32>
    accum.yield %next : tensor<4x8xf32>
  }
  %r = dist.reduce_scatter sum %g axes ["shard"] dims [0] order rank : tensor<4x8xf32> to tensor<2x8xf32>
  %p = dist.take_shard %w axes ["shard"] dim 0 : tensor<4x8xf32> to tensor<2x8xf32>
  %n, %m = titan.sgd %p, %r momentum_buffer %v lr %s weight_decay %s scale %s apply %b {lr_scale = 1.0 : f64, momentum = 0.9 : f64, nesterov = false}
    : (tensor<2x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
  %whole = dist.all_gather %n axes ["shard"] dims [0] : tensor<2x8xf32> to tensor<4x8xf32>
  return %whole, %m : tensor<4x8xf32>, tensor<2x8xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["shard" = 2]>, titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64},
    mesh = {sync = "immediate", axes = [{name = "shard", ranks = 2 : i64}]}}} {
// Gradients are summed in the outer loop, the loss behind both.
func.func @step(%x: tensor<2x8xf32> {titan.input = "x"}, %stop: tensor<i64> {titan.control = "stop"}) -> (tensor<8xf32>, tensor<8xf32>, tensor<i64>) {
  %zero = titan.constant dense<0.0> : tensor<8xf32>
  %b = titan.reshape %x : tensor<2x8xf32> to tensor<2x1x8xf32>
  %s:2 = accum.loop %i in 2 running slices(%xi = %b : tensor<2x1x8xf32>) accumulators(%a = %zero : tensor<8xf32>, %c = %zero : tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
    %t:2 = accum.loop %j in 1 running slices(%xj = %xi : tensor<1x8xf32>) accumulators(%d = %zero : tensor<8xf32>, %e = %zero : tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
      %m = titan.add %d, %xj : tensor<8xf32>
      %g = titan.add %e, %xj {phase = #titan<phase backward>} : tensor<8xf32>
      accum.yield %m, %g : tensor<8xf32>, tensor<8xf32>
    }
    %n = titan.add %a, %t#0 : tensor<8xf32>
    %r = dist.all_reduce sum %t#1 axes ["shard"] order rank {phase = #titan<phase backward>} : tensor<8xf32> to tensor<8xf32>
    %h = titan.add %c, %r {phase = #titan<phase backward>} : tensor<8xf32>
    accum.yield %n, %h : tensor<8xf32>, tensor<8xf32>
  }
  %all:2 = dist.all_reduce sum %s#0, %stop axes ["shard"] order rank {phase = #titan<phase update>} : tensor<8xf32>, tensor<i64> to tensor<8xf32>, tensor<i64>
  return %all#0, %s#1, %all#1 : tensor<8xf32>, tensor<8xf32>, tensor<i64>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["shard" = 2]>, titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64},
    mesh = {sync = "immediate", axes = [{name = "shard", ranks = 2 : i64}]}}} {
// The gradient's sum stands behind both.
func.func @step(%x: tensor<2x8xf32> {titan.input = "x"}, %stop: tensor<i64> {titan.control = "stop"}) -> (tensor<8xf32>, tensor<8xf32>, tensor<i64>) {
  %zero = titan.constant dense<0.0> : tensor<8xf32>
  %b = titan.reshape %x : tensor<2x8xf32> to tensor<2x1x8xf32>
  %s:2 = accum.loop %i in 2 running slices(%xi = %b : tensor<2x1x8xf32>) accumulators(%a = %zero : tensor<8xf32>, %c = %zero : tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
    %t:2 = accum.loop %j in 1 running slices(%xj = %xi : tensor<1x8xf32>) accumulators(%d = %zero : tensor<8xf32>, %e = %zero : tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
      %m = titan.add %d, %xj : tensor<8xf32>
      %g = titan.add %e, %xj {phase = #titan<phase backward>} : tensor<8xf32>
      accum.yield %m, %g : tensor<8xf32>, tensor<8xf32>
    }
    %n = titan.add %a, %t#0 : tensor<8xf32>
    // expected-error @+1 {{takes operand 1 as #dist.placement<[]>, a rank has #dist.placement<["shard" = partial]>}}
    %h = titan.add %c, %t#1 {phase = #titan<phase backward>} : tensor<8xf32>
    accum.yield %n, %h : tensor<8xf32>, tensor<8xf32>
  }
  %all:2 = dist.all_reduce sum %s#0, %stop axes ["shard"] order rank {phase = #titan<phase update>} : tensor<8xf32>, tensor<i64> to tensor<8xf32>, tensor<i64>
  return %all#0, %s#1, %all#1 : tensor<8xf32>, tensor<8xf32>, tensor<i64>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["shard" = 2]>, titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64},
    mesh = {sync = "immediate", axes = [{name = "shard", ranks = 2 : i64}]}}} {
// The loss is summed with each microbatch.
func.func @step(%x: tensor<2x8xf32> {titan.input = "x"}, %stop: tensor<i64> {titan.control = "stop"}) -> (tensor<8xf32>, tensor<8xf32>, tensor<i64>) {
  %zero = titan.constant dense<0.0> : tensor<8xf32>
  %b = titan.reshape %x : tensor<2x8xf32> to tensor<2x1x8xf32>
  %s:2 = accum.loop %i in 2 running slices(%xi = %b : tensor<2x1x8xf32>) accumulators(%a = %zero : tensor<8xf32>, %c = %zero : tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
    %t:2 = accum.loop %j in 1 running slices(%xj = %xi : tensor<1x8xf32>) accumulators(%d = %zero : tensor<8xf32>, %e = %zero : tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
      %m = titan.add %d, %xj : tensor<8xf32>
      %g = titan.add %e, %xj {phase = #titan<phase backward>} : tensor<8xf32>
      accum.yield %m, %g : tensor<8xf32>, tensor<8xf32>
    }
    %n = titan.add %a, %t#0 : tensor<8xf32>
    // expected-error @+1 {{sums over "shard" inside of 1 loops, by mesh.sync and mesh.sync_every it is inside of 0}}
    %r = dist.all_reduce sum %t#1 axes ["shard"] order rank {phase = #titan<phase update>} : tensor<8xf32> to tensor<8xf32>
    %h = titan.add %c, %r {phase = #titan<phase backward>} : tensor<8xf32>
    accum.yield %n, %h : tensor<8xf32>, tensor<8xf32>
  }
  %all:2 = dist.all_reduce sum %s#0, %stop axes ["shard"] order rank {phase = #titan<phase update>} : tensor<8xf32>, tensor<i64> to tensor<8xf32>, tensor<i64>
  return %all#0, %s#1, %all#1 : tensor<8xf32>, tensor<8xf32>, tensor<i64>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["shard" = 2]>, titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64},
    mesh = {sync = "immediate", axes = [{name = "shard", ranks = 2 : i64}]}}} {
// A sum of phase backward stands behind both.
func.func @step(%x: tensor<2x8xf32> {titan.input = "x"}, %stop: tensor<i64> {titan.control = "stop"}) -> (tensor<8xf32>, tensor<8xf32>, tensor<i64>) {
  %zero = titan.constant dense<0.0> : tensor<8xf32>
  %b = titan.reshape %x : tensor<2x8xf32> to tensor<2x1x8xf32>
  %s:2 = accum.loop %i in 2 running slices(%xi = %b : tensor<2x1x8xf32>) accumulators(%a = %zero : tensor<8xf32>, %c = %zero : tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
    %t:2 = accum.loop %j in 1 running slices(%xj = %xi : tensor<1x8xf32>) accumulators(%d = %zero : tensor<8xf32>, %e = %zero : tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
      %m = titan.add %d, %xj : tensor<8xf32>
      %g = titan.add %e, %xj {phase = #titan<phase backward>} : tensor<8xf32>
      accum.yield %m, %g : tensor<8xf32>, tensor<8xf32>
    }
    %n = titan.add %a, %t#0 : tensor<8xf32>
    %r = dist.all_reduce sum %t#1 axes ["shard"] order rank {phase = #titan<phase backward>} : tensor<8xf32> to tensor<8xf32>
    %h = titan.add %c, %r {phase = #titan<phase backward>} : tensor<8xf32>
    accum.yield %n, %h : tensor<8xf32>, tensor<8xf32>
  }
  // expected-error @+1 {{sums over "shard" inside of 0 loops, by mesh.sync and mesh.sync_every it is inside of 1}}
  %all:2 = dist.all_reduce sum %s#0, %stop axes ["shard"] order rank {phase = #titan<phase backward>} : tensor<8xf32>, tensor<i64> to tensor<8xf32>, tensor<i64>
  return %all#0, %s#1, %all#1 : tensor<8xf32>, tensor<8xf32>, tensor<i64>
}
}
