// State symbols, constants and the barrier.
#ifndef TITAN_OPS_STATE_TD
#define TITAN_OPS_STATE_TD

include "mlir/IR/SymbolInterfaces.td"
include "dialects/Titan/ops/Base.td"

def Titan_SourcesAttr : TypedArrayAttrBase<Titan_SourceAttr, "boxes of initializers that the state is made of">;

def Titan_StateOp : Op<Titan_Dialect, "state", [Symbol]> {
  let summary = "declares a tensor that outlives a step: parameter, buffer, optimizer slot, EMA copy or counter";
  let description = [{
    The symbol's name is the canonical name, what the checkpoint stores, unless `canonical_name` says another: functions share the
    symbol table, so a state called like one of them (`step`) needs a symbol of its own.

    The type is that of the whole tensor on every mesh. `placement` says which part of it each rank holds; without one every rank holds it all. From *shard* on
    arguments and results of the state have the local type, the part with its padding.

    `sources` say where the model file has the state; without them it has an initializer of the same name and layout, or none.

    Constraints:
    - (C1) `type` is a ranked tensor of static shape.
    - (C2) only a `param` is `trainable`.
    - (C3) a `counter` is a scalar i64.
    - (C4) `sources` are boxes of `type`, whose `dims` name different dimensions of the initializer.
    - (C5) a file init has a range for each initializer that the sources name, or one; each has exactly the bytes of its shape.
    - (C6) a placement cuts dimensions of `type`.
    - (C7) the boxes of the sources cover each element of `type` once, and lie inside of what the file init stores.

    ```mlir
    titan.state @"fc1.weight" : tensor<128x784xf32> {kind = #titan<kind param>, trainable,
      init = #titan.init_file<"mlp.onnx.data", offset = 0, bytes = 401408, digest = 17>}
    titan.state @"fc2.weight" : tensor<10x128xf32> {kind = #titan<kind param>, trainable,
      init = #titan.init_file<"mlp.onnx.data", offset = 401408, bytes = 5120, digest = 18, shape = [128, 10]>,
      sources = [#titan.source<"onnx::MatMul_7", dims = [1, 0]>]}
    titan.state @counter.step : tensor<i64> {kind = #titan<kind counter>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>,
      canonical_name = "step"}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttr:$type, Titan_StateKindAttr:$kind,
                       UnitAttr:$trainable, AnyAttr:$init,
                       DefaultValuedAttr<Titan_MemorySpaceAttr, "::titan::ir::MemorySpace::Device">:$space,
                       OptionalAttr<StrArrayAttr>:$aliases,
                       OptionalAttr<Titan_SourcesAttr>:$sources,
                       OptionalAttr<StrAttr>:$canonical_name,
                       OptionalAttr<Titan_PlacementAttr>:$placement);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$sym_name, "::mlir::Type":$type, "::titan::ir::StateKind":$kind,
                                 "bool":$trainable, "::mlir::Attribute":$init,
                                 CArg<"::titan::ir::MemorySpace", "::titan::ir::MemorySpace::Device">:$space,
                                 CArg<"::mlir::ArrayAttr", "{}">:$aliases, CArg<"::mlir::ArrayAttr", "{}">:$sources), [{
    build($_builder, $_state, sym_name, type, kind, trainable, init, space, aliases, sources,
          ::mlir::StringAttr(), ::titan::ir::PlacementAttr());
  }]>];
  let assemblyFormat = "$sym_name `:` $type attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getType());
    }
    /// What checkpoints and users call it.
    ::llvm::StringRef getName() { return getCanonicalName().value_or(getSymName()); }
  }];
}

def Titan_ConstantOp : Titan_Op<"constant", [Pure, ConstantLike, AllTypesMatch<["value", "result"]>,
    DeclareOpInterfaceMethods<ShardableOpInterface>]> {
  let summary = "a tensor known at compile time";
  let description = [{
    ```mlir
    %half = titan.constant dense<5.000000e-01> : tensor<64x10xf32>
    ```
  }];
  let opArguments = (ins ElementsAttr:$value);
  let results = (outs Titan_Tensor:$result);
  let assemblyFormat = "$value attr-dict";
  let extraClassDeclaration = Titan_workIsView;
  let hasFolder = 1;
  let builders = [OpBuilder<(ins "::mlir::TypedAttr":$value,
                                 "::mlir::ArrayAttr":$path, "::titan::ir::PhaseAttr":$phase), [{
    build($_builder, $_state, value.getType(), ::llvm::cast<::mlir::ElementsAttr>(value), path, phase);
  }]>];
}

def Titan_BarrierOp : Titan_TensorOp<"barrier", [AllTypesMatch<["inputs", "results"]>]> {
  let summary = "the identity, opaque to folding and common-subexpression elimination";
  let description = [{
    Marks where a recomputed chain starts, so that the copies are not merged again. Removed in *lower*.
    Two barriers are never equal: `id` differs.
  }];
  let opArguments = (ins Variadic<Titan_Tensor>:$inputs, I64Attr:$id);
  let results = (outs Variadic<Titan_Tensor>:$results);
  let assemblyFormat = "$inputs `id` $id attr-dict `:` type($inputs)";
  let extraClassDeclaration = Titan_workIsView;
}

#endif // TITAN_OPS_STATE_TD
