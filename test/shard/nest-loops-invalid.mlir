// RUN: titan-opt %s --titan-shard-nest-loops --split-input-file --verify-diagnostics

module attributes {titan.recipe = {batch = {micro = 1 : i64, global = 4 : i64}, mesh = {sync = "immediate", axes = {shard = 2 : i64}}}} {
func.func @step(%x: tensor<2x2x2xf32>) {
  // expected-error @+1 {{has to be the one loop over all 4 microbatches, in order, for ranks to sum more often than once a step}}
  accum.loop %i in 2 running slices(%xi = %x : tensor<2x2x2xf32>) {
    accum.loop %j in 2 running slices(%xj = %xi : tensor<2x2xf32>) {
    }
  }
  return
}
}

// -----

module attributes {titan.recipe = {batch = {micro = 1 : i64, global = 4 : i64}, mesh = {sync = "immediate", axes = {shard = 2 : i64}}}} {
func.func @step(%x: tensor<2x2xf32>) {
  // expected-error @+1 {{has to be the one loop over all 4 microbatches, in order, for ranks to sum more often than once a step}}
  accum.loop %i in 2 running slices(%xi = %x : tensor<2x2xf32>) {
  }
  return
}
}

// -----

module attributes {titan.recipe = {batch = {micro = 1 : i64, global = 4 : i64}, mesh = {reduce = "tree"}}} {
func.func @step(%x: tensor<4x2xf32>) {
  // expected-error @+1 {{has to be the one loop over all 4 microbatches, a tree, by mesh.reduce}}
  accum.loop %i in 4 running slices(%xi = %x : tensor<4x2xf32>) {
  }
  return
}
}
