// RUN: titan-opt %s --titan-lower-form-kernels | FileCheck %s

// The example of titan-lower-form-kernels.
// CHECK-LABEL: func.func @relu
// CHECK: %[[O:.*]] = kernel.empty : tensor<4xf32>
// CHECK: kernel.fused flat [4] ins(%{{.*}} : tensor<4xf32>) outs(%[[O]] : tensor<4xf32>)
// CHECK: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK: %[[M:.*]] = arith.maximumf %{{.*}}, %[[ZERO]] : f32
// CHECK: kernel.yield %[[M]] : f32
func.func @relu(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = titan.relu %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// Narrow floats are computed in f32 and rounded once.
// CHECK-LABEL: func.func @narrow
// CHECK: arith.extf %{{.*}} : bf16 to f32
// CHECK: arith.addf %{{.*}} : f32
// CHECK: arith.truncf %{{.*}} : f32 to bf16
func.func @narrow(%x: tensor<4xbf16>) -> tensor<4xbf16> {
  %y = titan.add %x, %x : tensor<4xbf16>
  return %y : tensor<4xbf16>
}

// The sign of an integer is in the op.
// CHECK-LABEL: func.func @unsigned
// CHECK: ^bb0(%{{.*}}: i8):
// CHECK: arith.uitofp %{{.*}} : i8 to f32
func.func @unsigned(%x: tensor<4xui8>) -> tensor<4xf32> {
  %y = titan.convert %x : tensor<4xui8> to tensor<4xf32>
  return %y : tensor<4xf32>
}

// Shapes move nothing, orders are maps.
// CHECK-LABEL: func.func @moves
// CHECK: kernel.cast_shape
// CHECK: kernel.fused transpose [3, 4]
func.func @moves(%x: tensor<12xf32>) -> tensor<3x4xf32> {
  %r = titan.reshape %x : tensor<12xf32> to tensor<4x3xf32>
  %t = titan.transpose %r [1, 0] : tensor<4x3xf32> to tensor<3x4xf32>
  return %t : tensor<3x4xf32>
}

// Equal ops become equal kernels, each on its own operands and in its own place.
// CHECK-LABEL: func.func @equal
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4xf32>, %[[Y:[a-z0-9]+]]: tensor<4xf32>
// CHECK: %[[A:.*]] = kernel.fused flat [4] ins(%[[X]], %[[X]] : {{.*}} attributes {path = ["a"]}
// CHECK: arith.subf %[[FIRST:.*]], %[[SECOND:.*]] : f32
// CHECK: %[[B:.*]] = kernel.fused flat [4] ins(%[[X]], %[[Y]] : {{.*}} attributes {path = ["b"], phase = #titan<phase backward>}
// CHECK: %[[C:.*]] = kernel.fused flat [4] ins(%[[B]], %[[A]] : {{.*}} -> (tensor<4xf32>) {
// CHECK: return %[[C]]
func.func @equal(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %a = titan.sub %x, %x {path = ["a"]} : tensor<4xf32>
  %b = titan.sub %x, %y {path = ["b"], phase = #titan<phase backward>} : tensor<4xf32>
  %c = titan.sub %b, %a : tensor<4xf32>
  return %c : tensor<4xf32>
}

// A long column is summed in chunks, then the chunks in order.
// CHECK-LABEL: func.func @column
// CHECK: kernel.fused column [4, 16, 10]
// CHECK: kernel.reduce add %{{.*}} over [1]
// CHECK: kernel.fused column [4, 10]
// CHECK: kernel.reduce add %{{.*}} over [0]
func.func @column(%x: tensor<64x10xf32>) -> tensor<10xf32> {
  %y = titan.reduce sum %x [0] : tensor<64x10xf32> to tensor<10xf32>
  return %y : tensor<10xf32>
}

// Each piece continues what the pieces before it wrote.
// CHECK-LABEL: func.func @concat
// CHECK: %[[E:.*]] = kernel.empty
// CHECK: %[[FIRST:.*]] = kernel.fused flat [2] {{.*}} outs(%[[E]] :
// CHECK: kernel.fused flat [3] {{.*}} outs(%[[FIRST]] :
func.func @concat(%a: tensor<2xf32>, %b: tensor<3xf32>) -> tensor<5xf32> {
  %c = titan.concat %a, %b dim 0 : (tensor<2xf32>, tensor<3xf32>) -> tensor<5xf32>
  return %c : tensor<5xf32>
}

// Operands that no leading dimension describes are transposed first.
// CHECK-LABEL: func.func @product
// CHECK-NOT: kernel.fused
// CHECK: kernel.call #kernel.gemm<{{.*}}transposeA = true, transposeB = false, accumulate = true
// CHECK-LABEL: func.func @heads
// CHECK-COUNT-2: kernel.fused flat [2, 3, 4, 5]
// CHECK: kernel.call #kernel.gemm<batch = 6, m = 4, n = 4, k = 5
func.func @product(%dy: tensor<64x10xf32>, %x: tensor<64x32xf32>, %g: tensor<10x32xf32>) -> tensor<10x32xf32> {
  %c = titan.contract %dy, %x acc %g batch [] x [] contracting [0] x [0] : (tensor<64x10xf32>, tensor<64x32xf32>, tensor<10x32xf32>) -> tensor<10x32xf32>
  return %c : tensor<10x32xf32>
}
func.func @heads(%q: tensor<2x4x3x5xf32>, %k: tensor<2x4x3x5xf32>) -> tensor<2x3x4x4xf32> {
  %c = titan.contract %q, %k batch [0, 2] x [0, 2] contracting [3] x [3] : (tensor<2x4x3x5xf32>, tensor<2x4x3x5xf32>) -> tensor<2x3x4x4xf32>
  return %c : tensor<2x3x4x4xf32>
}

// Barriers stay, so that nothing merges what they keep apart.
// CHECK-LABEL: func.func @barrier
// CHECK: titan.barrier
func.func @barrier(%x: tensor<4xf32>) -> tensor<4xf32> {
  %b = titan.barrier %x id 1 : tensor<4xf32>
  return %b : tensor<4xf32>
}
// Rows of a table by index are routines; the gradient continues what it is added to.
// CHECK-LABEL: func.func @embedding
// CHECK: kernel.call #kernel.embedding<rows = 8, entries = 50, width = 96> ins(%{{.*}}, %{{.*}} : tensor<50x96xf32>, tensor<2x4xi64>)
// CHECK: kernel.call #kernel.embedding_grad<rows = 8, entries = 50, width = 96, accumulate = true, columns = 64> {{.*}} outs(%arg2 :
func.func @embedding(%t: tensor<50x96xf32>, %i: tensor<2x4xi64>, %acc: tensor<50x96xf32>) -> tensor<50x96xf32> {
  %y = titan.embedding %t, %i : (tensor<50x96xf32>, tensor<2x4xi64>) -> tensor<2x4x96xf32>
  %g = titan.embedding_grad %y, %i acc %acc rows 50 : (tensor<2x4x96xf32>, tensor<2x4xi64>, tensor<50x96xf32>) -> tensor<50x96xf32>
  return %g : tensor<50x96xf32>
}

// A dimension read backwards is a map; where indices lead is none. Narrow terms are summed in f32, and the operand is what is changed.
// CHECK-LABEL: func.func @reverse
// CHECK: kernel.fused transpose [2, 4] {{.*}}
func.func @reverse(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %y = titan.reverse %x [1] : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
// CHECK-LABEL: func.func @scatter
// CHECK: kernel.call #kernel.scatter<kind = none, outer = 2, entries = 5, inner = 1, rows = 3, width = 96, columns = 64> ins(%arg1, %arg2 : {{.*}}) outs(%arg0 :
// CHECK: kernel.fused flat {{.*}} ins(%{{.*}} : tensor<2x5x96xbf16>) outs(%{{.*}} : tensor<2x5x96xf32>)
// CHECK: kernel.call #kernel.scatter<kind = add, {{.*}} : tensor<2x5x96xf32>) -> (tensor<2x5x96xf32>)
func.func @scatter(%x: tensor<2x5x96xbf16>, %i: tensor<2x3xi64>, %u: tensor<2x3x96xbf16>) -> tensor<2x5x96xbf16> {
  %y = titan.scatter none %x, %i, %u dim 1 : (tensor<2x5x96xbf16>, tensor<2x3xi64>, tensor<2x3x96xbf16>) -> tensor<2x5x96xbf16>
  %z = titan.scatter add %y, %i, %u dim 1 : (tensor<2x5x96xbf16>, tensor<2x3xi64>, tensor<2x3x96xbf16>) -> tensor<2x5x96xbf16>
  return %z : tensor<2x5x96xbf16>
}
// Elements by index are rows of a table with dimensions around it.
// CHECK-LABEL: func.func @gather
// CHECK: kernel.call #kernel.embedding<rows = 3, entries = 5, width = 96, outer = 2> ins(%arg0, %arg1 : tensor<2x5x96xf32>, tensor<2x3xi64>)
// CHECK: kernel.call #kernel.embedding<rows = 7, entries = 3, width = 1, outer = 2, inner = 96>
func.func @gather(%x: tensor<2x5x96xf32>, %i: tensor<2x3xi64>, %j: tensor<2x7x96xi64>) -> tensor<2x7x96xf32> {
  %y = titan.gather %x, %i dim 1 : (tensor<2x5x96xf32>, tensor<2x3xi64>) -> tensor<2x3x96xf32>
  %z = titan.gather %y, %j dim 1 : (tensor<2x3x96xf32>, tensor<2x7x96xi64>) -> tensor<2x7x96xf32>
  return %z : tensor<2x7x96xf32>
}
// CHECK-LABEL: func.func @top_k
// CHECK: kernel.call #kernel.top_k<rows = 6, length = 7, count = 2, smallest = true>
func.func @top_k(%x: tensor<2x3x7xf32>) -> (tensor<2x3x2xf32>, tensor<2x3x2xi64>) {
  %v, %i = titan.top_k %x smallest : (tensor<2x3x7xf32>) -> (tensor<2x3x2xf32>, tensor<2x3x2xi64>)
  return %v, %i : tensor<2x3x2xf32>, tensor<2x3x2xi64>
}

// The other half of each pair is another map of the operand; what is not rotated is copied.
// CHECK-LABEL: func.func @rotary
// CHECK: kernel.fused flat [2, 4, 2, 2, 3]
// CHECK: kernel.fused flat [2, 4, 2, 2]
func.func @rotary(%x: tensor<2x4x2x8xf32>, %cos: tensor<4x3xf32>, %sin: tensor<4x3xf32>) -> tensor<2x4x2x8xf32> {
  %y = titan.rotary %x, %cos, %sin : (tensor<2x4x2x8xf32>, tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<2x4x2x8xf32>
  return %y : tensor<2x4x2x8xf32>
}

// A convolution reads a padded copy of its operand as a matrix of patches: a line is a position, a column a tap and a channel. Those of one row
// of the window are neighbours.
// CHECK-LABEL: func.func @convolution
// CHECK: %[[FILLED:.*]] = kernel.fused flat [2, 10, 10, 16] outs(
// CHECK: %[[PADDED:.*]] = kernel.fused flat [2, 8, 8, 16] ins(%{{.*}} : tensor<2x8x8x16xf32>) outs(%[[FILLED]] :
// CHECK: kernel.call #kernel.gemm<batch = 1, m = 32, n = 32, k = 144, {{.*}} transposeA = false, transposeB = true,
// CHECK-SAME: patchesA = <lines = [2, 4, 4] by [1600, 320, 32], columns = [3, 48] by [160, 1], offset = 0>> ins(%[[PADDED]],
func.func @convolution(%x: tensor<2x8x8x16xf32>, %w: tensor<32x3x3x16xf32>) -> tensor<2x4x4x32xf32> {
  %y = titan.convolution %x, %w strides [2, 2] low [1, 1] high [1, 1] dilations [1, 1] groups 1
      : (tensor<2x8x8x16xf32>, tensor<32x3x3x16xf32>) -> tensor<2x4x4x32xf32>
  return %y : tensor<2x4x4x32xf32>
}

// Its gradients. Of the operand each residue modulo the strides is a product: one tap, two and two, and four. Of the kernel there is one over the same
// patches.
// CHECK-LABEL: func.func @convolution_gradients
// CHECK: kernel.fused flat [1, 1, 1, 32, 16] ins(%{{.*}} : tensor<32x3x3x16xf32>)
// CHECK: kernel.call #kernel.gemm<batch = 1, m = 32, n = 16, k = 32, {{.*}} patchesA = <lines = [2, 4, 4] by [800, 160, 32], columns = [32] by [1], offset = 0>>
// CHECK: kernel.fused flat [2, 4, 4, 16] ins(%{{.*}} : tensor<2x4x4x16xf32>) outs(%{{.*}} : tensor<2x8x8x16xf32>)
// CHECK: kernel.fused flat [1, 1, 2, 32, 16] ins(
// CHECK: kernel.call #kernel.gemm<batch = 1, m = 32, n = 16, k = 64,
// CHECK: kernel.fused flat [1, 2, 1, 32, 16] ins(
// CHECK: kernel.call #kernel.gemm<batch = 1, m = 32, n = 16, k = 64,
// CHECK: kernel.fused flat [1, 2, 2, 32, 16] ins(
// CHECK: kernel.call #kernel.gemm<batch = 1, m = 32, n = 16, k = 128, {{.*}} columns = [2, 64] by [160, 1]
// CHECK: kernel.call #kernel.gemm<batch = 1, m = 32, n = 144, k = 32, {{.*}} transposeA = true, transposeB = false,
// CHECK-SAME: patchesB = <lines = [2, 4, 4] by [1600, 320, 32], columns = [3, 48] by [160, 1], offset = 0>>
func.func @convolution_gradients(%x: tensor<2x8x8x16xf32>, %w: tensor<32x3x3x16xf32>, %d: tensor<2x4x4x32xf32>) -> (tensor<2x8x8x16xf32>, tensor<32x3x3x16xf32>) {
  %dx = titan.convolution_input_grad %d, %w strides [2, 2] low [1, 1] high [1, 1] dilations [1, 1] groups 1
      : (tensor<2x4x4x32xf32>, tensor<32x3x3x16xf32>) -> tensor<2x8x8x16xf32>
  %dw = titan.convolution_kernel_grad %x, %d strides [2, 2] low [1, 1] high [1, 1] dilations [1, 1] groups 1
      : (tensor<2x8x8x16xf32>, tensor<2x4x4x32xf32>) -> tensor<32x3x3x16xf32>
  return %dx, %dw : tensor<2x8x8x16xf32>, tensor<32x3x3x16xf32>
}

// One tap without padding is a product; two groups are two.
// CHECK-LABEL: func.func @one_tap
// CHECK-NOT: kernel.fused
// CHECK: kernel.call #kernel.gemm<batch = 2, m = 128, n = 16, k = 8, lda = 16, ldb = 8, ldc = 32, strideA = 8, strideB = 128, strideC = 16,
// CHECK-NOT: patches
func.func @one_tap(%x: tensor<2x8x8x16xf32>, %w: tensor<32x1x1x8xf32>) -> tensor<2x8x8x32xf32> {
  %y = titan.convolution %x, %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1] groups 2
      : (tensor<2x8x8x16xf32>, tensor<32x1x1x8xf32>) -> tensor<2x8x8x32xf32>
  return %y : tensor<2x8x8x32xf32>
}

// Lanes of a depthwise one are channels.
// CHECK-LABEL: func.func @depthwise
// CHECK: kernel.fused column [2, 6, 6, 3, 3, 1, 16, 1] ins(
// CHECK: kernel.reduce add %{{.*}} over [3, 4, 5]
func.func @depthwise(%x: tensor<2x8x8x16xf32>, %w: tensor<16x3x3x1xf32>) -> tensor<2x6x6x16xf32> {
  %y = titan.convolution %x, %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1] groups 16
      : (tensor<2x8x8x16xf32>, tensor<16x3x3x1xf32>) -> tensor<2x6x6x16xf32>
  return %y : tensor<2x6x6x16xf32>
}

// CHECK-LABEL: func.func @pool
// CHECK: kernel.fused column [2, 4, 4, 1, 2, 2, 1, 16] ins(
// CHECK: kernel.reduce max %{{.*}} over [3, 4, 5, 6]
func.func @pool(%x: tensor<2x8x8x16xf32>) -> tensor<2x4x4x16xf32> {
  %y = titan.pool max %x window [1, 2, 2, 1] strides [1, 2, 2, 1] low [0, 0, 0, 0] high [0, 0, 0, 0] dilations [1, 1, 1, 1]
      : tensor<2x8x8x16xf32> to tensor<2x4x4x16xf32>
  return %y : tensor<2x4x4x16xf32>
}

// The weights of a recurrent layer in panels, widened; then all steps at once.
// CHECK-LABEL: func.func @recurrence
// CHECK: kernel.fused transpose [1, 2, 20, 16] ins(%{{.*}} : tensor<1x32x20xbf16>) outs(%{{.*}} : tensor<1x2x20x16xf32>)
// CHECK: kernel.call #kernel.recurrence<cell = tanh, steps = 7, batch = 3, width = 20, order = [0], reverse = true, gradient = false, bias = false, dcells = false, element = bf16, samples = 16, columns = 16>
func.func @recurrence(%p: tensor<7x3x20xbf16>, %r: tensor<20x20xbf16>, %h: tensor<3x20xf32>) -> tensor<7x3x20xf32> {
  %y = titan.recurrence tanh %p, %r initial %h order [0] reverse : (tensor<7x3x20xbf16>, tensor<20x20xbf16>, tensor<3x20xf32>) -> tensor<7x3x20xf32>
  return %y : tensor<7x3x20xf32>
}

// The factors of an update that all elements share: one kernel for the parameters of a group, also
// where fusion does not follow.
// CHECK-LABEL: func.func @group
// CHECK: kernel.fused flat [] ins(%arg2, %arg2, %arg3 :
// CHECK-COUNT-2: math.powf %{{.*}} : f64
// CHECK-NOT: math.powf
// CHECK: kernel.fused flat [5]
// CHECK-NOT: math.powf
// CHECK: kernel.fused flat [5]
// CHECK: kernel.fused flat [] ins(%arg2, %arg2, %arg3 :
// CHECK-COUNT-2: math.powf %{{.*}} : f64
// CHECK: kernel.fused flat [5]
func.func @group(%p: tensor<5xf32>, %g: tensor<5xf32>, %s: tensor<f32>, %t: tensor<i64>, %apply: tensor<i1>) -> (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) {
  %a:3 = titan.adam %p, %g, %p, %p lr %s weight_decay %s scale %s t %t apply %apply {beta1 = 0.9 : f64, beta2 = 0.99 : f64, epsilon = 1.0e-8 : f64, decoupled = true, lr_scale = 1.0 : f64} : tensor<5xf32>
  %b:3 = titan.adam %g, %p, %g, %g lr %s weight_decay %s scale %s t %t apply %apply {beta1 = 0.9 : f64, beta2 = 0.99 : f64, epsilon = 1.0e-8 : f64, decoupled = true, lr_scale = 1.0 : f64} : tensor<5xf32>
  %c:3 = titan.adam %p, %p, %g, %g lr %s weight_decay %s scale %s t %t apply %apply {beta1 = 0.9 : f64, beta2 = 0.99 : f64, epsilon = 1.0e-8 : f64, decoupled = true, lr_scale = 2.0 : f64} : tensor<5xf32>
  return %a#0, %b#0, %c#0 : tensor<5xf32>, tensor<5xf32>, tensor<5xf32>
}

// Equal updates share the factors of their own group, whatever came of the other group before.
// CHECK-LABEL: func.func @groups
// CHECK: %[[FIRST:.*]]:3 = kernel.fused flat [] ins(%arg3, %arg4, %arg7 :
// CHECK: kernel.fused flat [4] {{.*}}%[[FIRST]]#0, %[[FIRST]]#1, %[[FIRST]]#2, %arg4,
// CHECK: kernel.fused flat [4] {{.*}}%[[FIRST]]#0, %[[FIRST]]#1, %[[FIRST]]#2, %arg4,
// CHECK: %[[SECOND:.*]]:3 = kernel.fused flat [] ins(%arg3, %arg5, %arg7 :
// CHECK: kernel.fused flat [4] {{.*}}%[[SECOND]]#0, %[[SECOND]]#1, %[[SECOND]]#2, %arg5,
// CHECK: kernel.fused flat [4] {{.*}}%[[SECOND]]#0, %[[SECOND]]#1, %[[SECOND]]#2, %arg5,
func.func @groups(%p: tensor<4xf32>, %g: tensor<4xf32>, %m: tensor<4xf32>, %l: tensor<f32>, %s: tensor<f32>, %z: tensor<f32>, %u: tensor<f32>, %t: tensor<i64>, %apply: tensor<i1>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a:3 = titan.adam %p, %g, %m, %m lr %l weight_decay %s scale %u t %t apply %apply {beta1 = 0.9 : f64, beta2 = 0.99 : f64, epsilon = 1.0e-8 : f64, decoupled = true, lr_scale = 1.0 : f64} : tensor<4xf32>
  %b:3 = titan.adam %g, %p, %m, %m lr %l weight_decay %s scale %u t %t apply %apply {beta1 = 0.9 : f64, beta2 = 0.99 : f64, epsilon = 1.0e-8 : f64, decoupled = true, lr_scale = 1.0 : f64} : tensor<4xf32>
  %c:3 = titan.adam %p, %g, %m, %m lr %l weight_decay %z scale %u t %t apply %apply {beta1 = 0.9 : f64, beta2 = 0.99 : f64, epsilon = 1.0e-8 : f64, decoupled = true, lr_scale = 1.0 : f64} : tensor<4xf32>
  %d:3 = titan.adam %g, %p, %m, %m lr %l weight_decay %z scale %u t %t apply %apply {beta1 = 0.9 : f64, beta2 = 0.99 : f64, epsilon = 1.0e-8 : f64, decoupled = true, lr_scale = 1.0 : f64} : tensor<4xf32>
  return %a#0, %b#0, %c#0, %d#0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
