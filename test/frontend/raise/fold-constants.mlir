// RUN: titan-opt %s --titan-import-fold-constants | FileCheck %s
// RUN: titan-opt %s --titan-import-fold-constants=largest=3 | FileCheck %s --check-prefix=SMALL

// CHECK-LABEL: func.func @scale
func.func @scale(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // CHECK-NEXT: %[[C:.*]] = titan.constant dense<0.353553385> : tensor<2x3xf32>
  // CHECK-NEXT: titan.mul %{{.*}}, %[[C]]
  %eight = titan.constant dense<8> : tensor<1xi64>
  %f = titan.convert %eight : tensor<1xi64> to tensor<1xf32>
  %root = titan.sqrt %f : tensor<1xf32>
  %one = titan.constant dense<1.0> : tensor<1xf32>
  %scale = titan.div %one, %root : tensor<1xf32>
  %scalar = titan.reshape %scale : tensor<1xf32> to tensor<f32>
  %wide = titan.broadcast %scalar [] : tensor<f32> to tensor<2x3xf32>
  %y = titan.mul %x, %wide : tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}

// A table of angles: an outer product, joined with itself.
// CHECK-LABEL: func.func @angles
// SMALL-LABEL: func.func @angles
func.func @angles() -> tensor<2x2xf32> {
  // CHECK-NEXT: %[[C:.*]] = titan.constant dense<{{\[\[}}1.000000e+00, 1.000000e+00], [0.540302277, 0.540302277]]> : tensor<2x2xf32>
  // CHECK-NEXT: return %[[C]]
  // SMALL: titan.concat
  %positions = titan.iota 0 : tensor<2xf32>
  %frequency = titan.constant dense<1.0> : tensor<1xf32>
  %a = titan.contract %positions, %frequency batch [] x [] contracting [] x [] : (tensor<2xf32>, tensor<1xf32>) -> tensor<2x1xf32>
  %b = titan.concat %a, %a dim 1 : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x2xf32>
  %c = titan.cos %b : tensor<2x2xf32>
  return %c : tensor<2x2xf32>
}

// CHECK-LABEL: func.func @triangle
func.func @triangle() -> tensor<3x3xi1> {
  // CHECK-NEXT: titan.constant dense<{{\[\[}}true, false, false], [true, true, false], [true, true, true]]> : tensor<3x3xi1>
  // CHECK-NEXT: return
  %row = titan.iota 0 : tensor<3x3xi64>
  %column = titan.iota 1 : tensor<3x3xi64>
  %keep = titan.compare le %column, %row : tensor<3x3xi64>
  return %keep : tensor<3x3xi1>
}

// CHECK-LABEL: func.func @input
func.func @input(%x: tensor<2xf32>) -> tensor<2xf32> {
  // CHECK-NEXT: titan.neg
  %y = titan.neg %x : tensor<2xf32>
  return %y : tensor<2xf32>
}
