#include "runtime/device/cpu/CpuDevice.h"

#include <cstring>

namespace titan {
namespace {

// The bodies of regions, and what a single thread calls directly.
void runKernel(void* context, int64_t begin, int64_t end) {
  const auto& command = *static_cast<const PreparedCommand*>(context);
  command.kernel(command.operands, command.scalars, begin, end);
}

void runGemm(void* context, int64_t begin, int64_t end) {
  const auto& command = *static_cast<const PreparedCommand*>(context);
  const int status = command.library->oneDnn.run(*command.gemm, command.operands, begin, end);
  if (status != 0)
    command.library->status.store(status, std::memory_order_relaxed);
}

void runCopy(void* context, int64_t begin, int64_t end) {
  char* const* operands = static_cast<const PreparedCommand*>(context)->operands;
  std::memcpy(operands[0] + begin, operands[1] + begin, static_cast<size_t>(end - begin));
}

void runZero(void* context, int64_t begin, int64_t end) {
  char* const* operands = static_cast<const PreparedCommand*>(context)->operands;
  std::memset(operands[0] + begin, 0, static_cast<size_t>(end - begin));
}

void copy(ThreadPool& pool, char* into, const char* from, size_t bytes) {
  if (bytes == 0)
    return;
  pool.parallelFor(static_cast<int64_t>(bytes), bytesPerThread, [&](int64_t begin, int64_t end) {
    std::memcpy(into + begin, from + begin, static_cast<size_t>(end - begin));
  });
}

} // namespace

CpuDevice::CpuDevice(const Program& program, ThreadPool& pool, Arena arena,
                     std::optional<OneDnn> oneDnn)
    : HostDevice(arena.data(), arena.capacity()), program_(&program), pool_(&pool),
      memory_(std::move(arena)),
      library_(oneDnn ? new LoadedLibrary{std::move(*oneDnn)} : nullptr) {}

Result<std::unique_ptr<CpuDevice>> CpuDevice::create(const Program& program,
                                                     std::span<const KernelFunction> kernels,
                                                     ThreadPool& pool, std::optional<OneDnn> oneDnn,
                                                     const RankPlace& place) {
  TITAN_TRY(verify(program));
  if (kernels.size() != program.kernels.size())
    return Error::internal("the job has {} kernel functions, its table names {}", kernels.size(),
                           program.kernels.size());
  Arena arena = TITAN_TRY(Arena::create(program.arenaBytes, pool));
  std::unique_ptr<CpuDevice> device(
      new CpuDevice(program, pool, std::move(arena), std::move(oneDnn)));
  LoadedLibrary* library = device->library_.get();
  if (library)
    library->oneDnn.attach(pool);
  device->exchange_ = TITAN_TRY(Exchange::create(program, place, device->arena()));
  const std::vector<int64_t> coordinates = place.coordinates(program);
  device->functions_.reserve(program.functions.size());
  for (const Function& function : program.functions)
    device->functions_.emplace_back(program, function, coordinates, kernels, library, pool,
                                    device->arena());
  return device;
}

/// A watched walk tells its observer of each command, if it has one, and passes the device's gate.
template <bool watched> struct CpuDevice::Walker {
  CpuDevice& device;
  const PreparedFunction& function;
  CommandObserver* observer;
  std::span<const PreparedCommand> commands = function.commands();
  ThreadPool& pool = *device.pool_;
  Exchange& exchange = device.exchange_;
  uint32_t last = 0;  ///< the command that ended the walk
  Status status = {}; ///< of a collective that ended it

  void enter(uint32_t index) {
    if constexpr (watched) {
      if (index == function.firstUpdate())
        device.passGate();
      if (observer)
        observer->before(function.source(), index);
    }
  }
  void leave(uint32_t index) {
    if constexpr (watched)
      if (observer)
        observer->after(function.source(), index);
  }
  void dispatch(const PreparedCommand& command, ThreadPool::Body body) {
    pool.region(command.threads, command.units, body, const_cast<PreparedCommand*>(&command));
  }

  // Inlined into the walk, counters and commands stay in registers: a command costs a third less.
  [[gnu::always_inline]] bool command(uint32_t index, const RepeatCounters& counters) {
    const PreparedCommand& command = commands[index];
    for (const Varying& varying : command.varying)
      varying.update(counters);
    enter(index);
    switch (command.kind) {
    case CommandKind::Kernel:
      dispatch(command, runKernel);
      break;
    case CommandKind::Library:
      if (!command.gemm) {
        dispatch(command, runKernel);
        break;
      }
      dispatch(command, runGemm);
      if (command.library->status.load(std::memory_order_relaxed) != 0) {
        last = index;
        return false;
      }
      break;
    case CommandKind::Copy:
      dispatch(command, runCopy);
      break;
    case CommandKind::Zero:
      dispatch(command, runZero);
      break;
    case CommandKind::CollectiveStart:
    case CommandKind::CollectiveWait:
      status = exchange.run(command);
      if (!status.ok())
        return false;
      break;
    case CommandKind::Repeat: // walkCommands() follows them
    case CommandKind::EndRepeat:
      break;
    }
    leave(index);
    return true;
  }
};

template <bool watched>
Status CpuDevice::walk(const PreparedFunction& function, CommandObserver* observer) {
  Walker<watched> walker{*this, function, observer};
  if (walkCommands(function.commands(), walker))
    return {};
  return walker.status.ok() ? commandFailed(function, walker.last) : walker.status;
}

Status CpuDevice::run(uint32_t index, CommandObserver* observer) {
  const PreparedFunction& function = functions_[index];
  if (!observer)
    return hasGate() ? walk<true>(function, nullptr) : walk<false>(function, nullptr);
  observer->beforeFunction(function.source());
  TITAN_TRY(walk<true>(function, observer));
  observer->afterFunction(function.source());
  return {};
}

Error CpuDevice::commandFailed(const PreparedFunction& function, uint32_t index) {
  const Command& command = function.source().commands[index];
  return Error::environment(
      "'{}' of {} failed in oneDNN with status {}: free memory or use --gemm=generated",
      program_->libraryCalls[command.target].label, function.source().name,
      library_->status.exchange(0));
}

Status CpuDevice::upload(int64_t offset, std::span<const char> from) {
  copy(*pool_, arena() + offset, from.data(), from.size());
  return {};
}

Status CpuDevice::download(int64_t offset, std::span<char> into) {
  copy(*pool_, into.data(), arena() + offset, into.size());
  return {};
}

Status CpuDevice::fill(int64_t offset, int64_t bytes, char value) {
  pool_->parallelFor(bytes, bytesPerThread, [&](int64_t begin, int64_t end) {
    std::memset(arena() + offset + begin, value, static_cast<size_t>(end - begin));
  });
  return {};
}

} // namespace titan
