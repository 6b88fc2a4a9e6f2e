// RUN: titan-opt %s --titan-differentiate-insert-loss --split-input-file | FileCheck %s

// G = 2 microbatches of 4: the batch gains a leading dimension, the loop slices it, dropout gets seed and step.
// CHECK: titan.state @counter.step : tensor<i64>
// CHECK-NOT: @model

// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[W:.*]]: tensor<3x6xf32> {titan.state = @fc.weight}
// CHECK-SAME: %[[STEP:.*]]: tensor<i64> {titan.state = @counter.step}
// CHECK-SAME: %[[X:.*]]: tensor<2x4x6xf32> {titan.input = "x"}
// CHECK-SAME: %[[T:.*]]: tensor<2x4xi64> {titan.input = "targets"}
// CHECK-SAME: %[[SEED:.*]]: tensor<i64> {titan.control = "train.seed"}
// CHECK-SAME: -> (tensor<3x6xf32> {titan.state = @fc.weight}, tensor<i64> {titan.state = @counter.step}, tensor<f32> {titan.metric = "loss_sum"}, tensor<i64> {titan.metric = "count"})
// CHECK: %[[L:.*]]:2 = accum.loop %{{.*}} in 2 unordered slices(%[[XI:.*]] = %[[X]] : tensor<2x4x6xf32>, %[[TI:.*]] = %[[T]] : tensor<2x4xi64>) -> (tensor<f32>, tensor<i64>)
// CHECK: titan.dropout %[[XI]] p 5.000000e-01 stream 3 seed %[[SEED]] step %[[STEP]]
// CHECK: %[[Y:.*]] = titan.contract
// CHECK: %[[CE:.*]] = titan.cross_entropy %[[Y]], %[[TI]] ignore_index -1 label_smoothing 0.000000e+00 {path = ["loss"]}
// CHECK: titan.compare ne %[[TI]]
// CHECK: titan.reduce sum %[[CE]] [0]
// CHECK: accum.yield
// CHECK: return %[[W]], %[[STEP]], %[[L]]#0, %[[L]]#1

// CHECK-LABEL: func.func @eval(
// CHECK-SAME: %[[ROWS:.*]]: tensor<i64> {titan.control = "valid_rows"}
// CHECK-SAME: titan.metric = "loss_sum"
// CHECK-SAME: titan.metric = "count"
// CHECK-SAME: titan.metric = "correct"
// CHECK-NOT: titan.dropout
// CHECK: titan.iota 0
// CHECK: titan.compare lt
// CHECK: titan.argmax

// CHECK-LABEL: func.func @predict(
// CHECK-SAME: %[[PX:[a-z0-9]*]]: tensor<4x6xf32> {titan.input = "x"}) -> (tensor<4x3xf32> {titan.output = "logits"})
// CHECK-NOT: titan.dropout
// CHECK: titan.contract %[[PX]]
module attributes {titan.recipe = {batch = {micro = 4 : i64, global = 8 : i64}, loss = {ignore_index = -1 : i64}}} {
  titan.state @fc.weight : tensor<3x6xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
  func.func @model(%w: tensor<3x6xf32> {titan.state = @fc.weight}, %x: tensor<4x6xf32> {titan.input = "x"}) -> (tensor<4x3xf32> {titan.output = "logits"}) {
    %d = titan.dropout %x p 0.5 stream 3 : tensor<4x6xf32> to tensor<4x6xf32>
    %y = titan.contract %d, %w batch [] x [] contracting [1] x [1] : (tensor<4x6xf32>, tensor<3x6xf32>) -> tensor<4x3xf32>
    return %y : tensor<4x3xf32>
  }
}

// -----

