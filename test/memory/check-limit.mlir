// RUN: titan-opt %s --titan-plan-assign-offsets --titan-plan-check-limit --verify-diagnostics --split-input-file

// expected-error @+1 {{the plan needs 320 B (320 bytes), memory.limit is 256 B: temporaries and outputs 192 B, params 128 B; use a smaller batch.micro}}
module attributes {titan.recipe = {memory = {limit = 256 : i64}}} {
  titan.state @w : tensor<32xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  func.func @predict(%w: memref<32xf32> {titan.state = @w}, %y: memref<16xf32> {titan.output = "y"}) {
    %t = kernel.buffer -1 : memref<32xf32>
    kernel.fused flat [32] ins(%w : memref<32xf32>) outs(%t : memref<32xf32>) maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] {
    ^bb0(%v: f32):
      kernel.yield %v : f32
    }
    kernel.fused flat [16] ins(%t : memref<32xf32>) outs(%y : memref<16xf32>) maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] {
    ^bb0(%v: f32):
      kernel.yield %v : f32
    }
    return
  }
}

// -----

// Averages that lie in the host's memory are no matter of a card's limit.
// expected-error @+1 {{the plan needs 192 B (192 bytes), memory.limit is 191 B: params 128 B, temporaries and outputs 64 B; use a smaller batch.micro}}
module attributes {titan.recipe = {ema = {profiles = {slow = 0.5}, device = "host"}, memory = {limit = 191 : i64}}, titan.target = {kind = "cuda", archs = "sm_80"}} {
  titan.state @w : tensor<32xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  titan.state @ema.slow.w : tensor<32xf32> {kind = #titan<kind ema>, canonical_name = "w", init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}
  func.func @predict(%w: memref<32xf32> {titan.state = @w}, %y: memref<16xf32> {titan.output = "y"}) {
    kernel.fused flat [16] outs(%y : memref<16xf32>) maps [affine_map<(i) -> (i)>] {
      %c = arith.constant 1.0 : f32
      kernel.yield %c : f32
    }
    return
  }
}

// -----

// A limit that the plan just meets.
module attributes {titan.recipe = {memory = {limit = 64 : i64}}} {
  func.func @predict(%y: memref<16xf32> {titan.output = "y"}) {
    kernel.fused flat [16] outs(%y : memref<16xf32>) maps [affine_map<(i) -> (i)>] {
      %c = arith.constant 1.0 : f32
      kernel.yield %c : f32
    }
    return
  }
}
