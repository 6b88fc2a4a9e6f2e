// RUN: titan-opt %s --titan-plan-form-buffers | FileCheck %s --check-prefix=FORM
// RUN: titan-opt %s --titan-plan-form-buffers --titan-plan-reuse-in-place --titan-plan-assign-offsets --titan-plan-verify-offsets | FileCheck %s --check-prefix=PLACE

// Staging begins and ends with a page. It holds what is live at once of a function's sources.
// PLACE: kernel.arena = {bindings = 2496 : i64, bytes = 16384 : i64, constants = 0 : i64, staging = 4096 : i64, staging_offset = 8192 : i64, states = 4096 : i64, temporaries = 4096 : i64}
module attributes {dist.mesh = #dist.mesh<["replicate" = 2, "shard" = 4]>} {
titan.state @w : tensor<1024xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}

// Both halves have the same buffers. The source is a temporary of its own, the result lies where it belongs.
// FORM-LABEL: func.func @sums
// FORM-SAME: (%[[X:.*]]: memref<4xf32> {titan.input = "x"}, %[[Y:.*]]: memref<4xf32> {titan.metric = "y"})
// FORM: %[[S:.*]] = kernel.buffer -1 : memref<4xf32>
// FORM: kernel.fused {{.*}} outs(%[[S]] :
// FORM: %[[T:.*]] = dist.start all_reduce ins(%[[S]] : memref<4xf32>) outs(%[[Y]] : memref<4xf32>) axes ["replicate"] order rank {path = ["fc"], phase = #titan<phase backward>}
// FORM: dist.wait %[[T]] ins(%[[S]] : memref<4xf32>) outs(%[[Y]] : memref<4xf32>) {path = ["fc"], phase = #titan<phase backward>}{{$}}
// FORM-NEXT: return
// PLACE-LABEL: func.func @sums
// PLACE: kernel.buffer 8192
func.func @sums(%x: tensor<4xf32> {titan.input = "x"}) -> (tensor<4xf32> {titan.metric = "y"}) {
  %o = kernel.empty : tensor<4xf32>
  %s = kernel.fused flat [4] ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>)
      maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> (tensor<4xf32>) {
  ^bb0(%v: f32):
    %e = math.exp %v : f32
    kernel.yield %e : f32
  }
  %t = dist.start all_reduce ins(%s : tensor<4xf32>) outs(%o : tensor<4xf32>) axes ["replicate"] order rank {path = ["fc"], phase = #titan<phase backward>}
  %r = dist.wait %t ins(%s : tensor<4xf32>) outs(%o : tensor<4xf32>) {path = ["fc"], phase = #titan<phase backward>} -> (tensor<4xf32>)
  return %r : tensor<4xf32>
}

// What is the caller's is copied to where other ranks read, in the collective's phase.
// FORM-LABEL: func.func @copied
// FORM-SAME: (%[[X:.*]]: memref<4xf32> {titan.input = "x"}
// FORM: %[[S:.*]] = kernel.buffer -1 : memref<4xf32>
// FORM-NEXT: kernel.copy %[[X]] to %[[S]] {phase = #titan<phase backward>}
// FORM: dist.start all_reduce ins(%[[S]] :
func.func @copied(%x: tensor<4xf32> {titan.input = "x"}) -> (tensor<4xf32> {titan.metric = "y"}) {
  %o = kernel.empty : tensor<4xf32>
  %t = dist.start all_reduce ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) axes ["replicate"] order rank {phase = #titan<phase backward>}
  %r = dist.wait %t ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) {phase = #titan<phase backward>} -> (tensor<4xf32>)
  return %r : tensor<4xf32>
}

// A gather in phase update writes the state; one before a reader of the old value does not.
// FORM-LABEL: func.func @state
// FORM: dist.start all_gather {{.*}} outs(%arg0 : memref<1024xf32>)
func.func @state(%w: tensor<1024xf32> {titan.state = @w}, %p: tensor<256xf32> {titan.input = "p"}) -> (tensor<1024xf32> {titan.state = @w}) {
  %o = kernel.empty : tensor<1024xf32>
  %t = dist.start all_gather ins(%p : tensor<256xf32>) outs(%o : tensor<1024xf32>) axes ["shard"] dims [0] {phase = #titan<phase update>}
  %r = dist.wait %t ins(%p : tensor<256xf32>) outs(%o : tensor<1024xf32>) {phase = #titan<phase update>} -> (tensor<1024xf32>)
  return %r : tensor<1024xf32>
}
// FORM-LABEL: func.func @read_between
// FORM: %[[O:.*]] = kernel.buffer -1 : memref<1024xf32>
// FORM: dist.start all_gather {{.*}} outs(%[[O]] : memref<1024xf32>)
// FORM: kernel.copy %[[O]] to %arg0 {phase = #titan<phase update>}
func.func @read_between(%w: tensor<1024xf32> {titan.state = @w}, %p: tensor<256xf32> {titan.input = "p"}) -> (tensor<1024xf32> {titan.state = @w}, tensor<4xf32> {titan.metric = "y"}) {
  %o = kernel.empty : tensor<1024xf32>
  %y = kernel.empty : tensor<4xf32>
  %t = dist.start all_gather ins(%p : tensor<256xf32>) outs(%o : tensor<1024xf32>) axes ["shard"] dims [0] {phase = #titan<phase update>}
  %f = kernel.fused flat [4] ins(%w : tensor<1024xf32>) outs(%y : tensor<4xf32>)
      maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] attributes {phase = #titan<phase update>} -> (tensor<4xf32>) {
  ^bb0(%v: f32):
    kernel.yield %v : f32
  }
  %r = dist.wait %t ins(%p : tensor<256xf32>) outs(%o : tensor<1024xf32>) {phase = #titan<phase update>} -> (tensor<1024xf32>)
  return %r, %f : tensor<1024xf32>, tensor<4xf32>
}

// Sources and results are live from start to wait: what runs in between has buffers of its own. Sources share no bytes with
// other temporaries, not even in turn. Coordinates are indices.
// FORM-LABEL: func.func @live
// FORM: %[[C:.*]] = dist.coordinate "shard"
// FORM: kernel.fused {{.*}} scalars(%[[C]])
// PLACE-LABEL: func.func @live
// PLACE-SAME: kernel.max_live = 192
// PLACE: %[[S:.*]] = kernel.buffer 8192 : memref<4xf32>
// PLACE: kernel.fused {{.*}} outs(%[[S]] :
// PLACE: %[[R:.*]] = kernel.buffer 12288 : memref<4xf32>
// PLACE: dist.start all_reduce ins(%[[S]] : memref<4xf32>) outs(%[[R]] : memref<4xf32>)
// PLACE: %[[M:.*]] = kernel.buffer 12352 : memref<4xf32>
// PLACE: kernel.fused {{.*}} outs(%[[M]] :
// PLACE: dist.wait
func.func @live(%x: tensor<4xf32> {titan.input = "x"}) -> (tensor<4xf32> {titan.metric = "y"}) {
  %o = kernel.empty : tensor<4xf32>
  %c = dist.coordinate "shard"
  %s = kernel.fused flat [4] ins(%x : tensor<4xf32>) outs(%o : tensor<4xf32>) scalars(%c)
      maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> (tensor<4xf32>) {
  ^bb0(%v: f32, %i: index):
    %e = math.exp %v : f32
    kernel.yield %e : f32
  }
  %t = dist.start all_reduce ins(%s : tensor<4xf32>) outs(%o : tensor<4xf32>) axes ["replicate"] order rank
  %m = kernel.fused flat [4] ins(%s : tensor<4xf32>) outs(%o : tensor<4xf32>)
      maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> (tensor<4xf32>) {
  ^bb0(%v: f32):
    %e = math.sqrt %v : f32
    kernel.yield %e : f32
  }
  %r = dist.wait %t ins(%s : tensor<4xf32>) outs(%o : tensor<4xf32>) -> (tensor<4xf32>)
  %y = kernel.fused flat [4] ins(%r, %m : tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4xf32>)
      maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> (tensor<4xf32>) {
  ^bb0(%v: f32, %w: f32):
    %e = arith.addf %v, %w : f32
    kernel.yield %e : f32
  }
  return %y : tensor<4xf32>
}
}
