// RUN: titan-opt %s --titan-shard-verify --split-input-file --verify-diagnostics

// The last part of three rows on two ranks has padding. Elementwise it stays where it is, a gather is cut to the rows that there are, and zeros
// are read.
module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 2]>,
  titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}]}}} {
titan.state @w : tensor<3x5xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>,
  placement = #titan.placement<["shard" = shard(0)]>}
titan.state @m : tensor<3x5xf32> {kind = #titan<kind slot>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>,
  placement = #titan.placement<["shard" = shard(0)]>}
func.func @step(%w: tensor<2x5xf32> {titan.state = @w}, %m: tensor<2x5xf32> {titan.state = @m}, %g: tensor<3x5xf32>)
    -> (tensor<2x5xf32> {titan.state = @w}, tensor<2x5xf32> {titan.state = @m}, tensor<f32> {titan.metric = "norm"}, tensor<f32> {titan.metric = "exact"}) {
  %padded = titan.pad %g low [0, 0] interior [0, 0] {value = 0.0 : f64} : tensor<3x5xf32> to tensor<4x5xf32>
  %narrow = titan.convert %padded : tensor<4x5xf32> to tensor<4x5xbf16>
  %sum = dist.reduce_scatter sum %narrow axes ["shard"] dims [0] order rank : tensor<4x5xbf16> to tensor<2x5xbf16>
  %wide = titan.convert %sum : tensor<2x5xbf16> to tensor<2x5xf32>
  %all = dist.all_reduce sum %wide axes ["replicate"] order rank : tensor<2x5xf32> to tensor<2x5xf32>
  %squares = titan.mul %all, %all : tensor<2x5xf32>
  %mine = titan.reduce sum %squares [0, 1] : tensor<2x5xf32> to tensor<f32>
  %norm = dist.all_reduce sum %mine axes ["shard"] order rank : tensor<f32> to tensor<f32>
  %rows = titan.reduce sum %squares [1] : tensor<2x5xf32> to tensor<2xf32>
  %words = titan.exact_sum %rows : tensor<2xf32> to tensor<10xi64>
  %total = dist.all_reduce sum %words axes ["shard"] order rank : tensor<10xi64> to tensor<10xi64>
  %exact = titan.exact_value %total : tensor<10xi64> to tensor<f32>
  %clip = titan.broadcast %norm [] : tensor<f32> to tensor<2x5xf32>
  %clipped = titan.mul %all, %clip : tensor<2x5xf32>
  %m1 = titan.add %m, %clipped : tensor<2x5xf32>
  %root = titan.sqrt %m1 : tensor<2x5xf32>
  %w1 = titan.sub %w, %root : tensor<2x5xf32>
  return %w1, %m1, %norm, %exact : tensor<2x5xf32>, tensor<2x5xf32>, tensor<f32>, tensor<f32>
}
func.func @eval(%w: tensor<2x5xf32> {titan.state = @w}) -> (tensor<f32>, tensor<5x3xf32>) {
  %t = titan.transpose %w [1, 0] : tensor<2x5xf32> to tensor<5x2xf32>
  %joined = dist.all_gather %t axes ["shard"] dims [1] : tensor<5x2xf32> to tensor<5x4xf32>
  %full = titan.slice %joined offsets [0, 0] strides [1, 1] : tensor<5x4xf32> to tensor<5x3xf32>
  %sum = titan.reduce sum %full [0, 1] : tensor<5x3xf32> to tensor<f32>
  return %sum, %full : tensor<f32>, tensor<5x3xf32>
}
}

// -----

// A dimension that divides has none.
module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 2]>,
  titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}]}}} {
titan.state @w : tensor<4x5xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>,
  placement = #titan.placement<["shard" = shard(0)]>}
func.func @step(%w: tensor<2x5xf32> {titan.state = @w}) -> tensor<f32> {
  %sum = titan.reduce max %w [0, 1] : tensor<2x5xf32> to tensor<f32>
  return %sum : tensor<f32>
}
}

// -----

// A sum of rows of a state.
module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 2]>,
  titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}]}}} {
titan.state @w : tensor<3x5xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>,
  placement = #titan.placement<["shard" = shard(0)]>}
func.func @eval(%w: tensor<2x5xf32> {titan.state = @w}) -> tensor<5xf32> {
  // expected-error @+1 {{'titan.reduce' op reads the padding of operand 0: the parts of dimension 0 have 3 elements on 2 ranks, and what is behind them is any number}}
  %sum = titan.reduce sum %w [0] : tensor<2x5xf32> to tensor<5xf32>
  return %sum : tensor<5xf32>
}
}

// -----

// An exact one.
module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 2]>,
  titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}]}}} {
titan.state @w : tensor<3x5xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>,
  placement = #titan.placement<["shard" = shard(0)]>}
func.func @eval(%w: tensor<2x5xf32> {titan.state = @w}) -> tensor<10xi64> {
  // expected-error @+1 {{'titan.exact_sum' op reads the padding of operand 0: the parts of dimension 0 have 3 elements on 2 ranks}}
  %sum = titan.exact_sum %w : tensor<2x5xf32> to tensor<10xi64>
  return %sum : tensor<10xi64>
}
}

