// RUN: titan-opt %s --titan-differentiate-build-gradients --split-input-file --verify-diagnostics

// An op on the path to the loss without a rule: the gradient of a gradient.
module {
  titan.state @w : tensor<8x3xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
  func.func @step(%w: tensor<8x3xf32> {titan.state = @w}, %t: tensor<1x8xi64> {titan.input = "targets"})
      -> (tensor<8x3xf32> {titan.state = @w}, tensor<f32> {titan.metric = "loss_sum"}) {
    %l = accum.loop %i in 1 unordered slices(%ti = %t : tensor<1x8xi64>) -> (tensor<f32>) {
      %d = titan.constant dense<1.0> : tensor<8xf32>
      // expected-error @+1 {{'titan.cross_entropy_grad' is on the path to the loss and has no derivative, module path penalty: freeze the parameters before it, or take it out of the training model}}
      %g = titan.cross_entropy_grad %w, %ti, %d ignore_index -100 label_smoothing 0.0 {path = ["penalty"]} : (tensor<8x3xf32>, tensor<8xi64>, tensor<8xf32>) -> tensor<8x3xf32>
      %s = titan.reduce sum %g [0, 1] : tensor<8x3xf32> to tensor<f32>
      accum.yield %s : tensor<f32>
    }
    return %w, %l : tensor<8x3xf32>, tensor<f32>
  }
}

// -----

module {
  titan.state @w : tensor<3xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
  // expected-error @+1 {{no trainable parameter reaches the loss}}
  func.func @step(%w: tensor<3xf32> {titan.state = @w}, %x: tensor<1x8xf32> {titan.input = "x"})
      -> (tensor<3xf32> {titan.state = @w}, tensor<f32> {titan.metric = "loss_sum"}) {
    %l = accum.loop %i in 1 unordered slices(%xi = %x : tensor<1x8xf32>) -> (tensor<f32>) {
      %s = titan.reduce sum %xi [0] : tensor<8xf32> to tensor<f32>
      accum.yield %s : tensor<f32>
    }
    return %w, %l : tensor<3xf32>, tensor<f32>
  }
}

// -----

module {
  // expected-error @+1 {{@step has 0 accum.loop ops, not one}}
  func.func @step(%x: tensor<f32> {titan.input = "x"}) -> (tensor<f32> {titan.metric = "loss_sum"}) {
    return %x : tensor<f32>
  }
}

// -----

module {
  titan.state @w : tensor<2x3x1x4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
  func.func @step(%w: tensor<2x3x1x4xf32> {titan.state = @w}, %x: tensor<1x2x3x1x4xf32> {titan.input = "x"})
      -> (tensor<2x3x1x4xf32> {titan.state = @w}, tensor<f32> {titan.metric = "loss_sum"}) {
    %l = accum.loop %i in 1 unordered slices(%xi = %x : tensor<1x2x3x1x4xf32>) -> (tensor<f32>) {
      // expected-error @+1 {{log_sum_exp of attention is on the path to the loss, module path h.0.attn: it has no derivative}}
      %y, %lse = titan.attention %w, %xi, %xi scale 0.5 {path = ["h.0.attn"]} : (tensor<2x3x1x4xf32>, tensor<2x3x1x4xf32>, tensor<2x3x1x4xf32>) -> (tensor<2x3x1x4xf32>, tensor<2x1x3xf32>)
      %s = titan.reduce sum %lse [0, 1, 2] : tensor<2x1x3xf32> to tensor<f32>
      accum.yield %s : tensor<f32>
    }
    return %w, %l : tensor<2x3x1x4xf32>, tensor<f32>
  }
}

// -----

module {
  // expected-error @+1 {{@step returns no loss_sum from its loop}}
  func.func @step(%x: tensor<1xf32> {titan.input = "x"}) -> (tensor<f32> {titan.metric = "count"}) {
    %l = accum.loop %i in 1 unordered slices(%xi = %x : tensor<1xf32>) -> (tensor<f32>) {
      accum.yield %xi : tensor<f32>
    }
    return %l : tensor<f32>
  }
}
