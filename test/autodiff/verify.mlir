// RUN: titan-opt %s --titan-differentiate-verify --split-input-file --verify-diagnostics

// expected-error @+1 {{@model is still there}}
module {
  func.func @model() {
    return
  }
}

// -----

// expected-error @+1 {{the module has no function @step}}
module {
}

// -----

module {
  titan.state @w : tensor<8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
  // expected-error @+1 {{@step takes state @w but returns no 'tensor<8xf32>' for it}}
  func.func @step(%w: tensor<8xf32> {titan.state = @w}) {
    accum.loop %i in 1 unordered {
    }
    return
  }
  func.func @eval() {
    return
  }
  func.func @predict() {
    return
  }
}

// -----

module attributes {titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}}} {
  func.func @step() {
    // expected-error @+1 {{the loop runs 1 microbatches running, the recipe has 4 unordered}}
    accum.loop %i in 1 running {
    }
    return
  }
  func.func @eval() {
    return
  }
  func.func @predict() {
    return
  }
}

// -----

module {
  // expected-error @+1 {{input 'x' is 'tensor<8xf32>', not [1, micro, ...]}}
  func.func @step(%x: tensor<8xf32> {titan.input = "x"}) {
    accum.loop %i in 1 unordered {
    }
    return
  }
  func.func @eval() {
    return
  }
  func.func @predict() {
    return
  }
}

// -----

module {
  // expected-error @+1 {{@step returns no metric 'count' of type 'tensor<i64>'}}
  func.func @step(%l: tensor<f32> {titan.control = "l"}) -> (tensor<f32> {titan.metric = "loss_sum"}) {
    accum.loop %i in 1 unordered {
    }
    return %l : tensor<f32>
  }
  func.func @eval() {
    return
  }
  func.func @predict() {
    return
  }
}

// -----

module {
  // expected-error @+1 {{@step returns no gradient}}
  func.func @step(%l: tensor<f32> {titan.control = "l"}, %n: tensor<i64> {titan.control = "n"}) -> (tensor<f32> {titan.metric = "loss_sum"}, tensor<i64> {titan.metric = "count"}) {
    accum.loop %i in 1 unordered {
    }
    return %l, %n : tensor<f32>, tensor<i64>
  }
  func.func @eval() {
    return
  }
  func.func @predict() {
    return
  }
}

// -----

module {
  titan.state @w : tensor<f32> {kind = #titan<kind param>, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
  // expected-error @+1 {{gradient of @w is 'tensor<f32>', but there is no trainable state of that name and type}}
  func.func @step(%l: tensor<f32> {titan.control = "l"}, %n: tensor<i64> {titan.control = "n"}) -> (tensor<f32> {titan.metric = "loss_sum"}, tensor<i64> {titan.metric = "count"}, tensor<f32> {titan.gradient = @w}) {
    accum.loop %i in 1 unordered {
    }
    return %l, %n, %l : tensor<f32>, tensor<i64>, tensor<f32>
  }
  func.func @eval() {
    return
  }
  func.func @predict() {
    return
  }
}

// -----

module {
  titan.state @w : tensor<f32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
  func.func @step(%l: tensor<f32> {titan.control = "l"}, %n: tensor<i64> {titan.control = "n"}) -> (tensor<f32> {titan.metric = "loss_sum"}, tensor<i64> {titan.metric = "count"}, tensor<f32> {titan.gradient = @w}) {
    accum.loop %i in 1 unordered {
    }
    return %l, %n, %l : tensor<f32>, tensor<i64>, tensor<f32>
  }
  func.func @eval(%x: tensor<8xf32> {titan.input = "x"}) {
    // expected-error @+1 {{dropout outside of training}}
    %d = titan.dropout %x p 0.5 stream 1 : tensor<8xf32> to tensor<8xf32>
    return
  }
  func.func @predict() {
    return
  }
}
