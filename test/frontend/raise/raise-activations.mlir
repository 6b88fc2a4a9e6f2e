// RUN: titan-opt %s --titan-import-raise-activations | FileCheck %s

// CHECK-LABEL: func.func @silu
func.func @silu(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // CHECK: %[[Y:.*]] = titan.silu %{{.*}} {path = ["act"]} : tensor<2x4xf32>
  // CHECK-NEXT: return %[[Y]]
  %s = titan.sigmoid %x : tensor<2x4xf32>
  %y = titan.mul %x, %s {path = ["act"]} : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @log_sigmoid
func.func @log_sigmoid(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  // CHECK: %[[OPPOSITE:.*]] = titan.neg %{{.*}} : tensor<2x4xf32>
  // CHECK: %[[PLUS:.*]] = titan.softplus %[[OPPOSITE]] {{.*}}: tensor<2x4xf32>
  // CHECK: %[[Y:.*]] = titan.neg %[[PLUS]]
  // CHECK: return %[[Y]]
  %s = titan.sigmoid %x : tensor<2x4xf32>
  %y = titan.log %s {path = ["loss"]} : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// CHECK-LABEL: func.func @gelu_erf_scaled_argument
func.func @gelu_erf_scaled_argument(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: titan.gelu erf %{{.*}} : tensor<4xf32>
  // CHECK-NOT: titan.erf
  %c = titan.constant dense<0.707106769> : tensor<4xf32>
  %one = titan.constant dense<1.0> : tensor<4xf32>
  %half = titan.constant dense<0.5> : tensor<4xf32>
  %0 = titan.mul %x, %c : tensor<4xf32>
  %1 = titan.erf %0 : tensor<4xf32>
  %2 = titan.add %one, %1 : tensor<4xf32>
  %3 = titan.mul %half, %x : tensor<4xf32>
  %4 = titan.mul %3, %2 : tensor<4xf32>
  return %4 : tensor<4xf32>
}

// x sqrt(2/pi) (1 + 0.044715 x^2), as some exporters factor it.
// CHECK-LABEL: func.func @gelu_tanh_factored
func.func @gelu_tanh_factored(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: titan.gelu tanh %{{.*}} : tensor<4xf32>
  // CHECK-NOT: titan.tanh
  %one = titan.constant dense<1.0> : tensor<4xf32>
  %half = titan.constant dense<0.5> : tensor<4xf32>
  %cubic = titan.constant dense<0.044715> : tensor<4xf32>
  %slope = titan.constant dense<0.797884583> : tensor<4xf32>
  %0 = titan.mul %x, %x : tensor<4xf32>
  %1 = titan.mul %0, %cubic : tensor<4xf32>
  %2 = titan.add %1, %one : tensor<4xf32>
  %3 = titan.mul %x, %slope : tensor<4xf32>
  %4 = titan.mul %3, %2 : tensor<4xf32>
  %5 = titan.tanh %4 : tensor<4xf32>
  %6 = titan.add %5, %one : tensor<4xf32>
  %7 = titan.mul %x, %6 : tensor<4xf32>
  %8 = titan.mul %7, %half : tensor<4xf32>
  return %8 : tensor<4xf32>
}

// CHECK-LABEL: func.func @other_constant_is_kept
func.func @other_constant_is_kept(%x: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: titan.erf
  // CHECK-NOT: titan.gelu
  %c = titan.constant dense<0.75> : tensor<4xf32>
  %one = titan.constant dense<1.0> : tensor<4xf32>
  %half = titan.constant dense<0.5> : tensor<4xf32>
  %0 = titan.mul %x, %c : tensor<4xf32>
  %1 = titan.erf %0 : tensor<4xf32>
  %2 = titan.add %1, %one : tensor<4xf32>
  %3 = titan.mul %x, %2 : tensor<4xf32>
  %4 = titan.mul %3, %half : tensor<4xf32>
  return %4 : tensor<4xf32>
}

// CHECK-LABEL: func.func @second_use_is_kept
func.func @second_use_is_kept(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: titan.sigmoid
  // CHECK: titan.mul
  %s = titan.sigmoid %x : tensor<4xf32>
  %y = titan.mul %x, %s : tensor<4xf32>
  return %y, %s : tensor<4xf32>, tensor<4xf32>
}
