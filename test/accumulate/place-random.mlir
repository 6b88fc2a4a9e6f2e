// The example of titan-accumulate-place-random, and what it does to operands whose batch is elsewhere or nowhere.
// RUN: titan-opt %s --titan-accumulate-place-random | FileCheck %s

// CHECK-LABEL: func.func @step
func.func @step(%x: tensor<4x8x3xf32>, %w: tensor<3x5xf32>, %zero: tensor<f32>, %seed: tensor<i64>, %step: tensor<i64>) -> tensor<f32> {
  // CHECK: accum.loop %[[I:.*]] in 4
  %s = accum.loop %i in 4 running slices(%xi = %x : tensor<4x8x3xf32>) accumulators(%a = %zero : tensor<f32>) -> (tensor<f32>) {
    // CHECK: %[[C24:.*]] = arith.constant 24 : index
    // CHECK: %[[BASE:.*]] = arith.muli %[[I]], %[[C24]] : index
    // CHECK: titan.dropout {{.*}} stream 7 seed %{{.*}} step %{{.*}} base %[[BASE]] {window = #titan.window<[32, 3], multiple = 24>}
    %d = titan.dropout %xi p 0.1 stream 7 seed %seed step %step : tensor<8x3xf32> to tensor<8x3xf32>
    // The batch is the second dimension after a transpose.
    // CHECK: titan.dropout {{.*}} stream 8 {{.*}} base %{{.*}} {window = #titan.window<[3, 32], multiple = 8>}
    %t = titan.transpose %d [1, 0] : tensor<8x3xf32> to tensor<3x8xf32>
    %e = titan.dropout %t p 0.1 stream 8 seed %seed step %step : tensor<3x8xf32> to tensor<3x8xf32>
    // A parameter is its own global tensor.
    // CHECK: titan.dropout {{.*}} stream 9 seed %{{.*}} step %{{[a-z0-9]+}} {window = #titan.window<[3, 5], multiple = 1>}
    %p = titan.dropout %w p 0.1 stream 9 seed %seed step %step : tensor<3x5xf32> to tensor<3x5xf32>
    // After a linear layer the batch is still the first dimension.
    // CHECK: titan.dropout {{.*}} stream 10 {{.*}} base %{{.*}} {window = #titan.window<[32, 5], multiple = 40>}
    %y = titan.contract %e, %p batch [] x [] contracting [0] x [0] : (tensor<3x8xf32>, tensor<3x5xf32>) -> tensor<8x5xf32>
    %f = titan.dropout %y p 0.1 stream 10 seed %seed step %step : tensor<8x5xf32> to tensor<8x5xf32>
    // Attention draws for [B, H, T, S]; without dropout it draws nothing.
    // CHECK: titan.attention {{.*}} base %{{.*}} scale {{.*}}stream = 11 : i64, window = #titan.window<[32, 1, 5, 5], multiple = 200>}
    %q = titan.reshape %f : tensor<8x5xf32> to tensor<8x5x1x1xf32>
    %h, %lse = titan.attention %q, %q, %q seed %seed step %step scale 1.0 {p = 0.5 : f64, stream = 11 : i64} : (tensor<8x5x1x1xf32>, tensor<8x5x1x1xf32>, tensor<8x5x1x1xf32>, tensor<i64>, tensor<i64>) -> (tensor<8x5x1x1xf32>, tensor<8x1x5xf32>)
    // CHECK-NOT: window
    // CHECK: titan.attention
    %g, %lse2 = titan.attention %q, %q, %q scale 1.0 : (tensor<8x5x1x1xf32>, tensor<8x5x1x1xf32>, tensor<8x5x1x1xf32>) -> (tensor<8x5x1x1xf32>, tensor<8x1x5xf32>)
    // CHECK-NOT: window
    // CHECK: titan.reduce
    %sum = titan.reduce sum %f [0, 1] : tensor<8x5xf32> to tensor<f32>
    %next = titan.add %a, %sum : tensor<f32>
    accum.yield %next : tensor<f32>
  }
  return %s : tensor<f32>
}

// The number of the microbatch follows from the counters of both loops.
// CHECK-LABEL: func.func @nested
func.func @nested(%x: tensor<2x3x8x3xf32>, %zero: tensor<8x3xf32>, %seed: tensor<i64>, %step: tensor<i64>) -> tensor<8x3xf32> {
  // CHECK: accum.loop %[[I:.*]] in 2
  %s = accum.loop %i in 2 running slices(%xi = %x : tensor<2x3x8x3xf32>) accumulators(%a = %zero : tensor<8x3xf32>) -> (tensor<8x3xf32>) {
    // CHECK: accum.loop %[[J:.*]] in 3
    %t = accum.loop %j in 3 running slices(%xj = %xi : tensor<3x8x3xf32>) accumulators(%b = %a : tensor<8x3xf32>) -> (tensor<8x3xf32>) {
      // CHECK: %[[C24:.*]] = arith.constant 24 : index
      // CHECK: %[[INNER:.*]] = arith.muli %[[J]], %[[C24]] : index
      // CHECK: %[[C72:.*]] = arith.constant 72 : index
      // CHECK: %[[OUTER:.*]] = arith.muli %[[I]], %[[C72]] : index
      // CHECK: %[[BASE:.*]] = arith.addi %[[INNER]], %[[OUTER]] : index
      // CHECK: titan.dropout {{.*}} base %[[BASE]] {window = #titan.window<[48, 3], multiple = 24>}
      %d = titan.dropout %xj p 0.1 stream 7 seed %seed step %step : tensor<8x3xf32> to tensor<8x3xf32>
      %n = titan.add %b, %d : tensor<8x3xf32>
      accum.yield %n : tensor<8x3xf32>
    }
    accum.yield %t : tensor<8x3xf32>
  }
  return %s : tensor<8x3xf32>
}