// An autoencoder: the target is the input, and comes once.
// CHECK-LABEL: func.func @step(
// CHECK-SAME: %{{.*}}: tensor<i64> {titan.state = @counter.step}, %[[X:.*]]: tensor<1x8x3xf32> {titan.input = "x"}, %{{.*}}: tensor<i64> {titan.control = "train.seed"})
// CHECK: slices(%[[XI:[a-z0-9]*]] = %[[X]] : tensor<1x8x3xf32>) ->
// CHECK: titan.sub %{{.*}}, %[[XI]] {path = ["loss"]}
module attributes {titan.recipe = {loss = {kind = "mse", target = "x"}}} {
  titan.state @w : tensor<8x3xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
  func.func @model(%w: tensor<8x3xf32> {titan.state = @w}, %x: tensor<8x3xf32> {titan.input = "x"}) -> (tensor<8x3xf32> {titan.output = "y"}) {
    %y = titan.mul %w, %x : tensor<8x3xf32>
    return %y : tensor<8x3xf32>
  }
}

// -----

// A language model: a target for each position. Attention is random in training only.
// CHECK-LABEL: func.func @step(
// CHECK-SAME: %{{.*}}: tensor<i64> {titan.state = @counter.step}, %{{.*}}: tensor<1x2x3xi64> {titan.input = "ids"}, %{{.*}}: tensor<1x2x3xi64> {titan.input = "targets"}, %[[SEED:.*]]: tensor<i64> {titan.control = "train.seed"})
// CHECK: titan.attention {{.*}} seed %[[SEED]] step %{{.*}} scale 1.000000e+00 {p = 5.000000e-01 : f64, stream = 7
// CHECK: %[[CE:.*]] = titan.cross_entropy {{.*}} : (tensor<2x3x4xf32>, tensor<2x3xi64>) -> tensor<2x3xf32>
// CHECK: titan.reduce sum %[[CE]] [0, 1]
// CHECK-LABEL: func.func @eval(
// CHECK: titan.attention %{{.*}}, %{{.*}}, %{{.*}} scale 1.000000e+00 :
// Rows of padding are whole samples.
// CHECK: %[[ROWS:.*]] = titan.iota 0 {{.*}}: tensor<2x3xi64>
// CHECK: titan.compare lt %[[ROWS]]
// CHECK: titan.argmax %{{.*}} dim 2
module attributes {titan.recipe = {batch = {micro = 2 : i64, global = 2 : i64}}} {
  titan.state @wte : tensor<4x4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
  func.func @model(%w: tensor<4x4xf32> {titan.state = @wte}, %ids: tensor<2x3xi64> {titan.input = "ids"}) -> (tensor<2x3x4xf32> {titan.output = "logits"}) {
    %x = titan.embedding %w, %ids : (tensor<4x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
    %h = titan.reshape %x : tensor<2x3x4xf32> to tensor<2x3x2x2xf32>
    %a, %lse = titan.attention %h, %h, %h scale 1.0 {p = 0.5 : f64, stream = 7 : i64} : (tensor<2x3x2x2xf32>, tensor<2x3x2x2xf32>, tensor<2x3x2x2xf32>) -> (tensor<2x3x2x2xf32>, tensor<2x2x3xf32>)
    %y = titan.reshape %a : tensor<2x3x2x2xf32> to tensor<2x3x4xf32>
    return %y : tensor<2x3x4xf32>
  }
}

// -----

// The same for a model that joins samples and positions.
// CHECK-LABEL: func.func @step(
// CHECK-SAME: tensor<1x2x3xi64> {titan.input = "targets"}
// CHECK: %[[ROWS:.*]] = titan.reshape %{{.*}} {path = ["loss"]} : tensor<6x4xf32> to tensor<2x3x4xf32>
// CHECK: titan.cross_entropy %[[ROWS]]
module attributes {titan.recipe = {batch = {micro = 2 : i64, global = 2 : i64}}} {
  titan.state @wte : tensor<4x4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
  func.func @model(%w: tensor<4x4xf32> {titan.state = @wte}, %ids: tensor<2x3xi64> {titan.input = "ids"}) -> (tensor<6x4xf32> {titan.output = "logits"}) {
    %x = titan.embedding %w, %ids : (tensor<4x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
    %y = titan.reshape %x : tensor<2x3x4xf32> to tensor<6x4xf32>
    return %y : tensor<6x4xf32>
  }
}

// -----

// A model that returns its logits before its loss: the loss is the one of one number.
// CHECK-LABEL: func.func @step(
// CHECK-NOT: titan.input = "targets"
// CHECK: %[[LOSS:.*]] = titan.reduce {{ *}}sum %{{.*}} [0, 1]
// CHECK: %[[TERM:.*]] = titan.reshape %[[LOSS]]
// CHECK: accum.yield %[[TERM]]
module attributes {titan.recipe = {loss = {kind = "output"}, batch = {micro = 2 : i64, global = 2 : i64}}} {
  titan.state @w : tensor<3xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
  func.func @model(%w: tensor<3xf32> {titan.state = @w}, %x: tensor<2x3xf32> {titan.input = "x"})
      -> (tensor<2x3xf32> {titan.output = "logits"}, tensor<f32> {titan.output = "loss"}) {
    %b = titan.broadcast %w [1] : tensor<3xf32> to tensor<2x3xf32>
    %y = titan.mul %x, %b : tensor<2x3xf32>
    %l = titan.reduce sum %y [0, 1] : tensor<2x3xf32> to tensor<f32>
    return %y, %l : tensor<2x3xf32>, tensor<f32>
  }
}

// -----

// Classes have weights: each loss is multiplied by that of its target, and their sum is what the loss is divided by. What does not count weighs 0.
// CHECK-LABEL: func.func @step(
// CHECK: %[[L:.*]]:3 = accum.loop
// CHECK: %[[CE:.*]] = titan.cross_entropy
// CHECK: %[[VALID:.*]] = titan.compare ne
// CHECK: %[[TABLE:.*]] = titan.constant dense<{{.*}}> : tensor<3x1xf32>
// CHECK: %[[KNOWN:.*]] = titan.select %[[VALID]]
// CHECK: titan.embedding %[[TABLE]], %[[KNOWN]]
// CHECK: %[[WEIGHTS:.*]] = titan.select %[[VALID]]
// CHECK: titan.mul %[[CE]], %[[WEIGHTS]]
// CHECK: titan.reduce sum %[[WEIGHTS]] [0]
// CHECK: return {{.*}}%[[L]]#0, %[[L]]#1, %[[L]]#2
// CHECK-LABEL: func.func @eval(
// CHECK-SAME: titan.metric = "correct"
// CHECK-SAME: titan.metric = "weight_sum"
module attributes {titan.recipe = {batch = {micro = 4 : i64, global = 8 : i64}, loss = {class_weights = [0.5 : f64, 1.0 : f64, 2.0 : f64]}}} {
  titan.state @fc.weight : tensor<3x6xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
  func.func @model(%w: tensor<3x6xf32> {titan.state = @fc.weight}, %x: tensor<4x6xf32> {titan.input = "x"}) -> (tensor<4x3xf32> {titan.output = "logits"}) {
    %y = titan.contract %x, %w batch [] x [] contracting [1] x [1] {path = ["fc"]} : (tensor<4x6xf32>, tensor<3x6xf32>) -> tensor<4x3xf32>
    return %y : tensor<4x3xf32>
  }
}

// -----

// With label smoothing the losses of all classes count with their weights, as PyTorch's do: the op's own smoothing weighs them alike.
// CHECK-LABEL: func.func @step(
// CHECK: %[[CE:.*]] = titan.cross_entropy %[[Y:.*]], %{{.*}} label_smoothing 0.000000e+00
// CHECK: %[[WEIGHTED:.*]] = titan.mul %[[CE]]
// CHECK: %[[OWN:.*]] = titan.mul %[[WEIGHTED]]
// CHECK: %[[LOGS:.*]] = titan.log_softmax %[[Y]]
// CHECK: %[[TABLE:.*]] = titan.constant dense<[-5.000000e-02, -1.000000e-01, -2.000000e-01]>
// CHECK: titan.broadcast %[[TABLE]] [1]
// CHECK: %[[TERMS:.*]] = titan.mul %[[LOGS]]
// CHECK: %[[SUM:.*]] = titan.reduce sum %[[TERMS]] [1]
// CHECK: %[[ALL:.*]] = titan.select %{{.*}}, %[[SUM]]
// CHECK: titan.add %[[OWN]], %[[ALL]]
module attributes {titan.recipe = {batch = {micro = 4 : i64, global = 8 : i64}, loss = {class_weights = [0.5 : f64, 1.0 : f64, 2.0 : f64], label_smoothing = 0.3 : f64}}} {
  titan.state @fc.weight : tensor<3x6xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
  func.func @model(%w: tensor<3x6xf32> {titan.state = @fc.weight}, %x: tensor<4x6xf32> {titan.input = "x"}) -> (tensor<4x3xf32> {titan.output = "logits"}) {
    %y = titan.contract %x, %w batch [] x [] contracting [1] x [1] {path = ["fc"]} : (tensor<4x6xf32>, tensor<3x6xf32>) -> tensor<4x3xf32>
    return %y : tensor<4x3xf32>
  }
}

// -----

// Only gradients are detached, and evaluation has none.
// CHECK-LABEL: func.func @step(
// CHECK: titan.detach
// CHECK-LABEL: func.func @eval(
// CHECK-NOT: titan.detach
// CHECK-LABEL: func.func @predict(
// CHECK-NOT: titan.detach
// CHECK: return
module attributes {titan.recipe = {loss = {kind = "mse"}}} {
  titan.state @w : tensor<8x3xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
  func.func @model(%w: tensor<8x3xf32> {titan.state = @w}, %x: tensor<8x3xf32> {titan.input = "x"}) -> (tensor<8x3xf32> {titan.output = "y"}) {
    %d = titan.detach %w : tensor<8x3xf32>
    %y = titan.mul %d, %x : tensor<8x3xf32>
    return %y : tensor<8x3xf32>
  }
}

// -----

// Samples that depend on each other would change beside padding: all rows count.
// CHECK-LABEL: func.func @eval(
// CHECK-NOT: valid_rows
// CHECK: %[[ROWS:.*]] = titan.constant dense<4> : tensor<i64>
// CHECK: titan.broadcast %[[ROWS]]
// CHECK-LABEL: func.func @predict(
module attributes {titan.recipe = {batch = {micro = 4 : i64, global = 4 : i64}, loss = {kind = "mse"}}} {
  titan.state @scale : tensor<3xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 1.0 : f64, 0.0 : f64>}
  titan.state @bias : tensor<3xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  func.func @model(%s: tensor<3xf32> {titan.state = @scale}, %b: tensor<3xf32> {titan.state = @bias}, %x: tensor<4x3xf32> {titan.input = "x"}) -> (tensor<4x3xf32> {titan.output = "y"}) {
    %y:3 = titan.batch_norm %x scale %s bias %b dim 1 epsilon 0.1 momentum 0.5 : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>)
    return %y#0 : tensor<4x3xf32>
  }
}

// -----

// A dimension of one position in front of the samples does not mix them.
// CHECK-LABEL: func.func @eval(
// CHECK-SAME: valid_rows
module attributes {titan.recipe = {batch = {micro = 4 : i64, global = 4 : i64}, loss = {kind = "mse"}}} {
  func.func @model(%x: tensor<4x1x3xf32> {titan.input = "x"}) -> (tensor<4x3xf32> {titan.output = "y"}) {
    %t = titan.transpose %x [1, 0, 2] : tensor<4x1x3xf32> to tensor<1x4x3xf32>
    %y = titan.reshape %t : tensor<1x4x3xf32> to tensor<4x3xf32>
    return %y : tensor<4x3xf32>
  }
}
