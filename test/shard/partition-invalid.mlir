// RUN: titan-opt %s --titan-shard-partition --split-input-file --verify-diagnostics

module attributes {dist.mesh = #dist.mesh<["shard" = 2]>} {
func.func @reads_an_input_outside(%x: tensor<4x2xf32> {dist.placement = #dist.placement<["shard" = shard(0)]>, titan.input = "x"}) -> tensor<4x2xf32> {
  // expected-error @+1 {{an operand is cut by #dist.placement<["shard" = shard(0)]>: only the batches of the loop can be divided}}
  %y = titan.neg %x {dist.placements = [#dist.placement<["shard" = shard(0)]>]} : tensor<4x2xf32>
  return %y : tensor<4x2xf32>
}
}

// -----

// What an edited stage says must follow from what it says of the operands.
module attributes {dist.mesh = #dist.mesh<["shard" = 2]>} {
func.func @edited(%x: tensor<2xf32> {dist.placement = #dist.placement<["shard" = partial]>}) -> tensor<2xf32> {
  // expected-error @+1 {{result 0 is placed by #dist.placement<[]>, its operands give #dist.placement<["shard" = partial]>}}
  %y = titan.neg %x : tensor<2xf32>
  return %y : tensor<2xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["shard" = 2]>} {
func.func @other_axis(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{result 0 is placed by #dist.placement<["rows" = partial]>, its operands give #dist.placement<[]>}}
  %y = titan.neg %x {dist.placements = [#dist.placement<["rows" = partial]>]} : tensor<2xf32>
  return %y : tensor<2xf32>
}
}

// -----

// What is summed already is no term.
module attributes {dist.mesh = #dist.mesh<["shard" = 2]>} {
func.func @summed_twice(%x: tensor<2xf32> {dist.placement = #dist.placement<["shard" = partial]>}) -> tensor<2xf32> {
  %y = dist.all_reduce sum %x axes ["shard"] order rank : tensor<2xf32> to tensor<2xf32>
  // expected-error @+1 {{takes operand 0 as #dist.placement<["shard" = partial]>, it is #dist.placement<[]>: there is no collective for this}}
  %z = dist.all_reduce sum %y axes ["shard"] order rank {path = ["again"]} : tensor<2xf32> to tensor<2xf32>
  return %z : tensor<2xf32>
}
}

// -----

// A term that comes from outside of the loop, read in its body through an op that terms pass.
module attributes {dist.mesh = #dist.mesh<["shard" = 2]>} {
func.func @sum_in_the_body(%x: tensor<4x2xf32>, %p: tensor<2xf32> {dist.placement = #dist.placement<["shard" = partial]>}) -> tensor<2xf32> {
  %zero = titan.constant dense<0.0> : tensor<2xf32>
  %s = accum.loop %i in 4 running slices(%xi = %x : tensor<4x2xf32>) accumulators(%a = %zero : tensor<2xf32>) -> (tensor<2xf32>) {
    %n = titan.neg %p {dist.placements = [#dist.placement<["shard" = partial]>]} : tensor<2xf32>
    // expected-error @+1 {{takes the sum over ranks of a value of the loop's body: only what a loop gives is summed}}
    %y = titan.mul %n, %xi : tensor<2xf32>
    %next = titan.add %a, %y : tensor<2xf32>
    accum.yield %next : tensor<2xf32>
  }
  return %s : tensor<2xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["shard" = 2]>} {
titan.state @w : tensor<4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>,
  placement = #titan.placement<["shard" = shard(0)]>}
// A state is cut, and so it may be; a control may not.
func.func @cut_state(%w: tensor<4xf32> {titan.state = @w}) {
  return
}
// expected-error @+1 {{argument 0 is cut by #dist.placement<["shard" = shard(0)]>: only inputs and states can be divided}}
func.func @cut_control(%c: tensor<4xf32> {dist.placement = #dist.placement<["shard" = shard(0)]>, titan.control = "c"}) {
  return
}
}

// -----

// The recipe sums each microbatch, which takes a loop inside of one.
module attributes {dist.mesh = #dist.mesh<["shard" = 2]>,
    titan.recipe = {batch = {micro = 1 : i64, global = 4 : i64}, mesh = {sync = "immediate", axes = [{name = "shard", ranks = 2 : i64}]}}} {
func.func @step(%x: tensor<4x2xf32> {titan.input = "x", dist.placement = #dist.placement<["shard" = shard(0)]>}) {
  // expected-error @+1 {{runs 4 iterations at depth 0, mesh.sync and mesh.sync_every ask for 2}}
  accum.loop %i in 4 running slices(%xi = %x : tensor<4x2xf32>) {
  }
  return
}
}
