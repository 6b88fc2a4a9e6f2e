// RUN: titan-opt %s --titan-plan-form-buffers | FileCheck %s

titan.state @w : tensor<4xf32> {kind = #titan<kind param>, trainable, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>}

// The example of titan-plan-form-buffers: the new value of a state is written where the old one was.
// CHECK-LABEL: func.func @step
// CHECK-SAME: (%[[W:.*]]: memref<4xf32> {titan.state = @w}, %[[Y:.*]]: memref<4xf32> {titan.output = "y"}) {
// CHECK: kernel.fused flat [4] ins(%[[W]] : memref<4xf32>) outs(%[[W]] : memref<4xf32>)
// CHECK: kernel.copy %[[W]] to %[[Y]]
// CHECK: return
func.func @step(%w: tensor<4xf32> {titan.state = @w}) -> (tensor<4xf32> {titan.state = @w}, tensor<4xf32> {titan.output = "y"}) {
  %o = kernel.empty : tensor<4xf32>
  %n = kernel.fused flat [4] ins(%w : tensor<4xf32>) outs(%o : tensor<4xf32>)
      maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] attributes {phase = #titan<phase update>} -> (tensor<4xf32>) {
  ^bb0(%v: f32):
    %e = math.exp %v : f32
    kernel.yield %e : f32
  }
  return %n, %n : tensor<4xf32>, tensor<4xf32>
}

// A state that is still read keeps its value until the end.
// CHECK-LABEL: func.func @read_later
// CHECK-SAME: (%[[W:.*]]: memref<4xf32> {titan.state = @w}, %[[Y:.*]]: memref<4xf32> {titan.output = "y"}) {
// CHECK: %[[T:.*]] = kernel.buffer -1
// CHECK: kernel.fused {{.*}} ins(%[[W]] : memref<4xf32>) outs(%[[T]] :
// CHECK: kernel.fused {{.*}} ins(%[[W]], %[[T]] : {{.*}}) outs(%[[Y]] :
// CHECK: kernel.copy %[[T]] to %[[W]] {phase = #titan<phase update>}
func.func @read_later(%w: tensor<4xf32> {titan.state = @w}) -> (tensor<4xf32> {titan.state = @w}, tensor<4xf32> {titan.output = "y"}) {
  %o = kernel.empty : tensor<4xf32>
  %n = kernel.fused flat [4] ins(%w : tensor<4xf32>) outs(%o : tensor<4xf32>)
      maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] attributes {phase = #titan<phase update>} -> (tensor<4xf32>) {
  ^bb0(%v: f32):
    %e = math.exp %v : f32
    kernel.yield %e : f32
  }
  %y = kernel.fused flat [4] ins(%w, %n : tensor<4xf32>, tensor<4xf32>) outs(%o : tensor<4xf32>)
      maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] attributes {phase = #titan<phase update>} -> (tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    kernel.yield %s : f32
  }
  return %n, %y : tensor<4xf32>, tensor<4xf32>
}

