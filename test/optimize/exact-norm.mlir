// Under "tree" the norm is a sum of integers: one row of each gradient for each index of its outermost dimension.
// RUN: titan-opt %s --titan-optimize-insert-update | FileCheck %s

module attributes {titan.recipe = {mesh = {reduce = "tree"}}} {
  titan.state @w : tensor<4x3x2xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @b : tensor<4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @s : tensor<f32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  // CHECK-LABEL: func.func @step
  func.func @step(%w: tensor<4x3x2xf32> {titan.state = @w}, %b: tensor<4xf32> {titan.state = @b}, %s: tensor<f32> {titan.state = @s},
                  %loss: tensor<f32> {titan.input = "loss"})
      -> (tensor<f32> {titan.metric = "loss_sum"}, tensor<i64> {titan.metric = "count"}, tensor<4x3x2xf32> {titan.gradient = @w},
          tensor<4xf32> {titan.gradient = @b}, tensor<f32> {titan.gradient = @s}) {
    %count = titan.constant dense<1> : tensor<i64>
    // CHECK: %[[W:.*]] = titan.mul %[[GW:.*]], %[[GW]] {{.*}} : tensor<4x3x2xf32>
    // CHECK: %[[ROWS:.*]] = titan.reduce sum %[[W]] [1, 2] {{.*}} to tensor<4xf32>
    // CHECK: %[[A:.*]] = titan.exact_sum %[[ROWS]]
    // CHECK: %[[B:.*]] = titan.mul
    // CHECK: %[[C:.*]] = titan.exact_sum %[[B]] {{.*}} : tensor<4xf32>
    // CHECK: %[[AC:.*]] = titan.add %[[A]], %[[C]] {{.*}} : tensor<10xi64>
    // CHECK: %[[D:.*]] = titan.exact_sum %{{.*}} : tensor<f32>
    // CHECK: %[[WORDS:.*]] = titan.add %[[AC]], %[[D]]
    // CHECK: %[[SQUARES:.*]] = titan.exact_value %[[WORDS]]
    // CHECK: titan.sqrt %[[SQUARES]]
    // CHECK: titan.is_finite %[[SQUARES]]
    return %loss, %count, %w, %b, %s : tensor<f32>, tensor<i64>, tensor<4x3x2xf32>, tensor<4xf32>, tensor<f32>
  }
}
