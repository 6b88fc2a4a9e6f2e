// What other ranks read of values that are no temporaries.
// RUN: titan-opt %s --titan-plan-form-buffers | FileCheck %s
// RUN: titan-opt %s --titan-plan-form-buffers --titan-plan-reuse-in-place --titan-plan-assign-offsets --titan-plan-verify-offsets

module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 4]>,
    titan.recipe = {batch = {micro = 1 : i64, global = 48 : i64}, mesh = {axes = {replicate = 2 : i64, shard = 4 : i64}}}} {
titan.state @w : tensor<16x4xf32> {kind = #titan<kind param>, trainable, placement = #titan.placement<["shard" = shard(0)]>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}

// A state that is gathered in loops is copied before them, once for all that gather it. Temporaries are sources where they are.
// CHECK-LABEL: func.func @step
// CHECK-SAME: (%[[W:.*]]: memref<4x4xf32> {titan.state = @w}
// CHECK: kernel.fused
// CHECK: %[[S:.*]] = kernel.buffer -1 : memref<4x4xf32>
// CHECK-NEXT: kernel.copy %[[W]] to %[[S]] : memref
// CHECK-NEXT: accum.loop
// CHECK: accum.loop
// CHECK: %[[F:.*]] = kernel.buffer -1 : memref<16x4xf32>
// CHECK-NEXT: dist.start all_gather ins(%[[S]] : memref<4x4xf32>) outs(%[[F]] : memref<16x4xf32>)
// CHECK: %[[V:.*]] = kernel.cast_shape %[[S]] : memref<4x4xf32> to memref<16xf32>
// CHECK: dist.start all_gather ins(%[[V]] : memref<16xf32>)
// CHECK: dist.start reduce_scatter ins(%[[F2:.*]] : memref<16x4xf32>) outs(%[[G:.*]] : memref<4x4xf32>)
// CHECK-NOT: kernel.copy
func.func @step(%w: tensor<4x4xf32> {titan.state = @w}, %x: tensor<2x3x16x4xf32> {titan.input = "x"}) -> (tensor<4x4xf32> {titan.state = @w}) {
  %o = kernel.empty : tensor<4x4xf32>
  %zero = kernel.fused flat [4, 4] outs(%o : tensor<4x4xf32>) maps [affine_map<(i, j) -> (i, j)>] -> (tensor<4x4xf32>) {
    %z = arith.constant 0.0 : f32
    kernel.yield %z : f32
  }
  %g = accum.loop %i in 2 running slices(%xi = %x : tensor<2x3x16x4xf32>) accumulators(%a = %zero : tensor<4x4xf32>) -> (tensor<4x4xf32>) {
    %inner = accum.loop %j in 3 running slices(%xj = %xi : tensor<3x16x4xf32>) accumulators(%b = %a : tensor<4x4xf32>) -> (tensor<4x4xf32>) {
      %e = kernel.empty : tensor<16x4xf32>
      %t = dist.start all_gather ins(%w : tensor<4x4xf32>) outs(%e : tensor<16x4xf32>) axes ["shard"] dims [0]
      %full = dist.wait %t ins(%w : tensor<4x4xf32>) outs(%e : tensor<16x4xf32>) -> (tensor<16x4xf32>)
      %flat = kernel.cast_shape %w : tensor<4x4xf32> to tensor<16xf32>
      %e1 = kernel.empty : tensor<64xf32>
      %t1 = dist.start all_gather ins(%flat : tensor<16xf32>) outs(%e1 : tensor<64xf32>) axes ["shard"] dims [0] {phase = #titan<phase backward>}
      %all = dist.wait %t1 ins(%flat : tensor<16xf32>) outs(%e1 : tensor<64xf32>) {phase = #titan<phase backward>} -> (tensor<64xf32>)
      %again = kernel.cast_shape %all : tensor<64xf32> to tensor<16x4xf32>
      %d = kernel.fused flat [16, 4] ins(%full, %again, %xj : tensor<16x4xf32>, tensor<16x4xf32>, tensor<16x4xf32>) outs(%e : tensor<16x4xf32>)
          maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>]
          attributes {phase = #titan<phase backward>} -> (tensor<16x4xf32>) {
      ^bb0(%p: f32, %q: f32, %r: f32):
        %s = arith.mulf %p, %q : f32
        %u = arith.addf %s, %r : f32
        kernel.yield %u : f32
      }
      %t2 = dist.start reduce_scatter ins(%d : tensor<16x4xf32>) outs(%o : tensor<4x4xf32>) axes ["shard"] dims [0] order rank {phase = #titan<phase backward>}
      %mine = dist.wait %t2 ins(%d : tensor<16x4xf32>) outs(%o : tensor<4x4xf32>) {phase = #titan<phase backward>} -> (tensor<4x4xf32>)
      %n = kernel.fused flat [4, 4] ins(%b, %mine : tensor<4x4xf32>, tensor<4x4xf32>) outs(%o : tensor<4x4xf32>)
          maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>]
          attributes {phase = #titan<phase backward>} -> (tensor<4x4xf32>) {
      ^bb0(%p: f32, %q: f32):
        %s = arith.addf %p, %q : f32
        kernel.yield %s : f32
      }
      accum.yield %n : tensor<4x4xf32>
    }
    accum.yield %inner : tensor<4x4xf32>
  }
  %n = kernel.fused flat [4, 4] ins(%w, %g : tensor<4x4xf32>, tensor<4x4xf32>) outs(%o : tensor<4x4xf32>)
      maps [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>]
      attributes {phase = #titan<phase update>} -> (tensor<4x4xf32>) {
  ^bb0(%p: f32, %q: f32):
    %s = arith.subf %p, %q : f32
    kernel.yield %s : f32
  }
  return %n : tensor<4x4xf32>
}

// What an iteration has of the caller's is copied in it. A rank's part of a temporary lies elsewhere on others: it is copied to where all
// have theirs. Rows that are the same everywhere are no copy.
// CHECK-LABEL: func.func @eval
// CHECK: accum.loop
// CHECK: %[[XI:.*]] = kernel.slice
// CHECK: %[[C:.*]] = kernel.buffer -1 : memref<4xf32>
// CHECK-NEXT: kernel.copy %[[XI]] to %[[C]]
// CHECK-NEXT: kernel.buffer
// CHECK-NEXT: dist.start all_gather ins(%[[C]] :
// CHECK: %[[R:.*]] = kernel.rows
// CHECK: %[[P:.*]] = kernel.buffer -1 : memref<4xf32>
// CHECK-NEXT: kernel.copy %[[R]] to %[[P]]
// CHECK: dist.start all_gather ins(%[[P]] :
// CHECK: %[[Q:.*]] = kernel.rows
// CHECK-NOT: kernel.copy
// CHECK: dist.start all_gather ins(%[[Q]] :
func.func @eval(%x: tensor<2x4xf32> {titan.input = "x"}) -> (tensor<16xf32> {titan.output = "y"}, tensor<16xf32> {titan.output = "z"}) {
  %o = kernel.empty : tensor<16xf32>
  %zero = kernel.fused flat [16] outs(%o : tensor<16xf32>) maps [affine_map<(i) -> (i)>] -> (tensor<16xf32>) {
    %z = arith.constant 0.0 : f32
    kernel.yield %z : f32
  }
  %c = dist.coordinate "shard"
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 4 : index
  %at = arith.muli %c, %c3 : index
  %s = accum.loop %i in 2 running slices(%xi = %x : tensor<2x4xf32>) accumulators(%a = %zero : tensor<16xf32>) -> (tensor<16xf32>) {
    %t = dist.start all_gather ins(%xi : tensor<4xf32>) outs(%o : tensor<16xf32>) axes ["shard"] dims [0]
    %all = dist.wait %t ins(%xi : tensor<4xf32>) outs(%o : tensor<16xf32>) -> (tensor<16xf32>)
    %n = kernel.fused flat [16] ins(%a, %all : tensor<16xf32>, tensor<16xf32>) outs(%o : tensor<16xf32>)
        maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> (tensor<16xf32>) {
    ^bb0(%p: f32, %q: f32):
      %u = arith.addf %p, %q : f32
      kernel.yield %u : f32
    }
    accum.yield %n : tensor<16xf32>
  }
  %d = kernel.fused flat [16] ins(%s : tensor<16xf32>) outs(%o : tensor<16xf32>) maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> (tensor<16xf32>) {
  ^bb0(%v: f32):
    %e = math.exp %v : f32
    kernel.yield %e : f32
  }
  %mine = kernel.rows %d[%at] : tensor<16xf32> to tensor<4xf32>
  %t0 = dist.start all_gather ins(%mine : tensor<4xf32>) outs(%o : tensor<16xf32>) axes ["shard"] dims [0]
  %y = dist.wait %t0 ins(%mine : tensor<4xf32>) outs(%o : tensor<16xf32>) -> (tensor<16xf32>)
  %same = kernel.rows %d[%c1] : tensor<16xf32> to tensor<4xf32>
  %t1 = dist.start all_gather ins(%same : tensor<4xf32>) outs(%o : tensor<16xf32>) axes ["shard"] dims [0]
  %z = dist.wait %t1 ins(%same : tensor<4xf32>) outs(%o : tensor<16xf32>) -> (tensor<16xf32>)
  return %y, %z : tensor<16xf32>, tensor<16xf32>
}
}
