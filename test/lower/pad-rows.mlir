// RUN: titan-opt %s --titan-lower-form-kernels --titan-lower-fuse-kernels --titan-lower-fuse-epilogues --titan-lower-pad-rows="alignment=16 long-alignment=128" --remarks-filter=lower 2>&1 | FileCheck %s
// RUN: titan-opt %s --titan-lower-form-kernels --titan-lower-pad-rows | FileCheck %s --check-prefix=CPU

// CHECK-DAG: rows of 'head' have 130 bytes in 144
// CHECK-DAG: rows of 'long' have 8386 bytes in 8448
// CHECK-DAG: 'kernel.cast_shape' takes them as they are{{.*}}rows of 'read.lines' keep 130 bytes
// CHECK-DAG: rows of 'batched' have 132 bytes in 144

// CPU-NOT: x66x
// CPU-NOT: x72x

// The product writes rows of 72, of which the loss reads 65, and the two products behind it. Where the rows are merged, they stay rows.
// CHECK-LABEL: func.func @head
// CHECK: %[[O:.*]] = kernel.empty : tensor<2x4x72xbf16>
// CHECK: %[[Z:.*]] = kernel.call #kernel.gemm<batch = 1, m = 8, n = 65, k = 16, lda = 16, ldb = 16, ldc = 72{{.*}} outs(%[[O]] : tensor<2x4x72xbf16>)
// CHECK: %[[P:.*]] = kernel.fused row [2, 4, 65] ins(%[[Z]] : tensor<2x4x72xbf16>) outs(%{{.*}} : tensor<2x4x72xbf16>)
// CHECK: %[[R:.*]] = kernel.cast_shape %[[P]] : tensor<2x4x72xbf16> to tensor<8x72xbf16>
// CHECK: kernel.call #kernel.gemm<batch = 1, m = 8, n = 16, k = 65, lda = 72, ldb = 16, ldc = 16
func.func @head(%x: tensor<2x4x16xbf16>, %w: tensor<65x16xbf16>) -> tensor<8x16xf32> {
  %z = titan.contract %x, %w batch [] x [] contracting [2] x [1] {path = ["head"]} : (tensor<2x4x16xbf16>, tensor<65x16xbf16>) -> tensor<2x4x65xf32>
  %n = titan.convert %z {path = ["head"]} : tensor<2x4x65xf32> to tensor<2x4x65xbf16>
  %a = titan.convert %n {path = ["loss"]} : tensor<2x4x65xbf16> to tensor<2x4x65xf32>
  %p = titan.softmax %a dim 2 {path = ["loss"]} : tensor<2x4x65xf32>
  %q = titan.convert %p {path = ["loss"]} : tensor<2x4x65xf32> to tensor<2x4x65xbf16>
  %r = titan.reshape %q {path = ["loss"]} : tensor<2x4x65xbf16> to tensor<8x65xbf16>
  %d = titan.contract %r, %w batch [] x [] contracting [1] x [0] {path = ["back"]} : (tensor<8x65xbf16>, tensor<65x16xbf16>) -> tensor<8x16xf32>
  return %d : tensor<8x16xf32>
}

// CHECK-LABEL: func.func @long
// CHECK: ldc = 4224
func.func @long(%x: tensor<4x16xbf16>, %w: tensor<4193x16xbf16>) -> tensor<4xf32> {
  %z = titan.contract %x, %w batch [] x [] contracting [1] x [1] {path = ["long"]} : (tensor<4x16xbf16>, tensor<4193x16xbf16>) -> tensor<4x4193xf32>
  %n = titan.convert %z {path = ["long"]} : tensor<4x4193xf32> to tensor<4x4193xbf16>
  %a = titan.convert %n : tensor<4x4193xbf16> to tensor<4x4193xf32>
  %s = titan.reduce sum %a [1] : tensor<4x4193xf32> to tensor<4xf32>
  return %s : tensor<4xf32>
}

// Batched matrices lie as many rows apart as before.
// CHECK-LABEL: func.func @batched
// CHECK: #kernel.gemm<batch = 3, m = 5, n = 33, k = 7, lda = 7, ldb = 33, ldc = 36, strideA = 35, strideB = 231, strideC = 180
func.func @batched(%x: tensor<3x5x7xf32>, %w: tensor<3x7x33xf32>) -> tensor<3x5xf32> {
  %z = titan.contract %x, %w batch [0] x [0] contracting [2] x [1] {path = ["batched"]} : (tensor<3x5x7xf32>, tensor<3x7x33xf32>) -> tensor<3x5x33xf32>
  %s = titan.reduce sum %z [2] : tensor<3x5x33xf32> to tensor<3x5xf32>
  return %s : tensor<3x5xf32>
}

// A cast that mixes rows needs them without gaps; a result of the function is the caller's.
// CHECK-LABEL: func.func @mixed
// CHECK: kernel.empty : tensor<4x65xbf16>
// CHECK-NOT: x72x
func.func @mixed(%x: tensor<4x65xf32>) -> tensor<5x52xbf16> {
  %s = titan.softmax %x dim 1 {path = ["read.lines"]} : tensor<4x65xf32>
  %n = titan.convert %s {path = ["read.lines"]} : tensor<4x65xf32> to tensor<4x65xbf16>
  %m = titan.reshape %n {path = ["mix"]} : tensor<4x65xbf16> to tensor<5x52xbf16>
  return %m : tensor<5x52xbf16>
}

// Nobody finds rows in what is elementwise.
// CHECK-LABEL: func.func @elementwise
// CHECK-NOT: x68x
func.func @elementwise(%x: tensor<4x65xf32>) -> (tensor<4x65xf32>, tensor<4x65xf32>) {
  %a = titan.exp %x : tensor<4x65xf32>
  %b = titan.barrier %a id 0 : tensor<4x65xf32>
  %c = titan.relu %b : tensor<4x65xf32>
  return %c, %c : tensor<4x65xf32>, tensor<4x65xf32>
}
