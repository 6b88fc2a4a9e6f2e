// Where #kernel.recurrence has its operands.
#pragma once

#include "dialects/Kernel/Kernel.h"

namespace titan::kernel {

/// Numbers of operands of the call, ins before outs; none: it has no such operand.
struct RecurrenceOperands {
  using Number = std::optional<unsigned>;
  Number projected, panels, h0, c0, bias, result, gates, cells, dresult, dcells, dsums, dh0, dc0;
  unsigned ins = 0, outs = 0;
};

/// With `gradient`, `projected` is its adjoint.
RecurrenceOperands operandsOf(RecurrenceAttr recurrence);

} // namespace titan::kernel
