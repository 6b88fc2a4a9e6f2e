// The ops of the dist dialect: this rank's place in the mesh, and what ranks exchange.
#ifndef DIST_OPS_TD
#define DIST_OPS_TD

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/Dist/DistDialect.td"
include "dialects/Kernel/KernelInterfaces.td"
include "dialects/Titan/TitanDialect.td"
include "dialects/Titan/TitanInterfaces.td"

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

class Dist_Op<string mnemonic, list<Trait> traits = []> : Op<Dist_Dialect, mnemonic, traits>;

def Dist_CoordinateOp : Dist_Op<"coordinate", [Pure]> {
  let summary = "this rank's place on an axis of the mesh";
  let description = [{
    A number in [0, extent), fixed when a rank starts: it becomes a term of addresses and scalars, never a command.

    Constraints:
    - (C1) the module's mesh has the axis.

    ```mlir
    %s = dist.coordinate "shard"
    ```
  }];
  let arguments = (ins StrAttr:$axis);
  let results = (outs Index:$result);
  let assemblyFormat = "$axis attr-dict";
  let hasVerifier = 1;
}

def Dist_TakeShardOp : Dist_Op<"take_shard", [Pure, CostedOpInterface]> {
  let summary = "this rank's part of a tensor that all ranks of the group have";
  let description = [{
    Dimension `dim` is cut into equal parts, one a rank of the group in its order. A view where `dim` is the outermost dimension.

    Constraints:
    - (C1) `axes` are the mesh's, in its order, at least one, none of extent 1.
    - (C2) `dim` is one of the tensor's; its extent in the result is 1/n of the operand's for a group of n ranks, all others are equal.

    ```mlir
    %p = dist.take_shard %w axes ["shard"] dim 0 : tensor<16x12xf32> to tensor<4x12xf32>
    ```
  }];
  let arguments = (ins AnyStaticShapeTensor:$operand, StrArrayAttr:$axes, I64Attr:$dim,
                       OptionalAttr<StrArrayAttr>:$path, OptionalAttr<Titan_PhaseAttr>:$phase);
  let results = (outs AnyStaticShapeTensor:$result);
  let assemblyFormat = "$operand `axes` $axes `dim` $dim attr-dict `:` type($operand) `to` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = "::titan::ir::Work getWork();";
}

// Without memory effects, so equal ones of one phase merge and unused ones go; not speculatable, so nothing is hoisted out of a loop.
class Dist_CollectiveOp<string mnemonic> : Dist_Op<mnemonic, [NoMemoryEffect]> {
  let results = (outs Variadic<AnyStaticShapeTensor>:$results);
  let hasVerifier = 1;
  code constraints = [{
    Constraints:
    - (C1) `axes` are the mesh's, in its order, at least one, none of extent 1.
    - (C2) each result has its operand's element type; all_gather and reduce_scatter have one of `dims` an operand, whose extent in the result is n times
      or 1/n of the operand's for a group of n ranks; all other extents are equal. Sums are of f32, f64, bf16 or i64.
    - (C3) with `order tree` a group has 2^j ranks.
    - (C4) the parent is a function or an `accum.loop`.
  }];
  dag common = (ins StrArrayAttr:$axes, OptionalAttr<StrArrayAttr>:$path, OptionalAttr<Titan_PhaseAttr>:$phase);
}

def Dist_AllGatherOp : Dist_CollectiveOp<"all_gather"> {
  let summary = "joins the parts of a group's ranks: every rank gets the whole";
  let description = [{
    Operands are a bucket: one exchange of several tensors. Result i is the operands i of the group's ranks, in group order, joined along dims[i].

  }] # constraints # [{

    ```mlir
    %full = dist.all_gather %w axes ["shard"] dims [0] {path = ["fc1"]} : tensor<8x12xf32> to tensor<16x12xf32>
    ```
  }];
  let arguments = !con((ins Variadic<AnyStaticShapeTensor>:$operands, DenseI64ArrayAttr:$dims), common);
  let assemblyFormat = "$operands `axes` $axes `dims` $dims attr-dict `:` type($operands) `to` type($results)";
}

def Dist_ReduceScatterOp : Dist_CollectiveOp<"reduce_scatter"> {
  let summary = "sums the terms of a group's ranks: every rank gets its part of the sum";
  let description = [{
    Operands are a bucket. Result i is this rank's part, along dims[i], of the sum of the operands i of the group's ranks.

    `order rank` adds x0 + x1 + … in group order. `order tree` adds neighbours first; each leaf enters as 0 + x.

  }] # constraints # [{

    ```mlir
    %p = dist.reduce_scatter sum %g axes ["shard"] dims [0] order rank {path = ["fc1"]} : tensor<16x12xf32> to tensor<8x12xf32>
    ```
  }];
  let arguments = !con((ins Variadic<AnyStaticShapeTensor>:$operands, DenseI64ArrayAttr:$dims, Dist_OrderAttr:$order), common);
  let assemblyFormat = "`sum` $operands `axes` $axes `dims` $dims `order` $order attr-dict `:` type($operands) `to` type($results)";
}

