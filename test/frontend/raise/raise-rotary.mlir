// RUN: titan-opt %s --titan-import-raise-rotary --titan-import-fold-transposes --cse --remarks-filter=import 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// x cos + rotate_half(x) sin with heads first and constant tables.
// CHECK-LABEL: func.func @halves
// CHECK-SAME: %[[X:.*]]: tensor<2x3x5x4xf32>
func.func @halves(%x: tensor<2x3x5x4xf32>) -> tensor<2x3x5x4xf32> {
  // CHECK-DAG: %[[C:.*]] = titan.constant dense<{{\[\[}}1.000000e+00, 5.000000e-01], [2.000000e+00, 2.500000e-01], [3.000000e+00, 1.250000e-01]]> : tensor<3x2xf32>
  // CHECK-DAG: %[[S:.*]] = titan.constant dense<5.000000e-01> : tensor<3x2xf32>
  // CHECK: %[[Y:.*]] = titan.rotary %[[X]], %[[C]], %[[S]] {path = ["attn"]} : (tensor<2x3x5x4xf32>
  // CHECK-NEXT: return %[[Y]]
  // REMARK: 'attn' is one titan.rotary
  %c = titan.constant dense<[[1.0, 0.5, 1.0, 0.5], [2.0, 0.25, 2.0, 0.25], [3.0, 0.125, 3.0, 0.125]]> : tensor<3x4xf32>
  %s = titan.constant dense<0.5> : tensor<3x4xf32>
  %t = titan.transpose %x [0, 2, 1, 3] : tensor<2x3x5x4xf32> to tensor<2x5x3x4xf32>
  %cos = titan.broadcast %c [2, 3] : tensor<3x4xf32> to tensor<2x5x3x4xf32>
  %sin = titan.broadcast %s [2, 3] : tensor<3x4xf32> to tensor<2x5x3x4xf32>
  %straight = titan.mul %t, %cos : tensor<2x5x3x4xf32>
  %first = titan.slice %t offsets [0, 0, 0, 0] strides [1, 1, 1, 1] : tensor<2x5x3x4xf32> to tensor<2x5x3x2xf32>
  %second = titan.slice %t offsets [0, 0, 0, 2] strides [1, 1, 1, 1] : tensor<2x5x3x4xf32> to tensor<2x5x3x2xf32>
  %n = titan.neg %second : tensor<2x5x3x2xf32>
  %half = titan.concat %n, %first dim 3 : (tensor<2x5x3x2xf32>, tensor<2x5x3x2xf32>) -> tensor<2x5x3x4xf32>
  %turned = titan.mul %sin, %half : tensor<2x5x3x4xf32>
  %y = titan.add %turned, %straight {path = ["attn"]} : tensor<2x5x3x4xf32>
  %r = titan.transpose %y [0, 2, 1, 3] : tensor<2x5x3x4xf32> to tensor<2x3x5x4xf32>
  return %r : tensor<2x3x5x4xf32>
}

// Neighbours, stacked columns, tables of angles per sample that the model computes.
// CHECK-LABEL: func.func @neighbours
// CHECK-SAME: %[[X:.*]]: tensor<2x3x20xf32>, %[[A:.*]]: tensor<2x3x2xf32>
func.func @neighbours(%x: tensor<2x3x20xf32>, %angles: tensor<2x3x2xf32>) -> tensor<2x3x5x4xf32> {
  // CHECK: %[[C:.*]] = titan.cos %[[A]]
  // CHECK: %[[S:.*]] = titan.sin %[[A]]
  // CHECK: %[[R:.*]] = titan.reshape %[[X]] : tensor<2x3x20xf32> to tensor<2x3x5x4xf32>
  // CHECK: titan.rotary %[[R]], %[[C]], %[[S]] interleaved
  %c = titan.cos %angles : tensor<2x3x2xf32>
  %s = titan.sin %angles : tensor<2x3x2xf32>
  %cos = titan.broadcast %c [0, 1, 3] : tensor<2x3x2xf32> to tensor<2x3x5x2xf32>
  %sin = titan.broadcast %s [0, 1, 3] : tensor<2x3x2xf32> to tensor<2x3x5x2xf32>
  %pairs = titan.reshape %x : tensor<2x3x20xf32> to tensor<2x3x5x2x2xf32>
  %0 = titan.slice %pairs offsets [0, 0, 0, 0, 0] strides [1, 1, 1, 1, 1] : tensor<2x3x5x2x2xf32> to tensor<2x3x5x2x1xf32>
  %1 = titan.slice %pairs offsets [0, 0, 0, 0, 1] strides [1, 1, 1, 1, 1] : tensor<2x3x5x2x2xf32> to tensor<2x3x5x2x1xf32>
  %a = titan.reshape %0 : tensor<2x3x5x2x1xf32> to tensor<2x3x5x2xf32>
  %b = titan.reshape %1 : tensor<2x3x5x2x1xf32> to tensor<2x3x5x2xf32>
  %2 = titan.mul %a, %cos : tensor<2x3x5x2xf32>
  %3 = titan.mul %b, %sin : tensor<2x3x5x2xf32>
  %4 = titan.sub %2, %3 : tensor<2x3x5x2xf32>
  %5 = titan.mul %a, %sin : tensor<2x3x5x2xf32>
  %6 = titan.mul %b, %cos : tensor<2x3x5x2xf32>
  %7 = titan.add %5, %6 : tensor<2x3x5x2xf32>
  %8 = titan.reshape %4 : tensor<2x3x5x2xf32> to tensor<2x3x5x2x1xf32>
  %9 = titan.reshape %7 : tensor<2x3x5x2xf32> to tensor<2x3x5x2x1xf32>
  %10 = titan.concat %8, %9 dim 4 : (tensor<2x3x5x2x1xf32>, tensor<2x3x5x2x1xf32>) -> tensor<2x3x5x2x2xf32>
  %y = titan.reshape %10 : tensor<2x3x5x2x2xf32> to tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}

