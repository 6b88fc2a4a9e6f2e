// Ops of the titan dialect, one file a family.
#ifndef TITAN_OPS_TD
#define TITAN_OPS_TD

include "dialects/Titan/ops/Base.td"
include "dialects/Titan/ops/State.td"
include "dialects/Titan/ops/Elementwise.td"
include "dialects/Titan/ops/Shape.td"
include "dialects/Titan/ops/Contraction.td"
include "dialects/Titan/ops/Convolution.td"
include "dialects/Titan/ops/Pool.td"
include "dialects/Titan/ops/Reduction.td"
include "dialects/Titan/ops/ExactSum.td"
include "dialects/Titan/ops/Normalization.td"
include "dialects/Titan/ops/Indexing.td"
include "dialects/Titan/ops/Scatter.td"
include "dialects/Titan/ops/TopK.td"
include "dialects/Titan/ops/Attention.td"
include "dialects/Titan/ops/Recurrence.td"
include "dialects/Titan/ops/Random.td"
include "dialects/Titan/ops/Loss.td"
include "dialects/Titan/ops/Optimizer.td"

#endif // TITAN_OPS_TD
