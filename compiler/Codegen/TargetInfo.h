// The machine that code is generated for: the module attribute `titan.target`.
#pragma once

#include "runtime/program/Error.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <string_view>
#include <vector>

namespace titan {

/// `native` is resolved when a compilation starts, so that a printed stage replays to the same
/// bytes on any machine.
struct TargetInfo {
  std::string kind = "cpu";
  std::string cpu = "x86-64-v3"; ///< LLVM's name
  std::string features;          ///< where it differs from that CPU: "+avx512bf16,-rdpru"

  bool operator==(const TargetInfo&) const = default;
};

/// `arch` is `native` or one of LLVM's CPU names (x86-64-v3, x86-64-v4, znver5, ...). Usage for an
/// unknown one.
Result<TargetInfo> resolveTarget(std::string_view kind, std::string_view arch);

/// {kind = "cpu", cpu = "znver5", features = ""}. A module without the attribute is for this
/// machine. Emits an error on the module when the dictionary is malformed.
mlir::FailureOr<TargetInfo> getTarget(mlir::ModuleOp module);
void setTarget(mlir::ModuleOp module, const TargetInfo& target);

/// The instruction sets that generated code may use, sorted, by LLVM's names ("avx512f"): what a
/// job's start-up check requires.
std::vector<std::string> requiredFeatures(const TargetInfo& target);
bool hasFeature(const TargetInfo& target, std::string_view feature);

} // namespace titan
