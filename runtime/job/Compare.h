// The command `compare`: what a card computes beside the kernels' host code.
#pragma once

#include "runtime/job/Session.h"

namespace titan {

/// Usage where the job has no reference kernels. Internal, with command, element and both values,
/// where a kernel of the card is farther off than its bound.
Status compareJob(Session& session);

} // namespace titan
