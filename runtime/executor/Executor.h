// Runs the functions of a compiled program: walks the command table over one arena.
//
//   Executor executor = TITAN_TRY(Executor::create(program, kernels, {.pool = pool.get()}));
//   TITAN_TRY(executor.initialize({.payload = payload, .seed = 0}));
//   ... fill executor.bytes(*executor.findBinding("step", "x")) ...
//   TITAN_TRY(executor.run("step"));
//
// run() allocates nothing, takes no lock and starts no thread.
#pragma once

#include "runtime/device/cpu/Arena.h"
#include "runtime/device/cpu/OneDnn.h"
#include "runtime/executor/CommandObserver.h"
#include "runtime/executor/InitialState.h"
#include "runtime/executor/PreparedFunction.h"

#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace titan {

struct ExecutorOptions {
  ThreadPool* pool = nullptr;     ///< required; outlives the executor
  const OneDnn* oneDnn = nullptr; ///< null: every product by the generated kernels
};

class Executor {
public:
  /// `program` and `kernels` outlive the executor; `kernels` has one function per Program::kernels.
  /// Checks the program (verify()); Environment when there is no memory for the arena.
  static Result<Executor> create(const Program& program, std::span<const KernelFunction> kernels,
                                 const ExecutorOptions& options);

  /// Writes all constants and the initial value of every state.
  Status initialize(const InitialStateSources& sources);

  /// Runs a function from its first command to its last. Internal when the program has no such
  /// function.
  Status run(std::string_view function);

  /// From now on, `observer` sees every command; null: nobody does.
  void setObserver(CommandObserver* observer) { observer_ = observer; }

  const Program& program() const { return *program_; }
  ThreadPool& pool() const { return *pool_; }
  char* arena() const { return arena_.data(); }
  int64_t arenaCapacity() const { return arena_.capacity(); }

  /// Null when there is none of that name.
  const Binding* findBinding(std::string_view function, std::string_view name) const;
  std::span<char> bytes(const Binding& binding) const {
    return {arena() + binding.offset, static_cast<size_t>(binding.bytes)};
  }
  std::span<char> bytes(const State& state) const {
    return {arena() + state.offset, static_cast<size_t>(state.bytes)};
  }

private:
  Executor() = default;
  template <bool observed> void walk(PreparedFunction& function);

  const Program* program_ = nullptr;
  ThreadPool* pool_ = nullptr;
  Arena arena_;
  std::vector<PreparedFunction> functions_; ///< as Program::functions
  CommandObserver* observer_ = nullptr;
};

} // namespace titan
