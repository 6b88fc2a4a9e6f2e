// RUN: titan-opt %s --titan-optimize-verify --split-input-file --verify-diagnostics

titan.state @w : tensor<4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
// expected-error @+1 {{result 0 is still a gradient}}
func.func @step(%w: tensor<4xf32> {titan.state = @w}) -> (tensor<4xf32> {titan.gradient = @w}) {
  return %w : tensor<4xf32>
}

// -----

// expected-error @+1 {{no function returns state 'w'}}
titan.state @w : tensor<4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
func.func @step(%w: tensor<4xf32> {titan.state = @w}) {
  return
}

// -----

titan.state @w : tensor<4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
// expected-error @+1 {{state 'w' changes outside of phase update}}
func.func @step(%w: tensor<4xf32> {titan.state = @w}) -> (tensor<4xf32> {titan.state = @w}) {
  %n = titan.neg %w : tensor<4xf32>
  return %n : tensor<4xf32>
}

// -----

titan.state @w : tensor<4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
// expected-error @+1 {{metric 'loss' is not returned}}
func.func @step(%w: tensor<4xf32> {titan.state = @w}) -> (tensor<4xf32> {titan.state = @w}) {
  return %w : tensor<4xf32>
}

// -----

titan.state @w : tensor<4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
// expected-error @+1 {{returns state 'w' as 'tensor<2xf32>', which is not its argument's type}}
func.func @step(%w: tensor<4xf32> {titan.state = @w}, %v: tensor<2xf32>) -> (tensor<2xf32> {titan.state = @w}) {
  return %v : tensor<2xf32>
}

// -----

titan.state @w : tensor<4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
// expected-error @+1 {{returns state 'w' twice}}
func.func @step(%w: tensor<4xf32> {titan.state = @w}) -> (tensor<4xf32> {titan.state = @w}, tensor<4xf32> {titan.state = @w}) {
  return %w, %w : tensor<4xf32>, tensor<4xf32>
}

// -----

// expected-error @+1 {{the module has no @step}}
module {
}
