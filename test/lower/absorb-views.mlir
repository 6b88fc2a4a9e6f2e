// RUN: titan-opt %s --titan-lower-form-kernels --titan-lower-absorb-views --remarks-filter=lower 2>&1 | FileCheck %s

// CHECK-DAG: attention of 'h.0.attn' has query, key, value in place
// CHECK-DAG: attention of 'h.1.attn' has query, key, value, dquery, dkey, dvalue in place
// CHECK-DAG: attention of 'h.2.attn' keeps the copy of query: the elements of a head are not contiguous

// Query, key and value are slices of one projection [2, 4, 3 * 6] of two heads.
// CHECK-LABEL: func @slices
// CHECK: kernel.call
// CHECK-SAME: query = <operand = 0, offset = 0, batch = 72, row = 18, head = 3>
// CHECK-SAME: key = <operand = 0, offset = 6, batch = 72, row = 18, head = 3>
// CHECK-SAME: value = <operand = 0, offset = 12, batch = 72, row = 18, head = 3>
// CHECK-SAME: ins(%arg0 : tensor<2x4x18xf32>)
// CHECK-NOT: kernel.fused
func.func @slices(%x: tensor<2x4x18xf32>) -> tensor<2x4x2x3xf32> {
  %q = titan.slice %x offsets [0, 0, 0] strides [1, 1, 1] : tensor<2x4x18xf32> to tensor<2x4x6xf32>
  %k = titan.slice %x offsets [0, 0, 6] strides [1, 1, 1] : tensor<2x4x18xf32> to tensor<2x4x6xf32>
  %v = titan.slice %x offsets [0, 0, 12] strides [1, 1, 1] : tensor<2x4x18xf32> to tensor<2x4x6xf32>
  %qh = titan.reshape %q : tensor<2x4x6xf32> to tensor<2x4x2x3xf32>
  %kh = titan.reshape %k : tensor<2x4x6xf32> to tensor<2x4x2x3xf32>
  %vh = titan.reshape %v : tensor<2x4x6xf32> to tensor<2x4x2x3xf32>
  %r, %l = titan.attention %qh, %kh, %vh scale 0.5 causal {path = ["h.0.attn"]}
      : (tensor<2x4x2x3xf32>, tensor<2x4x2x3xf32>, tensor<2x4x2x3xf32>) -> (tensor<2x4x2x3xf32>, tensor<2x2x4xf32>)
  return %r : tensor<2x4x2x3xf32>
}

// The other way of writing a projection, [2, 4, 3, 2, 3], and its adjoint.
// CHECK-LABEL: func @adjoints
// CHECK: kernel.call
// CHECK-SAME: gradient = <dresult = <operand = {{[0-9]}}, offset = 0, batch = 24, row = 6, head = 3>
// CHECK-SAME: dquery = <operand = 0, offset = 0, batch = 72, row = 18, head = 3>
// CHECK-SAME: dkey = <operand = 0, offset = 6, batch = 72, row = 18, head = 3>
// CHECK-SAME: dvalue = <operand = 0, offset = 12, batch = 72, row = 18, head = 3>
// CHECK-SAME: -> (tensor<2x4x3x2x3xf32>,
// CHECK-NOT: kernel.fused
func.func @adjoints(%x: tensor<2x4x3x2x3xf32>, %r: tensor<2x4x2x3xf32>, %l: tensor<2x2x4xf32>, %d: tensor<2x4x2x3xf32>) -> tensor<2x4x3x2x3xf32> {
  %q = titan.slice %x offsets [0, 0, 0, 0, 0] strides [1, 1, 1, 1, 1] : tensor<2x4x3x2x3xf32> to tensor<2x4x1x2x3xf32>
  %k = titan.slice %x offsets [0, 0, 1, 0, 0] strides [1, 1, 1, 1, 1] : tensor<2x4x3x2x3xf32> to tensor<2x4x1x2x3xf32>
  %v = titan.slice %x offsets [0, 0, 2, 0, 0] strides [1, 1, 1, 1, 1] : tensor<2x4x3x2x3xf32> to tensor<2x4x1x2x3xf32>
  %qh = titan.reshape %q : tensor<2x4x1x2x3xf32> to tensor<2x4x2x3xf32>
  %kh = titan.reshape %k : tensor<2x4x1x2x3xf32> to tensor<2x4x2x3xf32>
  %vh = titan.reshape %v : tensor<2x4x1x2x3xf32> to tensor<2x4x2x3xf32>
  %dq, %dk, %dv = titan.attention_grad %qh, %kh, %vh result %r, %l, %d scale 0.5 causal {path = ["h.1.attn"]}
      : (tensor<2x4x2x3xf32>, tensor<2x4x2x3xf32>, tensor<2x4x2x3xf32>, tensor<2x4x2x3xf32>, tensor<2x2x4xf32>, tensor<2x4x2x3xf32>)
      -> (tensor<2x4x2x3xf32>, tensor<2x4x2x3xf32>, tensor<2x4x2x3xf32>)
  %dqp = titan.reshape %dq : tensor<2x4x2x3xf32> to tensor<2x4x1x2x3xf32>
  %dkp = titan.reshape %dk : tensor<2x4x2x3xf32> to tensor<2x4x1x2x3xf32>
  %dvp = titan.reshape %dv : tensor<2x4x2x3xf32> to tensor<2x4x1x2x3xf32>
  %joined = titan.concat %dqp, %dkp, %dvp dim 2 : (tensor<2x4x1x2x3xf32>, tensor<2x4x1x2x3xf32>, tensor<2x4x1x2x3xf32>) -> tensor<2x4x3x2x3xf32>
  return %joined : tensor<2x4x3x2x3xf32>
}

// Heads that stand in front of positions are a view; heads whose elements are apart are not.
// CHECK-LABEL: func @transposed
// CHECK: kernel.fused
// CHECK: kernel.call
// CHECK-SAME: query = <operand = {{[0-9]}}, offset = 0, batch = 24, row = 6, head = 3>
// CHECK-SAME: key = <operand = {{[0-9]}}, offset = 0, batch = 24, row = 3, head = 12>
func.func @transposed(%q: tensor<2x4x3x2xf32>, %k: tensor<2x2x4x3xf32>) -> tensor<2x4x2x3xf32> {
  %qt = titan.transpose %q [0, 1, 3, 2] : tensor<2x4x3x2xf32> to tensor<2x4x2x3xf32>
  %kt = titan.transpose %k [0, 2, 1, 3] : tensor<2x2x4x3xf32> to tensor<2x4x2x3xf32>
  %r, %l = titan.attention %qt, %kt, %kt scale 0.5 {path = ["h.2.attn"]}
      : (tensor<2x4x2x3xf32>, tensor<2x4x2x3xf32>, tensor<2x4x2x3xf32>) -> (tensor<2x4x2x3xf32>, tensor<2x2x4xf32>)
  return %r : tensor<2x4x2x3xf32>
}
