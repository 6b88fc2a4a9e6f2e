// One negative test for each numbered constraint of the kernel dialect; the label is the constraint's.
// RUN: titan-opt %s --split-input-file --verify-diagnostics

func.func @fused_C1_count(%x: tensor<4xf32>, %o: tensor<4xf32>) {
  // expected-error @+1 {{(C1) has 1 maps for 2 operands}}
  %y = kernel.fused flat [4] ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> (tensor<4xf32>) {
  ^bb0(%v: f32):
    kernel.yield %v : f32
  }
  return
}

// -----

func.func @fused_C1_bounds(%x: tensor<4xf32>, %o: tensor<4xf32>) {
  // expected-error @+1 {{(C1) map affine_map<(d0) -> (d0 + 1)> leaves 'tensor<4xf32>'}}
  %y = kernel.fused flat [4] ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) maps [affine_map<(i) -> (i + 1)>, affine_map<(i) -> (i)>] -> (tensor<4xf32>) {
  ^bb0(%v: f32):
    kernel.yield %v : f32
  }
  return
}

// -----

func.func @fused_C1_rank(%x: tensor<4xf32>, %o: tensor<4xf32>) {
  // expected-error @+1 {{does not lead from 1 dimensions to 'tensor<4xf32>'}}
  %y = kernel.fused flat [4] ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) maps [affine_map<(i) -> ()>, affine_map<(i) -> (i)>] -> (tensor<4xf32>) {
  ^bb0(%v: f32):
    kernel.yield %v : f32
  }
  return
}

// -----

func.func @fused_C2(%x: tensor<4xf32>, %o: tensor<4xf64>) {
  // expected-error @+1 {{(C2) body arguments are not the element types of ins}}
  %y = kernel.fused flat [4] ins(%x : tensor<4xf32>) outs(%o : tensor<4xf64>) maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> (tensor<4xf64>) {
  ^bb0(%v: f64):
    kernel.yield %v : f64
  }
  return
}

// -----

func.func @fused_C3(%x: tensor<4xf32>, %o: tensor<4xf32>) {
  // expected-error @+1 {{(C3) yields 0 values to 1 outs, or results do not match them}}
  %y = kernel.fused flat [4] ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> (tensor<4xf32>) {
  ^bb0(%v: f32):
    kernel.yield
  }
  return
}

// -----

func.func @fused_C4(%x: tensor<4x2xf32>, %o: tensor<4xf32>) {
  // expected-error @+1 {{(C4) yielded value 0 depends on dimension 1}}
  %y = kernel.fused row [4, 2] ins(%x : tensor<4x2xf32>) outs(%o : tensor<4xf32>) maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>] -> (tensor<4xf32>) {
  ^bb0(%v: f32):
    kernel.yield %v : f32
  }
  return
}

// -----

func.func @fused_C5_twice(%x: tensor<4xf32>, %o: tensor<4x4xf32>) {
  // expected-error @+1 {{(C5) map}}
  %y = kernel.fused flat [4] ins(%x : tensor<4xf32>) outs(%o : tensor<4x4xf32>) maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i, i)>] -> (tensor<4x4xf32>) {
  ^bb0(%v: f32):
    kernel.yield %v : f32
  }
  return
}

// -----

func.func @fused_C6(%x: tensor<4xf32>, %o: tensor<4xf32>) {
  // expected-error @+1 {{(C6) body holds builtin.unrealized_conversion_cast}}
  %y = kernel.fused flat [4] ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> (tensor<4xf32>) {
  ^bb0(%v: f32):
    %w = builtin.unrealized_conversion_cast %v : f32 to f32
    kernel.yield %w : f32
  }
  return
}

// -----

func.func @reduce_C1(%x: tensor<4xf32>, %o: tensor<4xf32>) {
  %y = kernel.fused row [4] ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> (tensor<4xf32>) {
  ^bb0(%v: f32):
    // expected-error @+1 {{(C1) dims [1] are not increasing within the space of rank 1}}
    %s = kernel.reduce add %v over [1] : f32
    kernel.yield %s : f32
  }
  return
}

