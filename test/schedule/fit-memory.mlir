// Without the stages behind it the pass goes by its estimate.
// RUN: split-file %s %t
// RUN: sed -e 's/LIMIT/230000/' %t/step.mlir | titan-opt --titan-schedule-fit-memory | FileCheck %s --check-prefix=FITS
// RUN: sed -e 's/LIMIT/190000/' %t/step.mlir | titan-opt --titan-schedule-fit-memory | FileCheck %s --check-prefix=AGAIN
// RUN: sed -e 's/LIMIT/140000/' %t/step.mlir | not titan-opt --titan-schedule-fit-memory 2>&1 | FileCheck %s --check-prefix=BATCH
// RUN: sed -e 's/LIMIT/30000/' %t/step.mlir | not titan-opt --titan-schedule-fit-memory 2>&1 | FileCheck %s --check-prefix=STATES
// RUN: sed -e 's/LIMIT/190000/' -e 's/auto/none/' %t/step.mlir | not titan-opt --titan-schedule-fit-memory 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: sed -e 's/LIMIT/0/' -e 's/auto/full/' %t/step.mlir | titan-opt --titan-schedule-fit-memory | FileCheck %s --check-prefix=AGAIN

// The recipe says in how many pieces the loss is computed, under tree in one, whatever fits.
// RUN: titan-opt %t/loss.mlir --titan-schedule-fit-memory --remarks-filter=schedule 2>&1 | FileCheck %s --check-prefix=FOUR
// RUN: sed -e 's/loss_chunks = 4 : i64/limit = 90000 : i64/' %t/loss.mlir | titan-opt --titan-schedule-fit-memory --remarks-filter=schedule 2>&1 | FileCheck %s --check-prefix=CUT
// RUN: sed -e 's/loss_chunks = 4 : i64/limit = 90000 : i64/' -e 's/fast/tree/' %t/loss.mlir | not titan-opt --titan-schedule-fit-memory 2>&1 | FileCheck %s --check-prefix=TREE
// RUN: sed -e 's/= 4 : i64/= 3 : i64/' %t/loss.mlir | not titan-opt --titan-schedule-fit-memory 2>&1 | FileCheck %s --check-prefix=THREE
// RUN: sed -e 's/limit = LIMIT/loss_chunks = 2 : i64, limit = 0/' %t/step.mlir | not titan-opt --titan-schedule-fit-memory 2>&1 | FileCheck %s --check-prefix=NOTHING

// FOUR: remark: {{.*}}'loss' runs in 4 chunks of rows
// CUT: runs in {{[0-9]+}} chunks of rows
// TREE: memory.limit is
// THREE: error: memory.loss_chunks = 3 cannot cut 'loss': 512 rows are not divisible by 3
// NOTHING: error: memory.loss_chunks = 2 has nothing to cut: the loss is no cross-entropy

// FITS-NOT: titan.barrier
// AGAIN: titan.barrier
// BATCH: memory.limit is 136.7 KiB, the smallest plan found needs {{.*}} with {{[0-9]+}} values recomputed; at its peak: {{.*}}params 32.0 KiB{{.*}}; use a smaller batch.micro with the same batch.global, or a higher limit
// STATES: states and gradients alone need {{.*}}: no batch is small enough, use a higher limit
// NONE: memory.remat is "none": use "auto"

