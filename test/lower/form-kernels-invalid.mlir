// RUN: titan-opt %s --split-input-file --titan-lower-form-kernels --verify-diagnostics
// What has no kernel is refused by name.

func.func @table_without_rows(%t: tensor<0x3xf32>, %i: tensor<4xi64>) -> tensor<4x3xf32> {
  // expected-error @below {{its table has no rows}}
  %y = titan.embedding %t, %i : (tensor<0x3xf32>, tensor<4xi64>) -> tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}

// -----

func.func @nothing_to_gather(%x: tensor<2x0xf32>, %i: tensor<2x4xi64>) -> tensor<2x4xf32> {
  // expected-error @below {{its operand has no elements}}
  %y = titan.gather %x, %i dim 1 : (tensor<2x0xf32>, tensor<2x4xi64>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
