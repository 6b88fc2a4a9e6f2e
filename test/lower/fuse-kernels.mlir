// RUN: titan-opt %s --titan-lower-form-kernels --titan-lower-fuse-kernels | FileCheck %s
// RUN: titan-opt %s --titan-lower-form-kernels --titan-lower-fuse-kernels --remarks-filter=lower 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK-DAG: 'fc' is computed inside of 'act'
// REMARK-DAG: 'norm' keeps apart from 'sum'

// Broadcast, addition and activation.
// CHECK-LABEL: func.func @chain
// CHECK: kernel.fused flat [4, 8] ins(%{{.*}}, %{{.*}} : tensor<8xf32>, tensor<4x8xf32>)
// CHECK-SAME: path = ["fc", "act"]
// CHECK: arith.addf
// CHECK: arith.maximumf
// CHECK-NOT: kernel.fused
func.func @chain(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %r = titan.broadcast %b [1] {path = ["fc"]} : tensor<8xf32> to tensor<4x8xf32>
  %s = titan.add %x, %r {path = ["fc"]} : tensor<4x8xf32>
  %y = titan.relu %s {path = ["act"]} : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// A result that others read too is written by the merged kernel.
// CHECK-LABEL: func.func @shared
// CHECK: %[[R:.*]]:2 = kernel.fused flat [4]
// CHECK-NOT: kernel.fused
// CHECK: return %[[R]]
func.func @shared(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %e = titan.exp %x : tensor<4xf32>
  %y = titan.add %e, %x : tensor<4xf32>
  return %e, %y : tensor<4xf32>, tensor<4xf32>
}

// Equal kernels become one.
// CHECK-LABEL: func.func @equal_kernels
// CHECK: %[[E:.*]] = kernel.fused flat [4]
// CHECK: math.exp
// CHECK-NOT: kernel.fused
// CHECK: return %[[E]], %[[E]]
func.func @equal_kernels(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a = titan.exp %x : tensor<4xf32>
  %b = titan.exp %x : tensor<4xf32>
  return %a, %b : tensor<4xf32>, tensor<4xf32>
}

// One in a loop becomes the one before it, and one behind the loop does not become one in it.
// CHECK-LABEL: func.func @equal_kernels_around_a_loop
// CHECK: math.exp
// CHECK: accum.loop
// CHECK-NOT: math.exp
// CHECK: math.tanh
// CHECK: accum.yield
// CHECK: math.tanh
func.func @equal_kernels_around_a_loop(%xs: tensor<2x4xf32>, %x: tensor<4xf32>, %z: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %before = titan.exp %x : tensor<4xf32>
  %sum = accum.loop %i in 2 running slices(%s = %xs : tensor<2x4xf32>) accumulators(%a = %z : tensor<4xf32>) -> (tensor<4xf32>) {
    %e = titan.exp %x : tensor<4xf32>
    %t = titan.tanh %x : tensor<4xf32>
    %p = titan.mul %e, %t : tensor<4xf32>
    %q = titan.mul %p, %s : tensor<4xf32>
    %b = titan.add %a, %q : tensor<4xf32>
    accum.yield %b : tensor<4xf32>
  }
  %after = titan.tanh %x : tensor<4xf32>
  return %before, %sum, %after : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Equal pairs come out equal, each with its own operands; a pair whose operands are one value is another.
// CHECK-LABEL: func.func @equal_pairs
// CHECK-SAME: (%[[A:.*]]: {{.*}}, %[[B:.*]]: {{.*}}, %[[C:.*]]: {{.*}}, %[[D:.*]]: {{.*}}, %[[E:.*]]: tensor
// CHECK: kernel.fused flat [512, 512] ins(%[[A]], %[[B]] : {{.*}}path = ["first"]
// CHECK: kernel.fused flat [512, 512] ins(%[[C]], %[[D]] : {{.*}}path = ["second"]
// CHECK: math.exp
// CHECK: arith.addf
// CHECK: kernel.fused flat [512, 512] ins(%[[E]] : {{.*}}path = ["third"]
// CHECK-NOT: kernel.fused
func.func @equal_pairs(%a: tensor<512x512xf32>, %b: tensor<512x512xf32>, %c: tensor<512x512xf32>, %d: tensor<512x512xf32>, %e: tensor<512x512xf32>)
    -> (tensor<512x512xf32>, tensor<512x512xf32>, tensor<512x512xf32>) {
  %x = titan.exp %a {path = ["first"]} : tensor<512x512xf32>
  %first = titan.add %x, %b {path = ["first"]} : tensor<512x512xf32>
  %y = titan.exp %c {path = ["second"]} : tensor<512x512xf32>
  %second = titan.add %y, %d {path = ["second"]} : tensor<512x512xf32>
  %z = titan.exp %e {path = ["third"]} : tensor<512x512xf32>
  %third = titan.add %z, %e {path = ["third"]} : tensor<512x512xf32>
  return %first, %second, %third : tensor<512x512xf32>, tensor<512x512xf32>, tensor<512x512xf32>
}

// Rows with what is done to their results, and partial column sums with what they sum.
// CHECK-LABEL: func.func @rows_and_columns
// CHECK: kernel.fused column [4, 16, 10] ins(%{{.*}} : tensor<64x10xf32>) outs(%{{.*}}, %{{.*}} : tensor<4x10xf32>, tensor<64x10xf32>)
// CHECK: kernel.reduce max %{{.*}} over [2]
// CHECK: kernel.reduce add %{{.*}} over [2]
// CHECK: kernel.reduce add %{{.*}} over [1]
// CHECK: kernel.fused column [4, 10]
// CHECK-NOT: kernel.fused
func.func @rows_and_columns(%x: tensor<64x10xf32>) -> (tensor<64x10xf32>, tensor<10xf32>) {
  %p = titan.softmax %x dim 1 : tensor<64x10xf32>
  %s = titan.reduce sum %p [0] : tensor<64x10xf32> to tensor<10xf32>
  return %p, %s : tensor<64x10xf32>, tensor<10xf32>
}

// A sum over the rows' results would be in another order inside of the row kernel.
// CHECK-LABEL: func.func @order
// CHECK: kernel.fused row [64, 10]
// CHECK: kernel.fused row [64]
func.func @order(%x: tensor<64x10xf32>) -> tensor<f32> {
  %n = titan.reduce max %x [1] {path = ["norm"]} : tensor<64x10xf32> to tensor<64xf32>
  %s = titan.reduce sum %n [0] {path = ["sum"]} : tensor<64xf32> to tensor<f32>
  return %s : tensor<f32>
}

// Nothing expensive is computed for every row again.
// CHECK-LABEL: func.func @repeated
// CHECK: kernel.fused flat [8]
// CHECK: math.exp
// CHECK: kernel.fused flat [4, 8]
func.func @repeated(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %e = titan.exp %b : tensor<8xf32>
  %r = titan.broadcast %e [1] : tensor<8xf32> to tensor<4x8xf32>
  %y = titan.add %x, %r : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// A vector is rounded once, and read rounded.
// CHECK-LABEL: func.func @rounded_vector
// CHECK: %[[N:.*]] = kernel.fused flat [8]
// CHECK: kernel.fused flat [4, 8] ins({{.*}}%[[N]]{{.*}} : {{.*}}tensor<8xbf16>
// CHECK-NOT: kernel.fused
func.func @rounded_vector(%x: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %n = titan.convert %b : tensor<8xf32> to tensor<8xbf16>
  %r = titan.broadcast %n [1] : tensor<8xbf16> to tensor<4x8xbf16>
  %f = titan.convert %r : tensor<4x8xbf16> to tensor<4x8xf32>
  %y = titan.add %x, %f : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}

// What the forward pass stores anyway is read again, not stored in another form as well.
// CHECK-LABEL: func.func @stored
// CHECK: %[[Y:.*]] = kernel.fused flat [64, 100]
// CHECK: kernel.call
// CHECK: kernel.fused flat [64, 100] ins(%[[Y]], %{{.*}} :
func.func @stored(%x: tensor<64x100xf32>, %w: tensor<100x100xf32>) -> (tensor<64x100xf32>, tensor<64x100xf32>) {
  %y = titan.relu %x : tensor<64x100xf32>
  %z = titan.contract %y, %w batch [] x [] contracting [1] x [0] : (tensor<64x100xf32>, tensor<100x100xf32>) -> tensor<64x100xf32>
  %zero = titan.constant dense<0.0> : tensor<64x100xf32> {phase = #titan<phase backward>}
  %m = titan.compare gt %y, %zero {phase = #titan<phase backward>} : tensor<64x100xf32>
  %d = titan.select %m, %z, %zero {phase = #titan<phase backward>} : tensor<64x100xi1>, tensor<64x100xf32>
  return %z, %d : tensor<64x100xf32>, tensor<64x100xf32>
}

// A reshape between two kernels is a matter of maps: rows of [2, 32, 10] are rows of [64, 10].
// CHECK-LABEL: func.func @through_reshape
// CHECK: kernel.fused flat [2, 32, 10] ins(%{{.*}}, %{{.*}} : tensor<10xf32>, tensor<64x10xf32>)
// CHECK-NOT: kernel.cast_shape
// CHECK: return
func.func @through_reshape(%x: tensor<64x10xf32>, %b: tensor<10xf32>) -> tensor<2x32x10xf32> {
  %r = titan.broadcast %b [1] : tensor<10xf32> to tensor<64x10xf32>
  %s = titan.add %x, %r : tensor<64x10xf32>
  %v = titan.reshape %s : tensor<64x10xf32> to tensor<2x32x10xf32>
  %y = titan.tanh %v : tensor<2x32x10xf32>
  return %y : tensor<2x32x10xf32>
}

// Chunks of 16 of all 64 rows lie within the 32 rows of each sample: the gradient is computed, and
// written, where its columns are summed.
// CHECK-LABEL: func.func @chunks_of_samples
// CHECK: kernel.fused column [2, 2, 16, 10] ins(%{{.*}}, %{{.*}} : tensor<2x32x10xf32>, tensor<2x32x10xf32>) outs(%{{.*}}, %{{.*}} : tensor<4x10xf32>, tensor<2x32x10xf32>)
// CHECK: math.exp
// CHECK: kernel.reduce add %{{.*}} over [2]
// CHECK: kernel.fused column [4, 10]
func.func @chunks_of_samples(%x: tensor<2x32x10xf32>, %dy: tensor<2x32x10xf32>) -> (tensor<2x32x10xf32>, tensor<10xf32>) {
  %e = titan.exp %x : tensor<2x32x10xf32>
  %dx = titan.mul %dy, %e : tensor<2x32x10xf32>
  %db = titan.reduce sum %dx [0, 1] : tensor<2x32x10xf32> to tensor<10xf32>
  return %dx, %db : tensor<2x32x10xf32>, tensor<10xf32>
}

// What reads one large value at the same elements reads it once.
// CHECK-LABEL: func.func @shared_read
// CHECK: kernel.fused row [128, 64] ins(%{{.*}} : tensor<128x64xf32>) outs(%{{.*}}, %{{.*}} : tensor<128x64xf32>, tensor<128xf32>)
// CHECK-NOT: kernel.fused
// REMARK-DAG: 'length' runs together with 'double'
func.func @shared_read(%x: tensor<128x64xf32>) -> (tensor<128xf32>, tensor<128x64xf32>) {
  %q = titan.mul %x, %x {path = ["length"]} : tensor<128x64xf32>
  %s = titan.reduce sum %q [1] {path = ["length"]} : tensor<128x64xf32> to tensor<128xf32>
  %d = titan.add %x, %x {path = ["double"]} : tensor<128x64xf32>
  return %s, %d : tensor<128xf32>, tensor<128x64xf32>
}

// The sum moves up to the exponential, and so before the tangent, whose operand it reads too.
// CHECK-LABEL: func.func @shared_reads_of_one_that_moved_up
// CHECK: kernel.fused flat [128, 64] {{.*}} -> (tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x64xf32>)
// CHECK-NOT: kernel.fused
// CHECK: kernel.call
func.func @shared_reads_of_one_that_moved_up(%x: tensor<128x64xf32>, %y: tensor<128x64xf32>, %w: tensor<64x64xf32>)
    -> (tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x64xf32>) {
  %e = titan.exp %x : tensor<128x64xf32>
  %p = titan.contract %e, %w batch [] x [] contracting [1] x [0] : (tensor<128x64xf32>, tensor<64x64xf32>) -> tensor<128x64xf32>
  %t = titan.tanh %y : tensor<128x64xf32>
  %s = titan.add %x, %y : tensor<128x64xf32>
  return %p, %t, %s : tensor<128x64xf32>, tensor<128x64xf32>, tensor<128x64xf32>
}

// The loss and its gradient, which may take the place of the logits: one sweep over each row.
// CHECK-LABEL: func.func @loss
// CHECK: kernel.fused row [64, 128]
// CHECK: math.exp
// CHECK-NOT: math.exp
// CHECK: return
func.func @loss(%x: tensor<64x32xf32>, %w: tensor<128x32xf32>, %t: tensor<64xi64>) -> (tensor<64xf32>, tensor<64x128xf32>) {
  %z = titan.contract %x, %w batch [] x [] contracting [1] x [1] : (tensor<64x32xf32>, tensor<128x32xf32>) -> tensor<64x128xf32>
  %l = titan.cross_entropy %z, %t ignore_index -100 label_smoothing 0.0 : (tensor<64x128xf32>, tensor<64xi64>) -> tensor<64xf32>
  %one = titan.constant dense<1.0> : tensor<64xf32>
  %d = titan.cross_entropy_grad %z, %t, %one ignore_index -100 label_smoothing 0.0 {phase = #titan<phase backward>} : (tensor<64x128xf32>, tensor<64xi64>, tensor<64xf32>) -> tensor<64x128xf32>
  return %l, %d : tensor<64xf32>, tensor<64x128xf32>
}

// A bias is added again in the backward pass: that costs no more than to read the sum, and the sum need not be written.
// CHECK-LABEL: func.func @bias_again
// CHECK: kernel.fused flat [64, 128] ins(%{{.*}}, %{{.*}} : tensor<128xf32>, tensor<64x128xf32>) outs(%{{[^,]*}} : tensor<64x128xf32>)
// CHECK: kernel.call
// CHECK: kernel.fused flat [64, 128] ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<128xf32>, tensor<64x128xf32>, tensor<64x128xf32>)
func.func @bias_again(%h: tensor<64x128xf32>, %b: tensor<128xf32>, %w: tensor<128x128xf32>) -> (tensor<64x128xf32>, tensor<64x128xf32>) {
  %r = titan.broadcast %b [1] : tensor<128xf32> to tensor<64x128xf32>
  %s = titan.add %h, %r : tensor<64x128xf32>
  %y = titan.tanh %s : tensor<64x128xf32>
  %z = titan.contract %y, %w batch [] x [] contracting [1] x [0] : (tensor<64x128xf32>, tensor<128x128xf32>) -> tensor<64x128xf32>
  %d = titan.mul %z, %s {phase = #titan<phase backward>} : tensor<64x128xf32>
  return %y, %d : tensor<64x128xf32>, tensor<64x128xf32>
}

// Steps between neighbours: one small kernel writes behind the first column, and the next reads what it wrote one column further on. They run apart.
// CHECK-LABEL: func.func @steps
// CHECK: %[[JOINED:.*]] = kernel.fused flat [4, 10]
// CHECK: kernel.fused flat [4, 10] ins(%[[JOINED]], %[[JOINED]], %
func.func @steps(%x: tensor<4x10xf32>) -> tensor<4x10xf32> {
  %first = titan.slice %x offsets [0, 0] strides [1, 1] : tensor<4x10xf32> to tensor<4x1xf32>
  %joined = titan.concat %first, %x dim 1 : (tensor<4x1xf32>, tensor<4x10xf32>) -> tensor<4x11xf32>
  %own = titan.slice %joined offsets [0, 1] strides [1, 1] : tensor<4x11xf32> to tensor<4x10xf32>
  %previous = titan.slice %joined offsets [0, 0] strides [1, 1] : tensor<4x11xf32> to tensor<4x10xf32>
  %step = titan.sub %own, %previous : tensor<4x10xf32>
  %y = titan.mul %step, %x : tensor<4x10xf32>
  return %y : tensor<4x10xf32>
}

// Each row, and the first row for each: as many points, but no space in which both read one element visits all of them.
// CHECK-LABEL: func.func @first_row
// CHECK: kernel.fused flat [4, 2000]
// CHECK: kernel.fused flat [4, 2000]
func.func @first_row(%x: tensor<4x2000xf32>) -> (tensor<4x2000xf32>, tensor<4x2000xf32>) {
  %e = titan.exp %x : tensor<4x2000xf32>
  %slice = titan.slice %x offsets [0, 0] strides [1, 1] : tensor<4x2000xf32> to tensor<1x2000xf32>
  %row = titan.reshape %slice : tensor<1x2000xf32> to tensor<2000xf32>
  %rows = titan.broadcast %row [1] : tensor<2000xf32> to tensor<4x2000xf32>
  %y = titan.tanh %rows : tensor<4x2000xf32>
  return %e, %y : tensor<4x2000xf32>, tensor<4x2000xf32>
}

// Two small kernels become one, and a view of the first that nobody reads goes with them.
// CHECK-LABEL: func.func @view_of_sibling
// CHECK: %[[R:.*]]:2 = kernel.fused flat [4]
// CHECK-NOT: kernel.cast_shape
// CHECK: return %[[R]]#1, %[[R]]#0
func.func @view_of_sibling(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %e = titan.exp %x : tensor<4xf32>
  %f = titan.relu %y : tensor<4xf32>
  %v = titan.reshape %e : tensor<4xf32> to tensor<2x2xf32>
  return %e, %f : tensor<4xf32>, tensor<4xf32>
}

// A sum, a square product of it, and both added: the last kernel reads the sum in two places, which are one only on a diagonal. The sum stays by itself.
// CHECK-LABEL: func.func @two_places
// CHECK: %[[SUM:.*]] = kernel.fused flat [4, 6]
// CHECK: kernel.fused row [4, 6, 6] ins(%[[SUM]], %{{.*}}, %[[SUM]] :
func.func @two_places(%x: tensor<4x6xf64>, %y: tensor<4x6xf64>, %w: tensor<6x6xf64>) -> (tensor<4x6xf64>, tensor<4x6xf64>) {
  %sum = titan.add %x, %y : tensor<4x6xf64>
  %product = titan.contract %sum, %w batch [] x [] contracting [1] x [1] : (tensor<4x6xf64>, tensor<6x6xf64>) -> tensor<4x6xf64>
  %both = titan.add %sum, %product : tensor<4x6xf64>
  return %both, %sum : tensor<4x6xf64>, tensor<4x6xf64>
}

// A number of each group of channels is repeated for each channel once: read by group, a row of channels would be eight
// rows of four.
// CHECK-LABEL: func.func @short_rows
// CHECK: %[[WIDE:.*]] = kernel.fused flat [2, 8, 4] ins(%{{.*}} : tensor<2x8xf32>)
// CHECK: kernel.fused flat [2, 16, 8, 4] ins(%[[WIDE]], %{{.*}} : tensor<2x8x4xf32>, tensor<2x16x8x4xf32>)
// CHECK-NOT: kernel.fused
// REMARK-DAG: the reader's rows would be cut into those along which it repeats elements
func.func @short_rows(%x: tensor<2x16x8x4xf32>, %s: tensor<2x8xf32>) -> tensor<2x16x8x4xf32> {
  %wide = titan.broadcast %s [0, 1] {path = ["groups"]} : tensor<2x8xf32> to tensor<2x8x4xf32>
  %all = titan.broadcast %wide [0, 2, 3] {path = ["norm"]} : tensor<2x8x4xf32> to tensor<2x16x8x4xf32>
  %y = titan.mul %x, %all {path = ["norm"]} : tensor<2x16x8x4xf32>
  return %y : tensor<2x16x8x4xf32>
}

// CHECK-LABEL: func.func @long_rows
// CHECK: kernel.fused flat [2, 16, 8, 32]
// CHECK-NOT: kernel.fused
func.func @long_rows(%x: tensor<2x16x8x32xf32>, %s: tensor<2x8xf32>) -> tensor<2x16x8x32xf32> {
  %wide = titan.broadcast %s [0, 1] : tensor<2x8xf32> to tensor<2x8x32xf32>
  %all = titan.broadcast %wide [0, 2, 3] : tensor<2x8x32xf32> to tensor<2x16x8x32xf32>
  %y = titan.mul %x, %all : tensor<2x16x8x32xf32>
  return %y : tensor<2x16x8x32xf32>
}

// Copies of one element are made where they are read, not where the element is.
// CHECK-LABEL: func.func @repeated_scalars
// CHECK: kernel.fused row [64, 256] ins(%{{.*}} : tensor<64x256xf32>) outs(%{{.*}} : tensor<f32>)
// CHECK: kernel.fused row [8]
// CHECK: kernel.fused flat [64, 256] ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<f32>, tensor<f32>, tensor<64x256xf32>)
func.func @repeated_scalars(%x: tensor<64x256xf32>, %p: tensor<64x256xf32>, %q: tensor<8xf32>) -> tensor<64x256xf32> {
  %square = titan.mul %x, %x : tensor<64x256xf32>
  %sum = titan.reduce sum %square [0, 1] : tensor<64x256xf32> to tensor<f32>
  %norm = titan.sqrt %sum : tensor<f32>
  %n = titan.broadcast %norm [] : tensor<f32> to tensor<64x256xf32>
  %few = titan.broadcast %norm [] : tensor<f32> to tensor<8xf32>
  %scaled = titan.mul %q, %few : tensor<8xf32>
  %all = titan.reduce sum %scaled [0] : tensor<8xf32> to tensor<f32>
  %a = titan.broadcast %all [] : tensor<f32> to tensor<64x256xf32>
  %t = titan.add %p, %a : tensor<64x256xf32>
  %y = titan.mul %t, %n : tensor<64x256xf32>
  return %y : tensor<64x256xf32>
}

// The squares of a gradient whose layout changes: the copy is made by tiles, and its rows are
// summed from there.
// CHECK-LABEL: func.func @rows_of_a_stored_transposition
// CHECK: %[[COPY:.*]] = kernel.fused transpose [64, 16, 9] ins(%{{.*}} : tensor<64x9x16xf32>)
// CHECK: kernel.fused row [64, 16, 9] ins(%[[COPY]] : tensor<64x16x9xf32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: arith.mulf
func.func @rows_of_a_stored_transposition(%g: tensor<64x9x16xf32>) -> (tensor<64x16x9xf32>, tensor<64xf32>) {
  %t = titan.transpose %g [0, 2, 1] : tensor<64x9x16xf32> to tensor<64x16x9xf32>
  %square = titan.mul %t, %t : tensor<64x16x9xf32>
  %sums = titan.reduce sum %square [1, 2] : tensor<64x16x9xf32> to tensor<64xf32>
  return %t, %sums : tensor<64x16x9xf32>, tensor<64xf32>
}

// Where nothing else reads the copy, none is made.
// CHECK-LABEL: func.func @rows_of_a_transposition
// CHECK: kernel.fused row [64, 16, 9] ins(%{{.*}} : tensor<64x9x16xf32>)
// CHECK-NOT: kernel.fused
func.func @rows_of_a_transposition(%g: tensor<64x9x16xf32>) -> tensor<64xf32> {
  %t = titan.transpose %g [0, 2, 1] : tensor<64x9x16xf32> to tensor<64x16x9xf32>
  %square = titan.mul %t, %t : tensor<64x16x9xf32>
  %sums = titan.reduce sum %square [1, 2] : tensor<64x16x9xf32> to tensor<64xf32>
  return %sums : tensor<64xf32>
}

// The kernel of a depthwise convolution is laid out once, not gathered at each position.
// CHECK-LABEL: func.func @depthwise
// CHECK: %[[TAPS:.*]] = kernel.fused transpose
// CHECK: kernel.fused column {{.*}} ins({{.*}}%[[TAPS]]
func.func @depthwise(%x: tensor<2x10x10x16xf32>, %w: tensor<16x3x3x1xf32>) -> tensor<2x8x8x16xf32> {
  %y = titan.convolution %x, %w strides [1, 1] low [0, 0] high [0, 0] dilations [1, 1] groups 16 : (tensor<2x10x10x16xf32>, tensor<16x3x3x1xf32>) -> tensor<2x8x8x16xf32>
  return %y : tensor<2x8x8x16xf32>
}
