// RUN: titan-opt %s --titan-optimize-insert-update --split-input-file --verify-diagnostics

// expected-error @+1 {{the module has no @step: run differentiate first}}
module attributes {titan.recipe = {}} {
}

// -----

module attributes {titan.recipe = {}} {
  // expected-error @+1 {{@step returns no loss_sum or no count: run differentiate first}}
  func.func @step(%x: tensor<f32>) -> (tensor<f32> {titan.metric = "loss_sum"}) {
    return %x : tensor<f32>
  }
}

// -----

// expected-error @+1 {{optimizer.group 'head.*' matches frozen parameters alone, which nothing updates}}
module attributes {titan.recipe = {optimizer = {group = [{match = "head.*", lr_scale = 0.5 : f64}]}}} {
  titan.state @head.weight : tensor<4xf32> {kind = #titan<kind param>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  func.func @step(%x: tensor<f32>, %n: tensor<i64>) -> (tensor<f32> {titan.metric = "loss_sum"}, tensor<i64> {titan.metric = "count"}) {
    return %x, %n : tensor<f32>, tensor<i64>
  }
}

// -----

// expected-error @+1 {{optimizer.group 'head.*' matches no parameter}}
module attributes {titan.recipe = {optimizer = {group = [{match = "head.*", lr_scale = 0.5 : f64}]}}} {
  func.func @step(%x: tensor<f32>, %n: tensor<i64>) -> (tensor<f32> {titan.metric = "loss_sum"}, tensor<i64> {titan.metric = "count"}) {
    return %x, %n : tensor<f32>, tensor<i64>
  }
}
