// `./job plan`: what a run will need and do, from the program alone.
#pragma once

#include "runtime/job/Session.h"

namespace titan {

/// Figures and memory as JSON: { model, target, memory: { arena, state: {...}, bindings: {...},
/// constants, temporaries, max_live: { step, ... }, high_water, outside: {...} }, functions: {
/// step: { commands, kernels, gemms, copies, zeros, flops, bytes }, ... }, kernels, gemms: [...],
/// communication: [] }. All sizes are bytes.
std::string planJson(const Program& program, int threads, bool library);

Status planJob(Session& session);

} // namespace titan
