// RUN: titan-opt %s --titan-lower-elide-zero-accumulators | FileCheck %s

// One iteration: the only addition to zero is the sum, and nobody needs the zeros.
// CHECK-LABEL: func.func @once
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>, %[[A:.*]]: tensor<4x2xf32>
// CHECK: kernel.empty : tensor<4xf32>
// CHECK: titan.contract
// CHECK-NOT: acc
// CHECK-SAME: batch
// CHECK: accum.yield %[[X]]
func.func @once(%x: tensor<4xf32>, %a: tensor<4x2xf32>) -> (tensor<4xf32>, tensor<2x2xf32>) {
  %zero = titan.constant dense<0.0> : tensor<4xf32>
  %zeros = titan.constant dense<0.0> : tensor<2x2xf32>
  %r:2 = accum.loop %i in 1 running accumulators(%s = %zero : tensor<4xf32>, %g = %zeros : tensor<2x2xf32>) -> (tensor<4xf32>, tensor<2x2xf32>) {
    %t = titan.add %s, %x : tensor<4xf32>
    %h = titan.contract %a, %a acc %g batch [] x [] contracting [0] x [0] : (tensor<4x2xf32>, tensor<4x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    accum.yield %t, %h : tensor<4xf32>, tensor<2x2xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<2x2xf32>
}

// CHECK-LABEL: func.func @twice
// CHECK: titan.add
func.func @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = titan.constant dense<0.0> : tensor<4xf32>
  %r = accum.loop %i in 2 running accumulators(%s = %zero : tensor<4xf32>) -> (tensor<4xf32>) {
    %t = titan.add %s, %x : tensor<4xf32>
    accum.yield %t : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -0 + x is x for every x, but it is no zero that the loop was given: left alone.
// CHECK-LABEL: func.func @negative_zero
// CHECK: titan.add
func.func @negative_zero(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = titan.constant dense<-0.0> : tensor<4xf32>
  %r = accum.loop %i in 1 running accumulators(%s = %zero : tensor<4xf32>) -> (tensor<4xf32>) {
    %t = titan.add %s, %x : tensor<4xf32>
    accum.yield %t : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
