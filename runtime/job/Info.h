// `./job info`: what the job is: parameters, recipe, target, libraries, fingerprint.
#pragma once

#include "runtime/job/Session.h"

namespace titan {

Status infoJob(Session& session);

} // namespace titan
