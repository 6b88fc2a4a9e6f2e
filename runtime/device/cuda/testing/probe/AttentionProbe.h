// What cuDNN's attention is on a card: each way that it offers for some calls, how far its results
// are from those of the host, whether runs agree, what it needs and how long it takes.
#pragma once

#include "runtime/device/cuda/AttentionLibrary.h"

#include <nlohmann/json.hpp>

namespace titan::cuda {

/// The card's context is current. Environment: there is no cuDNN; the errors of the driver.
Result<nlohmann::ordered_json> probeAttention(const Driver& driver, const Card& card,
                                              CUstream stream, int repeats);

} // namespace titan::cuda