//--- step.mlir
module attributes {titan.recipe = {memory = {limit = LIMIT : i64, remat = "auto"}}} {
  titan.state @w1 : tensor<64x64xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.1 : f64>}
  titan.state @w2 : tensor<64x64xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"normal", 0.0 : f64, 0.1 : f64>}
  func.func @step(%w1: tensor<64x64xf32> {titan.state = @w1}, %w2: tensor<64x64xf32> {titan.state = @w2}, %x: tensor<128x64xf32> {titan.input = "x"},
      %lr: tensor<f32> {titan.control = "optimizer.lr"}, %apply: tensor<i1> {titan.control = "apply"})
      -> (tensor<64x64xf32> {titan.state = @w1}, tensor<64x64xf32> {titan.state = @w2}, tensor<f32> {titan.metric = "loss"}) {
    %half = titan.constant dense<0.5> : tensor<128x64xf32>
    %n = titan.mul %x, %half {path = ["norm"]} : tensor<128x64xf32>
    %h = titan.contract %n, %w1 batch [] x [] contracting [1] x [1] {path = ["fc"]} : (tensor<128x64xf32>, tensor<64x64xf32>) -> tensor<128x64xf32>
    %a = titan.gelu tanh %h {path = ["gelu"]} : tensor<128x64xf32>
    %y = titan.contract %a, %w2 batch [] x [] contracting [1] x [1] {path = ["proj"]} : (tensor<128x64xf32>, tensor<64x64xf32>) -> tensor<128x64xf32>
    %s = titan.reduce sum %y [0, 1] {path = ["loss"]} : tensor<128x64xf32> to tensor<f32>
    %z = titan.softmax %y dim 1 {path = ["loss"]} : tensor<128x64xf32>
    %dy = titan.mul %z, %z {path = ["loss"], phase = #titan<phase backward>} : tensor<128x64xf32>
    %g2 = titan.contract %dy, %a batch [] x [] contracting [0] x [0] {path = ["proj"], phase = #titan<phase backward>} : (tensor<128x64xf32>, tensor<128x64xf32>) -> tensor<64x64xf32>
    %da = titan.contract %dy, %w2 batch [] x [] contracting [1] x [0] {path = ["proj"], phase = #titan<phase backward>} : (tensor<128x64xf32>, tensor<64x64xf32>) -> tensor<128x64xf32>
    %dh = titan.mul %da, %h {path = ["gelu"], phase = #titan<phase backward>} : tensor<128x64xf32>
    %g1 = titan.contract %dh, %n batch [] x [] contracting [0] x [0] {path = ["fc"], phase = #titan<phase backward>} : (tensor<128x64xf32>, tensor<128x64xf32>) -> tensor<64x64xf32>
    %p1 = titan.sgd %w1, %g1 lr %lr weight_decay %lr scale %lr apply %apply {momentum = 0.0 : f64, nesterov = false, lr_scale = 1.0 : f64, phase = #titan<phase update>} : (tensor<64x64xf32>, tensor<64x64xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> tensor<64x64xf32>
    %p2 = titan.sgd %w2, %g2 lr %lr weight_decay %lr scale %lr apply %apply {momentum = 0.0 : f64, nesterov = false, lr_scale = 1.0 : f64, phase = #titan<phase update>} : (tensor<64x64xf32>, tensor<64x64xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i1>) -> tensor<64x64xf32>
    return %p1, %p2, %s : tensor<64x64xf32>, tensor<64x64xf32>, tensor<f32>
  }
}

//--- loss.mlir
module attributes {titan.recipe = {mesh = {reduce = "fast"}, memory = {loss_chunks = 4 : i64, remat = "none"}}} {
  func.func @step(%h: tensor<512x3xf32>, %w: tensor<64x3xf32>, %t: tensor<512xi64>) -> (tensor<f32>, tensor<64x3xf32>) {
    %l = titan.contract %h, %w batch [] x [] contracting [1] x [1] {path = ["head"]} : (tensor<512x3xf32>, tensor<64x3xf32>) -> tensor<512x64xf32>
    %ce = titan.cross_entropy %l, %t ignore_index -100 label_smoothing 0.0 {path = ["loss"]} : (tensor<512x64xf32>, tensor<512xi64>) -> tensor<512xf32>
    %s = titan.reduce sum %ce [0] {path = ["loss"]} : tensor<512xf32> to tensor<f32>
    %one = titan.constant dense<1.0> : tensor<512xf32>
    %d = titan.cross_entropy_grad %l, %t, %one ignore_index -100 label_smoothing 0.0 {path = ["loss"], phase = #titan<phase backward>} : (tensor<512x64xf32>, tensor<512xi64>, tensor<512xf32>) -> tensor<512x64xf32>
    %g = titan.contract %d, %h batch [] x [] contracting [0] x [0] {path = ["head"], phase = #titan<phase backward>} : (tensor<512x64xf32>, tensor<512x3xf32>) -> tensor<64x3xf32>
    return %s, %g : tensor<f32>, tensor<64x3xf32>
  }
}
