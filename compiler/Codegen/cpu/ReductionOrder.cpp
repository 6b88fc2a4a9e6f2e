#include "compiler/Codegen/cpu/ReductionOrder.h"

#include <algorithm>
#include <bit>

namespace titan::codegen {

int64_t vectorLength(int64_t count, int64_t low, int64_t high) {
  auto covering = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(count)));
  return std::clamp(covering, low, high);
}

} // namespace titan::codegen
