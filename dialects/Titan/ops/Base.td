// Types and base classes of all titan tensor ops.
#ifndef TITAN_OPS_BASE_TD
#define TITAN_OPS_BASE_TD

include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "dialects/Titan/TitanDialect.td"
include "dialects/Titan/TitanInterfaces.td"

def Titan_Float : AnyTypeOf<[F64, F32, F16, BF16]>;
def Titan_Integer : AnyTypeOf<[I64, I32, I16, I8, UI32, UI16, UI8]>;
def Titan_Element : AnyTypeOf<[F64, F32, F16, BF16, I64, I32, I16, I8, UI32, UI16, UI8, I1]>;

/// What ops say of their work (CostedOpInterface).
defvar Titan_workIsView = "::titan::ir::Work getWork() { return ::titan::ir::Work::View; }";
defvar Titan_workIsPointwise = "::titan::ir::Work getWork() { return ::titan::ir::Work::Pointwise; }";
defvar Titan_workIsCopied = "::titan::ir::Work getWork() { return ::titan::ir::Work::Copied; }";
defvar Titan_overwritesNothing = "bool mayOverwrite(unsigned) { return false; }";
/// Reads all of its operands from memory, and overwrites none of them.
defvar Titan_worksFromMemory = "bool readsFromMemory(unsigned) { return true; } bool mayOverwrite(unsigned) { return false; }";

def Titan_Tensor : StaticShapeTensorOf<[Titan_Element]>;
def Titan_FloatTensor : StaticShapeTensorOf<[Titan_Float]>;
def Titan_IntTensor : StaticShapeTensorOf<[Titan_Integer]>;
def Titan_BoolTensor : StaticShapeTensorOf<[I1]>;
def Titan_NumberTensor : StaticShapeTensorOf<[Titan_Float, Titan_Integer]>;
def Titan_FloatScalar : 0DTensorOf<[Titan_Float]>;
def Titan_F32Scalar : 0DTensorOf<[F32]>,
    BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getF32Type())">;
def Titan_IntScalar : 0DTensorOf<[I64]>,
    BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getI64Type())">;
def Titan_BoolScalar : 0DTensorOf<[I1]>,
    BuildableType<"::mlir::RankedTensorType::get({}, $_builder.getI1Type())">;

/// Differentiable, Interpretable and Lowerable are attached from the layers that own them; all other interfaces are implemented here and in the family's
/// .cpp: `Costed` by every op (its defaults are overridden in `extraClassDeclaration`), `Shardable` by every tensor op.
class Titan_Op<string mnemonic, list<Trait> traits = []>
    : Op<Titan_Dialect, mnemonic, !listconcat(traits, [CostedOpInterface])> {
  /// Arguments of the op itself; every tensor op adds its module paths and phase.
  dag opArguments = (ins);
  let arguments = !con(opArguments, (ins OptionalAttr<StrArrayAttr>:$path,
                                         OptionalAttr<Titan_PhaseAttr>:$phase));
}

class Titan_TensorOp<string mnemonic, list<Trait> traits = []>
    : Titan_Op<mnemonic, !listconcat(traits, [Pure,
        DeclareOpInterfaceMethods<ShardableOpInterface>])>;

#endif // TITAN_OPS_BASE_TD
