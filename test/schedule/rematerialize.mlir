// RUN: titan-opt %s --titan-schedule-rematerialize=target=60000 | FileCheck %s
// RUN: titan-opt %s --titan-schedule-rematerialize=target=60000 --remarks-filter="schedule" 2>&1 >%t | FileCheck %s --check-prefix=REMARK
// RUN: titan-opt %s --titan-schedule-rematerialize=target=49000 | FileCheck %s --check-prefix=MORE
// RUN: titan-opt %s --pass-pipeline="builtin.module(titan-schedule-rematerialize{target=60000},func.func(cse,titan-lower-form-kernels,cse,titan-lower-remove-barriers))" | FileCheck %s --check-prefix=LOWER

// The cheapest for its bytes goes first: an elementwise op, not the product behind it.
// REMARK: remark: [Passed] rematerialize | Category:schedule | Bytes=16384, Flop=4096, Remark="'norm' computes mul again in the backward pass"
// REMARK-NOT: contract

// CHECK-LABEL: func.func @step
// CHECK: %[[N:.*]] = titan.mul %arg0, %[[HALF:.*]] {path = ["norm"]}
// CHECK: titan.contract %[[N]], %arg1
// CHECK: %[[START:.*]] = titan.barrier %arg0 id 0 {path = ["norm"], phase = #titan<phase backward>}
// CHECK: %[[AGAIN:.*]] = titan.mul %[[START]], %[[HALF]] {path = ["norm"], phase = #titan<phase backward>}
// CHECK: titan.contract %{{.*}}, %[[AGAIN]] {{.*}}phase = #titan<phase backward>

// With less memory the product is computed again as well: one chain from the input on, whose parts are shared.
// MORE-LABEL: func.func @step
// MORE: %[[START:.*]] = titan.barrier %arg0 id 0
// MORE-NOT: titan.barrier
// MORE: %[[N:.*]] = titan.mul %[[START]]
// MORE: %[[H:.*]] = titan.contract %[[N]], %arg1 {{.*}} {path = ["fc"], phase = #titan<phase backward>}
// MORE: %[[DH:.*]] = titan.mul %{{.*}}, %[[H]]
// MORE: titan.contract %[[DH]], %[[N]]

// The barrier outlives common-subexpression elimination, and no more.
// LOWER: arith.mulf
// LOWER-NOT: titan.barrier
// LOWER: arith.mulf {{.*}}
// LOWER-NOT: titan.barrier
func.func @step(%x: tensor<64x64xf32>, %w1: tensor<64x64xf32>, %w2: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<f32>) {
  %half = titan.constant dense<0.5> : tensor<64x64xf32>
  %n = titan.mul %x, %half {path = ["norm"]} : tensor<64x64xf32>
  %h = titan.contract %n, %w1 batch [] x [] contracting [1] x [1] {path = ["fc"]} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %a = titan.gelu tanh %h {path = ["gelu"]} : tensor<64x64xf32>
  %y = titan.contract %a, %w2 batch [] x [] contracting [1] x [1] {path = ["proj"]} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %s = titan.reduce sum %y [0, 1] {path = ["loss"]} : tensor<64x64xf32> to tensor<f32>
  %z = titan.softmax %y dim 1 {path = ["loss"]} : tensor<64x64xf32>
  %dy = titan.mul %z, %z {path = ["loss"], phase = #titan<phase backward>} : tensor<64x64xf32>
  %g2 = titan.contract %dy, %a batch [] x [] contracting [0] x [0] {path = ["proj"], phase = #titan<phase backward>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %da = titan.contract %dy, %w2 batch [] x [] contracting [1] x [0] {path = ["proj"], phase = #titan<phase backward>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %dh = titan.mul %da, %h {path = ["gelu"], phase = #titan<phase backward>} : tensor<64x64xf32>
  %g1 = titan.contract %dh, %n batch [] x [] contracting [0] x [0] {path = ["fc"], phase = #titan<phase backward>} : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %g1, %g2, %s : tensor<64x64xf32>, tensor<64x64xf32>, tensor<f32>
}