// The first four of six elements turn; the angles are joined with themselves before the cosine.
// CHECK-LABEL: func.func @partial
// CHECK-SAME: %[[X:.*]]: tensor<2x3x5x6xf32>, %[[A:.*]]: tensor<3x2xf32>
func.func @partial(%x: tensor<2x3x5x6xf32>, %angles: tensor<3x2xf32>) -> tensor<2x3x5x6xf32> {
  // CHECK-DAG: %[[C:.*]] = titan.cos %[[A]] : tensor<3x2xf32>
  // CHECK-DAG: %[[S:.*]] = titan.sin %[[A]] : tensor<3x2xf32>
  // CHECK: titan.rotary %[[X]], %[[C]], %[[S]] : (tensor<2x3x5x6xf32>
  %both = titan.concat %angles, %angles dim 1 : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x4xf32>
  %c = titan.cos %both : tensor<3x4xf32>
  %s = titan.sin %both : tensor<3x4xf32>
  %cos = titan.broadcast %c [1, 3] : tensor<3x4xf32> to tensor<2x3x5x4xf32>
  %sin = titan.broadcast %s [1, 3] : tensor<3x4xf32> to tensor<2x3x5x4xf32>
  %head = titan.slice %x offsets [0, 0, 0, 0] strides [1, 1, 1, 1] : tensor<2x3x5x6xf32> to tensor<2x3x5x4xf32>
  %rest = titan.slice %x offsets [0, 0, 0, 4] strides [1, 1, 1, 1] : tensor<2x3x5x6xf32> to tensor<2x3x5x2xf32>
  %straight = titan.mul %head, %cos : tensor<2x3x5x4xf32>
  %first = titan.slice %head offsets [0, 0, 0, 0] strides [1, 1, 1, 1] : tensor<2x3x5x4xf32> to tensor<2x3x5x2xf32>
  %second = titan.slice %head offsets [0, 0, 0, 2] strides [1, 1, 1, 1] : tensor<2x3x5x4xf32> to tensor<2x3x5x2xf32>
  %n = titan.neg %second : tensor<2x3x5x2xf32>
  %half = titan.concat %n, %first dim 3 : (tensor<2x3x5x2xf32>, tensor<2x3x5x2xf32>) -> tensor<2x3x5x4xf32>
  %turned = titan.mul %half, %sin : tensor<2x3x5x4xf32>
  %sum = titan.add %straight, %turned : tensor<2x3x5x4xf32>
  %y = titan.concat %sum, %rest dim 3 : (tensor<2x3x5x4xf32>, tensor<2x3x5x2xf32>) -> tensor<2x3x5x6xf32>
  return %y : tensor<2x3x5x6xf32>
}

