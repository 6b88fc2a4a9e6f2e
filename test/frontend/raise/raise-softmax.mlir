// RUN: titan-opt %s --titan-import-raise-softmax --cse --remarks-filter=import 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// CHECK-LABEL: func.func @stable
// CHECK-SAME: %[[X:.*]]: tensor<2x4xf32>
func.func @stable(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // CHECK-NEXT: %[[Y:.*]] = titan.softmax %[[X]] dim 1
  // CHECK-NEXT: return %[[Y]]
  // REMARK: 'forward' is one titan.softmax
  %max = titan.reduce max %x [1] : tensor<2x4xf32> to tensor<2xf32>
  %m = titan.broadcast %max [0] : tensor<2xf32> to tensor<2x4xf32>
  %d = titan.sub %x, %m : tensor<2x4xf32>
  %e = titan.exp %d : tensor<2x4xf32>
  %sum = titan.reduce sum %e [1] : tensor<2x4xf32> to tensor<2xf32>
  %s = titan.broadcast %sum [0] : tensor<2xf32> to tensor<2x4xf32>
  %y = titan.div %e, %s : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @plain
func.func @plain(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // CHECK-NEXT: titan.softmax %{{.*}} dim 0
  %e = titan.exp %x : tensor<2x4xf32>
  %sum = titan.reduce sum %e [0] : tensor<2x4xf32> to tensor<4xf32>
  %s = titan.broadcast %sum [1] : tensor<4xf32> to tensor<2x4xf32>
  %y = titan.div %e, %s : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// Rows divided by the sums of columns.
// CHECK-LABEL: func.func @wrong_dimension
func.func @wrong_dimension(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // CHECK-NOT: titan.softmax
  %e = titan.exp %x : tensor<4x4xf32>
  %sum = titan.reduce sum %e [0] : tensor<4x4xf32> to tensor<4xf32>
  %s = titan.broadcast %sum [0] : tensor<4xf32> to tensor<4x4xf32>
  %y = titan.div %e, %s : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// The maximum may be detached, the sum not: its gradient is a part of softmax's.
// CHECK-LABEL: func.func @detached_maximum
// CHECK-SAME: %[[X:.*]]: tensor<2x4xf32>
func.func @detached_maximum(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // CHECK-NEXT: %[[Y:.*]] = titan.softmax %[[X]] dim 1
  // CHECK-NEXT: return %[[Y]]
  %max = titan.reduce max %x [1] : tensor<2x4xf32> to tensor<2xf32>
  %c = titan.detach %max : tensor<2xf32>
  %m = titan.broadcast %c [0] : tensor<2xf32> to tensor<2x4xf32>
  %d = titan.sub %x, %m : tensor<2x4xf32>
  %e = titan.exp %d : tensor<2x4xf32>
  %sum = titan.reduce sum %e [1] : tensor<2x4xf32> to tensor<2xf32>
  %s = titan.broadcast %sum [0] : tensor<2xf32> to tensor<2x4xf32>
  %y = titan.div %e, %s : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @detached_sum
func.func @detached_sum(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // CHECK-NOT: titan.softmax
  %e = titan.exp %x : tensor<2x4xf32>
  %sum = titan.reduce sum %e [1] : tensor<2x4xf32> to tensor<2xf32>
  %c = titan.detach %sum : tensor<2xf32>
  %s = titan.broadcast %c [0] : tensor<2xf32> to tensor<2x4xf32>
  %y = titan.div %e, %s : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// A model that subtracts the maximum before softmax does.
// CHECK-LABEL: func.func @shifted
// CHECK-SAME: %[[X:.*]]: tensor<2x4xf32>
func.func @shifted(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // CHECK-NEXT: %[[Y:.*]] = titan.softmax %[[X]] dim 1
  // CHECK-NEXT: return %[[Y]]
  %max = titan.reduce max %x [1] : tensor<2x4xf32> to tensor<2xf32>
  %m = titan.broadcast %max [0] : tensor<2xf32> to tensor<2x4xf32>
  %d = titan.sub %x, %m : tensor<2x4xf32>
  %y = titan.softmax %d dim 1 : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
