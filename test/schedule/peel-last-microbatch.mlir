// RUN: titan-opt %s --split-input-file --titan-schedule-peel-last-microbatch --titan-schedule-verify --remarks-filter=schedule 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// A sum over ranks of what four microbatches add up: it stands behind the fourth. The number of a microbatch is a constant there, a product goes on with the
// sum of the loop.
// REMARK: Passed{{.*}}the last of 4 iterations stands behind its loop, beside the reduce_scatter of 'fc'
// CHECK-LABEL: func.func @step
// CHECK-SAME: %[[X:[^:]*]]: tensor<4x8x6xf32> {titan.input = "x"}
// CHECK: %[[FIRST:.*]] = titan.slice %[[X]] offsets [0, 0, 0] strides [1, 1, 1] : tensor<4x8x6xf32> to tensor<3x8x6xf32>
// CHECK: %[[S:.*]]:2 = accum.loop %{{.*}} in 3 running slices(%{{.*}} = %[[FIRST]] : tensor<3x8x6xf32>)
// CHECK: } {accum.peeled}
// CHECK: %[[I:.*]] = arith.constant 3 : index
// CHECK: %[[ROW:.*]] = titan.slice %[[X]] offsets [3, 0, 0] strides [1, 1, 1] : tensor<4x8x6xf32> to tensor<1x8x6xf32>
// CHECK: %[[LAST:.*]] = titan.reshape %[[ROW]] : tensor<1x8x6xf32> to tensor<8x6xf32>
// CHECK: %[[BASE:.*]] = arith.muli %[[I]],
// CHECK: titan.dropout %[[LAST]] {{.*}} base %[[BASE]]
// CHECK: %[[LOSS:.*]] = titan.add %[[S]]#0
// CHECK: %[[G:.*]] = titan.contract {{.*}} acc %[[S]]#1
// CHECK: dist.reduce_scatter sum %[[G]]
// CHECK: dist.all_reduce sum %[[LOSS]]
module attributes {dist.mesh = #dist.mesh<["shard" = 2]>,
    titan.recipe = {batch = {micro = 8 : i64, global = 64 : i64}, mesh = {strategy = "fsdp", axes = [{name = "shard", ranks = 2 : i64}]}}} {
func.func @step(%x: tensor<4x8x6xf32> {titan.input = "x"}, %seed: tensor<i64>) -> (tensor<3x6xf32>, tensor<f32>) {
  %z = titan.constant dense<0.0> : tensor<f32>
  %z64 = titan.constant dense<0> : tensor<i64>
  %zw = titan.constant dense<0.0> : tensor<6x6xf32>
  %s:2 = accum.loop %i in 4 running slices(%xi = %x : tensor<4x8x6xf32>) accumulators(%a = %z : tensor<f32>, %b = %zw : tensor<6x6xf32>) -> (tensor<f32>, tensor<6x6xf32>) {
    %c48 = arith.constant 48 : index
    %base = arith.muli %i, %c48 : index
    %y = titan.dropout %xi p 0.5 stream 7 seed %seed step %z64 base %base {window = #titan.window<[32, 6], multiple = 48>} : tensor<8x6xf32> to tensor<8x6xf32>
    %loss = titan.reduce sum %y [0, 1] : tensor<8x6xf32> to tensor<f32>
    %na = titan.add %a, %loss : tensor<f32>
    %nb = titan.contract %y, %y acc %b batch [] x [] contracting [0] x [0] {path = ["fc"], phase = #titan<phase backward>} : (tensor<8x6xf32>, tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<6x6xf32>
    accum.yield %na, %nb : tensor<f32>, tensor<6x6xf32>
  }
  %p = dist.reduce_scatter sum %s#1 axes ["shard"] dims [0] order rank {path = ["fc"], phase = #titan<phase backward>} : tensor<6x6xf32> to tensor<3x6xf32>
  %l = dist.all_reduce sum %s#0 axes ["shard"] order rank {path = ["loss"], phase = #titan<phase update>} : tensor<f32> to tensor<f32>
  return %p, %l : tensor<3x6xf32>, tensor<f32>
}
}

// -----

// Where ranks sum gradients in each iteration nothing waits for the last: the loss is of the update.
// REMARK-NOT: iterations
// CHECK-LABEL: func.func @step
// CHECK-NOT: titan.slice
// CHECK: accum.loop %{{.*}} in 4 running
// CHECK-NOT: accum.peeled
module attributes {dist.mesh = #dist.mesh<["shard" = 2]>,
    titan.recipe = {batch = {micro = 8 : i64, global = 64 : i64}, mesh = {strategy = "fsdp", sync = "immediate", axes = [{name = "shard", ranks = 2 : i64}]}}} {
func.func @step(%x: tensor<4x8x6xf32> {titan.input = "x"}) -> (tensor<4x6xf32>, tensor<f32>) {
  %z = titan.constant dense<0.0> : tensor<f32>
  %zw = titan.constant dense<0.0> : tensor<4x6xf32>
  %s:2 = accum.loop %i in 4 running slices(%xi = %x : tensor<4x8x6xf32>) accumulators(%a = %z : tensor<f32>, %b = %zw : tensor<4x6xf32>) -> (tensor<f32>, tensor<4x6xf32>) {
    %loss = titan.reduce sum %xi [0, 1] : tensor<8x6xf32> to tensor<f32>
    %na = titan.add %a, %loss : tensor<f32>
    %p = dist.reduce_scatter sum %xi axes ["shard"] dims [0] order rank {path = ["fc"], phase = #titan<phase backward>} : tensor<8x6xf32> to tensor<4x6xf32>
    %nb = titan.add %b, %p {phase = #titan<phase backward>} : tensor<4x6xf32>
    accum.yield %na, %nb : tensor<f32>, tensor<4x6xf32>
  }
  %l = dist.all_reduce sum %s#0 axes ["shard"] order rank {path = ["loss"], phase = #titan<phase update>} : tensor<f32> to tensor<f32>
  return %s#1, %l : tensor<4x6xf32>, tensor<f32>
}
}

// -----

// Behind each two microbatches: the inner loop has the sum behind it, the outer one only the loss.
// REMARK: Passed{{.*}}the last of 2 iterations stands behind its loop, beside the all_reduce of 'fc'
// REMARK-NOT: iterations
// CHECK-LABEL: func.func @step
// CHECK: accum.loop %{{.*}} in 3 running slices(%[[XJ:[a-z0-9]+]] =
// CHECK: %[[ROWS:.*]] = titan.slice %[[XJ]] offsets [0, 0] strides [1, 1] : tensor<2x6xf32> to tensor<1x6xf32>
// CHECK: %[[T:.*]] = accum.loop %{{.*}} in 1 running slices(%{{.*}} = %[[ROWS]]
// CHECK: accum.yield
// CHECK: } {accum.peeled}
// CHECK: titan.slice %[[XJ]] offsets [1, 0]
// CHECK: %[[B:.*]] = titan.add %[[T]]
// CHECK: %[[R:.*]] = dist.all_reduce sum %[[B]]
// CHECK: titan.add %{{.*}}, %[[R]]
// CHECK: accum.yield
// CHECK-NOT: accum.peeled
// CHECK: return
module attributes {dist.mesh = #dist.mesh<["replicate" = 2]>,
    titan.recipe = {batch = {micro = 1 : i64, global = 12 : i64}, mesh = {sync_every = 2 : i64, axes = [{name = "replicate", ranks = 2 : i64}]}}} {
func.func @step(%all: tensor<6x6xf32> {titan.input = "x"}) -> tensor<6xf32> {
  %x = titan.reshape %all : tensor<6x6xf32> to tensor<3x2x6xf32>
  %z = titan.constant dense<0.0> : tensor<6xf32>
  %s = accum.loop %j in 3 running slices(%xj = %x : tensor<3x2x6xf32>) accumulators(%a = %z : tensor<6xf32>) -> (tensor<6xf32>) {
    %t = accum.loop %i in 2 running slices(%xi = %xj : tensor<2x6xf32>) accumulators(%b = %z : tensor<6xf32>) -> (tensor<6xf32>) {
      %nb = titan.add %b, %xi {phase = #titan<phase backward>} : tensor<6xf32>
      accum.yield %nb : tensor<6xf32>
    }
    %r = dist.all_reduce sum %t axes ["replicate"] order rank {path = ["fc"], phase = #titan<phase backward>} : tensor<6xf32> to tensor<6xf32>
    %na = titan.add %a, %r {phase = #titan<phase backward>} : tensor<6xf32>
    accum.yield %na : tensor<6xf32>
  }
  return %s : tensor<6xf32>
}
}

// -----

// A tree of eight: of each loop on the way to the last microbatch one iteration stays, 1 x 2 x 2 + 1 x 2 + 1 + 1 microbatches. Every sum begins at zero as
// before: the loops of one iteration stay loops.
// REMARK: the last of 2 iterations
// REMARK: the last of 2 iterations
// REMARK: the last of 2 iterations
// CHECK-LABEL: func.func @step
// CHECK: %[[A:.*]] = accum.loop %{{.*}} in 1 running
// CHECK: accum.loop %{{.*}} in 2 running
// CHECK: accum.loop %{{.*}} in 2 running
// CHECK: } {accum.peeled}
// CHECK: %[[B:.*]] = accum.loop %{{.*}} in 1 running
// CHECK: accum.loop %{{.*}} in 2 running
// CHECK: } {accum.peeled}
// CHECK: %[[C:.*]] = accum.loop %{{.*}} in 1 running
// CHECK: } {accum.peeled}
// CHECK-NOT: accum.loop
// CHECK: %[[LEAF:.*]] = titan.add %[[C]],
// CHECK: %[[HALF:.*]] = titan.add %[[B]], %[[LEAF]]
// CHECK: %[[ALL:.*]] = titan.add %[[A]], %[[HALF]]
// CHECK: dist.all_reduce sum %[[ALL]]
module attributes {dist.mesh = #dist.mesh<["replicate" = 2]>,
    titan.recipe = {batch = {micro = 1 : i64, global = 16 : i64}, mesh = {axes = [{name = "replicate", ranks = 2 : i64}]}}} {
func.func @step(%all: tensor<8x6xf32> {titan.input = "x"}) -> tensor<6xf32> {
  %x = titan.reshape %all : tensor<8x6xf32> to tensor<2x2x2x6xf32>
  %z = titan.constant dense<0.0> : tensor<6xf32>
  %s = accum.loop %h in 2 running slices(%xh = %x : tensor<2x2x2x6xf32>) accumulators(%a = %z : tensor<6xf32>) -> (tensor<6xf32>) {
    %t = accum.loop %i in 2 running slices(%xi = %xh : tensor<2x2x6xf32>) accumulators(%b = %z : tensor<6xf32>) -> (tensor<6xf32>) {
      %u = accum.loop %j in 2 running slices(%xj = %xi : tensor<2x6xf32>) accumulators(%c = %z : tensor<6xf32>) -> (tensor<6xf32>) {
        %nc = titan.add %c, %xj {phase = #titan<phase backward>} : tensor<6xf32>
        accum.yield %nc : tensor<6xf32>
      }
      %nb = titan.add %b, %u {phase = #titan<phase backward>} : tensor<6xf32>
      accum.yield %nb : tensor<6xf32>
    }
    %na = titan.add %a, %t {phase = #titan<phase backward>} : tensor<6xf32>
    accum.yield %na : tensor<6xf32>
  }
  %r = dist.all_reduce sum %s axes ["replicate"] order tree {path = ["fc"], phase = #titan<phase backward>} : tensor<6xf32> to tensor<6xf32>
  return %r : tensor<6xf32>
}
}

// -----

// Rows of a stack are in the order of the iterations.
// REMARK: Missed{{.*}}the loop stacks rows{{.*}}the last of 2 iterations stays in its loop
// CHECK-LABEL: func.func @step
// CHECK: accum.loop %{{.*}} in 2 running stacked = 1
// CHECK-NOT: accum.peeled
module attributes {dist.mesh = #dist.mesh<["replicate" = 2]>,
    titan.recipe = {batch = {micro = 1 : i64, global = 4 : i64}, mesh = {axes = [{name = "replicate", ranks = 2 : i64}]}}} {
func.func @step(%x: tensor<2x6xf32> {titan.input = "x"}) -> (tensor<6xf32>, tensor<2x6xf32>) {
  %z = titan.constant dense<0.0> : tensor<6xf32>
  %s:2 = accum.loop %i in 2 running stacked = 1 slices(%xi = %x : tensor<2x6xf32>) accumulators(%a = %z : tensor<6xf32>) -> (tensor<6xf32>, tensor<2x6xf32>) {
    %na = titan.add %a, %xi {phase = #titan<phase backward>} : tensor<6xf32>
    accum.yield %na, %xi : tensor<6xf32>, tensor<6xf32>
  }
  %r = dist.all_reduce sum %s#0 axes ["replicate"] order rank {path = ["fc"], phase = #titan<phase backward>} : tensor<6xf32> to tensor<6xf32>
  return %r, %s#1 : tensor<6xf32>, tensor<2x6xf32>
}
}
