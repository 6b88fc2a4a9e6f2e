// The clip factor is part of the one scalar that updates read: no gradient is scaled by itself.
// RUN: titan-opt %s --titan-optimize-insert-update | FileCheck %s

module attributes {titan.recipe = {optimizer = {clip_norm = 1.000000e+00 : f64}}} {
  titan.state @w : tensor<4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  // CHECK-LABEL: func.func @step
  func.func @step(%w: tensor<4xf32> {titan.state = @w})
      -> (tensor<f32> {titan.metric = "loss_sum"}, tensor<i64> {titan.metric = "count"}, tensor<4xf32> {titan.gradient = @w}) {
    %loss = titan.reduce sum %w [0] : tensor<4xf32> to tensor<f32>
    %count = titan.constant dense<1> : tensor<i64>
    // CHECK: %[[INVERSE:.*]] = titan.div
    // CHECK: %[[FACTOR:.*]] = titan.min
    // CHECK: %[[SCALE:.*]] = titan.mul %[[INVERSE]], %[[FACTOR]]
    // CHECK: titan.adam %{{.*}} scale %[[SCALE]]
    return %loss, %count, %w : tensor<f32>, tensor<i64>, tensor<4xf32>
  }
}
