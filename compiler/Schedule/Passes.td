// Passes of the stage *schedule*.
#ifndef TITAN_SCHEDULE_PASSES_TD
#define TITAN_SCHEDULE_PASSES_TD

include "dialects/PassFacts.td"

def InlineSingleIteration : TitanPass<"titan-schedule-inline-single-iteration", "::mlir::ModuleOp"> {
  let summary = "replaces a loop over one microbatch by its body";
  let facts = [IsOptional];
  let description = [{
    Before: `@step` has a chain of `accum.loop`s. After: none of them runs once. Where a loop's index was used there is 0. The terms that it added to zeros
    are the results, so a gradient has a buffer from the op that makes it on, not from the beginning of the step. With `mesh.reduce` "tree" 0 + x stays where
    it is a leaf of the tree, unless ranks sum it next, who add it to 0.

    ```mlir
    %s = accum.loop %i in 1 running slices(%xi = %x : tensor<1x8xf32>) accumulators(%a = %zero : tensor<8xf32>) -> (tensor<8xf32>) {
      %next = titan.add %a, %xi : tensor<8xf32>
      accum.yield %next : tensor<8xf32>
    }
    // becomes
    %s = titan.reshape %x : tensor<1x8xf32> to tensor<8xf32>
    ```

    Example: test/schedule/inline-single-iteration.mlir.
  }];
  let dependentDialects = ["::titan::ir::TitanDialect"];
}

def OrderOps : TitanPass<"titan-schedule-order-ops", "::mlir::ModuleOp"> {
  let summary = "orders the ops of @step so that values live shortest";
  let facts = [IsOptional];
  let description = [{
    - A gradient that only the update reads (or the loop yields) is computed as soon as its factors exist: what is needed for it can go.
    - A gradient of which each rank keeps a part (`dist.reduce_scatter`) is summed as soon as it exists, each by itself: the whole can go then.
    - The sum of squares of a large gradient, for the norm, is taken right behind the gradient, while it is in the cache. These ops become ops of the
      backward pass; they read no state.
    - A cast or broadcast of a value that lives anyway (a parameter) stands before its first reader.

    ```mlir
    %dx2 = titan.contract %dy2, %w2 ...
    %dx1 = titan.contract %dx2, %w1 ...
    %dw2 = titan.contract %dy2, %x2 ...
    // becomes
    %dw2 = titan.contract %dy2, %x2 ...
    %dx2 = titan.contract %dy2, %w2 ...
    %dx1 = titan.contract %dx2, %w1 ...
    ```

    Example: test/schedule/order-ops.mlir.
  }];
}

def PeelLastMicrobatch : TitanPass<"titan-schedule-peel-last-microbatch", "::mlir::ModuleOp"> {
  let summary = "puts the last iteration of a loop behind it, where ranks sum what the loop sums";
  let facts = [IsOptional];
  let description = [{
    A sum of gradients over ranks behind a loop can begin when the loop has ended, and then there is nothing left to hide it behind. Of a loop of k > 1
    iterations behind which such a sum (of phase backward) stands, k - 1 stay, and the last follows as ops, in the same order: the gradients of a layer can
    travel while the next one is differentiated. Batches are cut into rows, which are views. Index and accumulators of the last iteration are k - 1 and the
    loop's sums, so every sum keeps its order and every random number its place.

    Loops in the last iteration are looked at in turn: of a nest of loops of two, with the sum behind all of them, one iteration of each remains in a loop.
    A loop that stacks rows stays whole, with a missed remark. Before: whole collectives. After: a loop of which an iteration was taken has the attribute
    `accum.peeled`.

    ```mlir
    %s = accum.loop %i in 4 running slices(%xi = %x : tensor<4x8xf32>) accumulators(%a = %zero : tensor<8xf32>) -> (tensor<8xf32>) {
      %next = titan.add %a, %xi : tensor<8xf32>
      accum.yield %next : tensor<8xf32>
    }
    %g = dist.all_reduce sum %s axes ["shard"] order rank {phase = #titan<phase backward>} : tensor<8xf32> to tensor<8xf32>
    // becomes
    %x3 = titan.slice %x offsets [0, 0] strides [1, 1] : tensor<4x8xf32> to tensor<3x8xf32>
    %s = accum.loop %i in 3 running slices(%xi = %x3 : tensor<3x8xf32>) accumulators(%a = %zero : tensor<8xf32>) -> (tensor<8xf32>) {
      %next = titan.add %a, %xi : tensor<8xf32>
      accum.yield %next : tensor<8xf32>
    } {accum.peeled}
    %row = titan.slice %x offsets [3, 0] strides [1, 1] : tensor<4x8xf32> to tensor<1x8xf32>
    %last = titan.reshape %row : tensor<1x8xf32> to tensor<8xf32>
    %next = titan.add %s, %last : tensor<8xf32>
    %g = dist.all_reduce sum %next axes ["shard"] order rank {phase = #titan<phase backward>} : tensor<8xf32> to tensor<8xf32>
    ```

    Example: test/schedule/peel-last-microbatch.mlir.
  }];
  let dependentDialects = ["::titan::ir::TitanDialect", "::mlir::arith::ArithDialect"];
}

