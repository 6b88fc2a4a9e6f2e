// RUN: titan-opt %s --titan-differentiate-decide-precision --split-input-file | FileCheck %s

// The cast follows bias and relu; the relu's derivative reads what was rounded. Weights and biases are rounded outside of the loop, their
// gradients stay f32, and so do sums over f32 adjoints.
// CHECK-LABEL: func.func @step
// CHECK-SAME: (%[[W:.*]]: tensor<8x6xf32>, %[[B:.*]]: tensor<8xf32>, %[[V:.*]]: tensor<5x8xf32>,
module attributes {titan.recipe = {precision = {compute = "bf16"}}} {
  func.func @step(%w: tensor<8x6xf32>, %b: tensor<8xf32>, %v: tensor<5x8xf32>, %xs: tensor<2x4x6xf32>)
      -> (tensor<8x6xf32>, tensor<8xf32>, tensor<5x8xf32>) {
    // CHECK-DAG: %[[W16:.*]] = titan.convert %[[W]] {path = ["0"]} : tensor<8x6xf32> to tensor<8x6xbf16>
    // CHECK-DAG: %[[B16:.*]] = titan.convert %[[B]] {path = ["0"]} : tensor<8xf32> to tensor<8xbf16>
    // CHECK-DAG: %[[V16:.*]] = titan.convert %[[V]] {path = ["2"]} : tensor<5x8xf32> to tensor<5x8xbf16>
    // CHECK: accum.loop %{{.*}} in 2 unordered slices(%[[X:.*]] = %{{.*}} : tensor<2x4x6xf32>)
    %gw, %gb, %gv = accum.loop %i in 2 unordered slices(%x = %xs : tensor<2x4x6xf32>) -> (tensor<8x6xf32>, tensor<8xf32>, tensor<5x8xf32>) {
      // CHECK: %[[X16:.*]] = titan.convert %[[X]] {path = ["0"]} : tensor<4x6xf32> to tensor<4x6xbf16>
      // CHECK: %[[H:.*]] = titan.contract %[[X16]], %[[W16]] {{.*}} {path = ["0"]} : (tensor<4x6xbf16>, tensor<8x6xbf16>) -> tensor<4x8xf32>
      %h = titan.contract %x, %w batch [] x [] contracting [1] x [1] {path = ["0"]} : (tensor<4x6xf32>, tensor<8x6xf32>) -> tensor<4x8xf32>
      // CHECK: %[[BS16:.*]] = titan.broadcast %[[B16]] [1] {{.*}} : tensor<8xbf16> to tensor<4x8xbf16>
      // CHECK-NEXT: %[[BS:.*]] = titan.convert %[[BS16]] {path = ["0"]} : tensor<4x8xbf16> to tensor<4x8xf32>
      // CHECK-NEXT: titan.add %[[H]], %[[BS]]
      %bs = titan.broadcast %b [1] {path = ["0"]} : tensor<8xf32> to tensor<4x8xf32>
      %s = titan.add %h, %bs {path = ["0"]} : tensor<4x8xf32>
      // CHECK: %[[A:.*]] = titan.relu %{{.*}} : tensor<4x8xf32>
      // CHECK-NEXT: %[[A16:.*]] = titan.convert %[[A]] {path = ["1"]} : tensor<4x8xf32> to tensor<4x8xbf16>
      // CHECK-NEXT: %[[A32:.*]] = titan.convert %[[A16]] {path = ["1"]} : tensor<4x8xbf16> to tensor<4x8xf32>
      %a = titan.relu %s {path = ["1"]} : tensor<4x8xf32>
      // CHECK: titan.contract %[[A16]], %[[V16]]
      %y = titan.contract %a, %v batch [] x [] contracting [1] x [1] {path = ["2"]} : (tensor<4x8xf32>, tensor<5x8xf32>) -> tensor<4x5xf32>
      // CHECK: %[[D:.*]] = titan.exp
      // CHECK-NEXT: %[[D16:.*]] = titan.convert %[[D]] {{.*}} to tensor<4x5xbf16>
      %d = titan.exp %y {path = ["loss"], phase = #titan<phase backward>} : tensor<4x5xf32>
      // CHECK: %[[DA:.*]] = titan.contract %[[D16]], %[[V16]]
      // CHECK-NEXT: %[[DA16:.*]] = titan.convert %[[DA]] {{.*}} to tensor<4x8xbf16>
      // CHECK-NEXT: %[[DA32:.*]] = titan.convert %[[DA16]] {{.*}} to tensor<4x8xf32>
      %da = titan.contract %d, %v batch [] x [] contracting [1] x [0] {path = ["2"], phase = #titan<phase backward>} : (tensor<4x5xf32>, tensor<5x8xf32>) -> tensor<4x8xf32>
      // CHECK-NEXT: %[[DV:.*]] = titan.contract %[[D16]], %[[A16]] {{.*}} : (tensor<4x5xbf16>, tensor<4x8xbf16>) -> tensor<5x8xf32>
      // CHECK-NOT: titan.convert %[[DV]]
      %dv = titan.contract %d, %a batch [] x [] contracting [0] x [0] {path = ["2"], phase = #titan<phase backward>} : (tensor<4x5xf32>, tensor<4x8xf32>) -> tensor<5x8xf32>
      // CHECK: %[[DS:.*]] = titan.mul %[[DA32]], %[[A32]]
      // CHECK-NEXT: %[[DS16:.*]] = titan.convert %[[DS]]
      %ds = titan.mul %da, %a {path = ["1"], phase = #titan<phase backward>} : tensor<4x8xf32>
      // CHECK: titan.reduce sum %[[DS]] [0]
      %db = titan.reduce sum %ds [0] {path = ["0"], phase = #titan<phase backward>} : tensor<4x8xf32> to tensor<8xf32>
      // CHECK: titan.contract %[[DS16]], %[[X16]]
      %dw = titan.contract %ds, %x batch [] x [] contracting [0] x [0] {path = ["0"], phase = #titan<phase backward>} : (tensor<4x8xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
      accum.yield %dw, %db, %dv : tensor<8x6xf32>, tensor<8xf32>, tensor<5x8xf32>
    }
    return %gw, %gb, %gv : tensor<8x6xf32>, tensor<8xf32>, tensor<5x8xf32>
  }
}

// -----

// One projection gives query, key and value: it is rounded once, its parts are bf16. Attention gives bf16, which the next product reads.
// The pre-activation of gelu is rounded; a prediction is widened again.
// CHECK-LABEL: func.func @predict
module attributes {titan.recipe = {precision = {compute = "bf16"}}} {
  func.func @predict(%w: tensor<24x8xf32>, %o: tensor<8x8xf32>, %x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
    // CHECK: %[[P:.*]] = titan.contract {{.*}} -> tensor<2x4x24xf32>
    // CHECK-NEXT: %[[P16:.*]] = titan.convert %[[P]]
    %p = titan.contract %x, %w batch [] x [] contracting [2] x [1] : (tensor<2x4x8xf32>, tensor<24x8xf32>) -> tensor<2x4x24xf32>
    // CHECK-DAG: titan.slice %[[P16]] {{.*}} : tensor<2x4x24xbf16> to tensor<2x4x8xbf16>
    // CHECK-NOT: tensor<2x4x24xf32>
    %q0 = titan.slice %p offsets [0, 0, 0] strides [1, 1, 1] : tensor<2x4x24xf32> to tensor<2x4x8xf32>
    %k0 = titan.slice %p offsets [0, 0, 8] strides [1, 1, 1] : tensor<2x4x24xf32> to tensor<2x4x8xf32>
    %v0 = titan.slice %p offsets [0, 0, 16] strides [1, 1, 1] : tensor<2x4x24xf32> to tensor<2x4x8xf32>
    %q = titan.reshape %q0 : tensor<2x4x8xf32> to tensor<2x4x2x4xf32>
    %k = titan.reshape %k0 : tensor<2x4x8xf32> to tensor<2x4x2x4xf32>
    %v = titan.reshape %v0 : tensor<2x4x8xf32> to tensor<2x4x2x4xf32>
    // CHECK: %[[R:.*]], %{{.*}} = titan.attention {{.*}} -> (tensor<2x4x2x4xbf16>, tensor<2x2x4xf32>)
    %r, %l = titan.attention %q, %k, %v scale 0.5 causal : (tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>, tensor<2x4x2x4xf32>) -> (tensor<2x4x2x4xf32>, tensor<2x2x4xf32>)
    // CHECK: %[[R16:.*]] = titan.reshape %[[R]] : tensor<2x4x2x4xbf16> to tensor<2x4x8xbf16>
    %c = titan.reshape %r : tensor<2x4x2x4xf32> to tensor<2x4x8xf32>
    // CHECK: %[[Y:.*]] = titan.contract %[[R16]]
    // CHECK-NEXT: %[[Y16:.*]] = titan.convert %[[Y]]
    // CHECK-NEXT: %[[Y32:.*]] = titan.convert %[[Y16]]
    // CHECK-NEXT: %[[G:.*]] = titan.gelu tanh %[[Y32]]
    %y = titan.contract %c, %o batch [] x [] contracting [2] x [1] : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %g = titan.gelu tanh %y : tensor<2x4x8xf32>
    // CHECK: return %[[G]]
    return %g : tensor<2x4x8xf32>
  }
}

// -----

// A mask that is added to scores is no bias, and what the backward pass adds to an adjoint is none either.
// CHECK-LABEL: func.func @step
// CHECK-NOT: titan.convert {{.*}} : tensor<4xf32> to tensor<4xbf16>
// CHECK-NOT: titan.convert {{.*}} : tensor<4x4xf32> to tensor<4x4xbf16>
module attributes {titan.recipe = {precision = {compute = "bf16"}}} {
  func.func @step(%q: tensor<2x4x6xf32>, %mask: tensor<4x4xf32>, %w: tensor<6x4xf32>, %mean: tensor<4xf32>) -> (tensor<2x4x4xf32>, tensor<2x4x4xf32>) {
    %s = titan.contract %q, %q batch [0] x [0] contracting [2] x [2] : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x4xf32>
    // CHECK: titan.broadcast %{{.*}} [1, 2] : tensor<4x4xf32> to tensor<2x4x4xf32>
    %ms = titan.broadcast %mask [1, 2] : tensor<4x4xf32> to tensor<2x4x4xf32>
    %a = titan.add %s, %ms : tensor<2x4x4xf32>
    %p = titan.exp %a : tensor<2x4x4xf32>
    %d = titan.contract %q, %w batch [] x [] contracting [2] x [0] {phase = #titan<phase backward>} : (tensor<2x4x6xf32>, tensor<6x4xf32>) -> tensor<2x4x4xf32>
    // CHECK: titan.broadcast %{{.*}} [2] {phase = #titan<phase backward>} : tensor<4xf32> to tensor<2x4x4xf32>
    %bs = titan.broadcast %mean [2] {phase = #titan<phase backward>} : tensor<4xf32> to tensor<2x4x4xf32>
    %b = titan.add %d, %bs {phase = #titan<phase backward>} : tensor<2x4x4xf32>
    %e = titan.exp %b {phase = #titan<phase backward>} : tensor<2x4x4xf32>
    return %p, %e : tensor<2x4x4xf32>, tensor<2x4x4xf32>
  }
}

// -----

// A convolution reads bf16, and ends in it behind bias and relu. A product with numbers known at compile time resamples, in f32.
// CHECK-LABEL: func.func @predict
module attributes {titan.recipe = {precision = {compute = "bf16"}}} {
  func.func @predict(%x: tensor<2x6x3xf32>, %w: tensor<4x3x3xf32>) -> tensor<2x4x2xf32> {
    // CHECK: titan.convolution %{{.*}} : (tensor<2x6x3xbf16>, tensor<4x3x3xbf16>) -> tensor<2x4x4xf32>
    // CHECK-NEXT: titan.relu
    // CHECK-NEXT: titan.convert %{{.*}} : tensor<2x4x4xf32> to tensor<2x4x4xbf16>
    %y = titan.convolution %x, %w strides [1] low [0] high [0] dilations [1] groups 1 : (tensor<2x6x3xf32>, tensor<4x3x3xf32>) -> tensor<2x4x4xf32>
    %a = titan.relu %y : tensor<2x4x4xf32>
    // CHECK: titan.contract %{{.*}} : (tensor<2x4x4xf32>, tensor<2x4xf32>) -> tensor<2x4x2xf32>
    // CHECK-NEXT: return
    %m = titan.constant dense<[[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]]> : tensor<2x4xf32>
    %r = titan.contract %a, %m batch [] x [] contracting [1] x [1] : (tensor<2x4x4xf32>, tensor<2x4xf32>) -> tensor<2x4x2xf32>
    return %r : tensor<2x4x2xf32>
  }
}
