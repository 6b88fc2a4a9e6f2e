#include "runtime/executor/Executor.h"

#include <algorithm>
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
  command.oneDnn->run(*command.gemm, command.operands, begin, end);
}

void runCopy(void* context, int64_t begin, int64_t end) {
  char* const* operands = static_cast<const PreparedCommand*>(context)->operands;
  std::memcpy(operands[0] + begin, operands[1] + begin, static_cast<size_t>(end - begin));
}

void runZero(void* context, int64_t begin, int64_t end) {
  char* const* operands = static_cast<const PreparedCommand*>(context)->operands;
  std::memset(operands[0] + begin, 0, static_cast<size_t>(end - begin));
}

} // namespace

Result<Executor> Executor::create(const Program& program, std::span<const KernelFunction> kernels,
                                  const ExecutorOptions& options) {
  TITAN_TRY(verify(program));
  if (kernels.size() != program.kernels.size())
    return Error::internal("the job has {} kernel functions, its table names {}", kernels.size(),
                           program.kernels.size());
  Executor executor;
  executor.program_ = &program;
  executor.pool_ = options.pool;
  executor.arena_ = TITAN_TRY(Arena::create(program.arenaBytes, *options.pool));
  if (options.oneDnn)
    options.oneDnn->attach(*options.pool);
  executor.functions_.reserve(program.functions.size());
  for (const Function& function : program.functions)
    executor.functions_.emplace_back(program, function, kernels, options.oneDnn, *options.pool,
                                     executor.arena_.data());
  return executor;
}

Status Executor::initialize(const InitialStateSources& sources) {
  for (const Constant& constant : program_->constants) {
    if (constant.payloadOffset < 0 ||
        constant.payloadOffset + constant.bytes > static_cast<int64_t>(sources.payload.size()))
      return Error::internal("a constant of {} bytes at {} leaves the job's payload of {} bytes",
                             constant.bytes, constant.payloadOffset, sources.payload.size());
    std::memcpy(arena() + constant.offset, sources.payload.data() + constant.payloadOffset,
                static_cast<size_t>(constant.bytes));
  }
  for (const State& state : program_->states)
    TITAN_TRY(writeInitialState(state, sources, *pool_, arena() + state.offset));
  return {};
}

const Binding* Executor::findBinding(std::string_view functionName, std::string_view name) const {
  const Function* function = program_->findFunction(functionName);
  if (!function)
    return nullptr;
  auto it = std::ranges::find(function->bindings, name, &Binding::name);
  return it == function->bindings.end() ? nullptr : &*it;
}

Status Executor::run(std::string_view name) {
  for (PreparedFunction& function : functions_)
    if (function.source().name == name) {
      if (observer_)
        walk<true>(function);
      else
        walk<false>(function);
      return {};
    }
  return Error::internal("the program has no function '{}'", name);
}

template <bool observed> void Executor::walk(PreparedFunction& function) {
  const std::span<const PreparedCommand> commands = function.commands();
  const Function& source = function.source();
  ThreadPool& pool = *pool_;
  auto dispatch = [&pool](const PreparedCommand& command, ThreadPool::Body body) {
    pool.region(command.threads, command.units, body, const_cast<PreparedCommand*>(&command));
  };
  RepeatCounters counters{};
  if constexpr (observed)
    observer_->beforeFunction(source);
  for (uint32_t i = 0; i < commands.size(); ++i) {
    const PreparedCommand& command = commands[i];
    for (const Varying& varying : command.varying)
      *varying.slot = varying.origin + offsetOf(varying.terms, counters);
    if (observed && command.kind != CommandKind::EndRepeat)
      observer_->before(source, i);
    switch (command.kind) {
    case CommandKind::Kernel:
      dispatch(command, runKernel);
      break;
    case CommandKind::Library:
      dispatch(command, command.gemm ? runGemm : runKernel);
      break;
    case CommandKind::Copy:
      dispatch(command, runCopy);
      break;
    case CommandKind::Zero:
      dispatch(command, runZero);
      break;
    case CommandKind::CollectiveStart:
    case CommandKind::CollectiveWait:
      break; // verify() refuses them
    case CommandKind::Repeat:
      counters[command.depth] = 0;
      continue;
    case CommandKind::EndRepeat:
      if (++counters[command.depth] < commands[command.partner].units) {
        i = command.partner;
        continue;
      }
      counters[command.depth] = 0;
      break;
    }
    if constexpr (observed)
      observer_->after(source, i);
  }
  if constexpr (observed)
    observer_->afterFunction(source);
}

} // namespace titan
