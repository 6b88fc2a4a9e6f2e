// The machine that code is generated for: the module attribute `titan.target`.
#pragma once

#include "compiler/Support/MachineModel.h"

#include <optional>
#include <string>

namespace titan {

/// `native` is resolved when a compilation starts, so that a printed stage replays to the same
/// bytes on any machine. Which kinds and CPUs there are, code generation knows
/// (compiler/Codegen/Targets.h).
struct TargetInfo {
  std::string kind = "cpu";
  std::string cpu = "native";          ///< a name of the kind's own; LLVM's for kind cpu
  std::string features;                ///< where it differs from that CPU: "+avx512bf16,-rdpru"
  std::string archs;                   ///< of a card, in place of both: "sm_80,sm_90"
  std::optional<MachineModel> machine; ///< none: the defaults here, the CPU class's in its code

  bool operator==(const TargetInfo&) const = default;
};

/// {kind = "cpu", cpu = "znver5", features = "", machine = {...}}, or for a card
/// {kind = "cuda", archs = "sm_80,sm_90", machine = {...}}. A module without the attribute is for
/// this machine. Emits an error on the module when the dictionary is malformed.
mlir::FailureOr<TargetInfo> getTarget(mlir::ModuleOp module);
void setTarget(mlir::ModuleOp module, const TargetInfo& target);

/// Do averages lie in the host's memory, away from the card that the module is for
/// (runtime/program/HostStates.h)? Emits an error on the module when recipe or target is malformed.
mlir::FailureOr<bool> keepsAveragesOnHost(mlir::ModuleOp module);

/// The machine model of the module that `op` is or stands in; the default numbers where there is no
/// module.
mlir::FailureOr<MachineModel> getMachine(mlir::Operation* op);

} // namespace titan
