// RUN: titan-opt %s --titan-lower-remove-barriers | FileCheck %s

// CHECK-LABEL: func.func @f
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>
// CHECK-NOT: titan.barrier
// CHECK: return %[[X]]
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %b = titan.barrier %x id 1 : tensor<4xf32>
  return %b : tensor<4xf32>
}
