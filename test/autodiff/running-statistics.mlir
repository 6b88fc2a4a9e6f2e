// A norm of the batch: the loop stacks the statistics of its microbatches, in order, and behind it they move the running ones. A skipped step keeps those.
// RUN: titan-opt %s --titan-differentiate-insert-loss | FileCheck %s
// RUN: titan-opt %s --titan-stage-differentiate --titan-stage-optimize | FileCheck %s --check-prefix=UPDATE

// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[MEAN:[^ ]*]]: tensor<3xf32> {titan.state = @norm.running_mean}
// CHECK-SAME: %[[BATCHES:[^ ]*]]: tensor<i64> {titan.state = @norm.num_batches_tracked}
// CHECK: %[[L:.*]]:4 = accum.loop %{{.*}} in 2 unordered stacked = 2
// CHECK: titan.batch_norm %{{.*}} scale %{{.*}} bias %{{.*}} dim 1
// CHECK: accum.yield %{{.*}}, %{{.*}}, %mean, %variance
// CHECK: titan.constant dense<2.500000e-01> : tensor<3xf32>
// CHECK: titan.mul %[[MEAN]],
// CHECK: titan.constant dense<[2.500000e-01, 5.000000e-01]> : tensor<2xf32>
// CHECK: titan.mul %[[L]]#2
// 4 elements: the unbiased variance is 4/3 of it.
// CHECK: titan.constant dense<[0.333333343, 0.666666686]> : tensor<2xf32>
// CHECK: titan.mul %[[L]]#3
// Two microbatches are counted.
// CHECK: %[[TWO:.*]] = titan.constant dense<2> : tensor<i64>
// CHECK: titan.add %[[BATCHES]], %[[TWO]]
// CHECK-LABEL: func.func @eval(
// CHECK-NOT: titan.batch_norm
// CHECK: titan.rsqrt
// CHECK-LABEL: func.func @predict(
// CHECK-NOT: titan.batch_norm

// UPDATE: func.func @step(
// UPDATE: %[[MEAN:.*]] = titan.select %{{.*}}, %{{.*}}, %{{.*}} {path = ["norm.running_mean"], phase = #titan<phase update>}
// UPDATE: %[[VAR:.*]] = titan.select %{{.*}}, %{{.*}}, %{{.*}} {path = ["norm.running_var"], phase = #titan<phase update>}
// UPDATE: %[[BATCHES:.*]] = titan.select %{{.*}}, %{{.*}}, %{{.*}} {path = ["norm.num_batches_tracked"], phase = #titan<phase update>}
// UPDATE: return %{{.*}}, %{{.*}}, %[[MEAN]], %[[VAR]], %[[BATCHES]],
module attributes {titan.recipe = {batch = {micro = 4 : i64, global = 8 : i64}, loss = {kind = "mse"}}} {
  titan.state @norm.weight : tensor<3xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 1.0 : f64, 0.0 : f64>}
  titan.state @norm.bias : tensor<3xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @norm.running_mean : tensor<3xf32> {kind = #titan<kind buffer>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @norm.running_var : tensor<3xf32> {kind = #titan<kind buffer>, init = #titan.init_rule<"constant", 1.0 : f64, 0.0 : f64>}
  titan.state @norm.num_batches_tracked : tensor<i64> {kind = #titan<kind buffer>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  func.func @model(%s: tensor<3xf32> {titan.state = @norm.weight}, %b: tensor<3xf32> {titan.state = @norm.bias},
                   %rm: tensor<3xf32> {titan.state = @norm.running_mean}, %rv: tensor<3xf32> {titan.state = @norm.running_var},
                   %n: tensor<i64> {titan.state = @norm.num_batches_tracked},
                   %x: tensor<4x3xf32> {titan.input = "x"}) -> (tensor<4x3xf32> {titan.output = "y"}) {
    %y:3 = titan.batch_norm %x scale %s bias %b running %rm, %rv batches %n dim 1 epsilon 0.1 momentum 0.5 unbiased {path = ["norm"]}
        : (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<i64>) -> (tensor<4x3xf32>, tensor<3xf32>, tensor<3xf32>)
    return %y#0 : tensor<4x3xf32>
  }
}
