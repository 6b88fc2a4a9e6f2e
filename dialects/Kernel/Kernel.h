// The kernel dialect: include this to use its ops.
#pragma once

#include "dialects/Titan/Titan.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SmallBitVector.h"

#include "dialects/Kernel/KernelDialect.h.inc"
#include "dialects/Kernel/KernelEnums.h.inc"

#include "dialects/Kernel/KernelAttrInterfaces.h.inc"
#include "dialects/Kernel/KernelInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Kernel/KernelAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialects/Kernel/KernelOps.h.inc"

namespace titan::kernel {

/// Function argument tag from *plan* on: the argument's byte offset in the arena.
inline constexpr llvm::StringLiteral offsetTag = "kernel.offset";

} // namespace titan::kernel
