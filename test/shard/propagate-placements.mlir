// RUN: titan-opt %s --titan-shard-propagate-placements --split-input-file | FileCheck %s

// The body of a divided loop is the rank's own iteration, its accumulators and results are partial; what reads the batch nowhere is replicated.
// CHECK-LABEL: func.func @step
module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 3]>} {
func.func @step(%w: tensor<4x2xf32>, %x: tensor<6x3x2xf32> {dist.placement = #dist.placement<["replicate" = shard(0), "shard" = shard(0)]>}) -> (tensor<2xf32>, tensor<f32>) {
  // CHECK: titan.constant dense<0.000000e+00> : tensor<2xf32>
  %zero = titan.constant dense<0.0> : tensor<2xf32>
  %one = titan.constant dense<1.0> : tensor<f32>
  %none = titan.constant dense<0.0> : tensor<f32>
  // CHECK: accum.loop %[[I:.*]] in 6 running
  %s:2 = accum.loop %i in 6 running slices(%xi = %x : tensor<6x3x2xf32>) accumulators(%a = %zero : tensor<2xf32>, %c = %none : tensor<f32>) -> (tensor<2xf32>, tensor<f32>) {
    // The weights are alike everywhere, and so is what is made of them alone.
    // CHECK: titan.neg %{{[a-z0-9]+}} : tensor<4x2xf32>
    %v = titan.neg %w : tensor<4x2xf32>
    // CHECK: titan.contract {{.*}} {dist.placements = [#dist.placement<["replicate" = iteration, "shard" = iteration]>]}
    %y = titan.contract %xi, %v batch [] x [] contracting [1] x [1] : (tensor<3x2xf32>, tensor<4x2xf32>) -> tensor<3x4xf32>
    %z = titan.contract %y, %v batch [] x [] contracting [1] x [0] : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
    // CHECK: titan.reduce {{.*}} {dist.placements = [#dist.placement<["replicate" = iteration, "shard" = iteration]>]}
    %g = titan.reduce sum %z [0] : tensor<3x2xf32> to tensor<2xf32>
    // CHECK: titan.add {{.*}} {dist.placements = [#dist.placement<["replicate" = partial, "shard" = partial]>]}
    %next = titan.add %a, %g : tensor<2xf32>
    // A term that no microbatch decides is added by each iteration all the same.
    // CHECK: titan.add {{.*}} {dist.placements = [#dist.placement<["replicate" = partial, "shard" = partial]>]} : tensor<f32>
    %count = titan.add %c, %one : tensor<f32>
    accum.yield %next, %count : tensor<2xf32>, tensor<f32>
  }
  // CHECK: } {dist.placements = [#dist.placement<["replicate" = partial, "shard" = partial]>, #dist.placement<["replicate" = partial, "shard" = partial]>]}
  return %s#0, %s#1 : tensor<2xf32>, tensor<f32>
}
}

// -----

// A product that continues its accumulator adds to it.
// CHECK-LABEL: func.func @acc
module attributes {dist.mesh = #dist.mesh<["shard" = 2]>} {
func.func @acc(%x: tensor<4x3x2xf32> {dist.placement = #dist.placement<["shard" = shard(0)]>}) -> tensor<2x2xf32> {
  %zero = titan.constant dense<0.0> : tensor<2x2xf32>
  %s = accum.loop %i in 4 running slices(%xi = %x : tensor<4x3x2xf32>) accumulators(%a = %zero : tensor<2x2xf32>) -> (tensor<2x2xf32>) {
    // CHECK: titan.contract {{.*}} acc {{.*}}{dist.placements = [#dist.placement<["shard" = partial]>]}
    %n = titan.contract %xi, %xi acc %a batch [] x [] contracting [0] x [0] : (tensor<3x2xf32>, tensor<3x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    accum.yield %n : tensor<2x2xf32>
  }
  return %s : tensor<2x2xf32>
}
}

// -----

// Terms pass what is linear, and nothing else.
// CHECK-LABEL: func.func @partial
module attributes {dist.mesh = #dist.mesh<["shard" = 2]>} {
func.func @partial(%p: tensor<2x3xf32> {dist.placement = #dist.placement<["shard" = partial]>}, %q: tensor<2x3xf32> {dist.placement = #dist.placement<["shard" = partial]>},
                   %r: tensor<2x3xf32>, %f: tensor<f32>) -> tensor<2x3xf32> {
  // CHECK: titan.add {{.*}}partial
  %add = titan.add %p, %q : tensor<2x3xf32>
  // CHECK: titan.sub {{.*}}partial
  %sub = titan.sub %add, %p : tensor<2x3xf32>
  // CHECK: titan.neg {{.*}}partial
  %neg = titan.neg %sub : tensor<2x3xf32>
  // CHECK: titan.reshape {{.*}}partial
  %reshape = titan.reshape %neg : tensor<2x3xf32> to tensor<3x2xf32>
  // CHECK: titan.transpose {{.*}}partial
  %transpose = titan.transpose %reshape [1, 0] : tensor<3x2xf32> to tensor<2x3xf32>
  %factor = titan.broadcast %f [] : tensor<f32> to tensor<2x3xf32>
  // CHECK: titan.mul {{.*}}partial
  %scaled = titan.mul %factor, %transpose : tensor<2x3xf32>
  // A value that all ranks have is not one rank's term.
  // CHECK: titan.add %{{[0-9]+}}, %{{[a-z0-9]+}} : tensor<2x3xf32>
  %whole = titan.add %scaled, %r : tensor<2x3xf32>
  // Neither is a product with one of many values, nor a square, nor what is rounded.
  // CHECK: titan.mul %{{[0-9]+}}, %{{[a-z0-9]+}} : tensor<2x3xf32>
  %mul = titan.mul %scaled, %r : tensor<2x3xf32>
  // CHECK: titan.mul %[[P:.*]], %[[P]] : tensor<2x3xf32>
  %square = titan.mul %scaled, %scaled : tensor<2x3xf32>
  // CHECK: titan.convert %{{[0-9]+}} : tensor<2x3xf32> to tensor<2x3xbf16>
  %rounded = titan.convert %scaled : tensor<2x3xf32> to tensor<2x3xbf16>
  return %whole : tensor<2x3xf32>
}
}

// -----

// A part stays one where every operand has the dimension; a sum over it is a term in the update; a product takes the whole.
// CHECK-LABEL: func.func @parts
module attributes {dist.mesh = #dist.mesh<["shard" = 2]>} {
titan.state @w : tensor<4x6xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>,
  placement = #titan.placement<["shard" = shard(1)]>}
func.func @parts(%w: tensor<4x6xf32> {titan.state = @w}, %x: tensor<3x6xf32>) -> tensor<4x6xf32> {
  // CHECK: titan.convert {{.*}} {dist.placements = [#dist.placement<["shard" = shard(1)]>]}
  %narrow = titan.convert %w : tensor<4x6xf32> to tensor<4x6xbf16>
  // CHECK: titan.transpose {{.*}} {dist.placements = [#dist.placement<["shard" = shard(0)]>]}
  %t = titan.transpose %w [1, 0] : tensor<4x6xf32> to tensor<6x4xf32>
  // CHECK: titan.mul {{.*}} {dist.placements = [#dist.placement<["shard" = shard(0)]>]}
  %square = titan.mul %t, %t : tensor<6x4xf32>
  // CHECK: titan.reduce {{.*}} {dist.placements = [#dist.placement<["shard" = partial]>], phase = #titan<phase update>} : tensor<6x4xf32> to tensor<f32>
  %sum = titan.reduce sum %square [0, 1] {phase = #titan<phase update>} : tensor<6x4xf32> to tensor<f32>
  // CHECK: titan.reduce {{.*}} {dist.placements = [#dist.placement<["shard" = shard(0)]>], phase = #titan<phase update>} : tensor<6x4xf32> to tensor<6xf32>
  %rows = titan.reduce sum %square [1] {phase = #titan<phase update>} : tensor<6x4xf32> to tensor<6xf32>
  // Forward takes the whole instead of exchanging the sum; so does what is larger than its operand, or lies otherwise.
  // CHECK: titan.reduce {{ *}}sum %{{[0-9]+}} [0, 1] : tensor<6x4xf32> to tensor<f32>
  %forward = titan.reduce sum %square [0, 1] : tensor<6x4xf32> to tensor<f32>
  // CHECK: titan.broadcast %{{[a-z0-9]+}} [1, 2] : tensor<4x6xf32> to tensor<3x4x6xf32>
  %rows3 = titan.broadcast %w [1, 2] : tensor<4x6xf32> to tensor<3x4x6xf32>
  // CHECK: titan.reshape %{{[a-z0-9]+}} : tensor<4x6xf32> to tensor<24xf32>
  %flat = titan.reshape %w : tensor<4x6xf32> to tensor<24xf32>
  // CHECK: titan.softmax %{{[a-z0-9]+}} dim 1 : tensor<4x6xf32>
  %soft = titan.softmax %w dim 1 : tensor<4x6xf32>
  // CHECK: titan.contract {{.*}} contracting [1] x [1] : (tensor<3x6xf32>, tensor<4x6xf32>) -> tensor<3x4xf32>
  %y = titan.contract %x, %w batch [] x [] contracting [1] x [1] : (tensor<3x6xf32>, tensor<4x6xf32>) -> tensor<3x4xf32>
  return %w : tensor<4x6xf32>
}
}

// -----

// Axis by axis: a sum over one leaves the terms of the other.
// CHECK-LABEL: func.func @collectives
module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 2]>} {
func.func @collectives(%p: tensor<4xf32> {dist.placement = #dist.placement<["replicate" = partial, "shard" = partial]>}) -> tensor<4xf32> {
  // CHECK: dist.reduce_scatter {{.*}} {dist.placements = [#dist.placement<["replicate" = partial, "shard" = shard(0)]>]}
  %s = dist.reduce_scatter sum %p axes ["shard"] dims [0] order rank : tensor<4xf32> to tensor<2xf32>
  // CHECK: dist.all_reduce {{.*}} {dist.placements = [#dist.placement<["shard" = shard(0)]>]}
  %r = dist.all_reduce sum %s axes ["replicate"] order rank : tensor<2xf32> to tensor<2xf32>
  // CHECK: dist.all_gather {{.*}} dims [0] : tensor<2xf32> to tensor<4xf32>
  %g = dist.all_gather %r axes ["shard"] dims [0] : tensor<2xf32> to tensor<4xf32>
  // CHECK: dist.take_shard {{.*}} {dist.placements = [#dist.placement<["shard" = shard(0)]>]}
  %t = dist.take_shard %g axes ["shard"] dim 0 : tensor<4xf32> to tensor<2xf32>
  return %g : tensor<4xf32>
}
}

// -----

// One rank: nothing is placed.
// CHECK-LABEL: func.func @one_rank
// CHECK-NOT: dist
func.func @one_rank(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = titan.neg %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
