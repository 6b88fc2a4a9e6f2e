// RUN: titan-opt %s --titan-differentiate-insert-loss --split-input-file --verify-diagnostics

// expected-error @+1 {{the module has no function @model}}
module {
}

// -----

module {
  // expected-error @+1 {{'x' is 'tensor<4x3xf32>', batch.micro = 8: the first extent of every input and target is the batch}}
  func.func @model(%x: tensor<4x3xf32> {titan.input = "x"}) -> (tensor<4x3xf32> {titan.output = "y"}) {
    return %x : tensor<4x3xf32>
  }
}

// -----

module attributes {titan.recipe = {loss = {output = "logits"}}} {
  // expected-error @+1 {{loss.output = "logits" is no output of the model, whose outputs are y}}
  func.func @model(%x: tensor<8x3xf32> {titan.input = "x"}) -> (tensor<8x3xf32> {titan.output = "y"}) {
    return %x : tensor<8x3xf32>
  }
}

// -----

module attributes {titan.recipe = {loss = {kind = "output"}}} {
  // expected-error @+1 {{loss.kind = "output": output 'y' is 'tensor<8x3xf32>', not one number}}
  func.func @model(%x: tensor<8x3xf32> {titan.input = "x"}) -> (tensor<8x3xf32> {titan.output = "y"}) {
    return %x : tensor<8x3xf32>
  }
}

// -----

module {
  // expected-error @+1 {{loss.kind = "cross_entropy": output 'y' is 'tensor<8xf32>', not [rows, ..., classes]}}
  func.func @model(%x: tensor<8xf32> {titan.input = "x"}) -> (tensor<8xf32> {titan.output = "y"}) {
    return %x : tensor<8xf32>
  }
}

// -----

module attributes {titan.recipe = {loss = {class_dim = 3 : i64}}} {
  // expected-error @+1 {{loss.class_dim = 3: output 'y' is 'tensor<8x3x5xf32>', whose classes are in one of the dimensions 1 to 2}}
  func.func @model(%x: tensor<8x3x5xf32> {titan.input = "x"}) -> (tensor<8x3x5xf32> {titan.output = "y"}) {
    return %x : tensor<8x3x5xf32>
  }
}

// -----

module attributes {titan.recipe = {loss = {class_dim = 1 : i64, class_weights = [1.0 : f64, 2.0 : f64]}}} {
  // expected-error @+1 {{loss.class_weights has 2 weights: output 'y' is 'tensor<8x3x5xf32>', with 3 classes}}
  func.func @model(%x: tensor<8x3x5xf32> {titan.input = "x"}) -> (tensor<8x3x5xf32> {titan.output = "y"}) {
    return %x : tensor<8x3x5xf32>
  }
}

// -----

module attributes {titan.recipe = {loss = {class_dim = -3 : i64}}} {
  // expected-error @+1 {{loss.class_dim = -3: output 'y' is 'tensor<8x3x5xf32>', whose classes}}
  func.func @model(%x: tensor<8x3x5xf32> {titan.input = "x"}) -> (tensor<8x3x5xf32> {titan.output = "y"}) {
    return %x : tensor<8x3x5xf32>
  }
}

// -----

module attributes {titan.recipe = {loss = {kind = "mse"}}} {
  // expected-error @+1 {{loss.kind = "mse": output 'y' is a scalar, not [rows, ...]: is it the loss (kind = "output")?}}
  func.func @model(%x: tensor<8xf32> {titan.input = "x"}) -> (tensor<f32> {titan.output = "y"}) {
    %y = titan.reduce sum %x [0] : tensor<8xf32> to tensor<f32>
    return %y : tensor<f32>
  }
}

// -----

module {
  // expected-error @+1 {{output 'y' is 'tensor<8x3xi64>': a loss needs floats}}
  func.func @model(%x: tensor<8x3xi64> {titan.input = "x"}) -> (tensor<8x3xi64> {titan.output = "y"}) {
    return %x : tensor<8x3xi64>
  }
}

// -----

module attributes {titan.recipe = {loss = {target = "x"}}} {
  // expected-error @+1 {{loss.target = "x" is an input of type 'tensor<8x3xf32>', the loss takes 'tensor<8xi64>'}}
  func.func @model(%x: tensor<8x3xf32> {titan.input = "x"}) -> (tensor<8x3xf32> {titan.output = "y"}) {
    return %x : tensor<8x3xf32>
  }
}

// -----

module {
  titan.state @m : tensor<8x3xf32> {kind = #titan<kind buffer>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  // expected-error @+1 {{result 1 of @model is no output}}
  func.func @model(%m: tensor<8x3xf32> {titan.state = @m}, %x: tensor<8x3xf32> {titan.input = "x"}) -> (tensor<8x3xf32> {titan.output = "y"}, tensor<8x3xf32> {titan.state = @m}) {
    return %x, %x : tensor<8x3xf32>, tensor<8x3xf32>
  }
}

// -----

module {
  // expected-error @+1 {{argument 0 of @model is neither state, input nor control}}
  func.func @model(%x: tensor<8x3xf32>) -> (tensor<8x3xf32> {titan.output = "y"}) {
    return %x : tensor<8x3xf32>
  }
}

// -----

// expected-error @+1 {{titan.recipe: }}
module attributes {titan.recipe = {batch = {mikro = 4 : i64}}} {
}

// -----

// Time first: row t * 4 + i is of sample i.
module attributes {titan.recipe = {batch = {micro = 4 : i64, global = 4 : i64}}} {
  // expected-error @+1 {{output 'y' is 'tensor<8x3xf32>', with the samples inside of dimension 0: the loss takes sample after sample, so transpose it in the model, [batch, positions, ...]}}
  func.func @model(%x: tensor<4x2x3xf32> {titan.input = "x"}) -> (tensor<8x3xf32> {titan.output = "y"}) {
    %t = titan.transpose %x [1, 0, 2] : tensor<4x2x3xf32> to tensor<2x4x3xf32>
    %r = titan.reshape %t : tensor<2x4x3xf32> to tensor<8x3xf32>
    %y = titan.tanh %r : tensor<8x3xf32>
    return %y : tensor<8x3xf32>
  }
}

// -----

// As many positions as samples: the type tells nothing.
module attributes {titan.recipe = {batch = {micro = 4 : i64, global = 4 : i64}}} {
  // expected-error @+1 {{output 'y' is 'tensor<4x4x3xf32>', with the samples in dimension 1: the loss takes sample after sample, so transpose it in the model, [batch, positions, ...]}}
  func.func @model(%x: tensor<4x4x3xf32> {titan.input = "x"}) -> (tensor<4x4x3xf32> {titan.output = "y"}) {
    %y = titan.transpose %x [1, 0, 2] : tensor<4x4x3xf32> to tensor<4x4x3xf32>
    return %y : tensor<4x4x3xf32>
  }
}
