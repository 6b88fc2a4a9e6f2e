// The dist dialect: include this to use its ops.
#pragma once

#include "dialects/Kernel/Kernel.h"
#include "dialects/Titan/Titan.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Dist/DistDialect.h.inc"
#include "dialects/Dist/DistEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Dist/DistAttrs.h.inc"

#define GET_TYPEDEF_CLASSES
#include "dialects/Dist/DistTypes.h.inc"

namespace titan::dist {
class WaitOp;
class StartOp;
} // namespace titan::dist

#define GET_OP_CLASSES
#include "dialects/Dist/DistOps.h.inc"

namespace titan::dist {

/// Of a module: the mesh whose ranks run it.
inline constexpr llvm::StringLiteral meshTag = "dist.mesh";

/// Of a function's argument, and of an op, one for each result: what of it each rank has, as long
/// as placements propagate.
inline constexpr llvm::StringLiteral placementTag = "dist.placement";
inline constexpr llvm::StringLiteral placementsTag = "dist.placements";

/// The control of @step that asks all ranks to stop, and the metric that is its sum over them.
inline constexpr llvm::StringLiteral stopName = "stop";

/// The mesh of the module around `op`; null where it has none: one rank runs it.
MeshAttr meshOf(mlir::Operation* op);

/// Is `op` a collective as one op, not halved yet?
bool isWholeCollective(mlir::Operation* op);

} // namespace titan::dist
