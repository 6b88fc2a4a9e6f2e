// How much memory this process may still take.
#pragma once

#include <cstdint>
#include <string>

namespace titan {

/// Bytes that can be taken without swapping or being killed for it, by what the system says now:
/// MemAvailable, and what its control groups (version 2) leave. INT64_MAX where nothing is said.
/// The folders are for tests.
int64_t availableMemoryBytes(const std::string& proc = "/proc",
                             const std::string& controlGroups = "/sys/fs/cgroup");

} // namespace titan
