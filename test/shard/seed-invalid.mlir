// RUN: titan-opt %s --titan-shard-seed-placements --split-input-file --verify-diagnostics

// expected-error @+1 {{mesh.reshard 'wte.*' matches no parameter}}
module attributes {titan.recipe = {batch = {micro = 1 : i64, global = 6 : i64}, mesh = {axes = {shard = 2 : i64}, reshard = ["fc.*", "wte.*"], strategy = "fsdp"}}} {
  titan.state @fc.weight : tensor<4x2xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @wte.running : tensor<4x2xf32> {kind = #titan<kind buffer>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
}
