// Ops and a routine of a library that no pass of Titan knows: what they are is said by interfaces alone.
#ifndef FOREIGN_OPS_TD
#define FOREIGN_OPS_TD

include "dialects/Kernel/KernelDialect.td"
include "dialects/Titan/ops/Base.td"

def Foreign_Dialect : Dialect {
  let name = "foreign";
  let cppNamespace = "::titan::foreign";
  let summary = "ops of another library: a product, a random op, a pointwise op, a running sum with a routine of its own";
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = ["::titan::ir::TitanDialect"];
}

/// Path and phase as every op of titan has them.
class Foreign_Op<string mnemonic, list<Trait> traits = []> : Op<Foreign_Dialect, mnemonic, !listconcat(traits, [Pure,
    CostedOpInterface,
    DeclareOpInterfaceMethods<ShardableOpInterface>, DeclareOpInterfaceMethods<DifferentiableOpInterface>,
    DeclareOpInterfaceMethods<InterpretableOpInterface>, DeclareOpInterfaceMethods<LowerableOpInterface>])> {
  dag opArguments = (ins);
  let arguments = !con(opArguments, (ins OptionalAttr<StrArrayAttr>:$path, OptionalAttr<Titan_PhaseAttr>:$phase));
}

def Foreign_ProductOp : Foreign_Op<"product", [AccumulatingOpInterface, ComputesNarrowOpInterface]> {
  let summary = "a b, of two matrices that are stored transposed or not, in f32; plus an accumulator";
  let description = [{
    Constraints:
    - (C1) a and b are matrices of one element type; a's columns, as the product reads it, are b's rows; the result and `acc` are [m, n] in f32.
  }];
  let opArguments = (ins Titan_FloatTensor:$a, Titan_FloatTensor:$b, Optional<Titan_FloatTensor>:$acc,
                         UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs Titan_FloatTensor:$result);
  let assemblyFormat = [{
    $a (`transposed` $transpose_a^)? `,` $b (`transposed` $transpose_b^)? (`acc` $acc^)? attr-dict `:` functional-type(operands, $result)
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$a, "bool":$transposeA, "::mlir::Value":$b, "bool":$transposeB,
                                 "::mlir::ArrayAttr":$path, "::titan::ir::PhaseAttr":$phase)>];
  let extraClassDeclaration = Titan_worksFromMemory # [{
    /// Extents of the product.
    int64_t m() { return rowsAndColumns(getA(), getTransposeA()).first; }
    int64_t k() { return rowsAndColumns(getA(), getTransposeA()).second; }
    int64_t n() { return rowsAndColumns(getB(), getTransposeB()).second; }
    static std::pair<int64_t, int64_t> rowsAndColumns(::mlir::Value matrix, bool isTransposed);
    int64_t getFlops() { return 2 * m() * n() * k(); }
    int64_t getModelFlops() { return getFlops(); }
    ::llvm::SmallVector<unsigned> getNarrowOperands() { return {0, 1}; }
    ::titan::ir::ResultRounding getResultRounding(unsigned) { return ::titan::ir::ResultRounding::EndOfLayer; }
  }];
}

def Foreign_FlipOp : Foreign_Op<"flip", [AttrSizedOperandSegments, RandomOpInterface, AllTypesMatch<["operand", "result"]>]> {
  let summary = "negates each element with probability `p`";
  let description = [{
    Decisions are those of `titan.dropout`: what that drops, this negates. The op is linear and its own derivative.

    Constraints: (C1) to (C4) of `titan.dropout`.
  }];
  let opArguments = (ins Titan_FloatTensor:$operand, Optional<Titan_IntScalar>:$seed, Optional<Titan_IntScalar>:$step,
                         Optional<Index>:$base, F64Attr:$p, I64Attr:$stream, OptionalAttr<Titan_WindowAttr>:$window);
  let results = (outs Titan_FloatTensor:$result);
  let assemblyFormat = [{
    $operand `p` $p `stream` $stream (`seed` $seed^)? (`step` $step^)? (`base` $base^)? attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = Titan_workIsPointwise # [{
    ::llvm::SmallVector<int64_t> getDrawnShape();
    ::llvm::SmallVector<int64_t> getDrawnDims(unsigned operand);
    ::llvm::SmallVector<::mlir::Value> makeDeterministic() { return {getOperand()}; }
  }];
}

def Foreign_BendOp : Foreign_Op<"bend", [SameOperandsAndResultType]> {
  let summary = "x + x^2 / 2, elementwise";
  let opArguments = (ins Titan_FloatTensor:$operand);
  let results = (outs Titan_FloatTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
  let extraClassDeclaration = Titan_workIsPointwise;
}

def Foreign_RunningSumAttr : AttrDef<Foreign_Dialect, "RunningSum", [DeclareAttrInterfaceMethods<Kernel_RoutineAttrInterface>]> {
  let mnemonic = "running_sum";
  let summary = "out[r, c] = in[r, 0] + ... + in[r, c], in f32; from the other end with `reverse`; a unit is a row";
  let parameters = (ins "int64_t":$rows, "int64_t":$columns, "bool":$reverse);
  let assemblyFormat = "`<` struct(params) `>`";
}

def Foreign_RunningSumOp : Foreign_Op<"running_sum", [SameOperandsAndResultType]> {
  let summary = "sums of the elements up to each one, along the last dimension; of those from each one on with `reverse`";
  let opArguments = (ins Titan_FloatTensor:$operand, UnitAttr:$reverse);
  let results = (outs Titan_FloatTensor:$result);
  let assemblyFormat = "$operand (`reverse` $reverse^)? attr-dict `:` type($result)";
  let extraClassDeclaration = Titan_worksFromMemory;
}

#endif // FOREIGN_OPS_TD