// -----

// Along another dimension it is one of padding. What it gives has padding.
module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 2]>,
  titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}]}}} {
titan.state @w : tensor<3x5xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>,
  placement = #titan.placement<["shard" = shard(0)]>}
func.func @eval(%w: tensor<2x5xf32> {titan.state = @w}) -> tensor<f32> {
  %sum = titan.reduce sum %w [1] : tensor<2x5xf32> to tensor<2xf32>
  // expected-error @+1 {{'titan.reduce' op reads the padding of operand 0}}
  %all = titan.reduce sum %sum [0] : tensor<2xf32> to tensor<f32>
  return %all : tensor<f32>
}
}

// -----

// A sum with a state is not zero.
module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 2]>,
  titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}]}}} {
titan.state @w : tensor<3x5xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>,
  placement = #titan.placement<["shard" = shard(0)]>}
func.func @step(%w: tensor<2x5xf32> {titan.state = @w}, %g: tensor<3x5xf32>) -> (tensor<2x5xf32> {titan.state = @w}, tensor<f32>) {
  %padded = titan.pad %g low [0, 0] interior [0, 0] {value = 0.0 : f64} : tensor<3x5xf32> to tensor<4x5xf32>
  %part = dist.reduce_scatter sum %padded axes ["shard"] dims [0] order rank : tensor<4x5xf32> to tensor<2x5xf32>
  %decayed = titan.add %part, %w : tensor<2x5xf32>
  // expected-error @+1 {{'titan.reduce' op reads the padding of operand 0}}
  %sum = titan.reduce sum %decayed [0, 1] : tensor<2x5xf32> to tensor<f32>
  return %w, %sum : tensor<2x5xf32>, tensor<f32>
}
}

// -----

// Zero times any number is not zero.
module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 2]>,
  titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}]}}} {
titan.state @w : tensor<3x5xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>,
  placement = #titan.placement<["shard" = shard(0)]>}
func.func @step(%w: tensor<2x5xf32> {titan.state = @w}, %g: tensor<3x5xf32>) -> (tensor<2x5xf32> {titan.state = @w}, tensor<f32>) {
  %padded = titan.pad %g low [0, 0] interior [0, 0] {value = 0.0 : f64} : tensor<3x5xf32> to tensor<4x5xf32>
  %part = dist.reduce_scatter sum %padded axes ["shard"] dims [0] order rank : tensor<4x5xf32> to tensor<2x5xf32>
  %scaled = titan.mul %part, %w : tensor<2x5xf32>
  // expected-error @+1 {{'titan.reduce' op reads the padding of operand 0}}
  %sum = titan.reduce sum %scaled [0, 1] : tensor<2x5xf32> to tensor<f32>
  return %w, %sum : tensor<2x5xf32>, tensor<f32>
}
}

// -----

// A gradient that is padded with something else.
module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 2]>,
  titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}]}}} {
titan.state @w : tensor<3x5xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>,
  placement = #titan.placement<["shard" = shard(0)]>}
func.func @step(%w: tensor<2x5xf32> {titan.state = @w}, %g: tensor<3x5xf32>) -> (tensor<2x5xf32> {titan.state = @w}, tensor<f32>) {
  %padded = titan.pad %g low [0, 0] interior [0, 0] {value = 1.0 : f64} : tensor<3x5xf32> to tensor<4x5xf32>
  %part = dist.reduce_scatter sum %padded axes ["shard"] dims [0] order rank : tensor<4x5xf32> to tensor<2x5xf32>
  // expected-error @+1 {{'titan.reduce' op reads the padding of operand 0}}
  %sum = titan.reduce sum %part [0, 1] : tensor<2x5xf32> to tensor<f32>
  return %w, %sum : tensor<2x5xf32>, tensor<f32>
}
}

// -----

// The largest of a sum of zeros is no sum.
module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 2]>,
  titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}]}}} {
titan.state @w : tensor<3x5xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>,
  placement = #titan.placement<["shard" = shard(0)]>}
func.func @step(%w: tensor<2x5xf32> {titan.state = @w}, %g: tensor<3x5xf32>) -> (tensor<2x5xf32> {titan.state = @w}, tensor<f32>) {
  %padded = titan.pad %g low [0, 0] interior [0, 0] {value = 0.0 : f64} : tensor<3x5xf32> to tensor<4x5xf32>
  %part = dist.reduce_scatter sum %padded axes ["shard"] dims [0] order rank : tensor<4x5xf32> to tensor<2x5xf32>
  // expected-error @+1 {{'titan.reduce' op reads the padding of operand 0}}
  %max = titan.reduce max %part [0, 1] : tensor<2x5xf32> to tensor<f32>
  return %w, %max : tensor<2x5xf32>, tensor<f32>
}
}

