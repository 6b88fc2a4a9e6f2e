// RUN: titan-opt %s --titan-schedule-inline-single-iteration --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @step
// CHECK-NOT: accum.loop
// CHECK-NOT: arith
// CHECK: %[[X:.*]] = titan.reshape %arg0 : tensor<1x4x3xf32> to tensor<4x3xf32>
// CHECK: %[[D:.*]] = titan.dropout %[[X]] p 5.000000e-01 stream 7 seed %{{.*}} step %{{.*}} {window
// The zeros are gone, another start is not.
// CHECK: %[[G:.*]] = titan.contract %[[D]], %[[X]] batch
// CHECK: %[[SUM:.*]] = titan.reduce sum %[[D]] [0, 1]
// CHECK: %[[T:.*]] = titan.add %arg1, %[[SUM]]
// CHECK: return %[[G]], %[[SUM]], %[[T]]
func.func @step(%xs: tensor<1x4x3xf32>, %start: tensor<f32>, %seed: tensor<i64>, %t: tensor<i64>) -> (tensor<3x3xf32>, tensor<f32>, tensor<f32>) {
  %z = titan.constant dense<0.0> : tensor<3x3xf32>
  %zs = titan.constant dense<0.0> : tensor<f32>
  %r:3 = accum.loop %i in 1 running slices(%x = %xs : tensor<1x4x3xf32>) accumulators(%a = %z : tensor<3x3xf32>, %b = %zs : tensor<f32>, %c = %start : tensor<f32>)
      -> (tensor<3x3xf32>, tensor<f32>, tensor<f32>) {
    %c12 = arith.constant 12 : index
    %base = arith.muli %i, %c12 : index
    %d = titan.dropout %x p 0.5 stream 7 seed %seed step %t base %base {window = #titan.window<[4, 3], multiple = 12>} : tensor<4x3xf32> to tensor<4x3xf32>
    %g = titan.contract %d, %x acc %a batch [] x [] contracting [0] x [0] : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
    %sum = titan.reduce sum %d [0, 1] : tensor<4x3xf32> to tensor<f32>
    %nb = titan.add %b, %sum : tensor<f32>
    %nc = titan.add %c, %sum : tensor<f32>
    accum.yield %g, %nb, %nc : tensor<3x3xf32>, tensor<f32>, tensor<f32>
  }
  return %r#0, %r#1, %r#2 : tensor<3x3xf32>, tensor<f32>, tensor<f32>
}

// Two microbatches need their loop.
// CHECK-LABEL: func.func @eval
// CHECK: accum.loop
func.func @eval(%xs: tensor<2x4xf32>) -> tensor<4xf32> {
  %z = titan.constant dense<0.0> : tensor<4xf32>
  %r = accum.loop %i in 2 running slices(%x = %xs : tensor<2x4xf32>) accumulators(%a = %z : tensor<4xf32>) -> (tensor<4xf32>) {
    %n = titan.add %a, %x : tensor<4xf32>
    accum.yield %n : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// A loop of one around a loop of two, and the reverse: the index that is gone is 0, the other stays. A stack of one row.
// CHECK-LABEL: func.func @outer
// CHECK: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK: accum.loop %[[J:.*]] in 2 running
// CHECK-NOT: accum.loop
// CHECK: arith.muli %[[ZERO]], %{{.*}} : index
// CHECK: arith.muli %[[J]], %{{.*}} : index
// CHECK: titan.dropout {{.*}} base
func.func @outer(%xs: tensor<1x2x4xf32>, %zero: tensor<4xf32>, %seed: tensor<i64>, %t: tensor<i64>) -> tensor<4xf32> {
  %r = accum.loop %i in 1 running slices(%x = %xs : tensor<1x2x4xf32>) accumulators(%a = %zero : tensor<4xf32>) -> (tensor<4xf32>) {
    %s = accum.loop %j in 2 running slices(%y = %x : tensor<2x4xf32>) accumulators(%b = %a : tensor<4xf32>) -> (tensor<4xf32>) {
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %0 = arith.muli %i, %c8 : index
      %1 = arith.muli %j, %c4 : index
      %base = arith.addi %0, %1 : index
      %d = titan.dropout %y p 0.5 stream 7 seed %seed step %t base %base {window = #titan.window<[8], multiple = 4>} : tensor<4xf32> to tensor<4xf32>
      %n = titan.add %b, %d : tensor<4xf32>
      accum.yield %n : tensor<4xf32>
    }
    accum.yield %s : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// CHECK-LABEL: func.func @inner
// CHECK: accum.loop %[[I:.*]] in 2 running stacked = 1 {{.*}} accumulators(%[[A:.*]] = %{{.*}} : tensor<4xf32>)
// CHECK-NOT: accum.loop
// CHECK: %[[N:.*]] = titan.add %[[A]], %[[Y:.*]] : tensor<4xf32>
// CHECK: %[[ROW:.*]] = titan.reshape %[[Y]] : tensor<4xf32> to tensor<1x4xf32>
// CHECK: accum.yield %[[N]], %[[ROW]]
func.func @inner(%xs: tensor<2x1x4xf32>, %zero: tensor<4xf32>) -> (tensor<4xf32>, tensor<2x1x4xf32>) {
  %r:2 = accum.loop %i in 2 running stacked = 1 slices(%x = %xs : tensor<2x1x4xf32>) accumulators(%a = %zero : tensor<4xf32>) -> (tensor<4xf32>, tensor<2x1x4xf32>) {
    %s:2 = accum.loop %j in 1 running stacked = 1 slices(%y = %x : tensor<1x4xf32>) accumulators(%b = %a : tensor<4xf32>) -> (tensor<4xf32>, tensor<1x4xf32>) {
      %n = titan.add %b, %y : tensor<4xf32>
      accum.yield %n, %y : tensor<4xf32>, tensor<4xf32>
    }
    accum.yield %s#0, %s#1 : tensor<4xf32>, tensor<1x4xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<2x1x4xf32>
}

// Users of a start of zeros and of an index that is gone, each of which reads it twice.
// CHECK-LABEL: func.func @twice
// CHECK: %[[ZERO:.*]] = titan.constant dense<0.000000e+00>
// CHECK-NOT: titan.add
// CHECK-NOT: arith
// CHECK: return %[[ZERO]]
func.func @twice(%xs: tensor<1x4xf32>, %seed: tensor<i64>, %t: tensor<i64>) -> (tensor<f32>, tensor<4xf32>) {
  %z = titan.constant dense<0.0> : tensor<f32>
  %z4 = titan.constant dense<0.0> : tensor<4xf32>
  %r:2 = accum.loop %i in 1 running slices(%x = %xs : tensor<1x4xf32>) accumulators(%a = %z : tensor<f32>, %b = %z4 : tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>) {
    %n = titan.add %a, %a : tensor<f32>
    %c4 = arith.constant 4 : index
    %four = arith.muli %i, %c4 : index
    %base = arith.addi %four, %four : index
    %d = titan.dropout %x p 0.5 stream 7 seed %seed step %t base %base {window = #titan.window<[4], multiple = 4>} : tensor<4xf32> to tensor<4xf32>
    %m = titan.add %b, %d : tensor<4xf32>
    accum.yield %n, %m : tensor<f32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<f32>, tensor<4xf32>
}

// -----

// A leaf of a tree is 0 + x, unless ranks make a leaf of it or it is an integer.
module attributes {dist.mesh = #dist.mesh<["shard" = 2]>, titan.recipe = {mesh = {reduce = "tree"}}} {
// CHECK-LABEL: func.func @step
// CHECK: %[[ZERO:.*]] = titan.constant dense<0.000000e+00> : tensor<3xf32>
// CHECK: %[[X:.*]] = titan.reshape
// CHECK: %[[LEAF:.*]] = titan.add %[[ZERO]], %[[X]] : tensor<3xf32>
// CHECK: %[[OTHER:.*]] = titan.add %[[ZERO]], %[[X]] : tensor<3xf32>
// CHECK: %[[ALL:.*]] = dist.all_reduce sum %[[X]] axes ["shard"] order tree
// CHECK: %[[WIDE:.*]] = titan.pad %[[X]]
// CHECK: dist.reduce_scatter sum %[[WIDE]]
// CHECK: dist.all_reduce sum %[[OTHER]] axes ["shard"] order rank
// CHECK: return %[[LEAF]], %[[ALL]], %{{[^,]*}}, %{{[^,]*}}, %[[COUNT:.*]] : {{.*}}tensor<i64>
func.func @step(%xs: tensor<1x3xf32>, %ns: tensor<1xi64>) -> (tensor<3xf32>, tensor<3xf32>, tensor<2xf32>, tensor<3xf32>, tensor<i64>) {
  %z = titan.constant dense<0.0> : tensor<3xf32>
  %zi = titan.constant dense<0> : tensor<i64>
  %r:5 = accum.loop %i in 1 running slices(%x = %xs : tensor<1x3xf32>, %n = %ns : tensor<1xi64>)
      accumulators(%a = %z : tensor<3xf32>, %b = %z : tensor<3xf32>, %c = %z : tensor<3xf32>, %d = %z : tensor<3xf32>, %e = %zi : tensor<i64>)
      -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<i64>) {
    %na = titan.add %a, %x : tensor<3xf32>
    %nb = titan.add %b, %x : tensor<3xf32>
    %nc = titan.add %c, %x : tensor<3xf32>
    %nd = titan.add %d, %x : tensor<3xf32>
    %ne = titan.add %e, %n : tensor<i64>
    accum.yield %na, %nb, %nc, %nd, %ne : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<i64>
  }
  %all = dist.all_reduce sum %r#1 axes ["shard"] order tree : tensor<3xf32> to tensor<3xf32>
  %wide = titan.pad %r#2 low [0] interior [0] : tensor<3xf32> to tensor<4xf32>
  %part = dist.reduce_scatter sum %wide axes ["shard"] dims [0] order tree : tensor<4xf32> to tensor<2xf32>
  %rank = dist.all_reduce sum %r#3 axes ["shard"] order rank : tensor<3xf32> to tensor<3xf32>
  return %r#0, %all, %part, %rank, %r#4 : tensor<3xf32>, tensor<3xf32>, tensor<2xf32>, tensor<3xf32>, tensor<i64>
}
}