def BucketCollectives : TitanPass<"titan-schedule-bucket-collectives", "::mlir::ModuleOp"> {
  let summary = "exchanges the tensors of neighbours at once";
  let facts = [IsOptional];
  let description = [{
    Before: collectives are whole, of one tensor or several. After: those of a block that have kind, axes, order and phase in common, sums the element type
    too, are cut into buckets: in the order in which their tensors are ready or read, as many as have `mesh.bucket` bytes together while they are whole, or
    a larger one and what has a sixteenth of `mesh.bucket` beside it. With `mesh.bucket = 0` each is by itself.

    - A sum of gradients, or a gather of what the update makes, stands where the last of its tensors is ready. What takes a sum moves behind it. Where
      something reads it that cannot wait, the bucket ends before.
    - A gather of parameters stands where the first of its tensors is read. Casts of parts move there, too.
    - The update's scalars are one exchange, and stay it.

    ```mlir
    %g1 = titan.contract ... ; %p1 = dist.reduce_scatter sum %g1 axes ["shard"] dims [0] order rank {path = ["fc1"], ...}
    %g0 = titan.contract ... ; %p0 = dist.reduce_scatter sum %g0 axes ["shard"] dims [0] order rank {path = ["fc0"], ...}
    // becomes
    %g1 = titan.contract ...
    %g0 = titan.contract ...
    %p1, %p0 = dist.reduce_scatter sum %g1, %g0 axes ["shard"] dims [0, 0] order rank {path = ["fc1", "fc0"], ...}
    ```

    Example: test/schedule/bucket-collectives.mlir.
  }];
  let dependentDialects = ["::titan::dist::DistDialect"];
}

def SplitCollectives : TitanPass<"titan-schedule-split-collectives", "::mlir::ModuleOp"> {
  let summary = "halves collectives into start and wait";
  let facts = [IsOptional];
  let description = [{
    Before: a collective is one op. After: it is a `dist.start`, which says that the sources are ready, and right behind it a `dist.wait`, which gives the
    results, both on empty tensors of the kernel dialect. Halves can be moved apart: what stands between them runs while bytes travel. Where the pass is
    disabled *lower* halves what is still whole.

    ```mlir
    %g = dist.all_reduce sum %d axes ["replicate"] order rank {path = ["fc"]} : tensor<8x12xf32> to tensor<8x12xf32>
    // becomes
    %e = kernel.empty : tensor<8x12xf32>
    %t = dist.start all_reduce ins(%d : tensor<8x12xf32>) outs(%e : tensor<8x12xf32>) axes ["replicate"] order rank {path = ["fc"]}
    %g = dist.wait %t ins(%d : tensor<8x12xf32>) outs(%e : tensor<8x12xf32>) {path = ["fc"]} -> (tensor<8x12xf32>)
    ```

    Example: test/schedule/split-collectives.mlir.
  }];
  let dependentDialects = ["::titan::dist::DistDialect", "::titan::kernel::KernelDialect"];
}

