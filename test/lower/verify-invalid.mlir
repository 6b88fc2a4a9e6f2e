// RUN: titan-opt %s --split-input-file --titan-lower-verify-kernels --verify-diagnostics

func.func @titan_op(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{remains after lower: only func, accum and kernel ops may}}
  %y = titan.relu %x : tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @wrong_class(%x: tensor<4xf32>) -> tensor<4xf32> {
  %o = kernel.empty : tensor<4xf32>
  // expected-error @below {{is called row but its body is flat}}
  %y = kernel.fused row [4] ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>)
      maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> (tensor<4xf32>) {
  ^bb0(%v: f32):
    kernel.yield %v : f32
  }
  return %y : tensor<4xf32>
}
