// `./job plan`: what a run will need and do, from the program alone.
#pragma once

#include "runtime/executor/Figures.h"
#include "runtime/job/Session.h"

#include <nlohmann/json.hpp>

namespace titan {

/// { commands, kernels, gemms, copies, zeros, flops, bytes } of one execution.
nlohmann::ordered_json figuresJson(const Figures& figures);

/// Prints figures and memory; --json: { model, target, memory: { arena, state: {...}, bindings:
/// {...}, constants, temporaries, staging, max_live: { step, ... }, high_water, outside: {...} },
/// functions: { step: figures and model_flops, ... }, kernels, gemms: [...], communication:
/// ledgerJson() and hostLedgerJson() of rank 0 }. All sizes are bytes, of one rank; `staging` is
/// there where ranks exchange.
Status planJob(Session& session);

} // namespace titan