// Tables whose halves differ turn no pairs.
// CHECK-LABEL: func.func @other_tables
func.func @other_tables(%x: tensor<2x3x5x4xf32>, %c: tensor<3x4xf32>) -> tensor<2x3x5x4xf32> {
  // CHECK-NOT: titan.rotary
  %cos = titan.broadcast %c [1, 3] : tensor<3x4xf32> to tensor<2x3x5x4xf32>
  %straight = titan.mul %x, %cos : tensor<2x3x5x4xf32>
  %first = titan.slice %x offsets [0, 0, 0, 0] strides [1, 1, 1, 1] : tensor<2x3x5x4xf32> to tensor<2x3x5x2xf32>
  %second = titan.slice %x offsets [0, 0, 0, 2] strides [1, 1, 1, 1] : tensor<2x3x5x4xf32> to tensor<2x3x5x2xf32>
  %n = titan.neg %second : tensor<2x3x5x2xf32>
  %half = titan.concat %n, %first dim 3 : (tensor<2x3x5x2xf32>, tensor<2x3x5x2xf32>) -> tensor<2x3x5x4xf32>
  %turned = titan.mul %half, %cos : tensor<2x3x5x4xf32>
  %y = titan.add %straight, %turned : tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}

// A product of complex numbers, taken apart: columns that keep their dimension of 1.
// CHECK-LABEL: func.func @complex_product
// CHECK-SAME: %[[X:.*]]: tensor<2x3x5x4xf32>, %[[C:.*]]: tensor<3x2x1xf32>, %[[S:.*]]: tensor<3x2x1xf32>
func.func @complex_product(%x: tensor<2x3x5x4xf32>, %c: tensor<3x2x1xf32>, %s: tensor<3x2x1xf32>) -> tensor<2x3x5x4xf32> {
  // CHECK-DAG: %[[COS:.*]] = titan.reshape %[[C]] : tensor<3x2x1xf32> to tensor<3x2xf32>
  // CHECK-DAG: %[[SIN:.*]] = titan.reshape %[[S]] : tensor<3x2x1xf32> to tensor<3x2xf32>
  // CHECK: %[[Y:.*]] = titan.rotary %[[X]], %[[COS]], %[[SIN]] interleaved
  // CHECK-NEXT: return %[[Y]]
  %cos = titan.broadcast %c [1, 3, 4] : tensor<3x2x1xf32> to tensor<2x3x5x2x1xf32>
  %sin = titan.broadcast %s [1, 3, 4] : tensor<3x2x1xf32> to tensor<2x3x5x2x1xf32>
  %pairs = titan.reshape %x : tensor<2x3x5x4xf32> to tensor<2x3x5x2x2xf32>
  %a = titan.slice %pairs offsets [0, 0, 0, 0, 0] strides [1, 1, 1, 1, 1] : tensor<2x3x5x2x2xf32> to tensor<2x3x5x2x1xf32>
  %b = titan.slice %pairs offsets [0, 0, 0, 0, 1] strides [1, 1, 1, 1, 1] : tensor<2x3x5x2x2xf32> to tensor<2x3x5x2x1xf32>
  %ac = titan.mul %a, %cos : tensor<2x3x5x2x1xf32>
  %bs = titan.mul %b, %sin : tensor<2x3x5x2x1xf32>
  %as = titan.mul %a, %sin : tensor<2x3x5x2x1xf32>
  %bc = titan.mul %b, %cos : tensor<2x3x5x2x1xf32>
  %real = titan.sub %ac, %bs : tensor<2x3x5x2x1xf32>
  %imaginary = titan.add %as, %bc : tensor<2x3x5x2x1xf32>
  %joined = titan.concat %real, %imaginary dim 4 : (tensor<2x3x5x2x1xf32>, tensor<2x3x5x2x1xf32>) -> tensor<2x3x5x2x2xf32>
  %y = titan.reshape %joined : tensor<2x3x5x2x2xf32> to tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}

