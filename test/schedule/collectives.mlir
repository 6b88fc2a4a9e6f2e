// What the passes of the stage do around collectives, whole and halved.
// RUN: titan-opt %s --titan-schedule-inline-single-iteration --titan-schedule-order-ops --titan-schedule-split-collectives --titan-schedule-rematerialize=target=1 --titan-schedule-verify | FileCheck %s
// RUN: titan-opt %s --titan-schedule-inline-single-iteration --titan-schedule-order-ops --titan-schedule-rematerialize=target=1 --titan-schedule-verify | FileCheck %s --check-prefix=WHOLE

module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 2]>,
    titan.recipe = {batch = {micro = 8 : i64, global = 32 : i64}, mesh = {axes = {replicate = 2 : i64, shard = 2 : i64}}}} {

// One microbatch a rank: the loop goes, the number of the microbatch does not.
// CHECK-LABEL: func.func @step
// CHECK-NOT: accum.loop
// CHECK: %[[D:.*]] = dist.coordinate "shard"
// CHECK: arith.addi %{{.*}}, %[[D]]
// CHECK: titan.dropout {{.*}} base %{{.*}} {window
// What was computed is computed again for the backward pass, what was gathered is kept: its start and its wait run once.
// CHECK: dist.start all_gather
// CHECK: %[[W:.*]] = dist.wait
// CHECK: titan.gelu
// CHECK: titan.contract %{{.*}}, %[[W]]
// CHECK: titan.barrier
// CHECK: titan.gelu
// CHECK-NOT: all_gather
// A gradient that ranks sum stands behind its factors.
// CHECK: titan.contract {{.*}} contracting [0] x [0] {phase = #titan<phase backward>}
// CHECK: dist.start all_reduce
// CHECK: dist.wait
// CHECK: titan.sgd
// WHOLE-LABEL: func.func @step
// WHOLE: dist.all_gather
// WHOLE: titan.barrier
// WHOLE-NOT: dist.all_gather
// WHOLE: dist.all_reduce
func.func @step(%w: tensor<16x16xf32> {titan.state = @w}, %part: tensor<8x16xf32>, %x: tensor<1x8x16xf32> {titan.input = "x"}, %seed: tensor<i64>, %t: tensor<i64>, %lr: tensor<f32>, %apply: tensor<i1>)
    -> (tensor<16x16xf32> {titan.state = @w}, tensor<f32>) {
  %zero = titan.constant dense<0.0> : tensor<16x16xf32>
  %none = titan.constant dense<0.0> : tensor<f32>
  %s:2 = accum.loop %i in 1 running slices(%xi = %x : tensor<1x8x16xf32>) accumulators(%a = %zero : tensor<16x16xf32>, %b = %none : tensor<f32>) -> (tensor<16x16xf32>, tensor<f32>) {
    %c2 = arith.constant 2 : index
    %c128 = arith.constant 128 : index
    %p = dist.coordinate "replicate"
    %row = arith.muli %p, %c2 : index
    %d = dist.coordinate "shard"
    %m = arith.addi %row, %d : index
    %c4 = arith.constant 4 : index
    %turn = arith.muli %i, %c4 : index
    %all = arith.addi %m, %turn : index
    %base = arith.muli %all, %c128 : index
    %n = titan.dropout %xi p 0.5 stream 7 seed %seed step %t base %base {window = #titan.window<[32, 16], multiple = 128>} : tensor<8x16xf32> to tensor<8x16xf32>
    %h = titan.contract %n, %w batch [] x [] contracting [1] x [1] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %full = dist.all_gather %part axes ["shard"] dims [0] : tensor<8x16xf32> to tensor<16x16xf32>
    %g = titan.gelu tanh %h : tensor<8x16xf32>
    %y = titan.contract %g, %full batch [] x [] contracting [1] x [1] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %z = titan.exp %y : tensor<8x16xf32>
    %dy = titan.contract %z, %full batch [] x [] contracting [1] x [0] {phase = #titan<phase backward>} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %dg = titan.contract %dy, %full batch [] x [] contracting [1] x [0] {phase = #titan<phase backward>} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %loss = titan.reduce sum %dg [0, 1] {phase = #titan<phase backward>} : tensor<8x16xf32> to tensor<f32>
    %dw = titan.contract %dy, %g batch [] x [] contracting [0] x [0] {phase = #titan<phase backward>} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
    %na = titan.add %a, %dw {phase = #titan<phase backward>} : tensor<16x16xf32>
    %nb = titan.add %b, %loss {phase = #titan<phase backward>} : tensor<f32>
    accum.yield %na, %nb : tensor<16x16xf32>, tensor<f32>
  }
  %sum, %losses = dist.all_reduce sum %s#0, %s#1 axes ["replicate", "shard"] order rank {phase = #titan<phase backward>}
      : tensor<16x16xf32>, tensor<f32> to tensor<16x16xf32>, tensor<f32>
  %p1 = titan.sgd %w, %sum lr %lr weight_decay %lr scale %lr apply %apply {momentum = 0.0 : f64, nesterov = false, lr_scale = 1.0 : f64, phase = #titan<phase update>} : (tensor<16x16xf32>, tensor<16x16xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> tensor<16x16xf32>
  return %p1, %losses : tensor<16x16xf32>, tensor<f32>
}
titan.state @w : tensor<16x16xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
}
