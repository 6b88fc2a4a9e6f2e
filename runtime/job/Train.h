// `./job train`: the training loop, with everything around a step.
#pragma once

#include "runtime/job/Session.h"

namespace titan {

Status trainJob(Session& session);

} // namespace titan
