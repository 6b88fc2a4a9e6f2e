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

/// `Shardable` is implemented by every tensor op in its family's .cpp; the other three interfaces are attached from the layers that own them.
class Titan_Op<string mnemonic, list<Trait> traits = []> : Op<Titan_Dialect, mnemonic, traits> {
  /// Arguments of the op itself; every tensor op adds its module paths and phase.
  dag opArguments = (ins);
  let arguments = !con(opArguments, (ins OptionalAttr<StrArrayAttr>:$path,
                                         OptionalAttr<Titan_PhaseAttr>:$phase));
}

class Titan_TensorOp<string mnemonic, list<Trait> traits = []>
    : Titan_Op<mnemonic, !listconcat(traits, [Pure,
        DeclareOpInterfaceMethods<ShardableOpInterface>])>;

#endif // TITAN_OPS_BASE_TD
