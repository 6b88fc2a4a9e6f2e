// How the terms of a sum are added: one routine for every communicator, so that each gives the same
// bits, whatever memory the terms lie in and however many threads share the work.
#pragma once

#include "runtime/program/Collective.h"

#include <span>

namespace titan {

/// sum[i] = the terms' i-th elements, added in `order`, for i < count. Terms and sum do not
/// overlap. Tree: 2^n terms. The dtype is one that canSum() takes.
void addTerms(DType dtype, SumOrder order, std::span<const char* const> terms, char* sum,
              int64_t count);

} // namespace titan
