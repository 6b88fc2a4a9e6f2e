// RUN: titan-opt %s --split-input-file --titan-differentiate-build-gradients | FileCheck %s
// RUN: titan-opt %s --split-input-file --titan-differentiate-build-gradients --remarks-filter="differentiate" 2>&1 | FileCheck %s --check-prefix=REMARK

// Only the trainable parameter that reaches the loss gets a gradient; the product for dx is not built.
// REMARK: unused does not reach the loss: it is not trained

// CHECK-LABEL: func.func @step(
// CHECK-SAME: tensor<3x6xf32> {titan.gradient = @fc.weight})
// CHECK: %[[L:.*]]:3 = accum.loop
// CHECK-SAME: slices(%[[XI:[a-z0-9]*]] = {{.*}}, %[[TI:[a-z0-9]*]] = {{.*}}) -> (tensor<f32>, tensor<i64>, tensor<3x6xf32>)
// CHECK: titan.reduce sum
// CHECK: titan.broadcast {{.*}}path = ["loss"], phase = #titan<phase backward>
// CHECK: %[[DY:.*]] = titan.cross_entropy_grad %{{.*}}, %[[TI]], %{{.*}}path = ["loss"], phase = #titan<phase backward>
// CHECK: %[[DW:.*]] = titan.contract %[[DY]], %[[XI]] batch [] x [] contracting [0] x [0] {path = ["fc"], phase = #titan<phase backward>}
// CHECK-NOT: titan.contract
// CHECK: accum.yield %{{.*}}, %{{.*}}, %[[DW]]
// CHECK: return {{.*}}%[[L]]#2
module {
  titan.state @fc.weight : tensor<3x6xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
  titan.state @unused : tensor<2xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
  func.func @step(%w: tensor<3x6xf32> {titan.state = @fc.weight}, %u: tensor<2xf32> {titan.state = @unused},
                  %x: tensor<1x8x6xf32> {titan.input = "x"}, %t: tensor<1x8xi64> {titan.input = "targets"})
      -> (tensor<3x6xf32> {titan.state = @fc.weight}, tensor<2xf32> {titan.state = @unused}, tensor<f32> {titan.metric = "loss_sum"}, tensor<i64> {titan.metric = "count"}) {
    %l:2 = accum.loop %i in 1 unordered slices(%xi = %x : tensor<1x8x6xf32>, %ti = %t : tensor<1x8xi64>) -> (tensor<f32>, tensor<i64>) {
      %y = titan.contract %xi, %w batch [] x [] contracting [1] x [1] {path = ["fc"]} : (tensor<8x6xf32>, tensor<3x6xf32>) -> tensor<8x3xf32>
      %c = titan.cross_entropy %y, %ti ignore_index -100 label_smoothing 0.0 {path = ["loss"]} : (tensor<8x3xf32>, tensor<8xi64>) -> tensor<8xf32>
      %s = titan.reduce sum %c [0] {path = ["loss"]} : tensor<8xf32> to tensor<f32>
      %n = titan.constant dense<8> : tensor<i64>
      accum.yield %s, %n : tensor<f32>, tensor<i64>
    }
    return %w, %u, %l#0, %l#1 : tensor<3x6xf32>, tensor<2xf32>, tensor<f32>, tensor<i64>
  }
}

// -----

// The adjoint of the sum reaches %a directly alone: no gradient passes the detached product, and %b, which is behind
// nothing else, has none.
// REMARK: b does not reach the loss: it is not trained
// CHECK-LABEL: func.func @step(
// CHECK-SAME: tensor<8xf32> {titan.gradient = @a})
// CHECK: %[[P:.*]] = titan.mul
// CHECK-NOT: titan.detach
// CHECK: titan.add %{{.*}}, %[[P]] : tensor<8xf32>
// CHECK: %[[DY:.*]] = titan.broadcast {{.*}}phase backward
// CHECK-NOT: titan.mul
// CHECK: accum.yield %{{.*}}, %{{.*}}, %[[DY]]
module {
  titan.state @a : tensor<8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
  titan.state @b : tensor<8xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
  func.func @step(%a: tensor<8xf32> {titan.state = @a}, %b: tensor<8xf32> {titan.state = @b}, %x: tensor<1x8xf32> {titan.input = "x"})
      -> (tensor<8xf32> {titan.state = @a}, tensor<8xf32> {titan.state = @b}, tensor<f32> {titan.metric = "loss_sum"}, tensor<i64> {titan.metric = "count"}) {
    %l:2 = accum.loop %i in 1 unordered slices(%xi = %x : tensor<1x8xf32>) -> (tensor<f32>, tensor<i64>) {
      %p = titan.mul %a, %b : tensor<8xf32>
      %d = titan.detach %p : tensor<8xf32>
      %y = titan.add %a, %d : tensor<8xf32>
      %s = titan.reduce sum %y [0] {path = ["loss"]} : tensor<8xf32> to tensor<f32>
      %n = titan.constant dense<8> : tensor<i64>
      accum.yield %s, %n : tensor<f32>, tensor<i64>
    }
    return %a, %b, %l#0, %l#1 : tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<i64>
  }
}
