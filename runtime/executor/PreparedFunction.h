// A function's commands with everything resolved that does not change from run to run: addresses,
// entry points, the number of threads. What is left at run time is operands that depend on repeat
// counters.
#pragma once

#include "runtime/device/cpu/OneDnn.h"
#include "runtime/program/Program.h"

#include <array>
#include <memory>
#include <span>
#include <vector>

namespace titan {

constexpr size_t maxRepeatDepth = std::tuple_size_v<decltype(Affine::stride)>;
/// Values of the enclosing repeats' counters, outermost first.
using RepeatCounters = std::array<int64_t, maxRepeatDepth>;

inline int64_t valueOf(const Affine& affine, const RepeatCounters& counters) {
  int64_t value = affine.base;
  for (size_t depth = 0; depth < maxRepeatDepth; ++depth)
    value += affine.stride[depth] * counters[depth];
  return value;
}

/// An operand or scalar that has to be computed again in each iteration.
struct Varying {
  Affine value;
  int64_t* slot;  ///< where the kernel reads it: an address or a scalar
  int64_t origin; ///< the arena's address for an operand, 0 for a scalar
};

struct PreparedCommand {
  CommandKind kind = CommandKind::Kernel;
  int threads = 1; ///< of the region; Copy and Zero decide by their bytes
  int64_t units = 0;
  KernelFunction kernel = nullptr; ///< Kernel, and Gemm without a library
  const Gemm* gemm = nullptr;      ///< Gemm by the library
  const OneDnn* oneDnn = nullptr;
  char* const* operands = nullptr;
  const int64_t* scalars = nullptr;
  std::span<const Varying> varying;
  uint32_t partner = 0; ///< Repeat: its EndRepeat; EndRepeat: its Repeat
  uint32_t depth = 0;   ///< of Repeat and EndRepeat, 0 is the outermost
};

class PreparedFunction {
public:
  /// `program` has been verified and outlives this object, as do `kernels` and `oneDnn`.
  PreparedFunction(const Program& program, const Function& function,
                   std::span<const KernelFunction> kernels, const OneDnn* oneDnn,
                   const ThreadPool& pool, char* arena);

  const Function& source() const { return *source_; }
  std::span<const PreparedCommand> commands() const { return commands_; }

private:
  const Function* source_;
  std::vector<PreparedCommand> commands_;
  std::vector<int64_t> slots_; ///< operands' addresses and scalars of all commands
  std::vector<Varying> varying_;
};

} // namespace titan
