// RUN: titan-opt %s --titan-import-verify --split-input-file --verify-diagnostics

titan.state @w : tensor<4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 1.0 : f64, 0.0 : f64>}
func.func @model(%w: tensor<4xf32> {titan.state = @w}, %x: tensor<4xf32> {titan.input = "x"})
    -> (tensor<4xf32> {titan.output = "y"}) {
  %y = titan.mul %x, %w : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// expected-error@below {{import: the state is not an argument of @model}}
titan.state @w : tensor<4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 1.0 : f64, 0.0 : f64>}
func.func @model(%x: tensor<4xf32> {titan.input = "x"}) -> (tensor<4xf32> {titan.output = "y"}) {
  return %x : tensor<4xf32>
}

// -----

titan.state @w : tensor<4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 1.0 : f64, 0.0 : f64>}
// expected-error@below {{import: state @w comes after an input}}
func.func @model(%x: tensor<4xf32> {titan.input = "x"}, %w: tensor<4xf32> {titan.state = @w})
    -> (tensor<4xf32> {titan.output = "y"}) {
  return %x : tensor<4xf32>
}

// -----

// expected-error@below {{import: argument 0 is neither a state nor an input}}
func.func @model(%x: tensor<4xf32>) -> (tensor<4xf32> {titan.output = "y"}) {
  return %x : tensor<4xf32>
}

// -----

// expected-error@below {{import: result 0 has no output name of its own}}
func.func @model(%x: tensor<4xf32> {titan.input = "x"}) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// -----

// expected-error@below {{import: the module must hold one function, @model, of one block}}
func.func @step(%x: tensor<4xf32> {titan.input = "x"}) -> (tensor<4xf32> {titan.output = "y"}) {
  return %x : tensor<4xf32>
}
