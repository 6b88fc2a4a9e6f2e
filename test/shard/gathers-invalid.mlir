// A gather that no strategy asks for: of a slot that something reads whole, or of a parameter in the update.
// RUN: titan-opt %s --titan-shard-partition --split-input-file --verify-diagnostics

#w = #titan.placement<["shard" = shard(0)]>
module attributes {dist.mesh = #dist.mesh<["replicate" = 1, "shard" = 2, "tensor" = 1]>,
    titan.recipe = {batch = {micro = 1 : i64, global = 2 : i64}, mesh = {axes = {shard = 2 : i64}, strategy = "fsdp"}}} {
titan.state @w.exp_avg : tensor<4x6xf32> {kind = #titan<kind slot>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>, placement = #w}
func.func @step(%v: tensor<4x6xf32> {titan.state = @w.exp_avg}) -> tensor<4x6xf32> {
  // expected-error @+1 {{all_gather of w.exp_avg over shard, 48 bytes: mesh.strategy = "fsdp" asks for no such gather: set mesh.allow_reshard = true if the job shall make it}}
  %y = titan.softmax %v dim 0 : tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}
}

// -----

#w = #titan.placement<["shard" = shard(0)]>
module attributes {dist.mesh = #dist.mesh<["replicate" = 1, "shard" = 2, "tensor" = 1]>,
    titan.recipe = {batch = {micro = 1 : i64, global = 2 : i64}, mesh = {axes = {shard = 2 : i64}, strategy = "fsdp"}}} {
titan.state @w : tensor<4x6xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>, placement = #w}
func.func @step(%w: tensor<4x6xf32> {titan.state = @w}) -> tensor<4x6xf32> {
  // expected-error @+1 {{all_gather of w over shard, 48 bytes: mesh.strategy = "fsdp" asks for no such gather}}
  %y = titan.softmax %w dim 0 {phase = #titan<phase update>} : tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}
}