// -----

// A gather that is not cut.
module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 2]>,
  titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}]}}} {
titan.state @w : tensor<3x5xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>,
  placement = #titan.placement<["shard" = shard(0)]>}
func.func @eval(%w: tensor<2x5xf32> {titan.state = @w}) -> tensor<3x5xf32> {
  %joined = dist.all_gather %w axes ["shard"] dims [0] : tensor<2x5xf32> to tensor<4x5xf32>
  // expected-error @+1 {{'titan.exp' op reads the padding of what ranks have joined: 'tensor<4x5xf32>' has 3 elements along dimension 0}}
  %exp = titan.exp %joined : tensor<4x5xf32>
  %full = titan.slice %exp offsets [0, 0] strides [1, 1] : tensor<4x5xf32> to tensor<3x5xf32>
  return %full : tensor<3x5xf32>
}
}

// -----

// A gather that is cut elsewhere.
module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 2]>,
  titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}]}}} {
titan.state @w : tensor<3x5xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>,
  placement = #titan.placement<["shard" = shard(0)]>}
func.func @eval(%w: tensor<2x5xf32> {titan.state = @w}) -> tensor<3x5xf32> {
  %joined = dist.all_gather %w axes ["shard"] dims [0] : tensor<2x5xf32> to tensor<4x5xf32>
  // expected-error @+1 {{'titan.slice' op reads the padding of what ranks have joined}}
  %full = titan.slice %joined offsets [1, 0] strides [1, 1] : tensor<4x5xf32> to tensor<3x5xf32>
  return %full : tensor<3x5xf32>
}
}

// -----

// A part is no result.
module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 2]>,
  titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}]}}} {
titan.state @w : tensor<3x5xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>,
  placement = #titan.placement<["shard" = shard(0)]>}
// expected-error @+1 {{result 0 is a part with padding, and no state}}
func.func @eval(%w: tensor<2x5xf32> {titan.state = @w}) -> tensor<2x5xf32> {
  return %w : tensor<2x5xf32>
}
}

// -----

// Two axes on one dimension: the inner parts are joined and cut first.
module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 2]>,
  titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}]}}} {
titan.state @w : tensor<5x3xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>,
  placement = #titan.placement<["shard" = shard(0), "replicate" = shard(0)]>}
func.func @step(%w: tensor<2x3xf32> {titan.state = @w}) -> tensor<5x3xf32> {
  %inner = dist.all_gather %w axes ["replicate"] dims [0] : tensor<2x3xf32> to tensor<4x3xf32>
  %three = titan.slice %inner offsets [0, 0] strides [1, 1] : tensor<4x3xf32> to tensor<3x3xf32>
  %outer = dist.all_gather %three axes ["shard"] dims [0] : tensor<3x3xf32> to tensor<6x3xf32>
  %full = titan.slice %outer offsets [0, 0] strides [1, 1] : tensor<6x3xf32> to tensor<5x3xf32>
  return %full : tensor<5x3xf32>
}
}

// -----

module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 2]>,
  titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}]}}} {
titan.state @w : tensor<5x3xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>,
  placement = #titan.placement<["shard" = shard(0), "replicate" = shard(0)]>}
func.func @eval(%w: tensor<2x3xf32> {titan.state = @w}) -> tensor<5x3xf32> {
  // expected-error @+1 {{'dist.all_gather' op joins parts of 3 elements on 2 ranks with their padding in between: gather them alone, and cut it off}}
  %joined = dist.all_gather %w axes ["replicate", "shard"] dims [0] : tensor<2x3xf32> to tensor<8x3xf32>
  %full = titan.slice %joined offsets [0, 0] strides [1, 1] : tensor<8x3xf32> to tensor<5x3xf32>
  return %full : tensor<5x3xf32>
}
}

// -----

// What one iteration puts into an accumulator the next one reads.
module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 2]>,
  titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}]}}} {
titan.state @w : tensor<3x5xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>,
  placement = #titan.placement<["shard" = shard(0)]>}
func.func @eval(%w: tensor<2x5xf32> {titan.state = @w}) -> tensor<f32> {
  %zero = titan.constant dense<0.0> : tensor<2x5xf32>
  %none = titan.constant dense<0.0> : tensor<f32>
  %s:2 = accum.loop %i in 2 running accumulators(%a = %zero : tensor<2x5xf32>, %b = %none : tensor<f32>) -> (tensor<2x5xf32>, tensor<f32>) {
    // expected-error @+1 {{'titan.reduce' op reads the padding of operand 0}}
    %sum = titan.reduce sum %a [0, 1] : tensor<2x5xf32> to tensor<f32>
    %n = titan.add %a, %w : tensor<2x5xf32>
    %m = titan.add %b, %sum : tensor<f32>
    accum.yield %n, %m : tensor<2x5xf32>, tensor<f32>
  }
  return %s#1 : tensor<f32>
}
}
