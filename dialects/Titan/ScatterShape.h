// A scatter or a gather as rows of blocks that indices place.
#pragma once

#include "dialects/Titan/Titan.h"

namespace titan::ir {

/// The operand is [outer, entries, inner, width], updates (of a gather: the result) are [outer,
/// rows, inner, width]; index [o, j, i] of [outer, rows, inner] is the entry that row j of o and i
/// meets.
struct ScatterShape {
  int64_t outer = 1, entries, inner = 1, rows, width = 1;
};
ScatterShape shapeOf(ScatterOp op);
ScatterShape shapeOf(GatherOp op);

} // namespace titan::ir
