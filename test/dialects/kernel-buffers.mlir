// RUN: titan-opt %s --split-input-file --verify-diagnostics --verify-roundtrip

func.func @round_trip(%x: memref<2x4xf32> {kernel.offset = 0 : i64, titan.input = "x"}, %y: memref<4xf32> {kernel.offset = 64 : i64, titan.output = "y"}) {
  accum.loop %i in 2 running {
    %s = kernel.slice %x[%i] : memref<2x4xf32> to memref<4xf32>
    %k = kernel.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32> at 128 : memref<4xf32>
    %b = kernel.buffer 192 : memref<2x2xf32>
    %v = kernel.cast_shape %b : memref<2x2xf32> to memref<4xf32>
    kernel.copy %s to %b : memref<4xf32> to memref<2x2xf32>
    kernel.fused flat [4] ins(%v, %k : memref<4xf32>, memref<4xf32>) outs(%y : memref<4xf32>)
        maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] {
    ^bb0(%p: f32, %q: f32):
      %r = arith.addf %p, %q : f32
      kernel.yield %r : f32
    }
  }
  return
}

// -----

func.func @constant_c1() {
  // expected-error @below {{(C1) holds 'tensor<2xf32>' as 'memref<3xf32>'}}
  %k = kernel.constant dense<[1.0, 2.0]> : tensor<2xf32> : memref<3xf32>
  return
}

// -----

func.func @copy_c1(%x: memref<2xf32> {titan.input = "x"}, %y: memref<3xf32> {titan.output = "y"}) {
  // expected-error @below {{(C1) copies 'memref<2xf32>' to 'memref<3xf32>'}}
  kernel.copy %x to %y : memref<2xf32> to memref<3xf32>
  return
}

// -----

// Digits of a mixed-radix number name each element once.
func.func @fused_c5_digits(%x: memref<8xf32> {titan.input = "x"}, %y: memref<8xf32> {titan.output = "y"}) {
  kernel.fused flat [2, 4] ins(%x : memref<8xf32>) outs(%y : memref<8xf32>)
      maps [affine_map<(c, r) -> (c * 4 + r)>, affine_map<(c, r) -> (c * 4 + r)>] {
  ^bb0(%v: f32):
    kernel.yield %v : f32
  }
  return
}

// -----

func.func @fused_c5_overlap(%x: memref<8xf32> {titan.input = "x"}, %y: memref<8xf32> {titan.output = "y"}) {
  // expected-error @below {{(C5) map affine_map<(d0, d1) -> (d0 * 3 + d1)> sends several points to one element}}
  kernel.fused flat [2, 4] ins(%x : memref<8xf32>) outs(%y : memref<8xf32>)
      maps [affine_map<(c, r) -> (c * 3 + r)>, affine_map<(c, r) -> (c * 3 + r)>] {
  ^bb0(%v: f32):
    kernel.yield %v : f32
  }
  return
}

// -----

func.func @fused_c7_turned(%x: memref<4x4xf32> {titan.output = "x"}) {
  // expected-error @below {{(C7) writes outs 0 over ins 0, which is read at other points}}
  kernel.fused transpose [4, 4] ins(%x : memref<4x4xf32>) outs(%x : memref<4x4xf32>)
      maps [affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i, j)>] {
  ^bb0(%v: f32):
    kernel.yield %v : f32
  }
  return
}

// -----

// An accumulator under a column sum is read where it is written.
func.func @fused_c7_column(%x: memref<4x8xf32> {titan.input = "x"}, %a: memref<8xf32> {titan.output = "a"}) {
  kernel.fused column [4, 8] ins(%x, %a : memref<4x8xf32>, memref<8xf32>) outs(%a : memref<8xf32>)
      maps [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (c)>, affine_map<(r, c) -> (c)>] {
  ^bb0(%v: f32, %u: f32):
    %s = kernel.reduce add %v over [0] : f32
    %t = arith.addf %u, %s : f32
    kernel.yield %t : f32
  }
  return
}

// -----

// Here every row needs it.
func.func @fused_c7_rows(%x: memref<4x8xf32> {titan.input = "x"}, %a: memref<8xf32> {titan.output = "a"}) {
  // expected-error @below {{(C7) writes outs 0 over ins 1, which is read at other points}}
  kernel.fused column [4, 8] ins(%x, %a : memref<4x8xf32>, memref<8xf32>) outs(%a : memref<8xf32>)
      maps [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (c)>, affine_map<(r, c) -> (c)>] {
  ^bb0(%v: f32, %u: f32):
    %m = arith.mulf %v, %u : f32
    %s = kernel.reduce add %m over [0] : f32
    kernel.yield %s : f32
  }
  return
}
