// Three profiles add one kernel to those of a step, as one does: the averages are computed by the optimizer's kernels, their weights together.
// RUN: sed 's/, ema = {.*}}}}/}}/' %s | titan-opt --titan-stage-differentiate --titan-stage-optimize --titan-stage-accumulate --titan-stage-shard --titan-stage-schedule --titan-stage-lower | grep kernel.fused | FileCheck %s --check-prefix=PLAIN
// RUN: titan-opt %s --titan-stage-differentiate --titan-stage-optimize --titan-stage-accumulate --titan-stage-shard --titan-stage-schedule --titan-stage-lower | grep kernel.fused | FileCheck %s

// PLAIN-COUNT-12: kernel.fused
// PLAIN-NOT: kernel.fused
// CHECK-COUNT-13: kernel.fused
// CHECK-NOT: kernel.fused
module attributes {titan.recipe = {batch = {micro = 2 : i64, global = 4 : i64}, ema = {profiles = {slow = 0.75, middle = 0.5, fast = 0.6}}}} {
  titan.state @fc.weight : tensor<3x2xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
  titan.state @fc.bias : tensor<3xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
  func.func @model(%w: tensor<3x2xf32> {titan.state = @fc.weight}, %b: tensor<3xf32> {titan.state = @fc.bias},
                   %x: tensor<2x2xf32> {titan.input = "x"}) -> (tensor<2x3xf32> {titan.output = "logits"}) {
    %p = titan.contract %x, %w batch [] x [] contracting [1] x [1] : (tensor<2x2xf32>, tensor<3x2xf32>) -> tensor<2x3xf32>
    %rows = titan.broadcast %b [1] : tensor<3xf32> to tensor<2x3xf32>
    %y = titan.add %p, %rows : tensor<2x3xf32>
    return %y : tensor<2x3xf32>
  }
}
