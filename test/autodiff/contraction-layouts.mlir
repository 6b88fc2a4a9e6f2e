// The adjoints of a product come out in the layout of its operands, without transpositions, whichever way the weight is stored.
// RUN: titan-opt %s --titan-differentiate-build-gradients | FileCheck %s

// y = x V, V stored [in, out]; z = y W^T, W stored [out, in].
// CHECK: accum.loop
// CHECK-SAME: slices(%[[X:[a-z0-9]*]] =
// CHECK: %[[Y:.*]] = titan.contract %[[X]], %[[V:.*]] batch [] x [] contracting [1] x [0]
// CHECK: titan.contract %[[Y]], %[[W:.*]] batch [] x [] contracting [1] x [1]
// CHECK: %[[DZ:.*]] = titan.broadcast
// CHECK: %[[DY:.*]] = titan.contract %[[DZ]], %[[W]] batch [] x [] contracting [1] x [0]
// CHECK: %[[DW:.*]] = titan.contract %[[DZ]], %[[Y]] batch [] x [] contracting [0] x [0]
// CHECK: %[[DV:.*]] = titan.contract %[[X]], %[[DY]] batch [] x [] contracting [0] x [0]
// CHECK-NOT: titan.transpose
// CHECK: accum.yield %{{.*}}, %[[DV]], %[[DW]]
module {
  titan.state @v : tensor<6x5xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
  titan.state @w : tensor<3x5xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 1.0 : f64>}
  func.func @step(%v: tensor<6x5xf32> {titan.state = @v}, %w: tensor<3x5xf32> {titan.state = @w}, %x: tensor<1x8x6xf32> {titan.input = "x"})
      -> (tensor<6x5xf32> {titan.state = @v}, tensor<3x5xf32> {titan.state = @w}, tensor<f32> {titan.metric = "loss_sum"}) {
    %l = accum.loop %i in 1 unordered slices(%xi = %x : tensor<1x8x6xf32>) -> (tensor<f32>) {
      %y = titan.contract %xi, %v batch [] x [] contracting [1] x [0] : (tensor<8x6xf32>, tensor<6x5xf32>) -> tensor<8x5xf32>
      %z = titan.contract %y, %w batch [] x [] contracting [1] x [1] : (tensor<8x5xf32>, tensor<3x5xf32>) -> tensor<8x3xf32>
      %s = titan.reduce sum %z [0, 1] : tensor<8x3xf32> to tensor<f32>
      accum.yield %s : tensor<f32>
    }
    return %v, %w, %l : tensor<6x5xf32>, tensor<3x5xf32>, tensor<f32>
  }
}
