// The titan dialect: what a training program says, before anything is decided about how it runs.
#ifndef TITAN_DIALECT_TD
#define TITAN_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"

def Titan_Dialect : Dialect {
  let name = "titan";
  let cppNamespace = "::titan::ir";
  let summary = "Tensor programs with named state: the level at which a model is differentiated and optimized";
  let description = [{
    A titan module holds *state symbols* (`titan.state`) and functions over statically shaped tensors.

    **State** is plain SSA inside functions: an argument and a result, both tagged `titan.state = @name`, stand for the
    symbol before and after the call (the argument is donated). Other arguments and results are tagged

    | tag | on | says |
    |---|---|---|
    | `titan.input = "x"` | argument | batch data, by the model's input name |
    | `titan.control = "optimizer.lr"` | argument | a scalar that may change from step to step, by recipe key |
    | `titan.gradient = @w` | result | the gradient of the loss *sum* with respect to the state (between differentiate and optimize) |
    | `titan.metric = "loss"` | result | a scalar that the job reports |
    | `titan.output = "logits"` | result | an output of the model, by its name |

    **Shapes are static and broadcasting is explicit**: all operands of an elementwise op have one shape (`titan.broadcast` makes
    them so). Reductions drop the dimensions that they reduce.

    **Module paths.** Every tensor op may carry `path`, the list of module paths of the source model that it computes for. It is
    an inherent attribute: it survives printing, and passes that merge ops join the lists. Derived ops (gradients) inherit it.

    **Phase.** `phase` says in which part of the step an op stands: forward (absent), backward or update.
  }];
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let hasConstantMaterializer = 1;
  let dependentDialects = ["::mlir::func::FuncDialect"];
}

//===----------------------------------------------------------------------===//
// Enums
//===----------------------------------------------------------------------===//

class Titan_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::titan::ir";
  let genSpecializedAttr = 0;
}

class Titan_EnumAttr<I32EnumAttr enum, string mnemonic> : EnumAttr<Titan_Dialect, enum, mnemonic>;

def Titan_StateKind : Titan_Enum<"StateKind", "what a state symbol is", [
  I32EnumAttrCase<"Param", 0, "param">, I32EnumAttrCase<"Buffer", 1, "buffer">,
  I32EnumAttrCase<"Slot", 2, "slot">, I32EnumAttrCase<"Ema", 3, "ema">,
  I32EnumAttrCase<"Counter", 4, "counter">]>;
def Titan_StateKindAttr : Titan_EnumAttr<Titan_StateKind, "kind">;

def Titan_MemorySpace : Titan_Enum<"MemorySpace", "where a state symbol lives", [
  I32EnumAttrCase<"Device", 0, "device">, I32EnumAttrCase<"Host", 1, "host">]>;
def Titan_MemorySpaceAttr : Titan_EnumAttr<Titan_MemorySpace, "space">;

def Titan_Phase : Titan_Enum<"Phase", "part of the training step", [
  I32EnumAttrCase<"Forward", 0, "forward">, I32EnumAttrCase<"Backward", 1, "backward">,
  I32EnumAttrCase<"Update", 2, "update">]>;
def Titan_PhaseAttr : Titan_EnumAttr<Titan_Phase, "phase">;

def Titan_ReduceKind : Titan_Enum<"ReduceKind", "how a reduction combines", [
  I32EnumAttrCase<"Sum", 0, "sum">, I32EnumAttrCase<"Max", 1, "max">,
  I32EnumAttrCase<"Min", 2, "min">, I32EnumAttrCase<"Prod", 3, "prod">]>;
def Titan_ReduceKindAttr : Titan_EnumAttr<Titan_ReduceKind, "reduce_kind">;

def Titan_ComparePredicate : Titan_Enum<"ComparePredicate", "ordered comparison; ne is true for NaN", [
  I32EnumAttrCase<"EQ", 0, "eq">, I32EnumAttrCase<"NE", 1, "ne">, I32EnumAttrCase<"LT", 2, "lt">,
  I32EnumAttrCase<"LE", 3, "le">, I32EnumAttrCase<"GT", 4, "gt">, I32EnumAttrCase<"GE", 5, "ge">]>;
def Titan_ComparePredicateAttr : Titan_EnumAttr<Titan_ComparePredicate, "predicate">;

def Titan_ScatterKind : Titan_Enum<"ScatterKind", "what an update does to the element that it meets", [
  I32EnumAttrCase<"None", 0, "none">, I32EnumAttrCase<"Add", 1, "add">, I32EnumAttrCase<"Mul", 2, "mul">,
  I32EnumAttrCase<"Max", 3, "max">, I32EnumAttrCase<"Min", 4, "min">]>;
def Titan_ScatterKindAttr : Titan_EnumAttr<Titan_ScatterKind, "scatter_kind">;

def Titan_GeluForm : Titan_Enum<"GeluForm", "exact (erf) or the tanh approximation", [
  I32EnumAttrCase<"Erf", 0, "erf">, I32EnumAttrCase<"Tanh", 1, "tanh">]>;
def Titan_GeluFormAttr : Titan_EnumAttr<Titan_GeluForm, "gelu_form">;

def Titan_RandomKind : Titan_Enum<"RandomKind", "a distribution", [
  I32EnumAttrCase<"Uniform", 0, "uniform">, I32EnumAttrCase<"Normal", 1, "normal">]>;
def Titan_RandomKindAttr : Titan_EnumAttr<Titan_RandomKind, "random_kind">;

def Titan_RecurrentCell : Titan_Enum<"RecurrentCell", "what a recurrent layer computes in a step", [
  I32EnumAttrCase<"Lstm", 0, "lstm">, I32EnumAttrCase<"Gru", 1, "gru">, I32EnumAttrCase<"GruResetBefore", 2, "gru_reset_before">,
  I32EnumAttrCase<"Tanh", 3, "tanh">, I32EnumAttrCase<"Relu", 4, "relu">]>;
