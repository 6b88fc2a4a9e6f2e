// `./job predict`: the model's outputs for all samples, as one .npz with the outputs' own names.
#pragma once

#include "runtime/job/Session.h"

namespace titan {

Status predictJob(Session& session);

} // namespace titan
