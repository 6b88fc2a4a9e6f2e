// RUN: titan-opt %s --titan-differentiate-combine-duplicates | FileCheck %s

// CHECK-LABEL: func.func @equal_ops
// CHECK: %[[E:.*]] = titan.exp %{{.*}} {path = ["a", "b"]}
// CHECK-NEXT: %[[S:.*]] = titan.add %[[E]], %[[E]]
// CHECK-NEXT: return %[[S]]
func.func @equal_ops(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = titan.exp %x {path = ["a"]} : tensor<4xf32>
  %f = titan.exp %x {path = ["b"], phase = #titan<phase backward>} : tensor<4xf32>
  %s = titan.add %e, %f : tensor<4xf32>
  return %s : tensor<4xf32>
}

// Attributes are part of what an op computes, and so are types.
// CHECK-LABEL: func.func @different_ops
// CHECK-COUNT-2: titan.leaky_relu
// CHECK-COUNT-2: titan.reshape
func.func @different_ops(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<2x2xf32>, tensor<1x4xf32>) {
  %a = titan.leaky_relu %x alpha 0.1 : tensor<4xf32>
  %b = titan.leaky_relu %x alpha 0.2 : tensor<4xf32>
  %c = titan.reshape %x : tensor<4xf32> to tensor<2x2xf32>
  %d = titan.reshape %x : tensor<4xf32> to tensor<1x4xf32>
  return %a, %b, %c, %d : tensor<4xf32>, tensor<4xf32>, tensor<2x2xf32>, tensor<1x4xf32>
}

// CHECK-LABEL: func.func @barriers_stay
// CHECK-COUNT-2: titan.barrier
func.func @barriers_stay(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = titan.barrier %x id 1 : tensor<4xf32>
  %b = titan.barrier %x id 2 : tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// Nothing leaves the loop, and nothing in it uses a twin outside.
// CHECK-LABEL: func.func @loop
// CHECK: titan.exp
// CHECK: accum.loop
// CHECK: titan.exp
// CHECK-NOT: titan.exp
func.func @loop(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %e = titan.exp %x : tensor<4xf32>
  %s = accum.loop %i in 2 unordered -> (tensor<4xf32>) {
    %f = titan.exp %x : tensor<4xf32>
    %g = titan.exp %x : tensor<4xf32>
    %h = titan.add %f, %g : tensor<4xf32>
    accum.yield %h : tensor<4xf32>
  }
  return %e, %s : tensor<4xf32>, tensor<4xf32>
}