def Titan_RecurrentCellAttr : Titan_EnumAttr<Titan_RecurrentCell, "cell">;

def Titan_ScheduleKind : Titan_Enum<"ScheduleKind", "shape of the learning rate after warm-up", [
  I32EnumAttrCase<"Constant", 0, "constant">, I32EnumAttrCase<"Cosine", 1, "cosine">,
  I32EnumAttrCase<"Linear", 2, "linear">, I32EnumAttrCase<"Wsd", 3, "wsd">]>;
def Titan_ScheduleKindAttr : Titan_EnumAttr<Titan_ScheduleKind, "schedule">;

//===----------------------------------------------------------------------===//
// Attributes: how a state starts and where it lies; where a random op stands in the global tensor
//===----------------------------------------------------------------------===//

class Titan_Attr<string name, string attrMnemonic> : AttrDef<Titan_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Titan_StoredRangeAttr : Titan_Attr<"StoredRange", "stored"> {
  let summary = "the bytes of one initializer in a file";
  let description = [{
    `bytes` bytes at `offset` of the file `path` (relative to the model's directory, or to --weights-dir), little-endian, row-major, with XXH3-64
    `digest`: a tensor of `shape`; empty: of the state's. An empty path never occurs.
  }];
  let parameters = (ins StringRefParameter<>:$path, "uint64_t":$offset, "uint64_t":$bytes, "uint64_t":$digest,
                        OptionalArrayRefParameter<"int64_t">:$shape);
  let assemblyFormat = [{
    `<` $path `,` `offset` `=` $offset `,` `bytes` `=` $bytes `,` `digest` `=` $digest (`,` `shape` `=` `[` $shape^ `]`)? `>`
  }];
}

def Titan_FileInitAttr : Titan_Attr<"FileInit", "init_file"> {
  let summary = "bytes of files; IR never holds weights";
  let description = [{
    A range for each initializer that the state's `sources` name, in the order in which they name them first; without sources one, which is
    stored as the state is.

    ```mlir
    #titan.init_file<"mlp.onnx.data", offset = 0, bytes = 401408, digest = 17>
    #titan.init_file<["m.onnx", offset = 0, bytes = 64, digest = 1, shape = [4, 4]], ["m.onnx", offset = 64, bytes = 128, digest = 2, shape = [4, 8]]>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::titan::ir::StoredRangeAttr">:$stored);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Titan_SourceAttr : Titan_Attr<"Source", "source"> {
  let summary = "a box of a state that is a box of an initializer of the model file";
  let description = [{
    Mirrors `TensorSource` of runtime/program/Piece.h, which has the algebra. Element x of the box is element at + x of the state and element y of
    the initializer: y[dims[i]] = from[dims[i]] + x[i], and y[j] = from[j] in the other dimensions. What is left out is `at` and `from` of zeros,
    the state's shape as `extent`, and as many `dims` as the state has, in order.

    ```mlir
    #titan.source<"onnx::MatMul_7", dims = [1, 0]>
    #titan.source<"W", at = [4, 0], from = [0, 8, 0], extent = [4, 3], dims = [1, 2]>
    ```
  }];
  let parameters = (ins StringRefParameter<>:$initializer, ArrayRefParameter<"int64_t">:$at, ArrayRefParameter<"int64_t">:$from,
                        ArrayRefParameter<"int64_t">:$extent, ArrayRefParameter<"int64_t">:$dims);
  let hasCustomAssemblyFormat = 1;
}

def Titan_RuleInitAttr : Titan_Attr<"RuleInit", "init_rule"> {
  let summary = "a distribution: constant(a), normal(mean a, standard deviation b) or uniform[a, b)";
  let parameters = (ins StringRefParameter<"constant, normal or uniform">:$distribution,
                        "::mlir::FloatAttr":$a, "::mlir::FloatAttr":$b);
  let assemblyFormat = "`<` $distribution `,` $a `,` $b `>`";
  let builders = [AttrBuilder<(ins "::llvm::StringRef":$distribution, "double":$a, "double":$b)>];
  let genVerifyDecl = 1;
}

def Titan_WindowAttr : Titan_Attr<"Window", "window"> {
  let summary = "where the tensor of a microbatch, or of a rank, stands in the tensor of the whole batch";
  let description = [{
    The local tensor is a box of a global tensor of shape `global`. Random decisions are keyed by the row-major element index in the global tensor:
    the op's operand `base`, the index of the local tensor's first element, plus the sum of local index times global stride over the dimensions. So any
    dimensions may be offset. Without a base it is 0. `multiple` divides every value of base: where it is a multiple of eight, one Philox block serves
    eight elements.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$global, "int64_t":$multiple);
  let assemblyFormat = "`<` `[` $global `]` `,` `multiple` `=` $multiple `>`";
}

def Titan_PlacementAttr : Titan_Attr<"Placement", "placement"> {
  let summary = "which part of a tensor each rank of the mesh holds";
  let description = [{
    Cuts of the tensor, the outermost first: dimension `dims[i]` is divided among the ranks of mesh axis `axes[i]`, in parts of ceil(extent / ranks). An
    axis that is not named holds copies. Two axes may cut one dimension: the second divides the parts of the first. What a rank holds is said by
    `boxesOf` of runtime/program/Placement.h.

    ```mlir
    #titan.placement<["shard" = shard(0), "tensor" = shard(1)]>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::StringAttr">:$axes, ArrayRefParameter<"int64_t">:$dims);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // TITAN_DIALECT_TD
