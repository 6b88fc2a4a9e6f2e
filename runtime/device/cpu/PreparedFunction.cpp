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
    : source_(&function), slots_(function, coordinates, reinterpret_cast<int64_t>(arena)),
      firstUpdate_(firstUpdateOf(function)) {
  commands_.reserve(function.commands.size());
  const std::vector<RepeatLink> links = linkRepeats(function);
  for (const Command& command : function.commands) {
    const size_t index = commands_.size();
    const CommandSlots::Command& slots = slots_.commands()[index];
    PreparedCommand& prepared = commands_.emplace_back();
    prepared.link = links[index];
    prepared.kind = command.kind;
    prepared.units = command.launch.units;
    prepared.threads = pool.threadsFor(command.launch.units, command.launch.grain);
    prepared.operands = reinterpret_cast<char* const*>(slots.operands.data());
    prepared.scalars = slots.scalars.data();
    prepared.varying = slots.varying;

    switch (command.kind) {
    case CommandKind::Kernel:
      prepared.kernel = kernels[command.target];
      break;
    case CommandKind::Library: {
      const LibraryCall& call = program.libraryCalls[command.target];
      if (library && !call.generated && call.routine == LibraryRoutine::Gemm &&
          library->oneDnn.supports(call.gemm)) {
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
