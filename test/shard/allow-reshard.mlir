// mesh.allow_reshard: a gather that no strategy asks for is made, with a missed remark.
// RUN: titan-opt %s --titan-shard-partition --remarks-filter=shard 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// REMARK: remark: [Missed] partition | Category:shard | Remark="all_gather of w.exp_avg over shard, 48 bytes: 'titan.softmax' reads all of it, and mesh.strategy = "fsdp" has no use for this"
// CHECK: %[[V:.*]] = dist.all_gather %{{.*}} axes ["shard"] dims [0] {path = ["w.exp_avg"], phase = #titan<phase update>} : tensor<2x6xf32> to tensor<4x6xf32>
// CHECK: titan.softmax %[[V]]
#w = #titan.placement<["shard" = shard(0)]>
module attributes {dist.mesh = #dist.mesh<["replicate" = 1, "shard" = 2, "tensor" = 1]>,
    titan.recipe = {batch = {micro = 1 : i64, global = 2 : i64}, mesh = {allow_reshard = true, axes = {shard = 2 : i64}, strategy = "fsdp"}}} {
titan.state @w.exp_avg : tensor<4x6xf32> {kind = #titan<kind slot>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>, placement = #w}
func.func @step(%v: tensor<4x6xf32> {titan.state = @w.exp_avg}) -> tensor<4x6xf32> {
  %y = titan.softmax %v dim 0 {phase = #titan<phase update>} : tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}
}
