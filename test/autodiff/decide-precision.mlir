// RUN: titan-opt %s --titan-differentiate-decide-precision --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @predict
// CHECK-NEXT: titan.exp %{{.*}} : tensor<4xf32>
// CHECK-NEXT: return
module {
  func.func @predict(%x: tensor<4xf32>) -> tensor<4xf32> {
    %y = titan.exp %x : tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

module {
  func.func @predict(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-error @+1 {{'titan.convert' computes in 'bf16' (fc), and precision.compute narrows f32 only: export the model in float32}}
    %y = titan.convert %x {path = ["fc"]} : tensor<4xf32> to tensor<4xbf16>
    %z = titan.convert %y : tensor<4xbf16> to tensor<4xf32>
    return %z : tensor<4xf32>
  }
}