def Dist_AllReduceOp : Dist_CollectiveOp<"all_reduce"> {
  let summary = "sums the terms of a group's ranks: every rank gets the sum";
  let description = [{
    Operands are a bucket. Result i is the sum of the operands i of the group's ranks; `order` as in `dist.reduce_scatter`.

  }] # constraints # [{

    ```mlir
    %g, %n = dist.all_reduce sum %grad, %count axes ["replicate", "shard"] order rank {phase = #titan<phase backward>}
        : tensor<16x12xf32>, tensor<i64> to tensor<16x12xf32>, tensor<i64>
    ```
  }];
  let arguments = !con((ins Variadic<AnyStaticShapeTensor>:$operands, Dist_OrderAttr:$order), common);
  let assemblyFormat = "`sum` $operands `axes` $axes `order` $order attr-dict `:` type($operands) `to` type($results)";
}

// The halves are in destination style, and their order stays.
class Dist_HalfOp<string mnemonic> : Dist_Op<mnemonic, [
    AttrSizedOperandSegments, CommandLikeOpInterface, MemoryEffects<[MemRead<DefaultResource>, MemWrite<DefaultResource>]>]> {
  let hasVerifier = 1;
}

def Dist_Buffer : AnyTypeOf<[AnyStaticShapeTensor, AnyStaticShapeMemRef]>;

def Dist_StartOp : Dist_HalfOp<"start"> {
  let summary = "this rank's sources of a collective are ready";
  let description = [{
    Returns at once. `ins` and `outs` are the operands and results of the whole op, as `collective` says; `dims` is empty for an all_reduce, `order` absent
    for an all_gather.

    Constraints, together with (C1) to (C4) of the whole op:
    - (C5) one `dist.wait` has the token, in the same block, behind it.
    - (C6) on buffers: in between nothing writes to `ins`, and nothing but the wait uses `outs`. An all_reduce may have one buffer as ins and outs: then
      nothing touches it. (Buffers that overlap are the plan's to find.)

    ```mlir
    %e = kernel.empty : tensor<16x12xf32>
    %t = dist.start all_gather ins(%w : tensor<8x12xf32>) outs(%e : tensor<16x12xf32>) axes ["shard"] dims [0] {path = ["fc1"]}
    %full = dist.wait %t ins(%w : tensor<8x12xf32>) outs(%e : tensor<16x12xf32>) -> (tensor<16x12xf32>)
    ```
  }];
  let arguments = (ins Variadic<Dist_Buffer>:$ins, Variadic<Dist_Buffer>:$outs, Dist_CollectiveAttr:$collective, StrArrayAttr:$axes,
                       OptionalAttr<DenseI64ArrayAttr>:$dims, OptionalAttr<Dist_OrderAttr>:$order,
                       OptionalAttr<StrArrayAttr>:$path, OptionalAttr<Titan_PhaseAttr>:$phase);
  let results = (outs Dist_TokenType:$token);
  let assemblyFormat = [{
    $collective `ins` `(` $ins `:` type($ins) `)` `outs` `(` $outs `:` type($outs) `)` `axes` $axes (`dims` $dims^)? (`order` $order^)? attr-dict
  }];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::OpOperand *> getReads();
    ::llvm::SmallVector<::mlir::OpOperand *> getWrites();
    /// The other half.
    WaitOp getWait();
  }];
}

def Dist_WaitOp : Dist_HalfOp<"wait"> {
  let summary = "the results of a collective are there, and its sources are free";
  let description = [{
    Constraints:
    - (C1) `ins` and `outs` are those of the start.
    - (C2) on tensors the results have the types of `outs`; on buffers there are none.
  }];
  let arguments = (ins Dist_TokenType:$token, Variadic<Dist_Buffer>:$ins, Variadic<Dist_Buffer>:$outs,
                       OptionalAttr<StrArrayAttr>:$path, OptionalAttr<Titan_PhaseAttr>:$phase);
  let results = (outs Variadic<AnyStaticShapeTensor>:$results);
  let assemblyFormat = [{
    $token `ins` `(` $ins `:` type($ins) `)` `outs` `(` $outs `:` type($outs) `)` attr-dict (`->` `(` type($results)^ `)`)?
  }];
  let extraClassDeclaration = [{
    ::llvm::SmallVector<::mlir::OpOperand *> getReads();
    ::llvm::SmallVector<::mlir::OpOperand *> getWrites();
    StartOp getStart() { return getToken().getDefiningOp<StartOp>(); }
  }];
}

#endif // DIST_OPS_TD
