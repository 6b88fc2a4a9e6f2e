// Profiles that follow each k-th update have a function of their own, one an interval; a buffer that a step changes is averaged where it is named.
// RUN: titan-opt %s --titan-optimize-average-parameters --titan-optimize-verify | FileCheck %s

// CHECK-DAG: titan.state @ema.third.w : tensor<4xf32> {canonical_name = "w"{{.*}}kind = #titan<kind ema>
// CHECK-DAG: titan.state @ema.third.norm.mean : tensor<4xf32> {canonical_name = "norm.mean"{{.*}}kind = #titan<kind ema>
// CHECK-NOT: @ema.{{.*}}norm.var
module attributes {titan.recipe = {ema = {profiles = {third = {decay = 0.5, every = 3}, warm = {decay = 0.5, every = 3, warmup = true}, fifth = {decay = 0.5, every = 5}, each = 0.5}, buffers = ["*.mean"]}}} {
  titan.state @w : tensor<4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @norm.mean : tensor<4xf32> {kind = #titan<kind buffer>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @norm.var : tensor<4xf32> {kind = #titan<kind buffer>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @counter.optimizer.t : tensor<i64> {canonical_name = "optimizer.t", kind = #titan<kind counter>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  // The step keeps the averages that follow each update, and no others.
  // CHECK-LABEL: func.func @step
  // CHECK-NOT: titan.state = @ema.{{third|warm|fifth}}
  // CHECK-SAME: titan.state = @ema.each.w
  func.func @step(%w: tensor<4xf32> {titan.state = @w}, %mean: tensor<4xf32> {titan.state = @norm.mean}, %var: tensor<4xf32> {titan.state = @norm.var},
                  %t: tensor<i64> {titan.state = @counter.optimizer.t}, %x: tensor<4xf32> {titan.input = "x"})
      -> (tensor<4xf32> {titan.state = @w}, tensor<4xf32> {titan.state = @norm.mean}, tensor<4xf32> {titan.state = @norm.var}, tensor<i64> {titan.state = @counter.optimizer.t},
          tensor<f32> {titan.metric = "loss"}, tensor<f32> {titan.metric = "grad_norm"}, tensor<f32> {titan.metric = "lr"}, tensor<i64> {titan.metric = "count"}, tensor<f32> {titan.metric = "applied"}) {
    %new = titan.sub %w, %x {phase = #titan<phase update>} : tensor<4xf32>
    %moved = titan.add %mean, %x {phase = #titan<phase update>} : tensor<4xf32>
    %turned = titan.mul %var, %x {phase = #titan<phase update>} : tensor<4xf32>
    %one = titan.constant dense<1> : tensor<i64> {phase = #titan<phase update>}
    %next = titan.add %t, %one {phase = #titan<phase update>} : tensor<i64>
    %f = titan.constant dense<1.0> : tensor<f32>
    return %new, %moved, %turned, %next, %f, %f, %f, %one, %f : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i64>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i64>, tensor<f32>
  }
  // Averages of one interval are one function's; it reads the parameters as the update left them.
  // CHECK-LABEL: func.func @ema.3(
  // CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4xf32> {titan.state = @w}, %[[MEAN:[a-z0-9]+]]: tensor<4xf32> {titan.state = @norm.mean}, %[[T:[a-z0-9]+]]: tensor<i64> {titan.state = @counter.optimizer.t}
  // CHECK-SAME: %[[E:[a-z0-9]+]]: tensor<4xf32> {titan.state = @ema.third.w}
  // CHECK-SAME: -> (tensor<4xf32> {titan.state = @ema.third.w}, tensor<4xf32> {titan.state = @ema.third.norm.mean}, tensor<4xf32> {titan.state = @ema.warm.w}, tensor<4xf32> {titan.state = @ema.warm.norm.mean})
  // 1 - 0.5^3, and the first two updates are none of its own.
  // CHECK-DAG: %[[DECAYED:[a-z0-9]+]] = titan.constant dense<8.750000e-01>
  // CHECK-DAG: %[[THREE:[a-z0-9]+]] = titan.constant dense<3>
  // CHECK: titan.compare lt {{.*}}%[[THREE]]
  // CHECK: titan.select {{.*}}%[[DECAYED]]
  // CHECK: titan.sub %[[W]], %[[E]]
  // With warm-up ((1 + n) / (10 + n))^3 is the most.
  // CHECK: %[[RATIO:[a-z0-9]+]] = titan.div
  // CHECK: %[[SQUARE:[a-z0-9]+]] = titan.mul %[[RATIO]], %[[RATIO]]
  // CHECK: titan.mul %[[RATIO]], %[[SQUARE]]
  // CHECK: titan.min
  // CHECK-LABEL: func.func @ema.5(
}
