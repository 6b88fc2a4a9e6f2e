// Product choices as a file: a run's record, and what `tune` writes for later runs.
//
//   { "library": "cublaslt", "version": "13.1.0", "device": "NVIDIA H100 80GB HBM3, sm_90",
//     "algorithms": { "1 x [64, 10, 784] NT F32 F32 F32, leading ...": "5a...", ... } }
#pragma once

#include "runtime/device/LibraryChoices.h"
#include "runtime/program/Error.h"

#include <optional>
#include <string>

namespace titan {

/// In the run directory. What is said of attention names plans by the library's names.
inline constexpr const char* productFileName = "products.json";
inline constexpr const char* attentionFileName = "attention.json";
/// Beside the job.
std::string tuningFileOf(const std::string& executable);

/// Replaces the file as a whole. Environment: it cannot be written.
Status writeProducts(const std::string& path, const LibraryChoices& choices);
/// Nothing where there is no such file. BadInput, naming it, where it says something else.
Result<std::optional<LibraryChoices>> readProducts(const std::string& path);

} // namespace titan
