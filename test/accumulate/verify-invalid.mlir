// RUN: titan-opt %s --titan-accumulate-verify --split-input-file --verify-diagnostics

// What is right passes: one running loop, a random op with seed, step and window.
module attributes {titan.recipe = {batch = {micro = 8 : i64, global = 32 : i64}}} {
  func.func @step(%x: tensor<4x8xf32>, %zero: tensor<8xf32>, %seed: tensor<i64>, %step: tensor<i64>) -> tensor<8xf32> {
    %s = accum.loop %i in 4 running slices(%xi = %x : tensor<4x8xf32>) accumulators(%a = %zero : tensor<8xf32>) -> (tensor<8xf32>) {
      %c8 = arith.constant 8 : index
      %base = arith.muli %i, %c8 : index
      %d = titan.dropout %xi p 0.1 stream 7 seed %seed step %step base %base {window = #titan.window<[32], multiple = 8>} : tensor<8xf32> to tensor<8xf32>
      %next = titan.add %a, %d : tensor<8xf32>
      accum.yield %next : tensor<8xf32>
    }
    return %s : tensor<8xf32>
  }
}

// -----

module attributes {titan.recipe = {batch = {micro = 8 : i64, global = 32 : i64}}} {
  // expected-error @+1 {{has no accum.loop for 4 microbatches}}
  func.func @step(%x: tensor<8xf32>) -> tensor<8xf32> {
    return %x : tensor<8xf32>
  }
}

// -----

module attributes {titan.recipe = {batch = {micro = 8 : i64, global = 32 : i64}}} {
  func.func @step(%x: tensor<4x8xf32>, %zero: tensor<8xf32>) -> tensor<8xf32> {
    %s = accum.loop %i in 4 running slices(%xi = %x : tensor<4x8xf32>) accumulators(%a = %zero : tensor<8xf32>) -> (tensor<8xf32>) {
      %next = titan.add %a, %xi : tensor<8xf32>
      accum.yield %next : tensor<8xf32>
    }
    // expected-error @+1 {{stands beside another accum.loop: put one into the other}}
    %t = accum.loop %i in 4 running slices(%xi = %x : tensor<4x8xf32>) accumulators(%a = %s : tensor<8xf32>) -> (tensor<8xf32>) {
      %next = titan.add %a, %xi : tensor<8xf32>
      accum.yield %next : tensor<8xf32>
    }
    return %t : tensor<8xf32>
  }
}

// -----

module attributes {titan.recipe = {batch = {micro = 8 : i64, global = 32 : i64}}} {
  func.func @step(%x: tensor<4x8xf32>) -> tensor<8xf32> {
    // expected-error @+1 {{the order of accumulation is not fixed}}
    %s = accum.loop %i in 4 unordered slices(%xi = %x : tensor<4x8xf32>) -> (tensor<8xf32>) {
      accum.yield %xi : tensor<8xf32>
    }
    return %s : tensor<8xf32>
  }
}

// -----

module attributes {titan.recipe = {batch = {micro = 8 : i64, global = 32 : i64}}} {
  func.func @step(%x: tensor<2x8xf32>, %zero: tensor<8xf32>) -> tensor<8xf32> {
    // expected-error @+1 {{runs 2 microbatches, the recipe says 4}}
    %s = accum.loop %i in 2 running slices(%xi = %x : tensor<2x8xf32>) accumulators(%a = %zero : tensor<8xf32>) -> (tensor<8xf32>) {
      %next = titan.add %a, %xi : tensor<8xf32>
      accum.yield %next : tensor<8xf32>
    }
    return %s : tensor<8xf32>
  }
}

// -----

module attributes {titan.recipe = {batch = {micro = 8 : i64, global = 8 : i64}}} {
  func.func @step(%x: tensor<1x8xf32>, %zero: tensor<8xf32>, %seed: tensor<i64>, %step: tensor<i64>) -> tensor<8xf32> {
    %s = accum.loop %i in 1 running slices(%xi = %x : tensor<1x8xf32>) accumulators(%a = %zero : tensor<8xf32>) -> (tensor<8xf32>) {
      // expected-error @+1 {{a random op without seed, step or window}}
      %d = titan.dropout %xi p 0.1 stream 7 seed %seed step %step : tensor<8xf32> to tensor<8xf32>
      // expected-error @+1 {{a random op without seed, step or window}}
      %e = titan.dropout %d p 0.1 stream 8 : tensor<8xf32> to tensor<8xf32>
      %next = titan.add %a, %e : tensor<8xf32>
      accum.yield %next : tensor<8xf32>
    }
    return %s : tensor<8xf32>
  }
}

// -----

module attributes {titan.recipe = {batch = {micro = 8 : i64, global = 8 : i64}}} {
  func.func @step(%x: tensor<1x8xf32>, %zero: tensor<8xf32>) -> tensor<8xf32> {
    %s = accum.loop %i in 1 running slices(%xi = %x : tensor<1x8xf32>) accumulators(%a = %zero : tensor<8xf32>) -> (tensor<8xf32>) {
      %next = titan.add %a, %xi : tensor<8xf32>
      accum.yield %next : tensor<8xf32>
    }
    return %s : tensor<8xf32>
  }
  func.func @eval(%x: tensor<8xf32>) -> tensor<8xf32> {
    // expected-error @+1 {{a random op outside of @step}}
    %d = titan.dropout %x p 0.1 stream 7 : tensor<8xf32> to tensor<8xf32>
    return %d : tensor<8xf32>
  }
}

// -----

module attributes {titan.recipe = {batch = {micro = 8 : i64, global = 32 : i64}}} {
  func.func @step(%x: tensor<2x3x8xf32>, %zero: tensor<8xf32>) -> tensor<8xf32> {
    // expected-error @+1 {{runs 2 x 3 = 6 microbatches, the recipe says 4}}
    %s = accum.loop %i in 2 running slices(%xi = %x : tensor<2x3x8xf32>) accumulators(%a = %zero : tensor<8xf32>) -> (tensor<8xf32>) {
      %t = accum.loop %j in 3 running slices(%xj = %xi : tensor<3x8xf32>) accumulators(%b = %a : tensor<8xf32>) -> (tensor<8xf32>) {
        %next = titan.add %b, %xj : tensor<8xf32>
        accum.yield %next : tensor<8xf32>
      }
      accum.yield %t : tensor<8xf32>
    }
    return %s : tensor<8xf32>
  }
}

// -----

// Two loops in one body.
module attributes {titan.recipe = {batch = {micro = 8 : i64, global = 32 : i64}}} {
  func.func @step(%x: tensor<2x2x8xf32>, %zero: tensor<8xf32>) -> tensor<8xf32> {
    %s = accum.loop %i in 2 running slices(%xi = %x : tensor<2x2x8xf32>) accumulators(%a = %zero : tensor<8xf32>) -> (tensor<8xf32>) {
      %t = accum.loop %j in 2 running slices(%xj = %xi : tensor<2x8xf32>) accumulators(%b = %a : tensor<8xf32>) -> (tensor<8xf32>) {
        %next = titan.add %b, %xj : tensor<8xf32>
        accum.yield %next : tensor<8xf32>
      }
      // expected-error @+1 {{stands beside another accum.loop: put one into the other}}
      %u = accum.loop %j in 2 running slices(%xj = %xi : tensor<2x8xf32>) accumulators(%b = %t : tensor<8xf32>) -> (tensor<8xf32>) {
        %next = titan.add %b, %xj : tensor<8xf32>
        accum.yield %next : tensor<8xf32>
      }
      accum.yield %u : tensor<8xf32>
    }
    return %s : tensor<8xf32>
  }
}

// -----

module attributes {titan.recipe = {batch = {micro = 8 : i64, global = 4096 : i64}}} {
  func.func @step(%zero: tensor<8xf32>) {
    accum.loop %i0 in 2 running {
      accum.loop %i1 in 2 running {
        accum.loop %i2 in 2 running {
          accum.loop %i3 in 2 running {
            accum.loop %i4 in 2 running {
              accum.loop %i5 in 2 running {
                accum.loop %i6 in 2 running {
                  accum.loop %i7 in 2 running {
                    // expected-error @+1 {{stands inside of 8 others: at most 8 loops nest}}
                    accum.loop %i8 in 2 running {
                    }
                  }
                }
              }
            }
          }
        }
      }
    }
    return
  }
}

// -----

// expected-error @+1 {{the module has no function @step}}
module attributes {titan.recipe = {batch = {micro = 8 : i64, global = 32 : i64}}} {
}
