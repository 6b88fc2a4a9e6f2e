// What titan-optimize-average-parameters refuses.
// RUN: not titan-opt %s --split-input-file --titan-optimize-average-parameters 2>&1 | FileCheck %s

// CHECK: error: titan.recipe: ema.profiles has a profile '../x': a name is letters, digits and '_'
module attributes {titan.recipe = {ema = {profiles = {"../x" = 0.5}}}} {
}

// -----

// CHECK: error: titan.recipe: ema.profiles.slow.decay = 1.5 must be in [0, 1)
module attributes {titan.recipe = {ema = {profiles = {slow = 1.5}}}} {
}

// -----

// CHECK: error: the module has no @step to average: run insert-update first
module attributes {titan.recipe = {ema = {profiles = {slow = 0.5}}}} {
}

// -----

// CHECK: error: ema.buffers '*.mean' matches no buffer
module attributes {titan.recipe = {ema = {profiles = {slow = 0.5}, buffers = ["*.mean"]}}} {
  titan.state @norm.count : tensor<i64> {kind = #titan<kind buffer>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  func.func @step() {
    return
  }
}

// -----

// CHECK: error: ema.buffers 'norm.*' matches buffer 'norm.count' of 'i64': only f32 is averaged, the others are copied
module attributes {titan.recipe = {ema = {profiles = {slow = 0.5}, buffers = ["norm.*"]}}} {
  titan.state @norm.count : tensor<i64> {kind = #titan<kind buffer>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  func.func @step() {
    return
  }
}

// -----

// CHECK: error: @step has no update to average: run insert-update first
module attributes {titan.recipe = {ema = {profiles = {slow = 0.5}}}} {
  func.func @step(%x: tensor<f32> {titan.input = "x"}) -> (tensor<f32> {titan.metric = "loss"}) {
    return %x : tensor<f32>
  }
}