def PrefetchGathers : TitanPass<"titan-schedule-prefetch-gathers", "::mlir::ModuleOp"> {
  let summary = "starts the gathers of parameters before they are needed";
  let facts = [IsOptional];
  let description = [{
    Before: a gather's start and wait are neighbours. After: each starts before the wait of the gather that is `mesh.prefetch` earlier in its block, the
    first ones together: while what one bucket holds is used, so many others are on their way. Casts of parts move along. What is whole stays.

    ```mlir
    %t0 = dist.start all_gather ins(%w0 ...) ; %f0 = dist.wait %t0 ...
    %y = titan.contract %x, %f0 ...
    %t1 = dist.start all_gather ins(%w1 ...) ; %f1 = dist.wait %t1 ...
    // becomes
    %t0 = dist.start all_gather ins(%w0 ...) ; %t1 = dist.start all_gather ins(%w1 ...)
    %f0 = dist.wait %t0 ...
    %y = titan.contract %x, %f0 ...
    %f1 = dist.wait %t1 ...
    ```

    Example: test/schedule/prefetch-gathers.mlir.
  }];
}

def OverlapReductions : TitanPass<"titan-schedule-overlap-reductions", "::mlir::ModuleOp"> {
  let summary = "awaits sums over ranks late";
  let facts = [IsOptional];
  let description = [{
    Before: the start and the wait of a sum are neighbours, behind what makes the sources. After: the wait stands before the first op that reads a result and
    cannot wait, before the update or the end of the block, and right behind the start of the sum of its kind and axes that is `mesh.prefetch` later: the
    sources of so many buckets live. What only takes a sum (an addition to an accumulator, a cast, a square for the norm, a sum over another axis) moves behind the wait.
    Gathers of what the update makes, and the sum of its scalars, likewise. What is whole stays.

    ```mlir
    %t1 = dist.start reduce_scatter ins(%g1 ...) ; %p1 = dist.wait %t1 ...
    %n1 = titan.add %a1, %p1 ...
    %g0 = titan.contract ...
    // becomes
    %t1 = dist.start reduce_scatter ins(%g1 ...)
    %g0 = titan.contract ...
    %p1 = dist.wait %t1 ...
    %n1 = titan.add %a1, %p1 ...
    ```

    Example: test/schedule/overlap-reductions.mlir.
  }];
}

def ChunkLoss : TitanPass<"titan-schedule-chunk-loss", "::mlir::ModuleOp"> {
  let summary = "handles the logits of a cross-entropy in pieces of rows";
  let facts = [CutsLoss];
  let description = [{
    The product that makes the logits, the loss, its gradient and the products that read it run once per piece, so one piece of the logits is live. Gradients
    of weight and bias continue from piece to piece, in order: the order of their sums changes with the number of pieces (and is a function of it alone).
    Every op that reads the logits is cut along the rows by its factor rule; one that cannot be, or draws random numbers, leaves the loss whole.
    `titan-schedule-fit-memory` chooses the number; this pass applies a given one.

    ```mlir
    %logits = titan.contract %h, %w ...   : tensor<8x16xf32>
    %loss = titan.cross_entropy %logits, %t ...
    %d = titan.cross_entropy_grad %logits, %t, %one ...
    %dw = titan.contract %d, %h ...
    // becomes, for two chunks
    %h0 = titan.slice %h ... ; %logits0 = titan.contract %h0, %w ... : tensor<4x16xf32> ; %loss0 ; %d0 ; %dw0 = titan.contract %d0, %h0
    %h1 = titan.slice %h ... ; %logits1 = titan.contract %h1, %w ... : tensor<4x16xf32> ; %loss1 ; %d1 ; %dw = titan.contract %d1, %h1 acc %dw0
    %loss = titan.concat %loss0, %loss1
    ```

    Example: test/schedule/chunk-loss.mlir.
  }];
  let options = [Option<"chunks", "chunks", "int64_t", "1", "number of pieces; divides the rows">];
  let dependentDialects = ["::titan::ir::TitanDialect"];
}