// -----

func.func @index_C1(%o: tensor<4xf32>) {
  %y = kernel.fused flat [4] outs(%o : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> (tensor<4xf32>) {
    // expected-error @+1 {{(C1) dim 1 is outside the space of rank 1}}
    %i = kernel.index 1
    %c = arith.constant 0.0 : f32
    kernel.yield %c : f32
  }
  return
}

// -----

func.func @call_C1_operands(%x: tensor<4x6xf32>, %w: tensor<3x6xf32>, %c: tensor<4x3xf32>) {
  // expected-error @+1 {{(C1) takes A, B, bias and one out}}
  %y = kernel.call #kernel.gemm<batch = 1, m = 4, n = 3, k = 6, lda = 6, ldb = 6, ldc = 3, strideA = 0, strideB = 0,
      strideC = 0, transposeA = false, transposeB = true, accumulate = false, bias = true, relu = false, tileM = 4, tileN = 3>
      ins(%x, %w : tensor<4x6xf32>, tensor<3x6xf32>) outs(%c : tensor<4x3xf32>) -> (tensor<4x3xf32>)
  return
}

// -----

func.func @call_C1_elements(%x: tensor<4x6xf32>, %w: tensor<2x6xf32>, %c: tensor<4x3xf32>) {
  // expected-error @+1 {{(C1) touches 18 elements of B, which has 12}}
  %y = kernel.call #kernel.gemm<batch = 1, m = 4, n = 3, k = 6, lda = 6, ldb = 6, ldc = 3, strideA = 0, strideB = 0,
      strideC = 0, transposeA = false, transposeB = true, accumulate = false, bias = false, relu = false, tileM = 4, tileN = 3>
      ins(%x, %w : tensor<4x6xf32>, tensor<2x6xf32>) outs(%c : tensor<4x3xf32>) -> (tensor<4x3xf32>)
  return
}

// -----

func.func @call_C1_bias(%x: tensor<4x6xbf16>, %w: tensor<3x6xbf16>, %b: tensor<3xf32>, %c: tensor<4x3xbf16>) {
  // expected-error @+1 {{(C1) adds a bias of 'f32' where C has 'bf16'}}
  %y = kernel.call #kernel.gemm<batch = 1, m = 4, n = 3, k = 6, lda = 6, ldb = 6, ldc = 3, strideA = 0, strideB = 0,
      strideC = 0, transposeA = false, transposeB = true, accumulate = false, bias = true, relu = false, tileM = 4, tileN = 3>
      ins(%x, %w, %b : tensor<4x6xbf16>, tensor<3x6xbf16>, tensor<3xf32>) outs(%c : tensor<4x3xbf16>) -> (tensor<4x3xbf16>)
  return
}

// -----

func.func @call_C2(%x: tensor<4x6xf32>, %w: tensor<3x6xf32>, %c: tensor<4x3xf32>) {
  // expected-error @+1 {{(C2) results have the types of outs}}
  %y = kernel.call #kernel.gemm<batch = 1, m = 4, n = 3, k = 6, lda = 6, ldb = 6, ldc = 3, strideA = 0, strideB = 0,
      strideC = 0, transposeA = false, transposeB = true, accumulate = false, bias = false, relu = false, tileM = 4, tileN = 3>
      ins(%x, %w : tensor<4x6xf32>, tensor<3x6xf32>) outs(%c : tensor<4x3xf32>) -> (tensor<12xf32>)
  return
}

// -----

func.func @call_C3_extent(%x: tensor<4x6xf32>, %w: tensor<3x6xf32>, %c: tensor<4x3xf32>) {
  // expected-error @+1 {{(C3) extents and tiles are positive, found 0}}
  %y = kernel.call #kernel.gemm<batch = 1, m = 4, n = 3, k = 0, lda = 6, ldb = 6, ldc = 3, strideA = 0, strideB = 0,
      strideC = 0, transposeA = false, transposeB = true, accumulate = false, bias = false, relu = false, tileM = 4, tileN = 3>
      ins(%x, %w : tensor<4x6xf32>, tensor<3x6xf32>) outs(%c : tensor<4x3xf32>) -> (tensor<4x3xf32>)
  return
}

// -----

func.func @call_C3_leading(%x: tensor<4x6xf32>, %w: tensor<3x6xf32>, %c: tensor<4x3xf32>) {
  // expected-error @+1 {{(C3) leading dimension 5 of A is below its row length 6}}
  %y = kernel.call #kernel.gemm<batch = 1, m = 4, n = 3, k = 6, lda = 5, ldb = 6, ldc = 3, strideA = 0, strideB = 0,
      strideC = 0, transposeA = false, transposeB = true, accumulate = false, bias = false, relu = false, tileM = 4, tileN = 3>
      ins(%x, %w : tensor<4x6xf32>, tensor<3x6xf32>) outs(%c : tensor<4x3xf32>) -> (tensor<4x3xf32>)
  return
}

// -----

func.func @slice_C1(%x: memref<4x2xf32>, %i: index) {
  // expected-error @+1 {{is no slice of}}
  %s = kernel.slice %x[%i] : memref<4x2xf32> to memref<3xf32>
  return
}

// -----

func.func @rows_C1(%x: tensor<4x2xf32>, %i: index) {
  // expected-error @+1 {{(C1) 'tensor<5x2xf32>' is no rows of 'tensor<4x2xf32>'}}
  %s = kernel.rows %x[%i] : tensor<4x2xf32> to tensor<5x2xf32>
  return
}

// -----

func.func @cast_shape_C1(%x: tensor<4x2xf32>) {
  // expected-error @+1 {{(C1) casts 'tensor<4x2xf32>' to 'tensor<6xf32>'}}
  %s = kernel.cast_shape %x : tensor<4x2xf32> to tensor<6xf32>
  return
}

// -----

func.func @scatter_C1_count(%a: tensor<2x4xi64>, %o: tensor<2x5x3xf32>) {
  // expected-error @+1 {{(C1) takes indices, updates and one out}}
  %r = kernel.call #kernel.scatter<kind = add, outer = 2, entries = 5, inner = 1, rows = 4, width = 3, columns = 3> ins(%a : tensor<2x4xi64>) outs(%o : tensor<2x5x3xf32>) -> (tensor<2x5x3xf32>)
  return
}

// -----

func.func @scatter_C3(%a: tensor<2x4xi64>, %b: tensor<2x4x3xf32>, %o: tensor<2x5x3xf32>) {
  // expected-error @+1 {{(C3) extents are positive, found 0}}
  %r = kernel.call #kernel.scatter<kind = add, outer = 2, entries = 5, inner = 1, rows = 4, width = 3, columns = 0> ins(%a, %b : tensor<2x4xi64>, tensor<2x4x3xf32>) outs(%o : tensor<2x5x3xf32>) -> (tensor<2x5x3xf32>)
  return
}

// -----

func.func @scatter_C1_indices(%a: tensor<2x4xf32>, %b: tensor<2x4x3xf32>, %o: tensor<2x5x3xf32>) {
  // expected-error @+1 {{(C1) indices are integers, found 'tensor<2x4xf32>'}}
  %r = kernel.call #kernel.scatter<kind = add, outer = 2, entries = 5, inner = 1, rows = 4, width = 3, columns = 3> ins(%a, %b : tensor<2x4xf32>, tensor<2x4x3xf32>) outs(%o : tensor<2x5x3xf32>) -> (tensor<2x5x3xf32>)
  return
}

// -----

func.func @scatter_C1_element(%a: tensor<2x4xi64>, %b: tensor<2x4x3xf64>, %o: tensor<2x5x3xf32>) {
  // expected-error @+1 {{(C1) updates and result have one element type, found 'tensor<2x4x3xf64>' and 'tensor<2x5x3xf32>'}}
  %r = kernel.call #kernel.scatter<kind = add, outer = 2, entries = 5, inner = 1, rows = 4, width = 3, columns = 3> ins(%a, %b : tensor<2x4xi64>, tensor<2x4x3xf64>) outs(%o : tensor<2x5x3xf32>) -> (tensor<2x5x3xf32>)
  return
}

// -----

func.func @scatter_C1_narrow(%a: tensor<2x4xi64>, %b: tensor<2x4x3xbf16>, %o: tensor<2x5x3xbf16>) {
  // expected-error @+1 {{(C1) cannot combine elements of type 'bf16'}}
  %r = kernel.call #kernel.scatter<kind = add, outer = 2, entries = 5, inner = 1, rows = 4, width = 3, columns = 3> ins(%a, %b : tensor<2x4xi64>, tensor<2x4x3xbf16>) outs(%o : tensor<2x5x3xbf16>) -> (tensor<2x5x3xbf16>)
  return
}

// -----

func.func @scatter_C1_touched(%a: tensor<2x4xi64>, %b: tensor<2x4x3xf32>, %o: tensor<2x5x3xf32>) {
  // expected-error @+1 {{(C1) touches 16 elements of 'tensor<2x4xi64>'}}
  %r = kernel.call #kernel.scatter<kind = add, outer = 2, entries = 5, inner = 2, rows = 4, width = 3, columns = 3> ins(%a, %b : tensor<2x4xi64>, tensor<2x4x3xf32>) outs(%o : tensor<2x5x3xf32>) -> (tensor<2x5x3xf32>)
  return
}

// -----

func.func @top_k_C1_count(%a: tensor<3x5xf32>, %o: tensor<3x2xf32>) {
  // expected-error @+1 {{(C1) takes one in, and outs for values and indices}}
  %r = kernel.call #kernel.top_k<rows = 3, length = 5, count = 2, smallest = false> ins(%a : tensor<3x5xf32>) outs(%o : tensor<3x2xf32>) -> (tensor<3x2xf32>)
  return
}

// -----

func.func @top_k_C3(%a: tensor<3x5xf32>, %o: tensor<3x2xf32>, %p: tensor<3x2xi64>) {
  // expected-error @+1 {{(C3) takes 6 of 5 elements of 3 rows}}
  %r:2 = kernel.call #kernel.top_k<rows = 3, length = 5, count = 6, smallest = false> ins(%a : tensor<3x5xf32>) outs(%o, %p : tensor<3x2xf32>, tensor<3x2xi64>) -> (tensor<3x2xf32>, tensor<3x2xi64>)
  return
}

// -----

func.func @top_k_C1_element(%a: tensor<3x5xf32>, %o: tensor<3x2xf64>, %p: tensor<3x2xi64>) {
  // expected-error @+1 {{(C1) orders numbers of one type, found 'tensor<3x5xf32>' and 'tensor<3x2xf64>'}}
  %r:2 = kernel.call #kernel.top_k<rows = 3, length = 5, count = 2, smallest = false> ins(%a : tensor<3x5xf32>) outs(%o, %p : tensor<3x2xf64>, tensor<3x2xi64>) -> (tensor<3x2xf64>, tensor<3x2xi64>)
  return
}

// -----

func.func @top_k_C1_indices(%a: tensor<3x5xf32>, %o: tensor<3x2xf32>, %p: tensor<3x2xi32>) {
  // expected-error @+1 {{(C1) indices are i64, found 'tensor<3x2xi32>'}}
  %r:2 = kernel.call #kernel.top_k<rows = 3, length = 5, count = 2, smallest = false> ins(%a : tensor<3x5xf32>) outs(%o, %p : tensor<3x2xf32>, tensor<3x2xi32>) -> (tensor<3x2xf32>, tensor<3x2xi32>)
  return
}

// -----

func.func @top_k_C1_touched(%a: tensor<3x5xf32>, %o: tensor<3x2xf32>, %p: tensor<3x2xi64>) {
  // expected-error @+1 {{(C1) touches 18 elements of 'tensor<3x5xf32>'}}
  %r:2 = kernel.call #kernel.top_k<rows = 3, length = 6, count = 2, smallest = false> ins(%a : tensor<3x5xf32>) outs(%o, %p : tensor<3x2xf32>, tensor<3x2xi64>) -> (tensor<3x2xf32>, tensor<3x2xi64>)
  return
}

// -----

func.func @embedding_C1_count(%a: tensor<5x3xf32>, %o: tensor<2x3xf32>) {
  // expected-error @+1 {{(C1) takes two ins, the second of indices, and one out}}
  %r = kernel.call #kernel.embedding<rows = 2, entries = 5, width = 3> ins(%a : tensor<5x3xf32>) outs(%o : tensor<2x3xf32>) -> (tensor<2x3xf32>)
  return
}

// -----

func.func @embedding_C1_indices(%a: tensor<5x3xf32>, %b: tensor<2xf32>, %o: tensor<2x3xf32>) {
  // expected-error @+1 {{(C1) indices are integers, found}}
  %r = kernel.call #kernel.embedding<rows = 2, entries = 5, width = 3> ins(%a, %b : tensor<5x3xf32>, tensor<2xf32>) outs(%o : tensor<2x3xf32>) -> (tensor<2x3xf32>)
  return
}

// -----

func.func @embedding_C1_element(%a: tensor<5x3xf32>, %b: tensor<2xi64>, %o: tensor<2x3xbf16>) {
  // expected-error @+1 {{(C1) table and result have one element type}}
  %r = kernel.call #kernel.embedding<rows = 2, entries = 5, width = 3> ins(%a, %b : tensor<5x3xf32>, tensor<2xi64>) outs(%o : tensor<2x3xbf16>) -> (tensor<2x3xbf16>)
  return
}

// -----

func.func @embedding_C1_touched(%a: tensor<2x5x3xf32>, %b: tensor<2x4xi64>, %o: tensor<2x4x3xf32>) {
  // expected-error @+1 {{(C1) touches 20 elements of 'tensor<2x4xi64>'}}
  %r = kernel.call #kernel.embedding<rows = 10, entries = 5, width = 3, outer = 2> ins(%a, %b : tensor<2x5x3xf32>, tensor<2x4xi64>) outs(%o : tensor<2x4x3xf32>) -> (tensor<2x4x3xf32>)
  return
}

// -----

func.func @embedding_C3_inner(%a: tensor<5x3xf32>, %b: tensor<2xi64>, %o: tensor<2x3xf32>) {
  // expected-error @+1 {{(C3) extents are positive, found 0}}
  %r = kernel.call #kernel.embedding<rows = 2, entries = 5, width = 3, inner = 0> ins(%a, %b : tensor<5x3xf32>, tensor<2xi64>) outs(%o : tensor<2x3xf32>) -> (tensor<2x3xf32>)
  return
}

// -----

func.func @embedding_grad_C1_element(%a: tensor<2x3xbf16>, %b: tensor<2xi64>, %o: tensor<5x3xbf16>) {
  // expected-error @+1 {{(C1) sums floats in f32 or f64, found}}
  %r = kernel.call #kernel.embedding_grad<rows = 2, entries = 5, width = 3, accumulate = false, columns = 3> ins(%a, %b : tensor<2x3xbf16>, tensor<2xi64>) outs(%o : tensor<5x3xbf16>) -> (tensor<5x3xbf16>)
  return
}

// -----

func.func @embedding_grad_C3(%a: tensor<2x3xf32>, %b: tensor<2xi64>, %o: tensor<5x3xf32>) {
  // expected-error @+1 {{(C3) columns of a unit are positive, found 0}}
  %r = kernel.call #kernel.embedding_grad<rows = 2, entries = 5, width = 3, accumulate = false, columns = 0> ins(%a, %b : tensor<2x3xf32>, tensor<2xi64>) outs(%o : tensor<5x3xf32>) -> (tensor<5x3xf32>)
  return
}

// -----

func.func @embedding_grad_C1_padding(%a: tensor<2x3xf32>, %b: tensor<2xi64>, %o: tensor<5x3xf32>) {
  // expected-error @+1 {{(C1) adds nothing to row 5 of 5}}
  %r = kernel.call #kernel.embedding_grad<rows = 2, entries = 5, width = 3, accumulate = false, columns = 3, padding = 5> ins(%a, %b : tensor<2x3xf32>, tensor<2xi64>) outs(%o : tensor<5x3xf32>) -> (tensor<5x3xf32>)
  return
}

// -----

func.func @embedding_grad_C1_sorted(%a: tensor<2x3xf32>, %b: tensor<2xi64>, %o: tensor<5x3xf32>) {
  // expected-error @+1 {{(C1) takes two ins, the second of indices, and outs for the sums, an order and sums of tiles}}
  %r = kernel.call #kernel.embedding_grad<rows = 2, entries = 5, width = 3, accumulate = false, columns = 3, sorted = true> ins(%a, %b : tensor<2x3xf32>, tensor<2xi64>) outs(%o : tensor<5x3xf32>) -> (tensor<5x3xf32>)
  return
}

// -----

func.func @embedding_grad_C1_order(%a: tensor<2x3xf32>, %b: tensor<2xi64>, %o: tensor<5x3xf32>, %p: tensor<259xi32>, %s: tensor<6xf32>) {
  // expected-error @+1 {{(C1) has a workspace of 260 'i32', found 'tensor<259xi32>'}}
  %r:3 = kernel.call #kernel.embedding_grad<rows = 2, entries = 5, width = 3, accumulate = false, columns = 3, sorted = true> ins(%a, %b : tensor<2x3xf32>, tensor<2xi64>) outs(%o, %p, %s : tensor<5x3xf32>, tensor<259xi32>, tensor<6xf32>) -> (tensor<5x3xf32>, tensor<259xi32>, tensor<6xf32>)
  return
}

// -----

func.func @embedding_grad_C1_sums(%a: tensor<2x3xf32>, %b: tensor<2xi64>, %o: tensor<5x3xf32>, %p: tensor<260xi32>, %s: tensor<6xf64>) {
  // expected-error @+1 {{(C1) has a workspace of 6 'f32', found 'tensor<6xf64>'}}
  %r:3 = kernel.call #kernel.embedding_grad<rows = 2, entries = 5, width = 3, accumulate = false, columns = 3, sorted = true> ins(%a, %b : tensor<2x3xf32>, tensor<2xi64>) outs(%o, %p, %s : tensor<5x3xf32>, tensor<260xi32>, tensor<6xf64>) -> (tensor<5x3xf32>, tensor<260xi32>, tensor<6xf64>)
  return
}

// -----

func.func @embedding_grad_C3_sorted(%a: tensor<2x1xf32>, %b: tensor<2xi64>, %o: tensor<3000000000x1xf32>, %p: tensor<260xi32>, %s: tensor<2xf32>) {
  // expected-error @+1 {{(C3) sorts fewer than 2^31 rows and entries, found 3000000000}}
  %r:3 = kernel.call #kernel.embedding_grad<rows = 2, entries = 3000000000, width = 1, accumulate = false, columns = 1, sorted = true> ins(%a, %b : tensor<2x1xf32>, tensor<2xi64>) outs(%o, %p, %s : tensor<3000000000x1xf32>, tensor<260xi32>, tensor<2xf32>) -> (tensor<3000000000x1xf32>, tensor<260xi32>, tensor<2xf32>)
  return
}

// -----

func.func @patches_elements(%x: tensor<40xf32>, %w: tensor<3x6xf32>, %c: tensor<4x3xf32>) {
  // expected-error @+1 {{(C1) touches 42 elements of A, which has 40}}
  %y = kernel.call #kernel.gemm<batch = 1, m = 4, n = 3, k = 6, lda = 6, ldb = 6, ldc = 3, strideA = 0, strideB = 0,
      strideC = 0, transposeA = false, transposeB = true, accumulate = false, bias = false, relu = false, tileM = 4, tileN = 3, patchesA = <lines = [2, 2] by [20, 4], columns = [3, 2] by [4, 1], offset = 8>>
      ins(%x, %w : tensor<40xf32>, tensor<3x6xf32>) outs(%c : tensor<4x3xf32>) -> (tensor<4x3xf32>)
  return
}

// -----

func.func @patches_extents(%x: tensor<40xf32>, %w: tensor<3x6xf32>, %c: tensor<4x3xf32>) {
  // expected-error @+1 {{(C3) A has 6 x 6 elements of patches, not 4 x 6}}
  %y = kernel.call #kernel.gemm<batch = 1, m = 4, n = 3, k = 6, lda = 6, ldb = 6, ldc = 3, strideA = 0, strideB = 0,
      strideC = 0, transposeA = false, transposeB = true, accumulate = false, bias = false, relu = false, tileM = 4, tileN = 3, patchesA = <lines = [2, 3] by [20, 4], columns = [3, 2] by [4, 1], offset = 0>>
      ins(%x, %w : tensor<40xf32>, tensor<3x6xf32>) outs(%c : tensor<4x3xf32>) -> (tensor<4x3xf32>)
  return
}

// -----

func.func @patches_transposed(%x: tensor<40xf32>, %w: tensor<3x6xf32>, %c: tensor<4x3xf32>) {
  // expected-error @+1 {{(C3) a matrix of patches is not transposed}}
  %y = kernel.call #kernel.gemm<batch = 1, m = 4, n = 3, k = 6, lda = 6, ldb = 6, ldc = 3, strideA = 0, strideB = 0,
      strideC = 0, transposeA = true, transposeB = true, accumulate = false, bias = false, relu = false, tileM = 4, tileN = 3, patchesA = <lines = [2, 3] by [20, 4], columns = [2, 2] by [4, 1], offset = 0>>
      ins(%x, %w : tensor<40xf32>, tensor<3x6xf32>) outs(%c : tensor<4x3xf32>) -> (tensor<4x3xf32>)
  return
}

// -----

// expected-error @+1 {{patches have one extent and one stride for each dimension, and one dimension or more}}
func.func @patches_lists() attributes {kernel.patches = #kernel.patches<lines = [4] by [20, 4], columns = [3, 2] by [4, 1], offset = 0>} {
  return
}

// -----

// expected-error @+1 {{extents of patches are positive, found 0}}
func.func @patches_extent() attributes {kernel.patches = #kernel.patches<lines = [4, 0] by [20, 4], columns = [3, 2] by [4, 1], offset = 0>} {
  return
}

// -----

// expected-error @+1 {{strides of patches are not negative, found -4}}
func.func @patches_stride() attributes {kernel.patches = #kernel.patches<lines = [4, 1] by [20, -4], columns = [3, 2] by [4, 1], offset = 0>} {
  return
}

// -----

// expected-error @+1 {{neighbouring columns of patches are neighbours in memory, found a stride of 2}}
func.func @patches_run() attributes {kernel.patches = #kernel.patches<lines = [4] by [4], columns = [3, 2] by [4, 2], offset = 0>} {
  return
}

// -----

// expected-error @+1 {{the offset of patches is not negative, found -1}}
func.func @patches_offset() attributes {kernel.patches = #kernel.patches<lines = [4] by [4], columns = [3, 2] by [4, 1], offset = -1>} {
  return
}

// -----

func.func @recurrence_C3(%p: memref<2x3x4xf32>, %w: memref<1x1x4x16xf32>, %s: memref<3x4xf32>, %y: memref<2x3x4xf32>) {
  // expected-error @+1 {{(C3) extents are positive, found 0}}
  kernel.call #kernel.recurrence<cell = tanh, steps = 2, batch = 3, width = 4, order = [0], reverse = false, gradient = false, bias = false, dcells = false, element = f32, samples = 0, columns = 16>
      ins(%p, %w, %s : memref<2x3x4xf32>, memref<1x1x4x16xf32>, memref<3x4xf32>) outs(%y : memref<2x3x4xf32>)
  return
}

// -----

func.func @recurrence_C1_element(%p: memref<2x3x4xi32>, %w: memref<1x1x4x16xf32>, %s: memref<3x4xf32>, %y: memref<2x3x4xf32>) {
  // expected-error @+1 {{(C1) recurs over elements of type 'i32'}}
  kernel.call #kernel.recurrence<cell = tanh, steps = 2, batch = 3, width = 4, order = [0], reverse = false, gradient = false, bias = false, dcells = false, element = i32, samples = 4, columns = 16>
      ins(%p, %w, %s : memref<2x3x4xi32>, memref<1x1x4x16xf32>, memref<3x4xf32>) outs(%y : memref<2x3x4xf32>)
  return
}

// -----

func.func @recurrence_C1_order(%p: memref<2x3x4xf32>, %w: memref<1x1x4x16xf32>, %s: memref<3x4xf32>, %y: memref<2x3x4xf32>) {
  // expected-error @+1 {{(C1) has 1 gates, and places for 2}}
  kernel.call #kernel.recurrence<cell = tanh, steps = 2, batch = 3, width = 4, order = [0, 1], reverse = false, gradient = false, bias = false, dcells = false, element = f32, samples = 4, columns = 16>
      ins(%p, %w, %s : memref<2x3x4xf32>, memref<1x1x4x16xf32>, memref<3x4xf32>) outs(%y : memref<2x3x4xf32>)
  return
}

// -----

func.func @recurrence_C1_direction(%p: memref<2x3x4xf32>, %w: memref<1x1x4x16xf32>, %s: memref<3x4xf32>, %y: memref<2x3x4xf32>) {
  // expected-error @+1 {{(C1) reads a bias forward and the adjoint of cells backward}}
  kernel.call #kernel.recurrence<cell = tanh, steps = 2, batch = 3, width = 4, order = [0], reverse = false, gradient = false, bias = false, dcells = true, element = f32, samples = 4, columns = 16>
      ins(%p, %w, %s : memref<2x3x4xf32>, memref<1x1x4x16xf32>, memref<3x4xf32>) outs(%y : memref<2x3x4xf32>)
  return
}

// -----

func.func @recurrence_C1_operands(%p: memref<2x3x4xf32>, %w: memref<1x1x4x16xf32>, %s: memref<3x4xf32>, %y: memref<2x3x4xf32>) {
  // expected-error @+1 {{(C1) takes 4 ins and 1 outs, found 3 and 1}}
  kernel.call #kernel.recurrence<cell = tanh, steps = 2, batch = 3, width = 4, order = [0], reverse = false, gradient = false, bias = true, dcells = false, element = f32, samples = 4, columns = 16>
      ins(%p, %w, %s : memref<2x3x4xf32>, memref<1x1x4x16xf32>, memref<3x4xf32>) outs(%y : memref<2x3x4xf32>)
  return
}

// -----

func.func @recurrence_C1_panels(%p: memref<2x3x4xf32>, %w: memref<4x16xf32>, %s: memref<3x4xf32>, %y: memref<2x3x4xf32>) {
  // expected-error @+1 {{(C1) takes 128 elements 'f32' of panels, found 'memref<4x16xf32>'}}
  kernel.call #kernel.recurrence<cell = tanh, steps = 2, batch = 3, width = 4, order = [0], reverse = false, gradient = false, bias = false, dcells = false, element = f32, samples = 4, columns = 32>
      ins(%p, %w, %s : memref<2x3x4xf32>, memref<4x16xf32>, memref<3x4xf32>) outs(%y : memref<2x3x4xf32>)
  return
}
