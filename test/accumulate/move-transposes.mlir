// The example of titan-accumulate-move-transposes.
// RUN: titan-opt %s --titan-accumulate-move-transposes --split-input-file | FileCheck %s

// The weight is turned and rounded in front of the loop; what depends on the microbatch stays. Of the terms the one that is transposed is so behind the
// loop, and the one that adds two of them; one that is read elsewhere, and two that are transposed in different ways, stay what they are.
// CHECK-LABEL: func.func @step
// CHECK: %[[T:.*]] = titan.transpose %arg0 [1, 0] {path = ["conv"]}
// CHECK: %[[W:.*]] = titan.convert %[[T]]
// CHECK: %[[S:.*]]:4 = accum.loop {{.*}} -> (tensor<2x8xf32>, tensor<2x8xf32>, tensor<8x2xf32>, tensor<2x2xf32>)
// CHECK-NEXT: titan.convert %[[W]]
// CHECK: %[[BOTH:.*]] = titan.add %[[A:.*]], %[[A]] {path = ["both"]
// CHECK: %[[READ:.*]] = titan.transpose
// CHECK: titan.tanh %[[READ]]
// CHECK: accum.yield %[[A]], %[[BOTH]], %[[READ]], %{{.*}}
// CHECK: %[[FIRST:.*]] = titan.transpose %[[S]]#0 [1, 0] {path = ["conv"], phase = #titan<phase backward>} : tensor<2x8xf32> to tensor<8x2xf32>
// CHECK: %[[SECOND:.*]] = titan.transpose %[[S]]#1 [1, 0] {path = ["both"]
// CHECK: return %[[FIRST]], %[[SECOND]], %[[S]]#2
module attributes {titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}}} {
func.func @step(%w: tensor<8x2xf32>, %x: tensor<4x2x8xf32>, %q: tensor<2x2xf32>) -> (tensor<8x2xf32>, tensor<8x2xf32>, tensor<8x2xf32>, tensor<2x2xf32>) {
  %s:4 = accum.loop %i in 4 unordered slices(%xi = %x : tensor<4x2x8xf32>) -> (tensor<8x2xf32>, tensor<8x2xf32>, tensor<8x2xf32>, tensor<2x2xf32>) {
    %t = titan.transpose %w [1, 0] {path = ["conv"]} : tensor<8x2xf32> to tensor<2x8xf32>
    %c = titan.convert %t {path = ["conv"]} : tensor<2x8xf32> to tensor<2x8xbf16>
    %wide = titan.convert %c {path = ["conv"]} : tensor<2x8xbf16> to tensor<2x8xf32>
    %g = titan.mul %xi, %wide : tensor<2x8xf32>
    %one = titan.transpose %g [1, 0] {path = ["conv"], phase = #titan<phase backward>} : tensor<2x8xf32> to tensor<8x2xf32>
    %l = titan.transpose %g [1, 0] {path = ["both"], phase = #titan<phase backward>} : tensor<2x8xf32> to tensor<8x2xf32>
    %r = titan.transpose %g [1, 0] {path = ["both"], phase = #titan<phase backward>} : tensor<2x8xf32> to tensor<8x2xf32>
    %both = titan.add %l, %r {path = ["both"], phase = #titan<phase backward>} : tensor<8x2xf32>
    %read = titan.transpose %g [1, 0] {phase = #titan<phase backward>} : tensor<2x8xf32> to tensor<8x2xf32>
    %h = titan.tanh %read : tensor<8x2xf32>
    %square = titan.contract %h, %h batch [] x [] contracting [0] x [0] : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<2x2xf32>
    %p = titan.transpose %square [1, 0] : tensor<2x2xf32> to tensor<2x2xf32>
    %differ = titan.add %p, %square : tensor<2x2xf32>
    accum.yield %one, %both, %read, %differ : tensor<8x2xf32>, tensor<8x2xf32>, tensor<8x2xf32>, tensor<2x2xf32>
  }
  return %s#0, %s#1, %s#2, %s#3 : tensor<8x2xf32>, tensor<8x2xf32>, tensor<8x2xf32>, tensor<2x2xf32>
}
}

// -----

// One microbatch a step: nothing is gained.
// CHECK-LABEL: func.func @step
// CHECK: accum.loop
// CHECK-NEXT: titan.transpose
module attributes {titan.recipe = {batch = {micro = 2 : i64, global = 2 : i64}}} {
func.func @step(%w: tensor<8x2xf32>, %x: tensor<1x8xf32>) -> tensor<2x8xf32> {
  %s = accum.loop %i in 1 unordered slices(%xi = %x : tensor<1x8xf32>) -> (tensor<2x8xf32>) {
    %t = titan.transpose %w [1, 0] : tensor<8x2xf32> to tensor<2x8xf32>
    accum.yield %t : tensor<2x8xf32>
  }
  return %s : tensor<2x8xf32>
}
}
