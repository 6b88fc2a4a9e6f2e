// RUN: titan-opt %s --titan-shard-propagate-placements --split-input-file --verify-diagnostics

module attributes {dist.mesh = #dist.mesh<["shard" = 2]>} {
func.func @starts_elsewhere(%x: tensor<4x2xf32> {dist.placement = #dist.placement<["shard" = shard(0)]>}, %b: tensor<2xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{accumulator 0 does not start at zero: each rank would add what it starts at}}
  %s = accum.loop %i in 4 running slices(%xi = %x : tensor<4x2xf32>) accumulators(%a = %b : tensor<2xf32>) -> (tensor<2xf32>) {
    %n = titan.add %a, %xi : tensor<2xf32>
    accum.yield %n : tensor<2xf32>
  }
  return %s : tensor<2xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["shard" = 2]>} {
func.func @no_sum(%x: tensor<4x2xf32> {dist.placement = #dist.placement<["shard" = shard(0)]>}) -> tensor<2xf32> {
  %zero = titan.constant dense<0.0> : tensor<2xf32>
  // expected-error @+1 {{result 0 is no sum of the microbatches' terms: it cannot be divided among ranks}}
  %s = accum.loop %i in 4 running slices(%xi = %x : tensor<4x2xf32>) accumulators(%a = %zero : tensor<2xf32>) -> (tensor<2xf32>) {
    accum.yield %xi : tensor<2xf32>
  }
  return %s : tensor<2xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["shard" = 2]>} {
func.func @reads_the_sum(%x: tensor<4x2xf32> {dist.placement = #dist.placement<["shard" = shard(0)]>}) -> tensor<2xf32> {
  %zero = titan.constant dense<0.0> : tensor<2xf32>
  %s = accum.loop %i in 4 running slices(%xi = %x : tensor<4x2xf32>) accumulators(%a = %zero : tensor<2xf32>) -> (tensor<2xf32>) {
    // expected-error @+1 {{reads what the loop has summed so far, of which each rank has a part}}
    %y = titan.mul %xi, %a : tensor<2xf32>
    %n = titan.add %a, %y : tensor<2xf32>
    accum.yield %n : tensor<2xf32>
  }
  return %s : tensor<2xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["shard" = 2]>} {
func.func @one_batch_is_whole(%x: tensor<4x2xf32> {dist.placement = #dist.placement<["shard" = shard(0)]>}, %y: tensor<4x2xf32>) {
  // expected-error @+1 {{the iterations are divided along "shard", batch 1 is not}}
  accum.loop %i in 4 running slices(%xi = %x : tensor<4x2xf32>, %yi = %y : tensor<4x2xf32>) {
  }
  return
}
}

// -----

// Of nested loops, too: the body around the inner one.
module attributes {dist.mesh = #dist.mesh<["shard" = 2]>} {
func.func @reads_the_sum_inside(%x: tensor<4x2x2xf32> {dist.placement = #dist.placement<["shard" = shard(0)]>}) -> tensor<2xf32> {
  %zero = titan.constant dense<0.0> : tensor<2xf32>
  %s = accum.loop %i in 4 running slices(%xi = %x : tensor<4x2x2xf32>) accumulators(%a = %zero : tensor<2xf32>) -> (tensor<2xf32>) {
    %t = accum.loop %j in 2 running slices(%xj = %xi : tensor<2x2xf32>) accumulators(%b = %zero : tensor<2xf32>) -> (tensor<2xf32>) {
      // expected-error @+1 {{reads what the loop has summed so far, of which each rank has a part}}
      %y = titan.mul %xj, %a : tensor<2xf32>
      %m = titan.add %b, %y : tensor<2xf32>
      accum.yield %m : tensor<2xf32>
    }
    %n = titan.add %a, %t : tensor<2xf32>
    accum.yield %n : tensor<2xf32>
  }
  return %s : tensor<2xf32>
}
}

// -----

// What is summed once, behind all loops, is partial around the one that the axis divides.
module attributes {dist.mesh = #dist.mesh<["shard" = 2]>,
    titan.recipe = {batch = {micro = 1 : i64, global = 4 : i64}, mesh = {sync = "immediate", axes = [{name = "shard", ranks = 2 : i64}]}}} {
func.func @starts_elsewhere_around(%x: tensor<4x2xf32> {titan.input = "x", dist.placement = #dist.placement<["shard" = shard(0)]>}, %w: tensor<2xf32>) -> tensor<2xf32> {
  %zero = titan.constant dense<0.0> : tensor<2xf32>
  %b = titan.reshape %x : tensor<4x2xf32> to tensor<2x2x2xf32>
  // expected-error @+1 {{accumulator 0 does not start at zero: each rank would add what it starts at}}
  %s = accum.loop %i in 2 running slices(%xi = %b : tensor<2x2x2xf32>) accumulators(%a = %w : tensor<2xf32>) -> (tensor<2xf32>) {
    %t = accum.loop %j in 2 running slices(%xj = %xi : tensor<2x2xf32>) accumulators(%c = %zero : tensor<2xf32>) -> (tensor<2xf32>) {
      %m = titan.add %c, %xj : tensor<2xf32>
      accum.yield %m : tensor<2xf32>
    }
    %n = titan.add %a, %t : tensor<2xf32>
    accum.yield %n : tensor<2xf32>
  }
  return %s : tensor<2xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["shard" = 2]>} {
// expected-error @+1 {{argument 0 is placed by #dist.placement<["rows" = shard(0)]> on axes that #dist.mesh<["shard" = 2]> does not have}}
func.func @other_axis(%x: tensor<4x2xf32> {dist.placement = #dist.placement<["rows" = shard(0)]>}) {
  return
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["shard" = 2]>} {
func.func @region(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = kernel.empty : tensor<4xf32>
  // expected-error @+1 {{has a region: what it reads cannot be divided among ranks}}
  %y = kernel.fused flat [4] ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> (tensor<4xf32>) {
  ^bb0(%a: f32):
    kernel.yield %a : f32
  }
  return %y : tensor<4xf32>
}
}
