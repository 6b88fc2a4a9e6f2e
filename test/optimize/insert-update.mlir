// The example of titan-optimize-insert-update: slots, counters, controls and metrics appear; gradients go.
// RUN: titan-opt %s --titan-optimize-insert-update --titan-optimize-verify | FileCheck %s

// CHECK-DAG: titan.state @w : tensor<4xf32>
// CHECK-DAG: titan.state @w.exp_avg : tensor<4xf32> {{.*}}kind = #titan<kind slot>
// CHECK-DAG: titan.state @w.exp_avg_sq : tensor<4xf32> {{.*}}kind = #titan<kind slot>
// CHECK-DAG: titan.state @counter.step : tensor<i64> {canonical_name = "step"
// CHECK-DAG: titan.state @counter.optimizer.t
// CHECK-DAG: titan.state @counter.samples
// CHECK-DAG: titan.state @counter.skipped
module attributes {titan.recipe = {}} {
  titan.state @w : tensor<4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  // CHECK-LABEL: func.func @step
  // CHECK-SAME: titan.state = @w
  // CHECK-SAME: titan.control = "optimizer.lr"
  // CHECK-SAME: titan.state = @w.exp_avg
  // CHECK-NOT: titan.gradient
  // CHECK-SAME: titan.metric = "loss"
  // CHECK-SAME: titan.metric = "grad_norm"
  // CHECK-SAME: titan.metric = "applied"
  func.func @step(%w: tensor<4xf32> {titan.state = @w}, %x: tensor<1x4xf32> {titan.input = "x"})
      -> (tensor<f32> {titan.metric = "loss_sum"}, tensor<i64> {titan.metric = "count"}, tensor<4xf32> {titan.gradient = @w}) {
    %g = titan.reshape %x : tensor<1x4xf32> to tensor<4xf32>
    %p = titan.mul %w, %g : tensor<4xf32>
    %loss = titan.reduce sum %p [0] : tensor<4xf32> to tensor<f32>
    %count = titan.constant dense<1> : tensor<i64>
    // CHECK: titan.schedule constant
    // CHECK: titan.adam %{{.*}} lr {{.*}}decoupled = true{{.*}}path = ["w"]{{.*}}phase = #titan<phase update>
    return %loss, %count, %g : tensor<f32>, tensor<i64>, tensor<4xf32>
  }
}
