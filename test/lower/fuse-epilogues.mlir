// RUN: titan-opt %s --titan-lower-form-kernels --titan-lower-fuse-kernels --titan-lower-fuse-epilogues --remarks-filter=lower 2>&1 | FileCheck %s

// CHECK: the product of 'fc' adds bias and relu

// CHECK-LABEL: func.func @bias_relu
// CHECK: kernel.call #kernel.gemm<{{.*}}bias = true, relu = true{{.*}}> ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<8x4xf32>, tensor<6x4xf32>, tensor<6xf32>)
// CHECK-NOT: kernel.fused
func.func @bias_relu(%x: tensor<8x4xf32>, %w: tensor<6x4xf32>, %b: tensor<6xf32>) -> tensor<8x6xf32> {
  %p = titan.contract %x, %w batch [] x [] contracting [1] x [1] {path = ["fc"]} : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
  %r = titan.broadcast %b [1] {path = ["fc"]} : tensor<6xf32> to tensor<8x6xf32>
  %s = titan.add %p, %r {path = ["fc"]} : tensor<8x6xf32>
  %y = titan.relu %s {path = ["act"]} : tensor<8x6xf32>
  return %y : tensor<8x6xf32>
}

// Others see the product without its bias.
// CHECK-LABEL: func.func @product_is_read
// CHECK: kernel.call #kernel.gemm<{{.*}}bias = false, relu = false
// CHECK: kernel.fused flat [8, 6]
func.func @product_is_read(%x: tensor<8x4xf32>, %w: tensor<6x4xf32>, %b: tensor<6xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>) {
  %p = titan.contract %x, %w batch [] x [] contracting [1] x [1] : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
  %r = titan.broadcast %b [1] : tensor<6xf32> to tensor<8x6xf32>
  %s = titan.add %p, %r : tensor<8x6xf32>
  return %p, %s : tensor<8x6xf32>, tensor<8x6xf32>
}

// A bias along the rows is no epilogue.
// CHECK-LABEL: func.func @row_bias
// CHECK: kernel.call #kernel.gemm<{{.*}}bias = false, relu = false
func.func @row_bias(%x: tensor<8x4xf32>, %w: tensor<8x4xf32>, %b: tensor<8xf32>) -> tensor<8x8xf32> {
  %p = titan.contract %x, %w batch [] x [] contracting [1] x [1] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  %r = titan.broadcast %b [0] : tensor<8xf32> to tensor<8x8xf32>
  %s = titan.add %p, %r : tensor<8x8xf32>
  return %s : tensor<8x8xf32>
}

// Every reader begins with the bias and the rounding: the product gives bf16, of which the readers keep the rest. The bias is of bf16, as the
// result is; the kernel that rounds it stays.
// CHECK-LABEL: func.func @rounds
// CHECK: %[[B:.*]] = kernel.fused flat [6]
// CHECK: %[[H:.*]] = kernel.call #kernel.gemm<{{.*}}bias = true, relu = false{{.*}}> ins(%{{.*}}, %{{.*}}, %[[B]] : tensor<8x4xbf16>, tensor<6x4xbf16>, tensor<6xbf16>) outs({{.*}} : tensor<8x6xbf16>)
// CHECK: kernel.fused flat [8, 6] ins(%[[H]] : tensor<8x6xbf16>)
// CHECK: ^bb0(%[[V:.*]]: bf16):
// CHECK-NEXT: arith.extf %[[V]]
// CHECK: return %[[H]]
func.func @rounds(%x: tensor<8x4xbf16>, %w: tensor<6x4xbf16>, %b: tensor<6xf32>) -> (tensor<8x6xbf16>, tensor<8x6xbf16>) {
  %p = titan.contract %x, %w batch [] x [] contracting [1] x [1] {path = ["fc"]} : (tensor<8x4xbf16>, tensor<6x4xbf16>) -> tensor<8x6xf32>
  %n = titan.convert %b {path = ["fc"]} : tensor<6xf32> to tensor<6xbf16>
  %r = titan.broadcast %n [1] {path = ["fc"]} : tensor<6xbf16> to tensor<8x6xbf16>
  %f = titan.convert %r {path = ["fc"]} : tensor<8x6xbf16> to tensor<8x6xf32>
  %s = titan.add %p, %f {path = ["fc"]} : tensor<8x6xf32>
  %h = titan.convert %s {path = ["fc"]} : tensor<8x6xf32> to tensor<8x6xbf16>
  %v = titan.convert %h {path = ["fc"]} : tensor<8x6xbf16> to tensor<8x6xf32>
  %g = titan.gelu tanh %v {path = ["act"]} : tensor<8x6xf32>
  %y = titan.convert %g {path = ["act"]} : tensor<8x6xf32> to tensor<8x6xbf16>
  return %h, %y : tensor<8x6xbf16>, tensor<8x6xbf16>
}

