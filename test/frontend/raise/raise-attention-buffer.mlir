// RUN: titan-opt %s --titan-import-raise-attention | FileCheck %s

titan.state @mask : tensor<4x4xf32> {init = #titan.init_rule<"constant", 0.000000e+00 : f64, 0.000000e+00 : f64>, kind = #titan<kind buffer>}

// A buffer's content in the file proves the mask; the state stays.
// CHECK-LABEL: func.func @buffer
// CHECK-NOT: import.initial
func.func @buffer(%mask: tensor<4x4xf32> {titan.state = @mask, import.initial = dense<[[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]]> : tensor<4x4xf32>},
                  %q: tensor<2x3x8xf32>, %k: tensor<2x3x8xf32>, %v: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  // CHECK: titan.attention {{.*}} causal
  %m = titan.slice %mask offsets [0, 0] strides [1, 1] : tensor<4x4xf32> to tensor<3x3xf32>
  %zero = titan.constant dense<0.0> : tensor<3x3xf32>
  %c = titan.compare eq %m, %zero : tensor<3x3xf32>
  %b = titan.broadcast %c [1, 2] : tensor<3x3xi1> to tensor<2x3x3xi1>
  %s = titan.contract %q, %k batch [0] x [0] contracting [2] x [2] : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x3xf32>
  %inf = titan.constant dense<0xFF800000> : tensor<2x3x3xf32>
  %f = titan.select %b, %inf, %s : tensor<2x3x3xi1>, tensor<2x3x3xf32>
  %p = titan.softmax %f dim 2 : tensor<2x3x3xf32>
  %y = titan.contract %p, %v batch [0] x [0] contracting [2] x [1] : (tensor<2x3x3xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %y : tensor<2x3x8xf32>
}

