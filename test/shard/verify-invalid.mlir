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