// The one key head of multi-query attention has no dimension of its own.
// CHECK-LABEL: func.func @one_head
// CHECK-SAME: %[[X:.*]]: tensor<2x3x4xf32>
func.func @one_head(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  // CHECK: %[[R:.*]] = titan.reshape %[[X]] : tensor<2x3x4xf32> to tensor<2x3x1x4xf32>
  // CHECK: %[[T:.*]] = titan.rotary %[[R]]
  // CHECK: titan.reshape %[[T]] : tensor<2x3x1x4xf32> to tensor<2x3x4xf32>
  %c = titan.constant dense<[[1.0, 0.5, 1.0, 0.5], [2.0, 0.25, 2.0, 0.25], [3.0, 0.125, 3.0, 0.125]]> : tensor<3x4xf32>
  %s = titan.constant dense<0.5> : tensor<3x4xf32>
  %cos = titan.broadcast %c [1, 2] : tensor<3x4xf32> to tensor<2x3x4xf32>
  %sin = titan.broadcast %s [1, 2] : tensor<3x4xf32> to tensor<2x3x4xf32>
  %straight = titan.mul %x, %cos : tensor<2x3x4xf32>
  %first = titan.slice %x offsets [0, 0, 0] strides [1, 1, 1] : tensor<2x3x4xf32> to tensor<2x3x2xf32>
  %second = titan.slice %x offsets [0, 0, 2] strides [1, 1, 1] : tensor<2x3x4xf32> to tensor<2x3x2xf32>
  %n = titan.neg %second : tensor<2x3x2xf32>
  %half = titan.concat %n, %first dim 2 : (tensor<2x3x2xf32>, tensor<2x3x2xf32>) -> tensor<2x3x4xf32>
  %turned = titan.mul %half, %sin : tensor<2x3x4xf32>
  %y = titan.add %straight, %turned : tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// The opposite rotation, with a negated table: x1 cos + x2 sin, x1 (-sin) + x2 cos.
// CHECK-LABEL: func.func @negated_table
// CHECK-SAME: %[[X:.*]]: tensor<2x3x5x4xf32>, %[[C:.*]]: tensor<3x2xf32>, %[[S:.*]]: tensor<3x2xf32>
func.func @negated_table(%x: tensor<2x3x5x4xf32>, %c: tensor<3x2xf32>, %s: tensor<3x2xf32>) -> tensor<2x3x5x4xf32> {
  // CHECK: %[[N:.*]] = titan.neg %[[S]]
  // CHECK: titan.rotary %[[X]], %[[C]], %[[N]] :
  %minus = titan.neg %s : tensor<3x2xf32>
  %cos = titan.broadcast %c [1, 3] : tensor<3x2xf32> to tensor<2x3x5x2xf32>
  %sin = titan.broadcast %s [1, 3] : tensor<3x2xf32> to tensor<2x3x5x2xf32>
  %nin = titan.broadcast %minus [1, 3] : tensor<3x2xf32> to tensor<2x3x5x2xf32>
  %a = titan.slice %x offsets [0, 0, 0, 0] strides [1, 1, 1, 1] : tensor<2x3x5x4xf32> to tensor<2x3x5x2xf32>
  %b = titan.slice %x offsets [0, 0, 0, 2] strides [1, 1, 1, 1] : tensor<2x3x5x4xf32> to tensor<2x3x5x2xf32>
  %ac = titan.mul %a, %cos : tensor<2x3x5x2xf32>
  %bs = titan.mul %b, %sin : tensor<2x3x5x2xf32>
  %an = titan.mul %a, %nin : tensor<2x3x5x2xf32>
  %bc = titan.mul %b, %cos : tensor<2x3x5x2xf32>
  %first = titan.add %ac, %bs : tensor<2x3x5x2xf32>
  %second = titan.add %an, %bc : tensor<2x3x5x2xf32>
  %y = titan.concat %first, %second dim 3 : (tensor<2x3x5x2xf32>, tensor<2x3x5x2xf32>) -> tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}

// Both signs positive with one table: no rotation.
// CHECK-LABEL: func.func @not_a_rotation
func.func @not_a_rotation(%x: tensor<2x3x5x4xf32>, %c: tensor<3x2xf32>, %s: tensor<3x2xf32>) -> tensor<2x3x5x4xf32> {
  // CHECK-NOT: titan.rotary
  %cos = titan.broadcast %c [1, 3] : tensor<3x2xf32> to tensor<2x3x5x2xf32>
  %sin = titan.broadcast %s [1, 3] : tensor<3x2xf32> to tensor<2x3x5x2xf32>
  %a = titan.slice %x offsets [0, 0, 0, 0] strides [1, 1, 1, 1] : tensor<2x3x5x4xf32> to tensor<2x3x5x2xf32>
  %b = titan.slice %x offsets [0, 0, 0, 2] strides [1, 1, 1, 1] : tensor<2x3x5x4xf32> to tensor<2x3x5x2xf32>
  %ac = titan.mul %a, %cos : tensor<2x3x5x2xf32>
  %bs = titan.mul %b, %sin : tensor<2x3x5x2xf32>
  %as = titan.mul %a, %sin : tensor<2x3x5x2xf32>
  %bc = titan.mul %b, %cos : tensor<2x3x5x2xf32>
  %first = titan.add %ac, %bs : tensor<2x3x5x2xf32>
  %second = titan.add %as, %bc : tensor<2x3x5x2xf32>
  %y = titan.concat %first, %second dim 3 : (tensor<2x3x5x2xf32>, tensor<2x3x5x2xf32>) -> tensor<2x3x5x4xf32>
  return %y : tensor<2x3x5x4xf32>
}
