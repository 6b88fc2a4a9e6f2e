#include "runtime/device/cpu/PreparedFunction.h"

#include <algorithm>

namespace titan {
namespace {

static_assert(sizeof(char*) == sizeof(int64_t), "operands and scalars share one array of slots");

} // namespace

PreparedFunction::PreparedFunction(const Program& program, const Function& function,
                                   std::span<const int64_t> coordinates,
                                   std::span<const KernelFunction> kernels, LoadedLibrary* library,
                                   const ThreadPool& pool, char* arena)
    : source_(&function) {
  // Sized first: commands point into these vectors.
  size_t slots = 0, varying = 0, terms = 0;
  auto count = [&](const Affine& value) {
    ++slots;
    varying += !value.isConstant();
    terms += value.terms.size();
  };
  for (const Command& command : function.commands) {
    for (const Operand& operand : command.operands)
      count(operand.address);
    std::ranges::for_each(command.scalars, count);
  }
  slots_.resize(slots);
  varying_.reserve(varying);
  terms_.reserve(terms);
  commands_.reserve(function.commands.size());

  int64_t* slot = slots_.data();
  const std::vector<RepeatLink> links = linkRepeats(function);
  for (const Command& command : function.commands) {
    PreparedCommand& prepared = commands_.emplace_back();
    prepared.link = links[commands_.size() - 1];
    prepared.kind = command.kind;
    prepared.units = command.launch.units;
    prepared.threads = pool.threadsFor(command.launch.units, command.launch.grain);

    const size_t firstVarying = varying_.size();
    auto place = [&](const Affine& value, int64_t origin) {
      const Affine local = onRank(value, coordinates);
      *slot = origin + local.base;
      if (!local.isConstant()) {
        const size_t firstTerm = terms_.size();
        terms_.insert(terms_.end(), local.terms.begin(), local.terms.end());
        varying_.push_back(
            {{terms_.data() + firstTerm, local.terms.size()}, slot, origin + local.base});
      }
      ++slot;
    };
    prepared.operands = reinterpret_cast<char* const*>(slot);
    for (const Operand& operand : command.operands)
      place(operand.address, reinterpret_cast<int64_t>(arena));
    prepared.scalars = slot;
    for (const Affine& scalar : command.scalars)
      place(scalar, 0);
    prepared.varying = {varying_.data() + firstVarying, varying_.size() - firstVarying};

    switch (command.kind) {
    case CommandKind::Kernel:
      prepared.kernel = kernels[command.target];
      break;
    case CommandKind::Library: {
      const LibraryCall& call = program.libraryCalls[command.target];
      if (library && !call.generated && library->oneDnn.supports(call.gemm)) {
        prepared.gemm = &call.gemm;
        prepared.library = library;
      } else {
        prepared.kernel = kernels[call.fallback];
      }
      break;
    }
    case CommandKind::Copy:
    case CommandKind::Zero:
      prepared.units = command.operands[0].bytes;
      prepared.threads = pool.threadsFor(prepared.units, bytesPerThread);
      break;
    case CommandKind::CollectiveStart:
    case CommandKind::CollectiveWait:
      prepared.collective = command.target;
      prepared.units = static_cast<int64_t>(command.operands.size() / 2);
      break;
    case CommandKind::Repeat:
    case CommandKind::EndRepeat:
      break;
    }
  }
}

} // namespace titan
