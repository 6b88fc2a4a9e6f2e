// Rows that indices name, and the order of a sort: what titan ops and routines share.
#pragma once

#include "compiler/Interpreter/Frame.h"
#include "dialects/Titan/ScatterShape.h"

namespace titan::interpreter {

/// Applies the updates to `result`, row by row. Sums and products are rounded to `accumulation`
/// each; nothing else is.
void scatterRows(ir::ScatterKind kind, const ir::ScatterShape& shape, const Tensor& indices,
                 const Tensor& updates, Tensor& result, mlir::Type accumulation,
                 const Frame& frame);

/// The elements of `operand` that indices name, in `result`; see ScatterShape.
void gatherRows(const ir::ScatterShape& shape, const Tensor& operand, const Tensor& indices,
                Tensor& result);

/// The first `values.size() / rows` of each of `rows` rows in order, and where they stand.
void takeFirst(const Tensor& operand, int64_t rows, bool smallest, Tensor& values, Tensor& indices);

} // namespace titan::interpreter
