// `./job sample`: a language model continues a text.
#pragma once

#include "runtime/job/Session.h"

namespace titan {

/// Prints --prompt and --tokens more, each as soon as it is known: as bytes where the vocabulary
/// has 256 tokens, else (and with --ids) as numbers. One run of predict a token, over its fixed
/// window: there is no cache of keys and values.
Status sampleJob(Session& session);

} // namespace titan
