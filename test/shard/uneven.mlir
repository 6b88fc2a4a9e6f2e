// Dimensions that do not divide: which one is cut, what is put behind its elements, and where that goes again.
// RUN: titan-opt %s --titan-shard-seed-placements --titan-shard-propagate-placements --titan-shard-partition --titan-shard-verify --remarks-filter=shard 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// REMARK-DAG: Remark="'fc.weight': dimension 0 of tensor<17x3xf32> is cut among 2 ranks of 'shard', 3 of 54 elements are padding"
// REMARK-DAG: Remark="'head.weight': dimension 1 of tensor<3x5xf32> is cut among 2 ranks of 'shard', 3 of 18 elements are padding"
// REMARK-DAG: Remark="'scale': tensor<1xf32> has fewer elements than the 2 ranks of 'shard': each has all of it"
// REMARK-DAG: Remark="reduce_scatter of fc.weight, head.weight over shard, 288 bytes: each rank has the gradients of its own microbatches, and updates its part of the parameters"

// CHECK: titan.state @fc.weight {{.*}}placement = #titan.placement<["shard" = shard(0)]>
// CHECK: titan.state @head.weight {{.*}}placement = #titan.placement<["shard" = shard(1)]>
// CHECK-NOT: titan.state @scale {{.*}}placement =
module attributes {titan.recipe = {batch = {micro = 1 : i64, global = 4 : i64}, mesh = {axes = {shard = 2 : i64}, strategy = "fsdp"}}} {
  titan.state @fc.weight : tensor<17x3xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @head.weight : tensor<3x5xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @scale : tensor<1xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}

// CHECK-LABEL: func.func @step(
// CHECK-SAME: %[[FC:[^:]+]]: tensor<9x3xf32> {titan.state = @fc.weight}, %[[HEAD:[^:]+]]: tensor<3x3xf32> {titan.state = @head.weight}, %{{[^:]+}}: tensor<1xf32>
// CHECK: accum.loop
// CHECK: %[[JOINED:.*]] = dist.all_gather %[[FC]] axes ["shard"] dims [0] {{.*}}: tensor<9x3xf32> to tensor<18x3xf32>
// CHECK: titan.slice %[[JOINED]] offsets [0, 0] strides [1, 1] {{.*}}: tensor<18x3xf32> to tensor<17x3xf32>
// CHECK: %[[COLUMNS:.*]] = dist.all_gather %[[HEAD]] axes ["shard"] dims [1] {{.*}}: tensor<3x3xf32> to tensor<3x6xf32>
// CHECK: titan.slice %[[COLUMNS]] {{.*}}: tensor<3x6xf32> to tensor<3x5xf32>
// CHECK: %[[ROWS:.*]] = titan.pad {{.*}}: tensor<17x3xf32> to tensor<18x3xf32>
// CHECK: %[[WIDE:.*]] = titan.pad {{.*}}: tensor<3x5xf32> to tensor<3x6xf32>
// CHECK: dist.reduce_scatter sum %[[ROWS]], %[[WIDE]] axes ["shard"] dims [0, 1] order rank {{.*}} to tensor<9x3xf32>, tensor<3x3xf32>
func.func @step(%fc: tensor<17x3xf32> {titan.state = @fc.weight}, %head: tensor<3x5xf32> {titan.state = @head.weight}, %scale: tensor<1xf32> {titan.state = @scale},
                %x: tensor<4x17x3xf32> {titan.input = "x"}, %z: tensor<4x3x5xf32> {titan.input = "z"}, %lr: tensor<f32> {titan.control = "lr"})
    -> (tensor<17x3xf32> {titan.state = @fc.weight}, tensor<3x5xf32> {titan.state = @head.weight}, tensor<1xf32> {titan.state = @scale}) {
  %zf = titan.constant dense<0.0> : tensor<17x3xf32>
  %zh = titan.constant dense<0.0> : tensor<3x5xf32>
  %s:2 = accum.loop %i in 4 running slices(%xi = %x : tensor<4x17x3xf32>, %zi = %z : tensor<4x3x5xf32>)
      accumulators(%a = %zf : tensor<17x3xf32>, %b = %zh : tensor<3x5xf32>) -> (tensor<17x3xf32>, tensor<3x5xf32>) {
    %y = titan.mul %xi, %fc : tensor<17x3xf32>
    %v = titan.mul %zi, %head : tensor<3x5xf32>
    %gf = titan.mul %y, %xi {phase = #titan<phase backward>} : tensor<17x3xf32>
    %gh = titan.mul %v, %zi {phase = #titan<phase backward>} : tensor<3x5xf32>
    %na = titan.add %a, %gf {phase = #titan<phase backward>} : tensor<17x3xf32>
    %nb = titan.add %b, %gh {phase = #titan<phase backward>} : tensor<3x5xf32>
    accum.yield %na, %nb : tensor<17x3xf32>, tensor<3x5xf32>
  }
  %f1 = titan.sub %fc, %s#0 {path = ["fc.weight"], phase = #titan<phase update>} : tensor<17x3xf32>
  %h1 = titan.sub %head, %s#1 {path = ["head.weight"], phase = #titan<phase update>} : tensor<3x5xf32>
  return %f1, %h1, %scale : tensor<17x3xf32>, tensor<3x5xf32>, tensor<1xf32>
}
}
