// Passes of the stage `plan`: tensors become buffers of one arena.
#ifndef MEMORY_PASSES_TD
#define MEMORY_PASSES_TD

include "dialects/PassFacts.td"

def FormBuffers : TitanPass<"titan-plan-form-buffers", "::mlir::func::FuncOp"> {
  let summary = "turns tensors into buffers; results are written where they belong";
  let description = [{
    Before: kernels on tensors, as *lower* leaves them. After: every argument is a memref that keeps its tag; the function has no results: the
    new value of a state lies in the state's argument, metrics and outputs are arguments of their own, behind the others, tagged as the results were.
    Other values are `kernel.buffer`s without an offset. An `accum.loop` has neither operands nor results: a batch is sliced in the body, an
    accumulator is one buffer, an inner loop's that of the outer one where it continues it, and a stack is a buffer of which each iteration writes a slice.
    A start and its wait have the same buffers. The sources of a collective are temporaries: what belongs to a state, the caller or a constant is copied,
    once for all that send it, and before the loops in which it does not change. So is what lies elsewhere on another rank (`kernel.rows` at a coordinate).

    A value is written straight into its state's buffer (its accumulator's) if nothing reads the old value afterwards, if the kernel that
    writes reads the old value, if at all, at the points where it writes, and (for a state) if that kernel is of the phase *update*. Otherwise a
    `kernel.copy` at the end of the function (of the loop's body) brings it there.

    ```mlir
    func.func @step(%w: tensor<4xf32> {titan.state = @w}) -> (tensor<4xf32> {titan.state = @w}) {
      %o = kernel.empty : tensor<4xf32>
      %n = kernel.fused flat [4] ins(%w : tensor<4xf32>) outs(%o : tensor<4xf32>) maps [...] attributes {phase = #titan<phase update>} -> (tensor<4xf32>) {...}
      return %n : tensor<4xf32>
    }
    // becomes
    func.func @step(%w: memref<4xf32> {titan.state = @w}) {
      kernel.fused flat [4] ins(%w : memref<4xf32>) outs(%w : memref<4xf32>) maps [...] attributes {phase = #titan<phase update>} {...}
      return
    }
    ```

    Example: test/memory/form-buffers.mlir.
  }];
  let dependentDialects = ["::titan::kernel::KernelDialect", "::titan::accum::AccumDialect", "::titan::dist::DistDialect"];
}

def ReuseInPlace : TitanPass<"titan-plan-reuse-in-place", "::mlir::func::FuncOp"> {
  let summary = "lets a kernel write over an input that dies there";
  let facts = [IsOptional];
  let description = [{
    Before: each value has a buffer of its own. After: where a kernel is the last to use a buffer and the first to write another of the same type, and walks
    both alike, they are one.

    Example: test/memory/reuse-in-place.mlir.
  }];
}

def AssignOffsets : TitanPass<"titan-plan-assign-offsets", "::mlir::ModuleOp"> {
  let summary = "gives every buffer its place in the arena";
  let description = [{
    The arena is [states | constants | bindings | staging | temporaries], each buffer at a multiple of 64 bytes. States and constants are shared by all functions,
    every function has its own inputs, controls and metrics, and the outputs and temporaries of all functions share one region: only one function runs at a time,
    and its outputs are read before the next one does. Temporaries whose live ranges do not meet share bytes (Packing.h). Sources of collectives have a
    region of their own, packed likewise, of whole pages: other ranks map it.

    Before: buffers without offsets. After: `kernel.offset` on each `titan.state` and each argument, an offset on each `kernel.buffer` and `kernel.constant`,
    the figures in `kernel.arena` (module) and `kernel.max_live` (functions).

    Example: test/memory/assign-offsets.mlir.
  }];
  let dependentDialects = ["::titan::kernel::KernelDialect"];
}

def CheckLimit : TitanPass<"titan-plan-check-limit", "::mlir::ModuleOp"> {
  let summary = "refuses a plan that does not fit in memory.limit";
  let description = [{
    The arena is all that a job holds in memory for its tensors. If the recipe sets `memory.limit` and the arena is larger, the error says how
    it is made up: state by kind, bindings, and the largest temporaries with the function that they belong to.

    ```mlir
    module attributes {kernel.arena = {bytes = 4096 : i64, ...}, titan.recipe = {memory = {limit = 1024 : i64}}}
    // error: the plan needs 4.0 KiB, memory.limit is 1.0 KiB: ...
    ```

    Example: test/memory/check-limit.mlir.
  }];
}

def VerifyPlan : TitanPass<"titan-plan-verify-offsets", "::mlir::ModuleOp"> {
  let summary = "proves the plan";
  let description = [{
    Every buffer lies in the arena at an aligned offset; no two that are live at one command share a byte; no function writes inputs, controls or
    constants; nothing writes a state before the first command of the phase *update*. Sources of collectives lie in the staging region, other temporaries do
    not. (C6) of `dist.start` on bytes: until its wait nothing writes to the sources, and nothing touches the results.

    Example: test/memory/verify-invalid.mlir.
  }];
}

#endif // MEMORY_PASSES_TD
