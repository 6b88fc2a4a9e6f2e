// `./job plan`: what a run will need and do, from the program alone.
#pragma once

#include "runtime/executor/Figures.h"
#include "runtime/job/Session.h"

#include <nlohmann/json.hpp>

namespace titan {

/// { commands, kernels, gemms, copies, zeros, flops, bytes } of one execution.
nlohmann::ordered_json figuresJson(const Figures& figures);

/// Prints figures and memory; --json: { model, target, memory: { arena, state: {...}, bindings:
/// {...}, constants, temporaries, max_live: { step, ... }, high_water, outside: {...} }, functions:
/// { step: figures and model_flops, ... }, kernels, gemms: [...], communication: [] }. All sizes
/// are bytes.
Status planJob(Session& session);

} // namespace titan
