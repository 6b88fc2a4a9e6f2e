// The accum dialect: include this to use its ops.
#pragma once

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Accum/AccumDialect.h.inc"
#include "dialects/Accum/AccumEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/Accum/AccumAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialects/Accum/AccumOps.h.inc"