// Batches are sliced in the body; an accumulator is one buffer, here that of the result.
// CHECK-LABEL: func.func @loop
// CHECK-SAME: (%[[X:.*]]: memref<3x4xf32> {titan.input = "x"}, %[[S:.*]]: memref<4xf32> {titan.output = "s"}) {
// CHECK: kernel.fused flat [4] outs(%[[S]] : memref<4xf32>)
// CHECK: accum.loop %[[I:.*]] in 3 running {
// CHECK: %[[XI:.*]] = kernel.slice %[[X]][%[[I]]]
// CHECK: kernel.fused flat [4] ins(%[[S]], %[[XI]] : memref<4xf32>, memref<4xf32>) outs(%[[S]] : memref<4xf32>)
// CHECK-NOT: kernel.copy
func.func @loop(%x: tensor<3x4xf32> {titan.input = "x"}) -> (tensor<4xf32> {titan.output = "s"}) {
  %o = kernel.empty : tensor<4xf32>
  %zero = kernel.fused flat [4] outs(%o : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> (tensor<4xf32>) {
    %z = arith.constant 0.0 : f32
    kernel.yield %z : f32
  }
  %r = accum.loop %i in 3 running slices(%xi = %x : tensor<3x4xf32>) accumulators(%a = %zero : tensor<4xf32>) -> (tensor<4xf32>) {
    %e = kernel.empty : tensor<4xf32>
    %n = kernel.fused flat [4] ins(%a, %xi : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>)
        maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> (tensor<4xf32>) {
    ^bb0(%u: f32, %v: f32):
      %s = arith.addf %u, %v : f32
      kernel.yield %s : f32
    }
    accum.yield %n : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// The inner loop continues the outer one's accumulator in its buffer. A row of a stack is written where it lies.
// CHECK-LABEL: func.func @nested
// CHECK-SAME: (%[[X:.*]]: memref<2x3x4xf32> {titan.input = "x"}, %[[S:.*]]: memref<4xf32> {titan.output = "s"}, %[[R:.*]]: memref<2x3x4xf32> {titan.output = "r"}) {
// CHECK: kernel.fused flat [4] outs(%[[S]] : memref<4xf32>)
// CHECK: accum.loop %[[I:.*]] in 2 running {
// CHECK-DAG: %[[XI:.*]] = kernel.slice %[[X]][%[[I]]]
// CHECK-DAG: %[[RI:.*]] = kernel.slice %[[R]][%[[I]]]
// CHECK: accum.loop %[[J:.*]] in 3 running {
// CHECK-DAG: %[[XJ:.*]] = kernel.slice %[[XI]][%[[J]]]
// CHECK-DAG: %[[RJ:.*]] = kernel.slice %[[RI]][%[[J]]]
// CHECK: kernel.fused flat [4] ins(%[[S]], %[[XJ]] : memref<4xf32>, memref<4xf32>) outs(%[[S]], %[[RJ]] : memref<4xf32>, memref<4xf32>)
// CHECK-NOT: kernel.copy
func.func @nested(%x: tensor<2x3x4xf32> {titan.input = "x"}) -> (tensor<4xf32> {titan.output = "s"}, tensor<2x3x4xf32> {titan.output = "r"}) {
  %o = kernel.empty : tensor<4xf32>
  %zero = kernel.fused flat [4] outs(%o : tensor<4xf32>) maps [affine_map<(i) -> (i)>] -> (tensor<4xf32>) {
    %z = arith.constant 0.0 : f32
    kernel.yield %z : f32
  }
  %r:2 = accum.loop %i in 2 running stacked = 1 slices(%xi = %x : tensor<2x3x4xf32>) accumulators(%a = %zero : tensor<4xf32>) -> (tensor<4xf32>, tensor<2x3x4xf32>) {
    %q:2 = accum.loop %j in 3 running stacked = 1 slices(%xj = %xi : tensor<3x4xf32>) accumulators(%b = %a : tensor<4xf32>) -> (tensor<4xf32>, tensor<3x4xf32>) {
      %e = kernel.empty : tensor<4xf32>
      %n:2 = kernel.fused flat [4] ins(%b, %xj : tensor<4xf32>, tensor<4xf32>) outs(%e, %e : tensor<4xf32>, tensor<4xf32>)
          maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> (tensor<4xf32>, tensor<4xf32>) {
      ^bb0(%u: f32, %v: f32):
        %s = arith.addf %u, %v : f32
        %m = arith.mulf %v, %v : f32
        kernel.yield %s, %m : f32, f32
      }
      accum.yield %n#0, %n#1 : tensor<4xf32>, tensor<4xf32>
    }
    accum.yield %q#0, %q#1 : tensor<4xf32>, tensor<3x4xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<2x3x4xf32>
}

// An inner loop begins anew in each iteration of the outer one: what is made outside of both stays as it is.
// CHECK-LABEL: func.func @begins_anew
// CHECK-SAME: (%{{.*}}: memref<2x3x4xf32> {titan.input = "x"}
// CHECK: %[[ONES:.*]] = kernel.buffer
// CHECK: kernel.fused flat [4] outs(%[[ONES]], %{{.*}} : memref<4xf32>, memref<4xf32>)
// CHECK: accum.loop %{{.*}} in 2 running {
// CHECK: %[[B:.*]] = kernel.buffer
// CHECK: kernel.copy %[[ONES]] to %[[B]]
// CHECK: accum.loop %{{.*}} in 3 running {
// CHECK: kernel.fused flat [4] ins(%[[B]], %{{.*}}) outs(%[[B]] : memref<4xf32>)
func.func @begins_anew(%x: tensor<2x3x4xf32> {titan.input = "x"}) -> (tensor<4xf32> {titan.output = "s"}) {
  %o = kernel.empty : tensor<4xf32>
  %start:2 = kernel.fused flat [4] outs(%o, %o : tensor<4xf32>, tensor<4xf32>) maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>]
      -> (tensor<4xf32>, tensor<4xf32>) {
    %one = arith.constant 1.0 : f32
    %z = arith.constant 0.0 : f32
    kernel.yield %one, %z : f32, f32
  }
  %r = accum.loop %i in 2 running slices(%xi = %x : tensor<2x3x4xf32>) accumulators(%a = %start#1 : tensor<4xf32>) -> (tensor<4xf32>) {
    %q = accum.loop %j in 3 running slices(%xj = %xi : tensor<3x4xf32>) accumulators(%b = %start#0 : tensor<4xf32>) -> (tensor<4xf32>) {
      %e = kernel.empty : tensor<4xf32>
      %n = kernel.fused flat [4] ins(%b, %xj : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>)
          maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> (tensor<4xf32>) {
      ^bb0(%u: f32, %v: f32):
        %s = arith.addf %u, %v : f32
        kernel.yield %s : f32
      }
      accum.yield %n : tensor<4xf32>
    }
    %e = kernel.empty : tensor<4xf32>
    %n = kernel.fused flat [4] ins(%a, %q : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>)
        maps [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>, affine_map<(i) -> (i)>] -> (tensor<4xf32>) {
    ^bb0(%u: f32, %v: f32):
      %s = arith.mulf %u, %v : f32
      kernel.yield %s : f32
    }
    accum.yield %n : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