def Rematerialize : TitanPass<"titan-schedule-rematerialize", "::mlir::ModuleOp"> {
  let summary = "computes values again in the backward pass instead of keeping them";
  let description = [{
    Picks values until no more than `target` bytes of temporaries are live by the memory model (MemoryModel.h, ChooseRecomputation.h), and clones their chains
    before the first reader of the backward pass. A chain starts at a `titan.barrier`, so that nothing merges it with the original; *lower* removes it.
    `titan-schedule-fit-memory` chooses the target; this pass applies a given one.

    ```mlir
    %a = titan.gelu tanh %x : tensor<64x64xf32>
    %y = titan.contract %a, %w ...
    ...
    %dw = titan.contract %dy, %a ... {phase = #titan<phase backward>}
    // becomes
    %a = titan.gelu tanh %x : tensor<64x64xf32>
    %y = titan.contract %a, %w ...
    ...
    %x0 = titan.barrier %x id 0 : tensor<64x64xf32>
    %a0 = titan.gelu tanh %x0 : tensor<64x64xf32>
    %dw = titan.contract %dy, %a0 ... {phase = #titan<phase backward>}
    ```

    Example: test/schedule/rematerialize.mlir.
  }];
  let options = [Option<"target", "target", "int64_t", "0", "bytes of live temporaries to stay within">];
  let dependentDialects = ["::titan::ir::TitanDialect"];
}

def FitMemory : TitanPass<"titan-schedule-fit-memory", "::mlir::ModuleOp"> {
  let summary = "makes the plan fit memory.limit, or refuses with the reasons";
  let facts = [CutsLoss];
  let description = [{
    Does nothing without `memory.limit`, unless `memory.remat` is "full". With a limit: the plan of the module as it is decides whether anything has to be
    done. If so, the loss is cut into the number of chunks from which on the peak falls no more, and values are recomputed (not with `remat = "none"`) until the
    plan fits: *lower* and *plan* run on a copy after each attempt, so what is decided here holds there. Before that, on ranks, fewer and smaller buckets are on
    their way, where that is enough or helps: `mesh.prefetch` and `mesh.bucket` are lowered. With "full" everything is recomputed that lowers the peak, unless
    the plan is no smaller for it; a limit is met wherever "full" meets it.

    `memory.loss_chunks` says in how many pieces the loss is cut, with or without a limit: a loss that cannot be cut so is an error. With `mesh.reduce` "tree" it is
    one piece otherwise: the order of the head's weight gradient follows from the number.

    Run by itself, without the stages behind it, the pass takes the memory model's estimate for the plan.

    Example: test/schedule/fit-memory.mlir.
  }];
  let dependentDialects = ["::titan::ir::TitanDialect"];
}

def NoteProducts : TitanPass<"titan-schedule-note-products", "::mlir::ModuleOp"> {
  let summary = "notes the FLOP of products between neighbouring starts and waits";
  let facts = [IsOptional];
  let description = [{
    After: each `dist.start` and `dist.wait` has the attribute `kernel.products`: the FLOP of matrix products and attention between it and the next half of a
    collective. What *schedule* put there hides an exchange; `titan-lower-verify-kernels` finds the same in kernels, or *lower* has undone it. What a loop
    in between holds counts once. Last of all that moves ops.

    ```mlir
    %t = dist.start all_gather ins(%w ...) ...
    %y = titan.contract %x, %v ... : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
    %full = dist.wait %t ins(%w ...) ...
    // becomes
    %t = dist.start all_gather ins(%w ...) ... {kernel.products = 1024 : i64}
    %y = titan.contract %x, %v ...
    %full = dist.wait %t ins(%w ...) ... {kernel.products = 0 : i64}
    ```

    Example: test/schedule/note-products.mlir.
  }];
}

def VerifySchedule : TitanPass<"titan-schedule-verify", "::mlir::ModuleOp"> {
  let summary = "checks that each step runs forward, backward, update";
  let description = [{
    The order of the ops is the order of the commands from here on.

    - In `@step` no op of phase forward or backward follows one of phase update: a snapshot of the state may be taken until the first command of phase update.
    - `@step` has one chain of microbatch loops, whose counts multiply to those of one rank, or none if that is 1. With iterations peeled it has several, and
      what they run adds up. They hold no op of phase update.
    - Empty tensors and `dist.coordinate`, like constants, have no place in time.
    - What a barrier passes on is read by the backward pass only.
    - There is no kernel yet: of the kernel dialect an empty tensor, into which a collective writes, and nothing else.

    Example: test/schedule/verify-invalid.mlir.
  }];
}

#endif // TITAN_SCHEDULE_PASSES_TD
