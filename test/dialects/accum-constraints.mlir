// RUN: titan-opt %s --split-input-file --verify-diagnostics

func.func @loop_C1_extent(%x: tensor<3x2xf32>) {
  // expected-error @+1 {{(C1) batch 'tensor<3x2xf32>' does not have first extent 4}}
  accum.loop %i in 4 unordered slices(%xi = %x : tensor<3x2xf32>) {
  }
  return
}

// -----

func.func @loop_C1_rank(%x: tensor<f32>) {
  // expected-error @+1 {{(C1) a batch is a tensor of rank >= 1}}
  accum.loop %i in 4 unordered slices(%xi = %x : tensor<f32>) {
  }
  return
}

// -----

func.func @loop_C1_count() {
  // expected-error @+1 {{(C1) count is 0}}
  accum.loop %i in 0 unordered {
  }
  return
}

// -----

func.func @loop_C2(%x: tensor<4x2xf32>) {
  // expected-error @+1 {{(C2) body arguments are not (index, slices, accumulators)}}
  "accum.loop"(%x) <{count = 4 : i64, order = #accum<order unordered>, operandSegmentSizes = array<i32: 1, 0>}> ({
  ^bb0(%i: index, %xi: tensor<4x2xf32>):
    accum.yield
  }) : (tensor<4x2xf32>) -> ()
  return
}

// -----

func.func @loop_C3_yield(%x: tensor<4x2xf32>) {
  // expected-error @+1 {{(C3) yields 0 values for 1 results, or of other types}}
  %s = accum.loop %i in 4 unordered slices(%xi = %x : tensor<4x2xf32>) -> (tensor<2xf32>) {
    accum.yield
  }
  return
}

// -----

func.func @loop_C3_inits(%x: tensor<2xf32>, %a: tensor<3xf32>) {
  // expected-error @+1 {{(C3) yields 1 values for 1 results, or of other types}}
  %s = accum.loop %i in 4 running accumulators(%acc = %a : tensor<3xf32>) -> (tensor<2xf32>) {
    accum.yield %x : tensor<2xf32>
  }
  return
}

// -----

func.func @loop_C4_tree(%a: tensor<2xf32>) {
  // expected-error @+1 {{(C4) a loop of order tree has no inits}}
  %s = accum.loop %i in 4 tree accumulators(%acc = %a : tensor<2xf32>) -> (tensor<2xf32>) {
    accum.yield %acc : tensor<2xf32>
  }
  return
}

// -----

func.func @loop_C5(%x: tensor<2xf32>) {
  // expected-error @+1 {{(C5) stacks 2 of 1 results}}
  %s = accum.loop %i in 4 unordered stacked = 2 -> (tensor<4x2xf32>) {
    accum.yield %x : tensor<2xf32>
  }
  return
}

// -----

func.func @loop_C5_extent(%x: tensor<2xf32>) {
  // expected-error @+1 {{(C5) stack 'tensor<3x2xf32>' does not have first extent 4}}
  %s = accum.loop %i in 4 unordered stacked = 1 -> (tensor<3x2xf32>) {
    accum.yield %x : tensor<2xf32>
  }
  return
}

// -----

func.func @loop_C6(%x: tensor<3x2xf32>) {
  // expected-error @+1 {{(C6) a tree over 3 terms: take a power of two}}
  %s = accum.loop %i in 3 tree slices(%xi = %x : tensor<3x2xf32>) -> (tensor<2xf32>) {
    accum.yield %xi : tensor<2xf32>
  }
  return
}

// -----

func.func @loop_C4(%a: tensor<2xf32>) {
  // expected-error @+1 {{(C4) a loop of order unordered has no inits}}
  %s = accum.loop %i in 4 unordered accumulators(%acc = %a : tensor<2xf32>) -> (tensor<2xf32>) {
    accum.yield %acc : tensor<2xf32>
  }
  return
}

// -----

func.func @loop_order() {
  // expected-error @+1 {{order is unordered, running or tree, not sorted}}
  accum.loop %i in 4 sorted {
  }
  return
}
