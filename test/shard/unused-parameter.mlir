// What no target depends on costs nothing: a parameter without a use has no gradient to sum. A frozen one has none either.
// REQUIRES: titan-compile
// RUN: titan-compile %s --emit=shard | FileCheck %s

// CHECK-LABEL: func.func @step
// CHECK-SAME: tensor<2x2x4xf32> {titan.input = "x"}, %{{.*}}: tensor<2x2x5xf32> {titan.input = "idle"}
// CHECK: accum.loop %{{.*}} in 2 running
// CHECK: dist.all_reduce sum %{{.*}} axes ["replicate"] order rank {path = ["w"], phase = #titan<phase backward>} : tensor<3x4xf32> to tensor<3x4xf32>
// CHECK: dist.all_reduce sum %{{.*}} axes ["replicate"] order rank {path = ["loss", "count", "stop"], phase = #titan<phase update>}
// CHECK-NOT: dist.
module attributes {titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, loss = {kind = "mse"}, mesh = {axes = {replicate = 2 : i64}},
    model = {frozen = ["frozen"]}}} {
  titan.state @w : tensor<3x4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.5 : f64, 0.0 : f64>}
  titan.state @unused : tensor<4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.5 : f64, 0.0 : f64>}
  titan.state @frozen : tensor<4x4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.5 : f64, 0.0 : f64>}
  func.func @model(%w: tensor<3x4xf32> {titan.state = @w}, %u: tensor<4xf32> {titan.state = @unused}, %f: tensor<4x4xf32> {titan.state = @frozen},
      %x: tensor<2x4xf32> {titan.input = "x"}, %idle: tensor<2x5xf32> {titan.input = "idle"}) -> (tensor<2x3xf32> {titan.output = "y"}) {
    %h = titan.contract %x, %f batch [] x [] contracting [1] x [1] {path = ["frozen"]} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %y = titan.contract %h, %w batch [] x [] contracting [1] x [1] {path = ["fc"]} : (tensor<2x4xf32>, tensor<3x4xf32>) -> tensor<2x3xf32>
    return %y : tensor<2x3xf32>
  }
}
