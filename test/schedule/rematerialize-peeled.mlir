// The loop and the iteration behind it each compute again what they keep; what both read from outside lives all the time anyway.
// RUN: titan-opt %s --titan-schedule-peel-last-microbatch --titan-schedule-rematerialize=target=1 --titan-schedule-verify | FileCheck %s

// CHECK-LABEL: func.func @step
// CHECK: %[[OUTSIDE:.*]] = titan.exp %{{.*}} {path = ["outside"]}
// CHECK: accum.loop
// CHECK: titan.gelu tanh
// CHECK: titan.barrier %{{.*}} id 0
// CHECK: titan.gelu tanh
// CHECK: titan.contract {{.*}}, %[[OUTSIDE]]
// CHECK: } {accum.peeled}
// CHECK: titan.gelu tanh
// CHECK: titan.barrier %{{.*}} id 1
// CHECK: titan.gelu tanh
// CHECK: titan.contract {{.*}}, %[[OUTSIDE]]
// CHECK-NOT: titan.barrier
module attributes {dist.mesh = #dist.mesh<["shard" = 2]>,
    titan.recipe = {batch = {micro = 16 : i64, global = 96 : i64}, mesh = {axes = [{name = "shard", ranks = 2 : i64}]}}} {
func.func @step(%w: tensor<16x16xf32> {titan.state = @w}, %x: tensor<3x16x16xf32> {titan.input = "x"}, %lr: tensor<f32>, %apply: tensor<i1>) -> (tensor<16x16xf32> {titan.state = @w}) {
  %zero = titan.constant dense<0.0> : tensor<16x16xf32>
  %out = titan.exp %w {path = ["outside"]} : tensor<16x16xf32>
  %s = accum.loop %i in 3 running slices(%xi = %x : tensor<3x16x16xf32>) accumulators(%a = %zero : tensor<16x16xf32>) -> (tensor<16x16xf32>) {
    %h = titan.contract %xi, %out batch [] x [] contracting [1] x [1] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %g = titan.gelu tanh %h : tensor<16x16xf32>
    %y = titan.contract %g, %out batch [] x [] contracting [1] x [1] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %z = titan.exp %y : tensor<16x16xf32>
    %dy = titan.contract %z, %z batch [] x [] contracting [1] x [0] {phase = #titan<phase backward>} : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %dw = titan.contract %dy, %g acc %a batch [] x [] contracting [0] x [0] {phase = #titan<phase backward>} : (tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    %n = titan.contract %dw, %out acc %dw batch [] x [] contracting [0] x [0] {phase = #titan<phase backward>} : (tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    accum.yield %n : tensor<16x16xf32>
  }
  %r = dist.all_reduce sum %s axes ["shard"] order rank {path = ["w"], phase = #titan<phase backward>} : tensor<16x16xf32> to tensor<16x16xf32>
  %new = titan.sgd %w, %r lr %lr weight_decay %lr scale %lr apply %apply {momentum = 0.0 : f64, nesterov = false, lr_scale = 1.0 : f64, phase = #titan<phase update>} : (tensor<16x16xf32>, tensor<16x16xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> tensor<16x16xf32>
  return %new : tensor<16x16xf32>
}
titan.state @w : tensor<16x16xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
}
