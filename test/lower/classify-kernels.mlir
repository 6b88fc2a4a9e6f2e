// RUN: titan-opt %s --split-input-file --titan-lower-classify-kernels --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @row
// CHECK: kernel.fused row [4, 8]
func.func @row(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %o = kernel.empty : tensor<4xf32>
  %y = kernel.fused flat [4, 8] ins(%x : tensor<4x8xf32>) outs(%o : tensor<4xf32>)
      maps [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r)>] -> (tensor<4xf32>) {
  ^bb0(%v: f32):
    %s = kernel.reduce add %v over [1] : f32
    kernel.yield %s : f32
  }
  return %y : tensor<4xf32>
}

// -----

// What a column reduction gives does not meet the rows again: that would be a second sweep.
func.func @two_sweeps(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %o = kernel.empty : tensor<4x8xf32>
  // expected-error @below {{fits no class of kernels: a column reduction's result used again in the rows}}
  %y = kernel.fused column [4, 8] ins(%x : tensor<4x8xf32>) outs(%o : tensor<4x8xf32>)
      maps [affine_map<(r, c) -> (r, c)>, affine_map<(r, c) -> (r, c)>] -> (tensor<4x8xf32>) {
  ^bb0(%v: f32):
    %s = kernel.reduce add %v over [0] : f32
    %d = arith.divf %v, %s : f32
    kernel.yield %d : f32
  }
  return %y : tensor<4x8xf32>
}

// -----

func.func @two_columns(%x: tensor<4x8x2xf32>) -> (tensor<8x2xf32>, tensor<4x2xf32>) {
  %o = kernel.empty : tensor<8x2xf32>
  %p = kernel.empty : tensor<4x2xf32>
  // expected-error @below {{fits no class of kernels: column reductions over different dimensions}}
  %y:2 = kernel.fused column [4, 8, 2] ins(%x : tensor<4x8x2xf32>) outs(%o, %p : tensor<8x2xf32>, tensor<4x2xf32>)
      maps [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (b, c)>, affine_map<(a, b, c) -> (a, c)>] -> (tensor<8x2xf32>, tensor<4x2xf32>) {
  ^bb0(%v: f32):
    %s = kernel.reduce add %v over [0] : f32
    %t = kernel.reduce add %v over [1] : f32
    kernel.yield %s, %t : f32, f32
  }
  return %y#0, %y#1 : tensor<8x2xf32>, tensor<4x2xf32>
}
