// RUN: titan-opt %s --titan-schedule-verify --split-input-file --verify-diagnostics

func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = titan.neg %x {phase = #titan<phase update>} : tensor<4xf32>
  // expected-error @+1 {{stands after the first op of phase update}}
  %b = titan.exp %a {phase = #titan<phase backward>} : tensor<4xf32>
  return %b : tensor<4xf32>
}

// -----

func.func @step(%x: tensor<2x4xf32>) -> tensor<4xf32> {
  %zero = titan.constant dense<0.0> : tensor<4xf32>
  %s = accum.loop %i in 2 running slices(%xi = %x : tensor<2x4xf32>) accumulators(%a = %zero : tensor<4xf32>) -> (tensor<4xf32>) {
    // expected-error @+1 {{is of phase update and stands in the microbatch loop}}
    %n = titan.add %a, %xi {phase = #titan<phase update>} : tensor<4xf32>
    accum.yield %n : tensor<4xf32>
  }
  return %s : tensor<4xf32>
}

// -----

func.func @step(%x: tensor<1x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %zero = titan.constant dense<0.0> : tensor<4xf32>
  %s = accum.loop %i in 1 running slices(%xi = %x : tensor<1x4xf32>) accumulators(%a = %zero : tensor<4xf32>) -> (tensor<4xf32>) {
    %n = titan.add %a, %xi : tensor<4xf32>
    accum.yield %n : tensor<4xf32>
  }
  // expected-error @+1 {{stands beside another accum.loop: put one into the other}}
  %t = accum.loop %i in 1 running slices(%xi = %x : tensor<1x4xf32>) accumulators(%a = %zero : tensor<4xf32>) -> (tensor<4xf32>) {
    %n = titan.add %a, %xi : tensor<4xf32>
    accum.yield %n : tensor<4xf32>
  }
  return %s, %t : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @step(%x: tensor<2x4xf32>) -> tensor<4xf32> {
  %zero = titan.constant dense<0.0> : tensor<4xf32>
  // expected-error @+1 {{runs 2 microbatches, the recipe says 1}}
  %s = accum.loop %i in 2 running slices(%xi = %x : tensor<2x4xf32>) accumulators(%a = %zero : tensor<4xf32>) -> (tensor<4xf32>) {
    %n = titan.add %a, %xi : tensor<4xf32>
    accum.yield %n : tensor<4xf32>
  }
  return %s : tensor<4xf32>
}

// -----

func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %b = titan.barrier %x id 0 {phase = #titan<phase backward>} : tensor<4xf32>
  // expected-error @+1 {{of the forward pass reads a barrier}}
  %n = titan.neg %b : tensor<4xf32>
  return %n : tensor<4xf32>
}

// -----

// expected-error @+1 {{the module has no @step}}
module {
  func.func @eval(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}

// -----

func.func @step(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = kernel.empty : tensor<4xf32>
  // expected-error @+1 {{is a kernel, which only *lower* makes}}
  %y = kernel.fused flat [4] ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) maps [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>] -> (tensor<4xf32>) {
  ^bb0(%v: f32):
    %n = arith.negf %v : f32
    kernel.yield %n : f32
  }
  return %y : tensor<4xf32>
}

// -----

// Three in the loop and one behind it are four.
module attributes {titan.recipe = {batch = {micro = 1 : i64, global = 5 : i64}}} {
func.func @step(%x: tensor<3x4xf32>) -> tensor<4xf32> {
  %zero = titan.constant dense<0.0> : tensor<4xf32>
  // expected-error @+1 {{runs 3 + 1 = 4 microbatches, the recipe says 5}}
  %s = accum.loop %i in 3 running slices(%xi = %x : tensor<3x4xf32>) accumulators(%a = %zero : tensor<4xf32>) -> (tensor<4xf32>) {
    %n = titan.add %a, %xi : tensor<4xf32>
    accum.yield %n : tensor<4xf32>
  } {accum.peeled}
  return %s : tensor<4xf32>
}
}

// -----

// What is peeled of a loop of loops are loops; one of these may be peeled in turn.
module attributes {titan.recipe = {batch = {micro = 1 : i64, global = 7 : i64}}} {
func.func @step(%x: tensor<2x2x4xf32>, %y: tensor<1x4xf32>) -> tensor<4xf32> {
  %zero = titan.constant dense<0.0> : tensor<4xf32>
  // expected-error @+1 {{runs 2 x (2 + 1) + 1 + 1 = 8 microbatches, the recipe says 7}}
  %s = accum.loop %j in 2 running slices(%xj = %x : tensor<2x2x4xf32>) accumulators(%a = %zero : tensor<4xf32>) -> (tensor<4xf32>) {
    %t = accum.loop %i in 2 running slices(%xi = %xj : tensor<2x4xf32>) accumulators(%b = %a : tensor<4xf32>) -> (tensor<4xf32>) {
      %n = titan.add %b, %xi : tensor<4xf32>
      accum.yield %n : tensor<4xf32>
    } {accum.peeled}
    accum.yield %t : tensor<4xf32>
  } {accum.peeled}
  %u = accum.loop %i in 1 running slices(%yi = %y : tensor<1x4xf32>) accumulators(%b = %s : tensor<4xf32>) -> (tensor<4xf32>) {
    %n = titan.add %b, %yi : tensor<4xf32>
    accum.yield %n : tensor<4xf32>
  } {accum.peeled}
  return %u : tensor<4xf32>
}
}

// -----

// Behind a loop of which nothing was peeled.
func.func @step(%x: tensor<1x4xf32>) -> tensor<4xf32> {
  %zero = titan.constant dense<0.0> : tensor<4xf32>
  %s = accum.loop %i in 1 running slices(%xi = %x : tensor<1x4xf32>) accumulators(%a = %zero : tensor<4xf32>) -> (tensor<4xf32>) {
    %n = titan.add %a, %xi : tensor<4xf32>
    accum.yield %n : tensor<4xf32>
  }
  // expected-error @+1 {{stands beside another accum.loop: put one into the other}}
  %t = accum.loop %i in 1 running slices(%xi = %x : tensor<1x4xf32>) accumulators(%a = %s : tensor<4xf32>) -> (tensor<4xf32>) {
    %n = titan.add %a, %xi : tensor<4xf32>
    accum.yield %n : tensor<4xf32>
  } {accum.peeled}
  return %t : tensor<4xf32>
}
