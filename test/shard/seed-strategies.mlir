// What of each state a rank has, by strategy: parameters, trained or frozen, and their averages; slots; never buffers and counters. What has fewer
// elements than ranks is whole.
// REQUIRES: titan-opt
// RUN: rm -rf %t && split-file %s %t
// RUN: sed 's/STRATEGY/ddp/' %t/job.mlir | titan-opt --titan-shard-seed-placements | FileCheck %s --check-prefix=DDP
// RUN: sed 's/STRATEGY/zero1/' %t/job.mlir | titan-opt --titan-shard-seed-placements | FileCheck %s --check-prefix=ZERO
// RUN: sed 's/STRATEGY/zero2/' %t/job.mlir | titan-opt --titan-shard-seed-placements | FileCheck %s --check-prefix=ZERO
// RUN: sed 's/STRATEGY/zero3/' %t/job.mlir | titan-opt --titan-shard-seed-placements | FileCheck %s --check-prefix=FSDP
// RUN: sed 's/STRATEGY/fsdp/' %t/job.mlir | titan-opt --titan-shard-seed-placements | FileCheck %s --check-prefix=FSDP
// RUN: sed 's/STRATEGY/hsdp/' %t/job.mlir | titan-opt --titan-shard-seed-placements | FileCheck %s --check-prefix=FSDP

// DDP-NOT: #titan.placement

// ZERO: titan.state @w :
// ZERO-NOT: #titan.placement
// ZERO: titan.state @w.exp_avg : {{.*}}placement = #titan.placement<["shard" = shard(0)]>
// ZERO: titan.state @few.exp_avg :
// ZERO-NOT: #titan.placement
// ZERO: func.func

// FSDP: titan.state @w : {{.*}}placement = #titan.placement<["shard" = shard(0)]>
// FSDP: titan.state @w.exp_avg : {{.*}}placement = #titan.placement<["shard" = shard(0)]>
// FSDP: titan.state @w.average : {{.*}}placement = #titan.placement<["shard" = shard(0)]>
// FSDP: titan.state @frozen : {{.*}}placement = #titan.placement<["shard" = shard(0)]>
// FSDP: titan.state @few :
// FSDP-NOT: #titan.placement
// FSDP: func.func

//--- job.mlir
module attributes {titan.recipe = {batch = {micro = 1 : i64, global = 6 : i64}, mesh = {axes = {replicate = 2 : i64, shard = 3 : i64}, strategy = "STRATEGY"}}} {
  titan.state @w : tensor<6x2xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @w.exp_avg : tensor<6x2xf32> {kind = #titan<kind slot>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @w.average : tensor<6x2xf32> {kind = #titan<kind ema>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @frozen : tensor<3xf32> {kind = #titan<kind param>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @few : tensor<2xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @few.exp_avg : tensor<2xf32> {kind = #titan<kind slot>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @one : tensor<f32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @mask : tensor<6xf32> {kind = #titan<kind buffer>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @counter.step : tensor<i64> {kind = #titan<kind counter>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  func.func @step(%x: tensor<6x1xf32> {titan.input = "x"}) {
    return
  }
}
