// RUN: titan-opt %s --titan-shard-verify --split-input-file --verify-diagnostics

titan.state @w : tensor<4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
// expected-error @+1 {{takes state @w as 'tensor<2xf32>', it is 'tensor<4xf32>'}}
func.func @step(%w: tensor<2xf32> {titan.state = @w}) {
  return
}

// -----

// expected-error @+1 {{'titan.state' of an argument is @v, which the module does not declare}}
func.func @step(%w: tensor<2xf32> {titan.state = @v}) {
  return
}
