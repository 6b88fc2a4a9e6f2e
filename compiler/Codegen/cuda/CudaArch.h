// The cards that code is generated for, by the names that `--arch` takes.
#pragma once

#include "compiler/Support/MachineModel.h"
#include "runtime/program/Error.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace titan::codegen::cuda {

/// What a job carries where `--arch` says nothing: a cubin each. A card that neither serves
/// assembles the PTX that is always there.
inline constexpr const char* defaultArchs = "sm_80,sm_90";
/// The architecture of the PTX: later cards run it, too.
inline constexpr const char* ptxArch = "sm_80";

/// In rising order.
std::span<const std::string_view> knownArchs();

/// "sm_80,sm_90" as names, each once, in rising order. Usage for an unknown one.
Result<std::vector<std::string>> parseArchs(std::string_view text);

/// The architectures of this machine's cards. Environment: there is no driver or no card, or one
/// that is not known.
Result<std::vector<std::string>> nativeArchs();

/// The model that one compilation for several cards has: an H100's.
MachineModel cardModel();

} // namespace titan::codegen::cuda
