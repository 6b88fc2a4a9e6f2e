// Folders of the titan dialect: what folds, and what looks as if it could but would change bits.
// RUN: titan-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: func.func @involutions
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<4xi1>
// CHECK-NEXT: %[[R:.*]] = titan.relu %[[X]]
// CHECK-NEXT: return %[[X]], %[[B]], %[[R]]
func.func @involutions(%x: tensor<4xf32>, %b: tensor<4xi1>) -> (tensor<4xf32>, tensor<4xi1>, tensor<4xf32>) {
  %n = titan.neg %x : tensor<4xf32>
  %m = titan.neg %n : tensor<4xf32>
  %c = titan.not %b : tensor<4xi1>
  %d = titan.not %c : tensor<4xi1>
  %r = titan.relu %x : tensor<4xf32>
  %s = titan.relu %r : tensor<4xf32>
  return %m, %d, %s : tensor<4xf32>, tensor<4xi1>, tensor<4xf32>
}

// x * 1, 1 * x, x / 1 and x - (+0) are x for every x.
// CHECK-LABEL: func.func @neutral
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>
// CHECK-NEXT: return %[[X]], %[[X]], %[[X]], %[[X]]
func.func @neutral(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %one = titan.constant dense<1.0> : tensor<4xf32>
  %zero = titan.constant dense<0.0> : tensor<4xf32>
  %a = titan.mul %x, %one : tensor<4xf32>
  %b = titan.mul %one, %x : tensor<4xf32>
  %c = titan.div %x, %one : tensor<4xf32>
  %d = titan.sub %x, %zero : tensor<4xf32>
  return %a, %b, %c, %d : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -0 + 0 is +0, -0 - (-0) is +0, and 0 * inf is NaN.
// CHECK-LABEL: func.func @not_neutral
// CHECK: titan.add
// CHECK: titan.sub
// CHECK: titan.mul
func.func @not_neutral(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %zero = titan.constant dense<0.0> : tensor<4xf32>
  %minus = titan.constant dense<-0.0> : tensor<4xf32>
  %a = titan.add %x, %zero : tensor<4xf32>
  %b = titan.sub %x, %minus : tensor<4xf32>
  %c = titan.mul %x, %zero : tensor<4xf32>
  return %a, %b, %c : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func.func @integers
// CHECK-SAME: %[[X:.*]]: tensor<4xi64>
// CHECK-NEXT: return %[[X]], %[[X]]
func.func @integers(%x: tensor<4xi64>) -> (tensor<4xi64>, tensor<4xi64>) {
  %zero = titan.constant dense<0> : tensor<4xi64>
  %a = titan.add %x, %zero : tensor<4xi64>
  %b = titan.sub %a, %zero : tensor<4xi64>
  return %a, %b : tensor<4xi64>, tensor<4xi64>
}

// CHECK-LABEL: func.func @logic
// CHECK-SAME: %[[B:.*]]: tensor<2xi1>, %[[X:.*]]: tensor<2xf32>, %[[Y:.*]]: tensor<2xf32>
// CHECK-NEXT: return %[[B]], %[[B]], %[[B]], %[[X]], %[[Y]], %[[X]]
func.func @logic(%b: tensor<2xi1>, %x: tensor<2xf32>, %y: tensor<2xf32>) -> (tensor<2xi1>, tensor<2xi1>, tensor<2xi1>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %true = titan.constant dense<true> : tensor<2xi1>
  %false = titan.constant dense<false> : tensor<2xi1>
  %c = titan.and %b, %true : tensor<2xi1>
  %d = titan.or %b, %false : tensor<2xi1>
  %e = titan.and %b, %b : tensor<2xi1>
  %f = titan.select %true, %x, %y : tensor<2xi1>, tensor<2xf32>
  %g = titan.select %false, %x, %y : tensor<2xi1>, tensor<2xf32>
  %h = titan.select %b, %x, %x : tensor<2xi1>, tensor<2xf32>
  return %c, %d, %e, %f, %g, %h : tensor<2xi1>, tensor<2xi1>, tensor<2xi1>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}

// CHECK-LABEL: func.func @movement
// CHECK-SAME: %[[X:.*]]: tensor<2x3x4xf32>
// CHECK-DAG: %[[R:.*]] = titan.reshape %[[X]] : tensor<2x3x4xf32> to tensor<6x4xf32>
// CHECK-DAG: %[[T:.*]] = titan.transpose %[[X]] [1, 2, 0]
// CHECK: return %[[R]], %[[T]], %[[X]], %[[X]], %[[X]], %[[X]]
func.func @movement(%x: tensor<2x3x4xf32>) -> (tensor<6x4xf32>, tensor<3x4x2xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>) {
  %a = titan.reshape %x : tensor<2x3x4xf32> to tensor<24xf32>
  %b = titan.reshape %a : tensor<24xf32> to tensor<6x4xf32>
  %c = titan.transpose %x [2, 0, 1] : tensor<2x3x4xf32> to tensor<4x2x3xf32>
  %d = titan.transpose %c [2, 0, 1] : tensor<4x2x3xf32> to tensor<3x4x2xf32>
  %e = titan.transpose %d [2, 0, 1] : tensor<3x4x2xf32> to tensor<2x3x4xf32>
  %f = titan.broadcast %x [0, 1, 2] : tensor<2x3x4xf32> to tensor<2x3x4xf32>
  %g = titan.slice %x offsets [0, 0, 0] strides [1, 1, 1] : tensor<2x3x4xf32> to tensor<2x3x4xf32>
  %h = titan.convert %x : tensor<2x3x4xf32> to tensor<2x3x4xf32>
  return %b, %d, %e, %f, %g, %h : tensor<6x4xf32>, tensor<3x4x2xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x4xf32>
}

// A moved splat is a splat.
// CHECK-LABEL: func.func @splats
// CHECK-DAG: titan.constant dense<5.000000e-01> : tensor<3x2xf32>
// CHECK-DAG: titan.constant dense<5.000000e-01> : tensor<2x2xf32>
// CHECK-NOT: titan.broadcast
// CHECK-NOT: titan.transpose
func.func @splats() -> (tensor<3x2xf32>, tensor<2x2xf32>) {
  %s = titan.constant dense<0.5> : tensor<2xf32>
  %b = titan.broadcast %s [0] : tensor<2xf32> to tensor<2x3xf32>
  %t = titan.transpose %b [1, 0] : tensor<2x3xf32> to tensor<3x2xf32>
  %p = titan.slice %t offsets [0, 0] strides [2, 1] : tensor<3x2xf32> to tensor<2x2xf32>
  return %t, %p : tensor<3x2xf32>, tensor<2x2xf32>
}

// CHECK-LABEL: func.func @empty_reduction
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>
// CHECK-NEXT: return %[[X]]
func.func @empty_reduction(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = titan.reduce sum %x [] : tensor<4xf32> to tensor<4xf32>
  return %r : tensor<4xf32>
}
