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
    `@step` of a training module has exactly one `accum.loop`, even for one microbatch. Its body is one microbatch; its results are sums over
    the microbatches. The loop lives until codegen, where it becomes a `repeat` of the command table.
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
  let summary = "runs the body once per microbatch and sums what it yields";
  let description = [{
    The body sees the microbatch's index, slice i of each of `batches` (along their first dimension, which is dropped) and, after
    *accumulate*, the running value of each accumulator. Values from outside are captured freely.

    - **unordered** (from *differentiate*): body arguments are (index, slices); the yielded values are the microbatch's own *terms* and each result is
      their sum, in an order that is not fixed yet. `inits` is empty.
    - **running** (set by *accumulate*): body arguments are (index, slices, accumulators); the accumulators start as `inits` and the body yields
      their next values; the results are the last ones. From *plan* on, batches and accumulators are buffers that the body captures, and the loop has
      neither operands nor results.

    Constraints:
    - (C1) every batch has rank >= 1 and first extent `count`; count >= 1.
    - (C2) body arguments are: index, the batches' slices, and with order running the inits' types.
    - (C3) the yielded types are the result types; with order running also the inits' types.
    - (C4) unordered loops have no inits.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$batches, Variadic<AnyRankedTensor>:$inits,
                       I64Attr:$count, Accum_OrderAttr:$order);
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
    /// The type of one microbatch's slice of `batch`.
    static ::mlir::RankedTensorType sliceType(::mlir::Type batch);
  }];
}

def Accum_YieldOp : Op<Accum_Dialect, "yield", [Pure, Terminator, ReturnLike, HasParent<"LoopOp">]> {
  let summary = "the microbatch's terms, or the accumulators' next values";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let builders = [OpBuilder<(ins), "build($_builder, $_state, ::mlir::ValueRange());">];
}

#endif // ACCUM_OPS_TD
