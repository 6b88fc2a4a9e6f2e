// The foreign dialect: ops and a routine of a library that no pass of Titan knows.
#pragma once

#include "dialects/Kernel/Kernel.h"
#include "dialects/Titan/Titan.h"

#include "test/foreign/ForeignDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "test/foreign/ForeignAttributes.h.inc"

#define GET_OP_CLASSES
#include "test/foreign/ForeignOps.h.inc"

namespace titan::foreign {

/// The dialect, with what the interpreter and target "cpu" need for its routine.
void registerForeign(mlir::DialectRegistry& registry);

/// Adds target "other": a CPU with numbers of its own, whose commands are launched in another way
/// and without a library.
void addOtherTarget();

} // namespace titan::foreign
