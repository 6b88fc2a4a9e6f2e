#include "runtime/executor/PreparedFunction.h"

namespace titan {
namespace {

static_assert(sizeof(char*) == sizeof(int64_t), "operands and scalars share one array of slots");

bool isConstant(const Affine& affine) { return affine.stride == decltype(affine.stride){}; }

} // namespace

PreparedFunction::PreparedFunction(const Program& program, const Function& function,
                                   std::span<const KernelFunction> kernels, const OneDnn* oneDnn,
                                   const ThreadPool& pool, char* arena)
    : source_(&function) {
  // Sized first: commands point into both vectors.
  size_t slots = 0, varying = 0;
  for (const Command& command : function.commands)
    for (const auto* list : {&command.operands, &command.scalars}) {
      slots += list->size();
      for (const Affine& affine : *list)
        varying += !isConstant(affine);
    }
  slots_.resize(slots);
  varying_.reserve(varying);
  commands_.reserve(function.commands.size());

  int64_t* slot = slots_.data();
  std::vector<uint32_t> open;
  for (const Command& command : function.commands) {
    const auto index = static_cast<uint32_t>(commands_.size());
    PreparedCommand& prepared = commands_.emplace_back();
    prepared.kind = command.kind;
    prepared.units = command.units;
    prepared.threads = pool.threadsFor(command.units, command.grain);

    const size_t firstVarying = varying_.size();
    auto place = [&](const std::vector<Affine>& list, int64_t origin) {
      for (const Affine& affine : list) {
        *slot = origin + affine.base;
        if (!isConstant(affine))
          varying_.push_back({affine, slot, origin});
        ++slot;
      }
    };
    prepared.operands = reinterpret_cast<char* const*>(slot);
    place(command.operands, reinterpret_cast<int64_t>(arena));
    prepared.scalars = slot;
    place(command.scalars, 0);
    prepared.varying = {varying_.data() + firstVarying, varying_.size() - firstVarying};

    switch (command.kind) {
    case CommandKind::Kernel:
      prepared.kernel = kernels[command.target];
      break;
    case CommandKind::Gemm: {
      const GemmCall& call = program.gemms[command.target];
      if (oneDnn && !call.generated && OneDnn::supports(call.gemm)) {
        prepared.gemm = &call.gemm;
        prepared.oneDnn = oneDnn;
      } else {
        prepared.kernel = kernels[call.fallback];
      }
      break;
    }
    case CommandKind::Copy:
    case CommandKind::Zero:
      break;
    case CommandKind::Repeat:
      prepared.depth = static_cast<uint32_t>(open.size());
      open.push_back(index);
      break;
    case CommandKind::EndRepeat:
      prepared.partner = open.back();
      commands_[open.back()].partner = index;
      open.pop_back();
      prepared.depth = static_cast<uint32_t>(open.size());
      break;
    }
  }
}

} // namespace titan
