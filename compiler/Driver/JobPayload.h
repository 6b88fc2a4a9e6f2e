// The payload of a job: what its programs carry, each part once.
#pragma once

#include "compiler/Codegen/Codegen.h"

namespace titan {

struct JobPayload {
  std::vector<PayloadPart> parts; ///< by rising offset
  int64_t bytes = 0;
};

/// Puts the parts of all modules one behind the other, equal ones once, and moves what the programs
/// say of them to the new places. Their own lists are left empty.
JobPayload mergePayloads(std::vector<CompiledModule>& modules);

} // namespace titan
