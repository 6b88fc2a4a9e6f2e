// A mask that depends on a parameter (a learned position bias): its gradient is made of products and softmax beside the op's own.
// RUN: titan-opt %s --titan-differentiate-build-gradients | FileCheck %s
// RUN: titan-opt %s --titan-differentiate-build-gradients --remarks-filter="differentiate" 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: the mask of h.0.attn is trained: its gradient stores the scores of all heads
// CHECK-LABEL: func.func @step(
// CHECK: titan.attention %{{.*}}, %{{.*}}, %{{.*}} mask
// CHECK: %[[P:.*]] = titan.select
// CHECK: %[[D:.*]] = titan.mul %[[P]], %{{.*}}phase = #titan<phase backward>} : tensor<2x1x3x3xf32>
// CHECK: %[[SUM:.*]] = titan.reduce sum %[[D]] [0, 2]
// CHECK: titan.reshape %[[SUM]] {{.*}}to tensor<1x1x1x3xf32>
// The inputs need no gradient.
// CHECK-NOT: titan.attention_grad
module {
  titan.state @bias : tensor<1x1x1x3xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
  func.func @step(%m: tensor<1x1x1x3xf32> {titan.state = @bias}, %x: tensor<1x2x3x1x4xf32> {titan.input = "x"})
      -> (tensor<1x1x1x3xf32> {titan.state = @bias}, tensor<f32> {titan.metric = "loss_sum"}) {
    %l = accum.loop %i in 1 unordered slices(%xi = %x : tensor<1x2x3x1x4xf32>) -> (tensor<f32>) {
      %y, %lse, %max = titan.attention %xi, %xi, %xi mask %m scale 0.5 {path = ["h.0.attn"]} : (tensor<2x3x1x4xf32>, tensor<2x3x1x4xf32>, tensor<2x3x1x4xf32>, tensor<1x1x1x3xf32>) -> (tensor<2x3x1x4xf32>, tensor<2x1x3xf32>, tensor<2x1x3xf32>)
      %s = titan.reduce sum %y [0, 1, 2, 3] : tensor<2x3x1x4xf32> to tensor<f32>
      accum.yield %s : tensor<f32>
    }
    return %m, %l : tensor<1x1x1x3xf32>, tensor<f32>
  }
}
