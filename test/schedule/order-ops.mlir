// RUN: titan-opt %s --titan-schedule-order-ops | FileCheck %s

// Weight gradients stand behind the adjoint that they read, the norm of a large one behind it; all others keep their order.
// CHECK-LABEL: func.func @step
// CHECK: %[[DY:.*]] = titan.mul %{{.*}} {phase = #titan<phase backward>}
// CHECK-NEXT: %[[G2:.*]] = titan.contract %[[DY]], %[[H:.*]] batch [] x [] contracting [0] x [0]
// CHECK-NEXT: %[[S:.*]] = titan.mul %[[G2]], %[[G2]] {phase = #titan<phase backward>}
// CHECK-NEXT: titan.reduce sum %[[S]] [0, 1] {phase = #titan<phase backward>}
// CHECK-NEXT: %[[DX:.*]] = titan.contract %[[DY]], %arg1
// CHECK-NEXT: %[[DZ:.*]] = titan.mul %[[DX]]
// CHECK-NEXT: %[[G1:.*]] = titan.contract %[[DZ]], %arg2
// CHECK: titan.sgd
func.func @step(%w1: tensor<256x4xf32>, %w2: tensor<256x256xf32>, %x: tensor<8x4xf32>, %lr: tensor<f32>, %apply: tensor<i1>) -> (tensor<256x4xf32>, tensor<256x256xf32>, tensor<f32>) {
  %h = titan.contract %x, %w1 batch [] x [] contracting [1] x [1] : (tensor<8x4xf32>, tensor<256x4xf32>) -> tensor<8x256xf32>
  %y = titan.contract %h, %w2 batch [] x [] contracting [1] x [1] : (tensor<8x256xf32>, tensor<256x256xf32>) -> tensor<8x256xf32>
  %dy = titan.mul %y, %y {phase = #titan<phase backward>} : tensor<8x256xf32>
  %dx = titan.contract %dy, %w2 batch [] x [] contracting [1] x [0] {phase = #titan<phase backward>} : (tensor<8x256xf32>, tensor<256x256xf32>) -> tensor<8x256xf32>
  %dz = titan.mul %dx, %h {phase = #titan<phase backward>} : tensor<8x256xf32>
  %g1 = titan.contract %dz, %x batch [] x [] contracting [0] x [0] {phase = #titan<phase backward>} : (tensor<8x256xf32>, tensor<8x4xf32>) -> tensor<256x4xf32>
  %g2 = titan.contract %dy, %h batch [] x [] contracting [0] x [0] {phase = #titan<phase backward>} : (tensor<8x256xf32>, tensor<8x256xf32>) -> tensor<256x256xf32>
  %s = titan.mul %g2, %g2 {phase = #titan<phase update>} : tensor<256x256xf32>
  %n = titan.reduce sum %s [0, 1] {phase = #titan<phase update>} : tensor<256x256xf32> to tensor<f32>
  %p1 = titan.sgd %w1, %g1 lr %lr weight_decay %lr scale %n apply %apply {momentum = 0.0 : f64, nesterov = false, lr_scale = 1.0 : f64, phase = #titan<phase update>} : (tensor<256x4xf32>, tensor<256x4xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> tensor<256x4xf32>
  %p2 = titan.sgd %w2, %g2 lr %lr weight_decay %lr scale %n apply %apply {momentum = 0.0 : f64, nesterov = false, lr_scale = 1.0 : f64, phase = #titan<phase update>} : (tensor<256x256xf32>, tensor<256x256xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> tensor<256x256xf32>
  return %p1, %p2, %n : tensor<256x4xf32>, tensor<256x256xf32>, tensor<f32>
}
