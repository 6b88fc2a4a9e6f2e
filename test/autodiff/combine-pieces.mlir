// The example of titan-differentiate-combine-pieces; gaps, overlaps, other terms, and pieces that take turns.
// RUN: titan-opt %s --titan-differentiate-combine-pieces | FileCheck %s
// RUN: titan-opt %s --titan-differentiate-combine-pieces --remarks-filter=differentiate 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: pieces of 'qkv' are joined instead of padded and added: 2 terms become 1
// CHECK-LABEL: func.func @halves
func.func @halves(%a: tensor<4x2xf32>, %b: tensor<4x3xf32>) -> tensor<4x5xf32> {
  // CHECK-NOT: titan.pad
  // CHECK: %[[SUM:.*]] = titan.concat %arg0, %arg1 dim 1 {path = ["qkv"]}
  // CHECK: return %[[SUM]]
  %p = titan.pad %a low [0, 0] interior [0, 0] : tensor<4x2xf32> to tensor<4x5xf32>
  %q = titan.pad %b low [0, 2] interior [0, 0] : tensor<4x3xf32> to tensor<4x5xf32>
  %s = titan.add %p, %q {path = ["qkv"]} : tensor<4x5xf32>
  return %s : tensor<4x5xf32>
}

// As reverse mode adds them: the last piece first, and another use of the tensor between.
// CHECK-LABEL: func.func @three
func.func @three(%a: tensor<4x2xf32>, %b: tensor<4x2xf32>, %c: tensor<4x2xf32>, %x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  // CHECK: %[[JOINED:.*]] = titan.concat %arg0, %arg1, %arg2 dim 1
  // CHECK: titan.add %[[JOINED]], %arg3
  // CHECK-NOT: titan.add
  %r = titan.pad %c low [0, 4] interior [0, 0] : tensor<4x2xf32> to tensor<4x6xf32>
  %q = titan.pad %b low [0, 2] interior [0, 0] : tensor<4x2xf32> to tensor<4x6xf32>
  %s = titan.add %r, %q : tensor<4x6xf32>
  %t = titan.add %s, %x : tensor<4x6xf32>
  %p = titan.pad %a low [0, 0] interior [0, 0] : tensor<4x2xf32> to tensor<4x6xf32>
  %u = titan.add %t, %p : tensor<4x6xf32>
  return %u : tensor<4x6xf32>
}

// Zeros fill a gap; what is missing at the ends is padded.
// CHECK-LABEL: func.func @gap
func.func @gap(%a: tensor<1x2xf32>, %b: tensor<2x2xf32>) -> tensor<7x2xf32> {
  // CHECK: %[[ZERO:.*]] = titan.constant dense<0.000000e+00> : tensor<2x2xf32>
  // CHECK: %[[JOINED:.*]] = titan.concat %arg0, %[[ZERO]], %arg1 dim 0 : {{.*}} -> tensor<5x2xf32>
  // CHECK: titan.pad %[[JOINED]] low [1, 0] interior [0, 0]
  // CHECK-NOT: titan.add
  %p = titan.pad %a low [1, 0] interior [0, 0] : tensor<1x2xf32> to tensor<7x2xf32>
  %q = titan.pad %b low [4, 0] interior [0, 0] : tensor<2x2xf32> to tensor<7x2xf32>
  %s = titan.add %p, %q : tensor<7x2xf32>
  return %s : tensor<7x2xf32>
}

// The piece that overlaps stays a term.
// CHECK-LABEL: func.func @overlap
func.func @overlap(%a: tensor<3xf32>, %b: tensor<3xf32>, %c: tensor<2xf32>) -> tensor<5xf32> {
  // CHECK: %[[OTHER:.*]] = titan.pad %arg1 low [1]
  // CHECK: %[[JOINED:.*]] = titan.concat %arg0, %arg2 dim 0
  // CHECK: titan.add %[[JOINED]], %[[OTHER]]
  %p = titan.pad %a low [0] interior [0] : tensor<3xf32> to tensor<5xf32>
  %q = titan.pad %b low [1] interior [0] : tensor<3xf32> to tensor<5xf32>
  %r = titan.pad %c low [3] interior [0] : tensor<2xf32> to tensor<5xf32>
  %s = titan.add %p, %q : tensor<5xf32>
  %t = titan.add %s, %r : tensor<5xf32>
  return %t : tensor<5xf32>
}

// x[..., ::2] and x[..., 1::2], as a rotation of neighbours reads them.
// CHECK-LABEL: func.func @turns
func.func @turns(%a: tensor<3x4xf32>, %b: tensor<3x4xf32>) -> tensor<3x8xf32> {
  // CHECK: %[[A:.*]] = titan.reshape %arg0 : tensor<3x4xf32> to tensor<3x4x1xf32>
  // CHECK: %[[B:.*]] = titan.reshape %arg1
  // CHECK: %[[JOINED:.*]] = titan.concat %[[A]], %[[B]] dim 2 : {{.*}} -> tensor<3x4x2xf32>
  // CHECK: titan.reshape %[[JOINED]] : tensor<3x4x2xf32> to tensor<3x8xf32>
  // CHECK-NOT: titan.pad
  %p = titan.pad %b low [0, 1] interior [0, 1] : tensor<3x4xf32> to tensor<3x8xf32>
  %q = titan.pad %a low [0, 0] interior [0, 1] : tensor<3x4xf32> to tensor<3x8xf32>
  %s = titan.add %p, %q : tensor<3x8xf32>
  return %s : tensor<3x8xf32>
}

// A pad with another value is no term of zeros; one that something else reads stays.
// CHECK-LABEL: func.func @not_zero
func.func @not_zero(%a: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NOT: titan.concat
  %p = titan.pad %a low [0] interior [0] {value = 1.0 : f64} : tensor<2xf32> to tensor<4xf32>
  %q = titan.pad %b low [2] interior [0] : tensor<2xf32> to tensor<4xf32>
  %s = titan.add %p, %q : tensor<4xf32>
  return %s, %q : tensor<4xf32>, tensor<4xf32>
}

// A partial sum that something else reads stays, and with it all that is added to it.
// CHECK-LABEL: func.func @partial_sum
func.func @partial_sum(%a: tensor<1xf32>, %b: tensor<1xf32>, %c: tensor<1xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  // CHECK: %[[C:.*]] = titan.pad %arg2 low [2]
  // CHECK: %[[JOINED:.*]] = titan.concat %arg0, %arg1 dim 0
  // CHECK: %[[AB:.*]] = titan.pad %[[JOINED]] low [0]
  // CHECK: %[[S:.*]] = titan.add %[[AB]], %[[C]]
  // CHECK: return %[[AB]], %[[S]]
  %p = titan.pad %a low [0] interior [0] : tensor<1xf32> to tensor<3xf32>
  %q = titan.pad %b low [1] interior [0] : tensor<1xf32> to tensor<3xf32>
  %r = titan.pad %c low [2] interior [0] : tensor<1xf32> to tensor<3xf32>
  %ab = titan.add %p, %q : tensor<3xf32>
  %s = titan.add %ab, %r : tensor<3xf32>
  return %ab, %s : tensor<3xf32>, tensor<3xf32>
}
