// `./job tune`: the fastest algorithm of each product.
#pragma once

#include "runtime/job/Session.h"

namespace titan {

/// Times the algorithms that the product library offers on this card and writes
/// `<job>.tuning.json`, which later runs take. Usage: the job or --gemm has no such products.
/// Environment: no card, or no library.
Status tuneJob(Session& session);

} // namespace titan
