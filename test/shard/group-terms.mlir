// RUN: titan-opt %s --titan-shard-group-terms --split-input-file | FileCheck %s

#partial = #dist.placement<["shard" = partial]>
module attributes {dist.mesh = #dist.mesh<["shard" = 2]>} {
// What all ranks have is added last, so that the sum over ranks is taken once.
// CHECK-LABEL: func.func @mixed
// CHECK-SAME: (%[[P:[a-z0-9]+]]: tensor<f32> {{{.*}}}, %[[R:[a-z0-9]+]]: tensor<f32>, %[[Q:[a-z0-9]+]]: tensor<f32> {{{.*}}}, %[[S:[a-z0-9]+]]: tensor<f32>)
// CHECK-DAG: %[[TERMS:.*]] = titan.add %[[P]], %[[Q]]
// CHECK-DAG: %[[ALL:.*]] = titan.add %[[R]], %[[S]]
// CHECK: %[[SUM:.*]] = titan.add %[[TERMS]], %[[ALL]]
// CHECK: return %[[SUM]]
func.func @mixed(%p: tensor<f32> {dist.placement = #partial}, %r: tensor<f32>, %q: tensor<f32> {dist.placement = #partial}, %s: tensor<f32>) -> tensor<f32> {
  %0 = titan.add %p, %r : tensor<f32>
  %1 = titan.add %0, %q : tensor<f32>
  %2 = titan.add %1, %s : tensor<f32>
  return %2 : tensor<f32>
}

// A sum that is a term of another: each is a sum of its own.
// CHECK-LABEL: func.func @nested
// CHECK-SAME: (%[[P:[a-z0-9]+]]: tensor<f32> {{{.*}}}, %[[R:[a-z0-9]+]]: tensor<f32>, %[[Q:[a-z0-9]+]]: tensor<f32> {{{.*}}})
// CHECK: %[[TERMS:.*]] = titan.add %[[P]], %[[Q]]
// CHECK: %[[INNER:.*]] = titan.add %[[TERMS]], %[[R]]
// CHECK: %[[Q2:.*]] = titan.neg %[[Q]]
// CHECK: %[[OUTER:.*]] = titan.add %[[Q2]], %[[INNER]]
// CHECK: return %[[INNER]], %[[OUTER]]
func.func @nested(%p: tensor<f32> {dist.placement = #partial}, %r: tensor<f32>, %q: tensor<f32> {dist.placement = #partial}) -> (tensor<f32>, tensor<f32>) {
  %0 = titan.add %p, %r : tensor<f32>
  %1 = titan.add %0, %q : tensor<f32>
  %2 = titan.neg %q : tensor<f32>
  %3 = titan.add %1, %2 : tensor<f32>
  return %1, %3 : tensor<f32>, tensor<f32>
}

// Terms of one kind stay in their order.
// CHECK-LABEL: func.func @alike
// CHECK-SAME: (%[[P:[a-z0-9]+]]: tensor<f32> {{{.*}}}, %[[Q:[a-z0-9]+]]: tensor<f32> {{{.*}}})
// CHECK: %[[A:.*]] = titan.add %[[Q]], %[[P]]
// CHECK: titan.add %[[A]], %[[P]]
func.func @alike(%p: tensor<f32> {dist.placement = #partial}, %q: tensor<f32> {dist.placement = #partial}) -> tensor<f32> {
  %0 = titan.add %q, %p : tensor<f32>
  %1 = titan.add %0, %p : tensor<f32>
  return %1 : tensor<f32>
}
}

// -----

#partial = #dist.placement<["shard" = partial]>
// Under tree a sum of floats keeps its order, that of one rank; one of integers has none.
module attributes {dist.mesh = #dist.mesh<["shard" = 2]>, titan.recipe = {mesh = {reduce = "tree", axes = {shard = 2 : i64}}, batch = {micro = 1 : i64, global = 2 : i64}}} {
// CHECK-LABEL: func.func @step
// CHECK-SAME: (%[[P:[a-z0-9]+]]: tensor<f32> {{{.*}}}, %[[R:[a-z0-9]+]]: tensor<f32>, %[[N:[a-z0-9]+]]: tensor<i64> {{{.*}}}, %[[M:[a-z0-9]+]]: tensor<i64>)
// CHECK: titan.add %[[P]], %[[R]] : tensor<f32>
// CHECK: titan.add %{{.*}}, %[[P]] : tensor<f32>
// CHECK: %[[TWICE:.*]] = titan.add %[[N]], %[[N]] : tensor<i64>
// CHECK: titan.add %[[TWICE]], %[[M]] : tensor<i64>
func.func @step(%p: tensor<f32> {dist.placement = #partial}, %r: tensor<f32>, %n: tensor<i64> {dist.placement = #partial}, %m: tensor<i64>) -> (tensor<f32>, tensor<i64>) {
  %0 = titan.add %p, %r : tensor<f32>
  %1 = titan.add %0, %p : tensor<f32>
  %2 = titan.add %n, %m : tensor<i64>
  %3 = titan.add %2, %n : tensor<i64>
  return %1, %3 : tensor<f32>, tensor<i64>
}
}
