// `./job profile`: where the time of a step goes, kernel by kernel.
#pragma once

#include "runtime/job/Session.h"

namespace titan {

Status profileJob(Session& session);

} // namespace titan
