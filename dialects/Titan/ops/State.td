// State symbols, constants and the barrier.
#ifndef TITAN_OPS_STATE_TD
#define TITAN_OPS_STATE_TD

include "mlir/IR/SymbolInterfaces.td"
include "dialects/Titan/ops/Base.td"

def Titan_StateOp : Op<Titan_Dialect, "state", [Symbol]> {
  let summary = "declares a tensor that outlives a step: parameter, buffer, optimizer slot, EMA copy or counter";
  let description = [{
    The symbol's name is the canonical name, what the checkpoint stores, unless `canonical_name` says another: functions share the
    symbol table, so a state called like one of them (`step`) needs a symbol of its own.

    The type is that of the whole tensor on every mesh. `placement` says which part of it each rank holds; without one every rank holds it all. From *shard* on
    arguments and results of the state have the local type, the part with its padding.

    Constraints:
    - (C1) `type` is a ranked tensor of static shape.
    - (C2) only a `param` is `trainable`.
    - (C3) a `counter` is a scalar i64.
    - (C4) a file init's permutation, when given, is a permutation of the tensor's dimensions.
    - (C5) a file init has exactly the bytes of `type`.
    - (C6) a placement cuts dimensions of `type`.

    ```mlir
    titan.state @"fc1.weight" : tensor<128x784xf32> {kind = #titan<kind param>, trainable,
      init = #titan.init_file<"mlp.onnx.data", offset = 0, bytes = 401408, digest = 17>}
    titan.state @counter.step : tensor<i64> {kind = #titan<kind counter>, init = #titan.init_rule<"constant", 0.0 : f64, 0.0 : f64>,
      canonical_name = "step"}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttr:$type, Titan_StateKindAttr:$kind,
                       UnitAttr:$trainable, AnyAttr:$init,
                       DefaultValuedAttr<Titan_MemorySpaceAttr, "::titan::ir::MemorySpace::Device">:$space,
                       OptionalAttr<StrArrayAttr>:$aliases,
                       OptionalAttr<StrAttr>:$source_name,
                       OptionalAttr<DenseI64ArrayAttr>:$source_layout,
                       OptionalAttr<StrAttr>:$canonical_name,
                       OptionalAttr<Titan_PlacementAttr>:$placement);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$sym_name, "::mlir::Type":$type, "::titan::ir::StateKind":$kind,
                                 "bool":$trainable, "::mlir::Attribute":$init,
                                 CArg<"::titan::ir::MemorySpace", "::titan::ir::MemorySpace::Device">:$space,
                                 CArg<"::mlir::ArrayAttr", "{}">:$aliases, CArg<"::mlir::StringAttr", "{}">:$source_name,
                                 CArg<"::mlir::DenseI64ArrayAttr", "{}">:$source_layout), [{
    build($_builder, $_state, sym_name, type, kind, trainable, init, space, aliases, source_name, source_layout,
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
