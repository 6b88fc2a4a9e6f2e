// Counts what a test's process allocates. Link Allocations.cpp into the test itself: it replaces
// operator new.
#pragma once

#include <cstdint>

namespace titan::testing {

/// By operator new so far, on all threads.
int64_t allocations();

} // namespace titan::testing
