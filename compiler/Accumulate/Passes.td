// Passes of the stage *accumulate*.
#ifndef TITAN_ACCUMULATE_PASSES_TD
#define TITAN_ACCUMULATE_PASSES_TD

include "dialects/PassFacts.td"

def MoveTransposes : TitanPass<"titan-accumulate-move-transposes", "::mlir::ModuleOp"> {
  let summary = "turns weights, and their gradients, once a step and not once a microbatch";
  let facts = [IsOptional];
  let description = [{
    Where a rank runs several microbatches in a step: transpositions of what is there before the loop over them move in front of it, with the cast behind
    them; transpositions of terms that the loop sums move behind it, through additions. So a kernel adds the gradient of a weight in place, in its own layout.
    Every bit stays.

    ```mlir
    %s = accum.loop %i in 4 unordered slices(%xi = %x : tensor<4x2x8xf32>) -> (tensor<8x2xf32>) {
      %t = titan.transpose %xi [1, 0] : tensor<2x8xf32> to tensor<8x2xf32>
      accum.yield %t : tensor<8x2xf32>
    }
    // becomes
    %r = accum.loop %i in 4 unordered slices(%xi = %x : tensor<4x2x8xf32>) -> (tensor<2x8xf32>) {
      accum.yield %xi : tensor<2x8xf32>
    }
    %s = titan.transpose %r [1, 0] : tensor<2x8xf32> to tensor<8x2xf32>
    ```

    Example: test/accumulate/move-transposes.mlir.
  }];
  let dependentDialects = ["::titan::ir::TitanDialect"];
}

def FixOrder : TitanPass<"titan-accumulate-fix-order", "::mlir::ModuleOp"> {
  let summary = "fixes the order in which the microbatches' terms are summed";
  let facts = [MovesRounding];
  let description = [{
    Before: every `accum.loop` is *unordered* or a *tree* and yields its microbatch's own terms. After: an unordered one is *running*: its accumulators
    start at zero and the body adds one term to each, so the sum is taken in the order of the microbatches. A tree over
    2^n microbatches becomes n nested loops of count 2, each from zero. With `mesh.reduce` "tree" both are a tree instead, whose levels *shard* divides.
    Stacked results stay what they are.

    ```mlir
    %s = accum.loop %i in 4 unordered slices(%xi = %x : tensor<4x8xf32>) -> (tensor<8xf32>) {
      accum.yield %xi : tensor<8xf32>
    }
    // becomes
    %zero = titan.constant dense<0.0> : tensor<8xf32>
    %s = accum.loop %i in 4 running slices(%xi = %x : tensor<4x8xf32>) accumulators(%a = %zero : tensor<8xf32>) -> (tensor<8xf32>) {
      %next = titan.add %a, %xi : tensor<8xf32>
      accum.yield %next : tensor<8xf32>
    }
    ```

    Example: test/accumulate/fix-order.mlir.
  }];
  let dependentDialects = ["::titan::ir::TitanDialect", "::titan::accum::AccumDialect", "::mlir::arith::ArithDialect"];
}

def PlaceRandom : TitanPass<"titan-accumulate-place-random", "::mlir::ModuleOp"> {
  let summary = "tells every random op which part of the global batch its microbatch is";
  let description = [{
    The batch dimension of each value in the innermost loop is found by following the factors of the loop's slices (ShardableOpInterface). A random op whose
    operand has a batch dimension gets a window, the global tensor's shape, and a base, the index there of the microbatch's first element: the number of the
    microbatch, which the counters of all loops around it give, times its elements. So its decisions are those of the same op on the whole batch. An operand
    that does not depend on the batch is its own global tensor. Where the batch cannot be followed, the microbatches are taken as stacked along the first
    dimension, with a missed remark.

    ```mlir
    accum.loop %i in 4 running slices(%xi = %x : tensor<4x8x3xf32>) ... {
      %d = titan.dropout %xi p 0.1 stream 7 seed %seed step %step : tensor<8x3xf32> to tensor<8x3xf32>
    // becomes
      %c24 = arith.constant 24 : index
      %base = arith.muli %i, %c24 : index
      %d = titan.dropout %xi p 0.1 stream 7 seed %seed step %step base %base
          {window = #titan.window<[32, 3], multiple = 24>} : tensor<8x3xf32> to tensor<8x3xf32>
    ```

    Example: test/accumulate/place-random.mlir.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def VerifyAccumulate : TitanPass<"titan-accumulate-verify", "::mlir::ModuleOp"> {
  let summary = "checks what holds after *accumulate*";
  let description = [{
    - `@step` has one chain of `accum.loop`s, each inside of the one before; their order is running or a tree; the product of their counts is the recipe's number
      of microbatches, those of all data ranks together.
    - Every random op of `@step` has seed, step and a window; `@eval` and `@predict` have none.

    Example: test/accumulate/verify-invalid.mlir.
  }];
}

#endif // TITAN_ACCUMULATE_PASSES_TD
