// Two sums of gradients, a loss, a count and the stop on four ranks: two collectives, the loop over a rank's own microbatches, and dropout by the
// microbatch's number in the job.
// RUN: titan-opt %s --titan-shard-partition --split-input-file --remarks-filter=shard 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks
// The same from what a printed module says of itself.
// RUN: titan-opt %s --titan-shard-propagate-placements --titan-shard-partition --titan-shard-verify --split-input-file -o %t.mlir

// REMARK: remark: [Passed] partition | Category:shard | Remark="all_reduce of loss, count, stop over replicate, shard, 20 bytes: each rank has a term of what the update and the metrics need"
// REMARK: remark: [Passed] partition | Category:shard | Remark="all_reduce of fc.weight, fc over replicate, shard, 24 bytes: each rank has the gradients of its own microbatches, and all update all parameters"

#p = #dist.placement<["replicate" = partial, "shard" = partial]>
#i = #dist.placement<["replicate" = iteration, "shard" = iteration]>
#x = #dist.placement<["replicate" = shard(0), "shard" = shard(0)]>
// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[X:[^:]*]]: tensor<2x3x2xf32> {titan.input = "x"}
// CHECK-SAME: %[[STOP:[^:]*]]: tensor<i64> {titan.control = "stop"}
// CHECK-NOT: #dist.placement
module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 2]>,
    titan.recipe = {batch = {micro = 3 : i64, global = 24 : i64}, mesh = {axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}]}}} {
titan.state @w : tensor<4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
func.func @step(%w: tensor<4xf32> {titan.state = @w}, %x: tensor<8x3x2xf32> {titan.input = "x", dist.placement = #x}, %seed: tensor<i64> {titan.control = "train.seed"},
    %stop: tensor<i64> {titan.control = "stop", dist.placement = #p})
    -> (tensor<4xf32> {titan.state = @w}, tensor<2xf32> {titan.metric = "bias"}, tensor<f32> {titan.metric = "squares"}, tensor<i64> {titan.metric = "count"}, tensor<i64> {titan.metric = "stop"}) {
  %z = titan.constant dense<0.0> : tensor<f32>
  %z64 = titan.constant dense<0> : tensor<i64>
  %z4 = titan.constant dense<0.0> : tensor<4xf32>
  %z2 = titan.constant dense<0.0> : tensor<2xf32>
  %three = titan.constant dense<3> : tensor<i64>
  // CHECK: %[[S:[a-z0-9]+]]:4 = accum.loop %[[I:.*]] in 2 running slices(%{{.*}} = %[[X]] : tensor<2x3x2xf32>)
  %s:4 = accum.loop %i in 8 running slices(%xi = %x : tensor<8x3x2xf32>)
      accumulators(%a = %z : tensor<f32>, %b = %z64 : tensor<i64>, %c = %z4 : tensor<4xf32>, %d = %z2 : tensor<2xf32>) -> (tensor<f32>, tensor<i64>, tensor<4xf32>, tensor<2xf32>) {
    // The microbatch is 2 p + s + 4 i, and each has six elements.
    // CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
    // CHECK-DAG: %[[C2:.*]] = arith.constant 2 : index
    // CHECK-DAG: %[[TURN:.*]] = arith.muli %[[I]], %[[C4]] : index
    // CHECK-DAG: %[[P:.*]] = dist.coordinate "replicate"
    // CHECK-DAG: %[[ROW:.*]] = arith.muli %[[P]], %[[C2]] : index
    // CHECK-DAG: %[[SUM:.*]] = arith.addi %[[TURN]], %[[ROW]] : index
    // CHECK-DAG: %[[COLUMN:.*]] = dist.coordinate "shard"
    // CHECK-DAG: %[[M:.*]] = arith.addi %[[SUM]], %[[COLUMN]] : index
    // CHECK-DAG: %[[C6:.*]] = arith.constant 6 : index
    // CHECK: %[[BASE:.*]] = arith.muli %[[M]], %[[C6]] : index
    // CHECK: titan.dropout {{.*}} base %[[BASE]] {{.*}}window = #titan.window<[24, 2], multiple = 6>
    %c6 = arith.constant 6 : index
    %base = arith.muli %i, %c6 {dist.placements = [#i]} : index
    %y = titan.dropout %xi p 0.5 stream 7 seed %seed step %z64 base %base {window = #titan.window<[24, 2], multiple = 6>, dist.placements = [#i]} : tensor<3x2xf32> to tensor<3x2xf32>
    %loss = titan.reduce sum %y [0, 1] {path = ["loss"], dist.placements = [#i]} : tensor<3x2xf32> to tensor<f32>
    %gb = titan.reduce sum %y [0] {path = ["fc"], phase = #titan<phase backward>, dist.placements = [#i]} : tensor<3x2xf32> to tensor<2xf32>
    %gw = titan.broadcast %loss [] {path = ["fc"], phase = #titan<phase backward>, dist.placements = [#i]} : tensor<f32> to tensor<4xf32>
    %na = titan.add %a, %loss {path = ["loss"], dist.placements = [#p]} : tensor<f32>
    %nb = titan.add %b, %three {path = ["loss"], dist.placements = [#p]} : tensor<i64>
    %nc = titan.add %c, %gw {path = ["fc"], phase = #titan<phase backward>, dist.placements = [#p]} : tensor<4xf32>
    %nd = titan.add %d, %gb {path = ["fc"], phase = #titan<phase backward>, dist.placements = [#p]} : tensor<2xf32>
    accum.yield %na, %nb, %nc, %nd : tensor<f32>, tensor<i64>, tensor<4xf32>, tensor<2xf32>
  } {dist.placements = [#p, #p, #p, #p]}
  // Right behind the loop; backward's first. The linear op is done on each rank's term.
  // CHECK: %[[N:.*]] = titan.neg %[[S]]#3
  // CHECK: %[[G:.*]]:2 = dist.all_reduce sum %[[S]]#2, %[[N]] axes ["replicate", "shard"] order rank {path = ["fc.weight", "fc"], phase = #titan<phase backward>}
  // CHECK-SAME: : tensor<4xf32>, tensor<2xf32> to tensor<4xf32>, tensor<2xf32>
  %n = titan.neg %s#3 {path = ["fc"], phase = #titan<phase backward>, dist.placements = [#p]} : tensor<2xf32>
  // CHECK: titan.mul %[[G]]#0, %[[G]]#0
  %square = titan.mul %s#2, %s#2 {phase = #titan<phase update>} : tensor<4xf32>
  %squares = titan.reduce sum %square [0] {phase = #titan<phase update>} : tensor<4xf32> to tensor<f32>
  %count = titan.convert %s#1 {phase = #titan<phase update>} : tensor<i64> to tensor<f32>
  %mean = titan.div %s#0, %count {phase = #titan<phase update>} : tensor<f32>
  %e = titan.exp %s#2 {path = ["fc.weight"], phase = #titan<phase update>} : tensor<4xf32>
  %b = titan.exp %n {phase = #titan<phase update>} : tensor<2xf32>
  return %e, %b, %mean, %s#1, %stop : tensor<4xf32>, tensor<2xf32>, tensor<f32>, tensor<i64>, tensor<i64>
}
}

// -----

// What microbatches leave is gathered right behind their loop. A rank has rows 2 i + s: those of ranks take turns.
// REMARK: Remark="all_gather of bn.running_mean over shard, 16 bytes: each rank has a row of each of its own microbatches, and all need those of the step"
#x1 = #dist.placement<["shard" = shard(0)]>
// CHECK-LABEL: func.func @step
// CHECK: %[[S:.*]] = accum.loop %{{.*}} in 2 running stacked = 1 slices(%{{.*}} = %{{.*}} : tensor<2x2xf32>) -> (tensor<2x2xf32>)
// CHECK: %[[ROWS:.*]] = dist.all_gather %[[S]] axes ["shard"] dims [0] {path = ["bn.running_mean"], phase = #titan<phase update>} : tensor<2x2xf32> to tensor<4x2xf32>
// CHECK: %[[BY_RANK:.*]] = titan.reshape %[[ROWS]] {{.*}} : tensor<4x2xf32> to tensor<2x2x2xf32>
// CHECK: %[[IN_TURN:.*]] = titan.transpose %[[BY_RANK]] [1, 0, 2]
// CHECK: %[[ALL:.*]] = titan.reshape %[[IN_TURN]] {{.*}} : tensor<2x2x2xf32> to tensor<4x2xf32>
// CHECK: titan.reduce sum %[[ALL]] [0]
module attributes {dist.mesh = #dist.mesh<["shard" = 2]>, titan.recipe = {batch = {micro = 2 : i64, global = 8 : i64}, mesh = {axes = [{name = "shard", ranks = 2 : i64}]}}} {
titan.state @bn.running_mean : tensor<2xf32> {kind = #titan<kind buffer>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
func.func @step(%b: tensor<2xf32> {titan.state = @bn.running_mean}, %x: tensor<4x2xf32> {dist.placement = #x1, titan.input = "x"}) -> (tensor<2xf32> {titan.state = @bn.running_mean}) {
  %s = accum.loop %i in 4 running stacked = 1 slices(%xi = %x : tensor<4x2xf32>) -> (tensor<4x2xf32>) {
    accum.yield %xi : tensor<2xf32>
  } {dist.placements = [#x1]}
  %sum = titan.reduce sum %s [0] {phase = #titan<phase update>} : tensor<4x2xf32> to tensor<2xf32>
  %next = titan.add %b, %sum {phase = #titan<phase update>} : tensor<2xf32>
  return %next : tensor<2xf32>
}
}

// -----

// Two loops, each divided by an axis: a gather for each. The outer one's ranks take turns, the inner one has one iteration of each rank.
#x2 = #dist.placement<["replicate" = shard(0), "shard" = shard(1)]>
// CHECK-LABEL: func.func @step
// CHECK: %[[S:.*]] = accum.loop %{{.*}} in 2 running stacked = 1 slices({{.*}} : tensor<2x1x2xf32>) -> (tensor<2x1x2xf32>)
// CHECK: %[[P:.*]] = dist.all_gather %[[S]] axes ["replicate"] dims [0] {{.*}} : tensor<2x1x2xf32> to tensor<4x1x2xf32>
// CHECK: %[[Q:.*]] = dist.all_gather %[[P]] axes ["shard"] dims [1] {{.*}} : tensor<4x1x2xf32> to tensor<4x2x2xf32>
// CHECK: %[[APART:.*]] = titan.reshape %[[Q]] {{.*}} : tensor<4x2x2xf32> to tensor<2x2x2x2xf32>
// CHECK: %[[TURN:.*]] = titan.transpose %[[APART]] [1, 0, 2, 3]
// CHECK: %[[ALL:.*]] = titan.reshape %[[TURN]] {{.*}} : tensor<2x2x2x2xf32> to tensor<4x2x2xf32>
// CHECK: titan.reshape %[[ALL]] {{.*}} : tensor<4x2x2xf32> to tensor<8x2xf32>
module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 2]>,
    titan.recipe = {batch = {micro = 2 : i64, global = 16 : i64},
                    mesh = {axes = [{name = "replicate", ranks = 2 : i64}, {name = "shard", ranks = 2 : i64}], sync = {replicate = "deferred", shard = "immediate"}}}} {
titan.state @bn.running_mean : tensor<2xf32> {kind = #titan<kind buffer>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
func.func @step(%b: tensor<2xf32> {titan.state = @bn.running_mean}, %x: tensor<8x2xf32> {dist.placement = #dist.placement<["replicate" = shard(0), "shard" = shard(0)]>, titan.input = "x"})
    -> (tensor<2xf32> {titan.state = @bn.running_mean}) {
  %nest = titan.reshape %x {dist.placements = [#x2]} : tensor<8x2xf32> to tensor<4x2x2xf32>
  %s = accum.loop %i in 4 running stacked = 1 slices(%xi = %nest : tensor<4x2x2xf32>) -> (tensor<4x2x2xf32>) {
    %r = accum.loop %j in 2 running stacked = 1 slices(%xj = %xi : tensor<2x2xf32>) -> (tensor<2x2xf32>) {
      accum.yield %xj : tensor<2xf32>
    } {dist.placements = [#dist.placement<["replicate" = iteration, "shard" = shard(0)]>]}
    accum.yield %r : tensor<2x2xf32>
  } {dist.placements = [#x2]}
  %rows = titan.reshape %s {phase = #titan<phase update>} : tensor<4x2x2xf32> to tensor<8x2xf32>
  %sum = titan.reduce sum %rows [0] {phase = #titan<phase update>} : tensor<8x2xf32> to tensor<2xf32>
  %next = titan.add %b, %sum {phase = #titan<phase update>} : tensor<2xf32>
  return %next : tensor<2xf32>
}
}
