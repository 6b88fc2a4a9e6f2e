// One product; one that is used twice stays; a tied table (the example of titan-shard-fold-contractions); a parameter of many uses.
// RUN: titan-opt %s --titan-shard-fold-contractions --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @once
func.func @once(%x: tensor<3x8x2xf32>, %y: tensor<3x8x4xf32>, %zero: tensor<4x2xf32>) -> tensor<4x2xf32> {
  // CHECK: accumulators(%[[ACC:.*]] = %{{.*}} : tensor<4x2xf32>)
  %s = accum.loop %i in 3 running slices(%xi = %x : tensor<3x8x2xf32>, %yi = %y : tensor<3x8x4xf32>) accumulators(%a = %zero : tensor<4x2xf32>) -> (tensor<4x2xf32>) {
    // CHECK: %[[NEXT:.*]] = titan.contract %{{.*}}, %{{.*}} acc %[[ACC]] {{.*}}path = ["fc"]
    // CHECK-NOT: titan.add
    // CHECK: accum.yield %[[NEXT]]
    %g = titan.contract %yi, %xi batch [] x [] contracting [0] x [0] {path = ["fc"]} : (tensor<8x4xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    %next = titan.add %a, %g : tensor<4x2xf32>
    accum.yield %next : tensor<4x2xf32>
  }
  return %s : tensor<4x2xf32>
}

// CHECK-LABEL: func.func @twice
func.func @twice(%x: tensor<3x8x2xf32>, %y: tensor<3x8x4xf32>, %zero: tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>) {
  %s:2 = accum.loop %i in 3 running slices(%xi = %x : tensor<3x8x2xf32>, %yi = %y : tensor<3x8x4xf32>) accumulators(%a = %zero : tensor<4x2xf32>, %b = %zero : tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>) {
    // CHECK: titan.contract %{{[a-z0-9]+}}, %{{[a-z0-9]+}} batch
    // CHECK: titan.add
    %g = titan.contract %yi, %xi batch [] x [] contracting [0] x [0] : (tensor<8x4xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    %next = titan.add %a, %g : tensor<4x2xf32>
    %other = titan.add %b, %g : tensor<4x2xf32>
    accum.yield %next, %other : tensor<4x2xf32>, tensor<4x2xf32>
  }
  return %s#0, %s#1 : tensor<4x2xf32>, tensor<4x2xf32>
}

// A table that is looked up and multiplied: one buffer, no addition.
// CHECK-LABEL: func.func @tied
func.func @tied(%x: tensor<3x8x2xf32>, %y: tensor<3x8x4xf32>, %ids: tensor<3x8xi64>, %zero: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %s = accum.loop %i in 3 running slices(%xi = %x : tensor<3x8x2xf32>, %yi = %y : tensor<3x8x4xf32>, %ii = %ids : tensor<3x8xi64>) accumulators(%a = %zero : tensor<4x2xf32>) -> (tensor<4x2xf32>) {
    // CHECK: accum.loop {{.*}} accumulators(%[[ACC:.*]] = %{{.*}} : tensor<4x2xf32>)
    // CHECK: %[[HEAD:.*]] = titan.contract %{{.*}}, %{{.*}} acc %[[ACC]] {{.*}}path = ["head"]
    // CHECK: %[[BOTH:.*]] = titan.embedding_grad %{{.*}}, %{{.*}} acc %[[HEAD]] rows 4 {path = ["wte"]}
    // CHECK-NOT: titan.add
    // CHECK: accum.yield %[[BOTH]]
    %g = titan.contract %yi, %xi batch [] x [] contracting [0] x [0] {path = ["head"]} : (tensor<8x4xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    %h = titan.embedding_grad %xi, %ii rows 4 {path = ["wte"]} : (tensor<8x2xf32>, tensor<8xi64>) -> tensor<4x2xf32>
    %term = titan.add %g, %h : tensor<4x2xf32>
    %next = titan.add %a, %term : tensor<4x2xf32>
    accum.yield %next : tensor<4x2xf32>
  }
  return %s : tensor<4x2xf32>
}

// Two products, one of which has an accumulator already, and a term that cannot be folded: it is added where it is computed.
// CHECK-LABEL: func.func @many
func.func @many(%x: tensor<3x8x2xf32>, %y: tensor<3x8x4xf32>, %w: tensor<4x2xf32>, %zero: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %s = accum.loop %i in 3 running slices(%xi = %x : tensor<3x8x2xf32>, %yi = %y : tensor<3x8x4xf32>) accumulators(%a = %zero : tensor<4x2xf32>) -> (tensor<4x2xf32>) {
    // CHECK: accum.loop {{.*}} accumulators(%[[ACC:.*]] = %{{.*}} : tensor<4x2xf32>)
    // CHECK: %[[FIRST:.*]] = titan.contract %{{.*}}, %{{.*}} acc %[[ACC]]
    // CHECK: %[[PENALTY:.*]] = titan.mul
    // CHECK: %[[SECOND:.*]] = titan.add %[[FIRST]], %[[PENALTY]]
    // CHECK: %[[THIRD:.*]] = titan.contract %{{.*}}, %{{.*}} acc %[[SECOND]]
    // CHECK-NOT: titan.add
    // CHECK: accum.yield %[[THIRD]]
    %g = titan.contract %yi, %xi batch [] x [] contracting [0] x [0] : (tensor<8x4xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    %p = titan.mul %w, %w : tensor<4x2xf32>
    %h = titan.contract %yi, %xi acc %g batch [] x [] contracting [0] x [0] : (tensor<8x4xf32>, tensor<8x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    %term = titan.add %h, %p : tensor<4x2xf32>
    %next = titan.add %term, %a : tensor<4x2xf32>
    accum.yield %next : tensor<4x2xf32>
  }
  return %s : tensor<4x2xf32>
}

// -----

// Under tree the terms of a microbatch are summed first: the accumulator holds those of others.
module attributes {titan.recipe = {batch = {micro = 8 : i64, global = 16 : i64}, mesh = {reduce = "tree"}}} {
// CHECK-LABEL: func.func @step
// CHECK: accum.loop {{.*}} accumulators(%[[A:.*]] = %{{.*}} : tensor<4x2xf32>, %[[B:.*]] = %{{.*}} : tensor<4x2xf32>)
// CHECK: %[[HEAD:.*]] = titan.contract %{{[a-z0-9]+}}, %{{[a-z0-9]+}} batch {{.*}}path = ["head"]
// CHECK: %[[BOTH:.*]] = titan.embedding_grad %{{.*}}, %{{.*}} acc %[[HEAD]] rows 4 {path = ["wte"]}
// CHECK: %[[ONE:.*]] = titan.contract %{{[a-z0-9]+}}, %{{[a-z0-9]+}} batch {{.*}}path = ["fc"]
// CHECK: titan.add %[[A]], %[[BOTH]]
// CHECK: titan.add %[[B]], %[[ONE]]
func.func @step(%x: tensor<2x8x2xf32>, %y: tensor<2x8x4xf32>, %ids: tensor<2x8xi64>, %zero: tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>) {
  %s:2 = accum.loop %i in 2 running slices(%xi = %x : tensor<2x8x2xf32>, %yi = %y : tensor<2x8x4xf32>, %ii = %ids : tensor<2x8xi64>) accumulators(%a = %zero : tensor<4x2xf32>, %b = %zero : tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>) {
    %g = titan.contract %yi, %xi batch [] x [] contracting [0] x [0] {path = ["head"]} : (tensor<8x4xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    %h = titan.embedding_grad %xi, %ii rows 4 {path = ["wte"]} : (tensor<8x2xf32>, tensor<8xi64>) -> tensor<4x2xf32>
    %one = titan.contract %yi, %xi batch [] x [] contracting [0] x [0] {path = ["fc"]} : (tensor<8x4xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    %term = titan.add %g, %h : tensor<4x2xf32>
    %next = titan.add %a, %term : tensor<4x2xf32>
    %other = titan.add %b, %one : tensor<4x2xf32>
    accum.yield %next, %other : tensor<4x2xf32>, tensor<4x2xf32>
  }
  return %s#0, %s#1 : tensor<4x2xf32>, tensor<4x2xf32>
}
}
