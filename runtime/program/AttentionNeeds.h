// How much memory a card's library wants for attention. The compiler plans a workspace by it, and
// the job cuts a call's batch so that each part needs no more.
#pragma once

#include "runtime/program/Program.h"

namespace titan {

/// What cuDNN needs at most for `batch` of the call's batches at once, bytes.
int64_t attentionWorkspace(const Attention& attention, int64_t batch);
/// As many batches as need at most `bytes`: a divisor of the call's, at least 1.
int64_t batchesAtOnce(const Attention& attention, int64_t bytes);

/// The workspace that is planned for the call; 0: it would be so much that the call is generated.
int64_t plannedAttentionWorkspace(const Attention& attention);

} // namespace titan
