// The whole stage on a model with a shared parameter; later stages read only what is checked here.
// RUN: titan-opt %s --titan-stage-differentiate | FileCheck %s
// RUN: titan-opt %s --titan-stage-differentiate | titan-opt --titan-differentiate-verify -o /dev/null

// CHECK-LABEL: func.func @step(
// CHECK-SAME: titan.gradient = @w
// CHECK: accum.loop %{{.*}} in 2 unordered
// Two uses, two products, one sum.
// CHECK-COUNT-2: titan.contract {{.*}}phase = #titan<phase backward>
// CHECK: %[[SUM:.*]] = titan.add {{.*}}phase = #titan<phase backward>
// CHECK: accum.yield %{{.*}}, %{{.*}}, %[[SUM]]
// CHECK-LABEL: func.func @eval(
// CHECK-LABEL: func.func @predict(
module attributes {titan.recipe = {batch = {micro = 4 : i64, global = 8 : i64}, loss = {kind = "mse"}}} {
  titan.state @w : tensor<6x6xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
  func.func @model(%w: tensor<6x6xf32> {titan.state = @w}, %x: tensor<4x6xf32> {titan.input = "x"}) -> (tensor<4x6xf32> {titan.output = "y"}) {
    %h = titan.contract %x, %w batch [] x [] contracting [1] x [1] {path = ["first"]} : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
    %a = titan.relu %h {path = ["act"]} : tensor<4x6xf32>
    %y = titan.contract %a, %w batch [] x [] contracting [1] x [1] {path = ["second"]} : (tensor<4x6xf32>, tensor<6x6xf32>) -> tensor<4x6xf32>
    return %y : tensor<4x6xf32>
  }
}
