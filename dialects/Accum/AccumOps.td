// The accum dialect: the microbatch loop and what it accumulates.
#ifndef ACCUM_OPS_TD
#define ACCUM_OPS_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Accum_Dialect : Dialect {
  let name = "accum";
  let cppNamespace = "::titan::accum";
  let summary = "Gradient accumulation: one loop over the microbatches of a step";
  let description = [{
    `@step` of a training module has one chain of `accum.loop`s, even for one microbatch: a loop whose body may hold one more loop. The innermost body is
    one microbatch, so the product of the counts is the number of microbatches. Results are sums over the microbatches, or stacks with a row for each. Loops
    live until codegen, where they become `repeat`s of the command table. Of a loop that has the attribute `accum.peeled`, *schedule* put the last iteration
    behind it, as ops.
  }];
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect"];
}

def Accum_Order : I32EnumAttr<"Order", "order in which the microbatches' terms are summed", [
    I32EnumAttrCase<"Unordered", 0, "unordered">, I32EnumAttrCase<"Running", 1, "running">,
    I32EnumAttrCase<"Tree", 2, "tree">]> {
  let cppNamespace = "::titan::accum";
  let genSpecializedAttr = 0;
}
def Accum_OrderAttr : EnumAttr<Accum_Dialect, Accum_Order, "order">;

def Accum_LoopOp : Op<Accum_Dialect, "loop", [
    RecursiveMemoryEffects, RecursivelySpeculatable, SingleBlockImplicitTerminator<"::titan::accum::YieldOp">, AttrSizedOperandSegments]> {
  let summary = "runs the body once per iteration; sums what it yields, or stacks it";
  let description = [{
    The body sees the iteration's index, slice i of each of `batches` (along their first dimension, which is dropped) and, after
    *accumulate*, the running value of each accumulator. Values from outside are captured freely.

    The last `stacked` results are not summed: iteration i's value is row i of the result. All others are sums, as `order` says:

    - **unordered** (from *differentiate*): body arguments are (index, slices); the yielded values are the microbatch's own *terms* and each sum is
      in an order that is not fixed yet.
    - **tree**: as unordered, in a fixed order: that of n nested running loops of count 2, count = 2^n, each from +0. Leaf i is 0 + term i, and neighbours are
      added first: ((0 + t0) + t1) + ((0 + t2) + t3). *accumulate* makes these loops of it, or *shard*, where ranks have some of the levels.
    - **running** (set by *accumulate*): body arguments are (index, slices, accumulators); the accumulators start as `inits` and the body yields
      their next values; the results are the last ones. From *plan* on, batches, accumulators and stacks are buffers that the body captures, and the loop has
      neither operands nor results.

    Constraints:
    - (C1) every batch has rank >= 1 and first extent `count`; count >= 1.
    - (C2) body arguments are: index, the batches' slices, and with order running the inits' types.
    - (C3) the yielded types are the sums' types, then those of the stacks' rows; with order running the inits have the sums' types.
    - (C4) unordered and tree loops have no inits.
    - (C5) no more results are stacked than there are; a stack has first extent `count`.
    - (C6) the count of a tree loop is a power of two.

    ```mlir
    %sum, %rows = accum.loop %i in 4 running stacked = 1 slices(%xi = %x : tensor<4x8xf32>) accumulators(%a = %zero : tensor<8xf32>)
        -> (tensor<8xf32>, tensor<4x8xf32>) {
      %next = titan.add %a, %xi : tensor<8xf32>
      accum.yield %next, %xi : tensor<8xf32>, tensor<8xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$batches, Variadic<AnyRankedTensor>:$inits,
                       I64Attr:$count, Accum_OrderAttr:$order, DefaultValuedAttr<I64Attr, "0">:$stacked);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Block& getBlock() { return getBody().front(); }
    ::mlir::BlockArgument getIndex() { return getBlock().getArgument(0); }
    ::llvm::MutableArrayRef<::mlir::BlockArgument> getSlices() {
      return getBlock().getArguments().slice(1, getBatches().size());
    }
    ::llvm::MutableArrayRef<::mlir::BlockArgument> getAccumulators() {
      return getBlock().getArguments().drop_front(1 + getBatches().size());
    }
    /// The results that are sums, and those that are stacks.
    ::mlir::ResultRange getSums() { return getResults().drop_back(getStacked()); }
    ::mlir::ResultRange getStacks() { return getResults().take_back(getStacked()); }
    /// What one iteration adds to a sum, or puts into a stack.
    ::mlir::OperandRange getYieldedSums() { return getBlock().getTerminator()->getOperands().drop_back(getStacked()); }
    ::mlir::OperandRange getYieldedRows() { return getBlock().getTerminator()->getOperands().take_back(getStacked()); }
    /// The loop directly around this one, or null.
    LoopOp getOuter() { return (*this)->getParentOfType<LoopOp>(); }
    /// The type of one iteration's slice of `batch`, and of a row of a stack.
    static ::mlir::RankedTensorType sliceType(::mlir::Type batch);
  }];
}

def Accum_YieldOp : Op<Accum_Dialect, "yield", [Pure, Terminator, ReturnLike, HasParent<"LoopOp">]> {
  let summary = "the iteration's terms, or the accumulators' next values; then the rows of the stacks";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let builders = [OpBuilder<(ins), "build($_builder, $_state, ::mlir::ValueRange());">];
}

#endif // ACCUM_OPS_TD
