// Rows of an input are where the input lies, for an iteration that stands behind its loop: its kernels are those of the loop.
// RUN: titan-opt %s --split-input-file --titan-lower-form-kernels --titan-lower-classify-kernels --titan-lower-verify-kernels | FileCheck %s

// CHECK-LABEL: func.func @rows
// CHECK-SAME: %[[X:[^:]*]]: tensor<6x4xf32> {titan.input = "x"}
// CHECK: %[[C0:.*]] = arith.constant 0 : index
// CHECK: %[[FIRST:.*]] = kernel.rows %[[X]][%[[C0]]] : tensor<6x4xf32> to tensor<5x4xf32>
// CHECK: accum.loop %{{.*}} in 5 running slices(%{{.*}} = %[[FIRST]]
// CHECK: kernel.fused
// CHECK: accum.yield
// CHECK: %[[C5:.*]] = arith.constant 5 : index
// CHECK: %[[ROW:.*]] = kernel.rows %[[X]][%[[C5]]] : tensor<6x4xf32> to tensor<1x4xf32>
// CHECK: %[[LAST:.*]] = kernel.cast_shape %[[ROW]]
// CHECK: kernel.fused flat [4] ins({{.*}}%[[LAST]]
module attributes {dist.mesh = #dist.mesh<["replicate" = 2]>} {
func.func @rows(%x: tensor<6x4xf32> {titan.input = "x"}) -> tensor<4xf32> {
  %z = titan.constant dense<0.0> : tensor<4xf32>
  %first = titan.slice %x offsets [0, 0] strides [1, 1] : tensor<6x4xf32> to tensor<5x4xf32>
  %s = accum.loop %i in 5 running slices(%xi = %first : tensor<5x4xf32>) accumulators(%a = %z : tensor<4xf32>) -> (tensor<4xf32>) {
    %n = titan.add %a, %xi : tensor<4xf32>
    accum.yield %n : tensor<4xf32>
  }
  %row = titan.slice %x offsets [5, 0] strides [1, 1] : tensor<6x4xf32> to tensor<1x4xf32>
  %last = titan.reshape %row : tensor<1x4xf32> to tensor<4xf32>
  %n = titan.add %s, %last : tensor<4xf32>
  return %n : tensor<4xf32>
}

// Through shapes, and of what an iteration takes.
// CHECK-LABEL: func.func @nested
// CHECK: accum.loop %{{.*}} in 2 running slices(%[[XJ:[a-z0-9]+]] =
// CHECK: kernel.rows %[[XJ]]
// CHECK: %[[PART:.*]] = kernel.rows
// CHECK: %[[FLAT:.*]] = kernel.cast_shape %[[PART]]
// CHECK: kernel.rows %[[FLAT]]
func.func @nested(%all: tensor<6x4xf32> {titan.input = "x"}) -> tensor<1x4xf32> {
  %x = titan.reshape %all : tensor<6x4xf32> to tensor<2x3x4xf32>
  %z = titan.constant dense<0.0> : tensor<1x4xf32>
  %s = accum.loop %j in 2 running slices(%xj = %x : tensor<2x3x4xf32>) accumulators(%a = %z : tensor<1x4xf32>) -> (tensor<1x4xf32>) {
    %row = titan.slice %xj offsets [2, 0] strides [1, 1] : tensor<3x4xf32> to tensor<1x4xf32>
    %n = titan.add %a, %row : tensor<1x4xf32>
    accum.yield %n : tensor<1x4xf32>
  }
  %part = titan.slice %x offsets [1, 0, 0] strides [1, 1, 1] : tensor<2x3x4xf32> to tensor<1x3x4xf32>
  %flat = titan.reshape %part : tensor<1x3x4xf32> to tensor<3x4xf32>
  %row = titan.slice %flat offsets [1, 0] strides [1, 1] : tensor<3x4xf32> to tensor<1x4xf32>
  %n = titan.add %s, %row : tensor<1x4xf32>
  return %n : tensor<1x4xf32>
}

// Neither every other row, nor a part of each, nor rows of something else.
// CHECK-LABEL: func.func @copied
// CHECK-NOT: kernel.rows
// CHECK: return
func.func @copied(%x: tensor<6x4xf32> {titan.input = "x"}, %w: tensor<6x4xf32>) -> (tensor<3x4xf32>, tensor<6x2xf32>, tensor<2x4xf32>, tensor<2x4xf32>) {
  %a = titan.slice %x offsets [0, 0] strides [2, 1] : tensor<6x4xf32> to tensor<3x4xf32>
  %b = titan.slice %x offsets [0, 1] strides [1, 1] : tensor<6x4xf32> to tensor<6x2xf32>
  %c = titan.slice %w offsets [2, 0] strides [1, 1] : tensor<6x4xf32> to tensor<2x4xf32>
  %e = titan.exp %x : tensor<6x4xf32>
  %d = titan.slice %e offsets [2, 0] strides [1, 1] : tensor<6x4xf32> to tensor<2x4xf32>
  return %a, %b, %c, %d : tensor<3x4xf32>, tensor<6x2xf32>, tensor<2x4xf32>, tensor<2x4xf32>
}
}

// -----

// Of one rank no iteration is taken out: what reads the rows takes them in.
// CHECK-LABEL: func.func @alone
// CHECK-NOT: kernel.rows
func.func @alone(%x: tensor<6x4xf32> {titan.input = "x"}) -> tensor<1x4xf32> {
  %row = titan.slice %x offsets [5, 0] strides [1, 1] : tensor<6x4xf32> to tensor<1x4xf32>
  %y = titan.exp %row : tensor<1x4xf32>
  return %y : tensor<1x4xf32>
}
