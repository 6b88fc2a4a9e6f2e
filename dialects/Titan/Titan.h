// The titan dialect: include this to use its ops.
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Titan/TitanDialect.h.inc"
#include "dialects/Titan/TitanEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Titan/TitanAttrs.h.inc"

#include "dialects/Titan/ConvolutionShape.h"
#include "dialects/Titan/Interfaces.h"
#include "dialects/Titan/RecurrenceShape.h"
#include "dialects/Titan/Windows.h"

#define GET_OP_CLASSES
#include "dialects/Titan/TitanOps.h.inc"

namespace titan::ir {

/// Names of the argument and result tags of titan functions, and of module attributes.
namespace tag {
inline constexpr llvm::StringLiteral state = "titan.state";
inline constexpr llvm::StringLiteral input = "titan.input";
inline constexpr llvm::StringLiteral control = "titan.control";
inline constexpr llvm::StringLiteral gradient = "titan.gradient";
inline constexpr llvm::StringLiteral metric = "titan.metric";
inline constexpr llvm::StringLiteral output = "titan.output";
inline constexpr llvm::StringLiteral recipe =
    "titan.recipe"; ///< module: the recipe as a dictionary
inline constexpr llvm::StringLiteral target =
    "titan.target"; ///< module: #titan.target-like dictionary: kind, cpu, features
inline constexpr llvm::StringLiteral stage =
    "titan.stage"; ///< module: the last stage it went through
inline constexpr llvm::StringLiteral model = "titan.model"; ///< module: base name of the model file
inline constexpr llvm::StringLiteral modelFlops =
    "titan.model_flops"; ///< function: FLOP that the model asks for, i64 (titan-shard-count-flops)
} // namespace tag

/// Names of the functions of a titan module.
namespace function {
inline constexpr llvm::StringLiteral model = "model"; ///< after import
inline constexpr llvm::StringLiteral step = "step";   ///< from differentiate on
inline constexpr llvm::StringLiteral eval = "eval";
inline constexpr llvm::StringLiteral predict = "predict";
} // namespace function

/// Symbols of the counters (i64 scalars); their canonical names are those without the prefix.
namespace counter {
inline constexpr llvm::StringLiteral step = "counter.step"; ///< steps taken, skipped ones included
inline constexpr llvm::StringLiteral updates = "counter.optimizer.t"; ///< updates applied
inline constexpr llvm::StringLiteral samples = "counter.samples";     ///< samples consumed
inline constexpr llvm::StringLiteral skipped =
    "counter.skipped"; ///< steps whose update was skipped
} // namespace counter

/// The counter's symbol in `module`, declared if it is not there yet; starts at 0.
StateOp getOrDeclareCounter(mlir::ModuleOp module, llvm::StringRef symbol);

/// The module paths of `op`, or an empty list.
mlir::ArrayAttr getPath(mlir::Operation* op);
void setPath(mlir::Operation* op, mlir::ArrayAttr path);
/// "fc1" or "fc1, fc2"; for remarks and messages.
std::string pathString(mlir::Operation* op);
/// The same, or the phase ("update") where an op belongs to no module.
std::string describePlace(mlir::Operation* op);
/// The union of two lists, in order, without repeats.
mlir::ArrayAttr joinPaths(mlir::ArrayAttr a, mlir::ArrayAttr b);
Phase getPhase(mlir::Operation* op);
void setPhase(mlir::Operation* op, Phase phase);

/// `op` if it draws random decisions as it stands, else null.
RandomOpInterface asRandom(mlir::Operation* op);
/// The ops under `root` that draw, in program order.
llvm::SmallVector<RandomOpInterface> randomOps(mlir::Operation* root);
/// Puts the form of `random` that draws nothing in its place: returns the values of its results.
llvm::SmallVector<mlir::Value> replaceByDeterministic(RandomOpInterface random);
/// Puts what `op` is in evaluation in its place: nothing is drawn, and norms of the batch have
/// fixed statistics. Returns the values of its results; its own where it is the same.
llvm::SmallVector<mlir::Value> replaceByEvaluation(mlir::Operation* op);

} // namespace titan::ir
