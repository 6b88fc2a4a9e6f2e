// The example of titan-optimize-average-parameters: a state of each profile for each parameter that is updated, written behind the update.
// RUN: titan-opt %s --titan-optimize-insert-update --titan-optimize-average-parameters --titan-optimize-verify | FileCheck %s
// RUN: sed 's/ema = .*}}}}/}}/' %s | titan-opt --titan-optimize-insert-update --titan-optimize-average-parameters | FileCheck %s --check-prefix=NONE

// NONE-NOT: kind ema

// CHECK-DAG: titan.state @ema.slow.w : tensor<4xf32> {canonical_name = "w"{{.*}}kind = #titan<kind ema>
// CHECK-DAG: titan.state @ema.fast.w : tensor<4xf32> {canonical_name = "w"{{.*}}kind = #titan<kind ema>
// CHECK-NOT: @ema.{{.*}}frozen
module attributes {titan.recipe = {ema = {profiles = {slow = 0.75, fast = {decay = 0.5, warmup = true}}}}} {
  titan.state @w : tensor<4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @frozen : tensor<4xf32> {kind = #titan<kind param>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  // CHECK-LABEL: func.func @step
  // CHECK-SAME: %[[E:[a-z0-9]+]]: tensor<4xf32> {titan.state = @ema.slow.w}
  func.func @step(%w: tensor<4xf32> {titan.state = @w}, %f: tensor<4xf32> {titan.state = @frozen}, %x: tensor<1x4xf32> {titan.input = "x"})
      -> (tensor<f32> {titan.metric = "loss_sum"}, tensor<i64> {titan.metric = "count"}, tensor<4xf32> {titan.gradient = @w}) {
    %g = titan.reshape %x : tensor<1x4xf32> to tensor<4xf32>
    %p = titan.mul %w, %f : tensor<4xf32>
    %loss = titan.reduce sum %p [0] : tensor<4xf32> to tensor<f32>
    %count = titan.constant dense<1> : tensor<i64>
    // CHECK: %[[W:[a-z0-9_]+]], %{{.*}} = titan.adam
    // CHECK: titan.min
    // CHECK: titan.sub %[[W]], %[[E]]{{.*}}path = ["w"]{{.*}}phase = #titan<phase update>
    // CHECK: titan.select {{.*}}%[[E]]
    return %loss, %count, %g : tensor<f32>, tensor<i64>, tensor<4xf32>
  }
}
