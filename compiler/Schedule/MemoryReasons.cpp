#include "compiler/Schedule/MemoryReasons.h"

#include "compiler/Schedule/MemoryModel.h"
#include "compiler/Schedule/OpCosts.h"
#include "compiler/Support/TargetInfo.h"
#include "runtime/program/Text.h"

#include <map>

using namespace mlir;

namespace titan::schedule {

namespace {

/// Reasons that are listed at most.
constexpr size_t mostReasons = 5;

struct Reason {
  int64_t bytes = 0;
  std::string text;
};

/// Of those that memory.limit is about.
std::map<std::string, int64_t> stateParts(ModuleOp module) {
  std::map<std::string, int64_t> parts;
  const FailureOr<bool> averagesOnHost = keepsAveragesOnHost(module);
  for (auto state : module.getOps<ir::StateOp>())
    if (failed(averagesOnHost) || !*averagesOnHost || state.getKind() != ir::StateKind::Ema)
      parts[ir::stringifyStateKind(state.getKind()).str() + "s"] += bytesOf(state.getType());
  return parts;
}

int64_t bindingBytes(ModuleOp module) {
  int64_t bytes = 0;
  for (auto function : module.getOps<func::FuncOp>()) {
    for (BlockArgument argument : function.getArguments())
      if (!function.getArgAttr(argument.getArgNumber(), ir::tag::state))
        bytes += bytesOf(argument.getType());
    // Outputs share the temporaries' region.
    for (unsigned i = 0; i < function.getNumResults(); ++i)
      if (!function.getResultAttr(i, ir::tag::state) && !function.getResultAttr(i, ir::tag::output))
        bytes += bytesOf(function.getResultTypes()[i]);
  }
  return bytes;
}

int64_t constantBytes(ModuleOp module) {
  llvm::DenseSet<Attribute> seen;
  int64_t bytes = 0;
  module.walk([&](ir::ConstantOp constant) {
    if (!isa<SplatElementsAttr>(constant.getValue()) && seen.insert(constant.getValueAttr()).second)
      bytes += bytesOf(constant.getType());
  });
  return bytes;
}

} // namespace

int64_t permanentBytes(ModuleOp module) {
  int64_t bytes = bindingBytes(module) + constantBytes(module);
  for (auto& [name, part] : stateParts(module))
    bytes += part;
  return bytes;
}

void refuseLimit(ModuleOp module, func::FuncOp step, const MachineModel& machine, int64_t limit,
                 int64_t needed, int64_t recomputed, bool mayRecompute) {
  MemoryModel model(step, machine);
  Timeline timeline = model.run();
  const int peak = timeline.peakStep();

  std::vector<Reason> reasons;
  int64_t irreducible = 0; // by a smaller microbatch
  for (auto& [name, bytes] : stateParts(module)) {
    reasons.push_back({bytes, name});
    irreducible += bytes;
  }
  if (int64_t bytes = bindingBytes(module) + constantBytes(module))
    reasons.push_back({bytes, "inputs and constants"});
  int64_t gradients = 0;
  std::map<std::string, int64_t> kept, passing;
  for (int id : model.liveAt(timeline, peak)) {
    const Storage& storage = model.storages()[id];
    Operation* maker = storage.value.getDefiningOp();
    if (storage.isGradient)
      gradients += storage.bytes;
    else
      (storage.isRecomputable ? kept : passing)[ir::describePlace(maker)] += storage.bytes;
  }
  if (gradients)
    reasons.push_back({gradients, "gradients until the update"});
  irreducible += gradients;
  // One line for what many modules keep, with the one that keeps most.
  auto addGroup = [&](const std::map<std::string, int64_t>& group, StringRef what) {
    int64_t sum = 0, most = 0;
    std::string where;
    for (auto& [place, bytes] : group) {
      sum += bytes;
      if (bytes > most) {
        most = bytes;
        where = place;
      }
    }
    if (group.size() == 1)
      reasons.push_back({sum, what.str() + " in '" + where + "'"});
    else if (sum)
      reasons.push_back({sum, (what + " in " + Twine(group.size()) + " modules (most in '" + where +
                               "', " + readableBytes(most) + ")")
                                  .str()});
  };
  addGroup(kept, "kept for the backward pass");
  addGroup(passing, "in use");
  llvm::sort(reasons, [](const Reason& a, const Reason& b) {
    return std::tie(b.bytes, a.text) < std::tie(a.bytes, b.text);
  });

  std::string text;
  int64_t rest = 0;
  for (auto [i, reason] : llvm::enumerate(reasons)) {
    if (i < mostReasons)
      text += (text.empty() ? "" : ", ") + reason.text + " " + readableBytes(reason.bytes);
    else
      rest += reason.bytes;
  }
  if (rest)
    text += ", the rest " + readableBytes(rest);
  InFlightDiagnostic error = module.emitError("memory.limit is ")
                             << readableBytes(limit) << ", the smallest plan found needs "
                             << readableBytes(needed) << " (" << needed << " bytes)";
  if (recomputed)
    error << " with " << recomputed << " values recomputed";
  error << "; at its peak: " << text << "; ";
  if (!mayRecompute)
    error << "memory.remat is \"none\": use \"auto\"";
  else if (irreducible > limit)
    error << "states and gradients alone need " << readableBytes(irreducible)
          << ": no batch is small enough, use a higher limit";
  else
    error << "use a smaller batch.micro with the same batch.global, or a higher limit";
}

} // namespace titan::schedule
