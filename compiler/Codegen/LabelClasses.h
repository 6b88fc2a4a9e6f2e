// Which inputs are class labels or indices of table rows.
#pragma once

#include "runtime/program/Program.h"

#include "mlir/IR/Value.h"

#include <vector>

namespace titan::codegen {

/// The number of classes when `input`, of integers, is compared with the coordinate along a
/// dimension of a kernel, where values outside of [0, classes) would match nothing, or names rows
/// of an embedding's table. The largest of several; 0: no such use.
int64_t labelClasses(mlir::Value input);

/// The same of each element of a sample of `input`, the smallest of several, where these are
/// smaller for some than `largest`, which labelClasses gives: columns of indices into tables of
/// different sizes. The first `leading` dimensions are microbatches and samples. Empty: they are
/// not.
std::vector<ClassRun> classRuns(mlir::Value input, int64_t largest, size_t leading);

} // namespace titan::codegen
