// RUN: titan-opt %s --titan-lower-narrow-moves | FileCheck %s

// The narrow concatenation serves both.
// CHECK-LABEL: func.func @shared
// CHECK-COUNT-2: titan.reshape %{{.*}} : tensor<4x6xbf16> to tensor<24xbf16>
// CHECK: %[[C:.*]] = titan.concat %{{.*}} : (tensor<24xbf16>, tensor<24xbf16>) -> tensor<48xbf16>
// CHECK: %[[W:.*]] = titan.convert %[[C]] {path = ["a"]} : tensor<48xbf16> to tensor<48xf32>
// CHECK-NOT: titan.concat
// CHECK: return %[[C]], %[[W]]
func.func @shared(%x: tensor<4x6xbf16>, %y: tensor<4x6xbf16>) -> (tensor<48xbf16>, tensor<48xf32>) {
  %a = titan.convert %x {path = ["a"]} : tensor<4x6xbf16> to tensor<4x6xf32>
  %b = titan.convert %y {path = ["a"]} : tensor<4x6xbf16> to tensor<4x6xf32>
  %ra = titan.reshape %a {path = ["a"]} : tensor<4x6xf32> to tensor<24xf32>
  %rb = titan.reshape %b {path = ["a"]} : tensor<4x6xf32> to tensor<24xf32>
  %nx = titan.reshape %x {path = ["a"]} : tensor<4x6xbf16> to tensor<24xbf16>
  %ny = titan.reshape %y {path = ["a"]} : tensor<4x6xbf16> to tensor<24xbf16>
  %n = titan.concat %nx, %ny dim 0 {path = ["a"]} : (tensor<24xbf16>, tensor<24xbf16>) -> tensor<48xbf16>
  %w = titan.concat %ra, %rb dim 0 {path = ["a"]} : (tensor<24xf32>, tensor<24xf32>) -> tensor<48xf32>
  return %n, %w : tensor<48xbf16>, tensor<48xf32>
}

// A rounding stays where it is, and so does what moves values of several types.
// CHECK-LABEL: func.func @apart
// CHECK: titan.convert %{{.*}} : tensor<4xf32> to tensor<4xbf16>
// CHECK: titan.concat %{{.*}} : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<8xbf16>
// CHECK: titan.concat %{{.*}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
func.func @apart(%x: tensor<4xf32>, %y: tensor<4xbf16>) -> (tensor<8xbf16>, tensor<8xf32>) {
  %a = titan.convert %x : tensor<4xf32> to tensor<4xbf16>
  %n = titan.concat %a, %a dim 0 : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<8xbf16>
  %b = titan.convert %y : tensor<4xbf16> to tensor<4xf32>
  %w = titan.concat %b, %x dim 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %n, %w : tensor<8xbf16>, tensor<8xf32>
}