// A product in bf16 adds no bias of f32: no library has such a product.
// CHECK-LABEL: func.func @wide_bias
// CHECK: kernel.call #kernel.gemm<{{.*}}bias = false, relu = false{{.*}}> {{.*}} outs({{.*}} : tensor<8x6xf32>)
// CHECK: kernel.fused flat [8, 6]
func.func @wide_bias(%x: tensor<8x4xbf16>, %w: tensor<6x4xbf16>, %b: tensor<6xf32>) -> tensor<8x6xbf16> {
  %p = titan.contract %x, %w batch [] x [] contracting [1] x [1] : (tensor<8x4xbf16>, tensor<6x4xbf16>) -> tensor<8x6xf32>
  %r = titan.broadcast %b [1] : tensor<6xf32> to tensor<8x6xf32>
  %s = titan.add %p, %r : tensor<8x6xf32>
  %h = titan.convert %s : tensor<8x6xf32> to tensor<8x6xbf16>
  return %h : tensor<8x6xbf16>
}

// A weight that products alone read as bf16 is rounded by them.
// CHECK-LABEL: func.func @rounds_weight
// CHECK-SAME: %[[W:[^ :]*]]: tensor<6x4xf32>
// CHECK-NOT: kernel.fused
// CHECK: kernel.call #kernel.gemm<{{.*}}> ins(%{{.*}}, %[[W]] : tensor<8x4xbf16>, tensor<6x4xf32>) outs({{.*}} : tensor<8x6xbf16>)
func.func @rounds_weight(%x: tensor<8x4xbf16>, %w: tensor<6x4xf32>) -> tensor<8x6xbf16> {
  %n = titan.convert %w : tensor<6x4xf32> to tensor<6x4xbf16>
  %p = titan.contract %x, %n batch [] x [] contracting [1] x [1] : (tensor<8x4xbf16>, tensor<6x4xbf16>) -> tensor<8x6xf32>
  %h = titan.convert %p : tensor<8x6xf32> to tensor<8x6xbf16>
  return %h : tensor<8x6xbf16>
}

// Not where the product is given in f32, which may be the library's.
// CHECK-LABEL: func.func @rounded_weight
// CHECK: kernel.fused flat [6, 4]
// CHECK: kernel.call #kernel.gemm<{{.*}}> ins({{.*}} : tensor<8x4xbf16>, tensor<6x4xbf16>)
func.func @rounded_weight(%x: tensor<8x4xbf16>, %w: tensor<6x4xf32>) -> tensor<8x6xf32> {
  %n = titan.convert %w : tensor<6x4xf32> to tensor<6x4xbf16>
  %p = titan.contract %x, %n batch [] x [] contracting [1] x [1] : (tensor<8x4xbf16>, tensor<6x4xbf16>) -> tensor<8x6xf32>
  return %p : tensor<8x6xf32>
}

// A product that is the front part of what is written keeps its own result.
// CHECK-LABEL: func.func @first_of_concatenation
// CHECK: kernel.call #kernel.gemm<{{.*}}bias = false, relu = false
// CHECK: %[[FRONT:.*]] = kernel.fused flat [8, 6]
// CHECK: kernel.fused flat [8, 4] {{.*}} outs(%[[FRONT]] : tensor<8x10xf32>)
func.func @first_of_concatenation(%x: tensor<8x4xf32>, %w: tensor<6x4xf32>, %b: tensor<6xf32>) -> tensor<8x10xf32> {
  %p = titan.contract %x, %w batch [] x [] contracting [1] x [1] : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
  %r = titan.broadcast %b [1] : tensor<6xf32> to tensor<8x6xf32>
  %s = titan.add %p, %r : tensor<8x6xf32>
  %c = titan.concat %s, %x dim 1 : (tensor<8x6xf32>, tensor<8x4xf32>) -> tensor<8x10xf32>
  return %c : tensor<8x10xf32>
}

// So does one that only relu follows.
// CHECK-LABEL: func.func @relu_first_of_concatenation
// CHECK: kernel.call #kernel.gemm<{{.*}}bias = false, relu = false
// CHECK: kernel.fused flat [8, 6]
// CHECK: kernel.fused flat [8, 4]
func.func @relu_first_of_concatenation(%x: tensor<8x4xf32>, %w: tensor<6x4xf32>) -> tensor<8x10xf32> {
  %p = titan.contract %x, %w batch [] x [] contracting [1] x [1] : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
  %s = titan.relu %p : tensor<8x6xf32>
  %c = titan.concat %s, %x dim 1 : (tensor<8x6xf32>, tensor<8x4xf32>) -> tensor<8x10xf32>
  return %c : tensor<8x10xf32>
}
