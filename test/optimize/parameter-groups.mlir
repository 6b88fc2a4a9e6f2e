// A group's weight decay wins over no_decay; a no_decay pattern makes it 0; the rest read the run-time value. A tied parameter answers to
// each of its names.
// RUN: titan-opt %s --titan-optimize-insert-update | FileCheck %s

module attributes {titan.recipe = {optimizer = {kind = "sgd", momentum = 9.000000e-01 : f64, no_decay = ["*.bias", "emb.*"],
    group = [{match = "head.*", lr_scale = 1.000000e-01 : f64, weight_decay = 5.000000e-01 : f64}]}}} {
  titan.state @a.weight : tensor<4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @a.bias : tensor<4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @head.bias : tensor<4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @wte.weight : tensor<4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>, aliases = ["emb.weight"]}
  // CHECK-LABEL: func.func @step
  // CHECK-SAME: %[[DECAY:[a-z0-9]+]]: tensor<f32> {titan.control = "optimizer.weight_decay"}
  func.func @step(%a: tensor<4xf32> {titan.state = @a.weight}, %b: tensor<4xf32> {titan.state = @a.bias}, %c: tensor<4xf32> {titan.state = @head.bias}, %d: tensor<4xf32> {titan.state = @wte.weight})
      -> (tensor<f32> {titan.metric = "loss_sum"}, tensor<i64> {titan.metric = "count"},
          tensor<4xf32> {titan.gradient = @a.weight}, tensor<4xf32> {titan.gradient = @a.bias}, tensor<4xf32> {titan.gradient = @head.bias}, tensor<4xf32> {titan.gradient = @wte.weight}) {
    %loss = titan.reduce sum %a [0] : tensor<4xf32> to tensor<f32>
    %count = titan.constant dense<1> : tensor<i64>
    // CHECK: titan.sgd %{{.*}} weight_decay %[[DECAY]] {{.*}}path = ["a.weight"]
    // CHECK: %[[ZERO:.*]] = titan.constant dense<0.000000e+00> : tensor<f32>
    // CHECK: titan.sgd %{{.*}} weight_decay %[[ZERO]] {{.*}}path = ["a.bias"]
    // CHECK: %[[HALF:.*]] = titan.constant dense<5.000000e-01> : tensor<f32>
    // CHECK: titan.sgd %{{.*}} weight_decay %[[HALF]] {{.*}}lr_scale = 1.000000e-01
    // CHECK: titan.sgd %{{.*}} weight_decay %[[ZERO]] {{.*}}path = ["wte.weight"]
    return %loss, %count, %a, %b, %c, %d : tensor<f32>, tensor<i64>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
}
