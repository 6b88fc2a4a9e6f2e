// A function's commands with everything resolved that does not change from run to run: addresses,
// entry points, the number of threads, this rank's coordinates. What is left at run time is
// operands that depend on repeat counters.
#pragma once

#include "runtime/device/CommandSlots.h"
#include "runtime/device/cpu/OneDnn.h"

#include <atomic>
#include <span>
#include <vector>

namespace titan {

/// Copying and clearing: below this many bytes a thread, a second thread does not pay.
constexpr int64_t bytesPerThread = int64_t{1} << 18;

/// The library of a device, and how it fared.
struct LoadedLibrary {
  OneDnn oneDnn;
  std::atomic<int> status{0}; ///< the last one that was no success
};

struct PreparedCommand {
  CommandKind kind = CommandKind::Kernel;
  int threads = 1;                 ///< of the region
  int64_t units = 0;               ///< Copy, Zero: bytes; Repeat: how many times;
                                   ///< CollectiveStart, CollectiveWait: pieces
  uint32_t collective = 0;         ///< CollectiveStart, CollectiveWait: in Program::collectives
  KernelFunction kernel = nullptr; ///< Kernel, and Library without one
  const Gemm* gemm = nullptr;      ///< Library: a product
  LoadedLibrary* library = nullptr;
  char* const* operands = nullptr;
  const int64_t* scalars = nullptr;
  std::span<const Varying> varying;
  RepeatLink link;
};

class PreparedFunction {
public:
  /// `program` has been verified and outlives this object, as do `kernels` and `library`; without
  /// one all products are generated. `coordinates` are the rank's, one an axis of the mesh.
  PreparedFunction(const Program& program, const Function& function,
                   std::span<const int64_t> coordinates, std::span<const KernelFunction> kernels,
                   LoadedLibrary* library, const ThreadPool& pool, char* arena);

  const Function& source() const { return *source_; }
  std::span<const PreparedCommand> commands() const { return commands_; }
  /// The first command of phase update; the number of commands where there is none.
  uint32_t firstUpdate() const { return firstUpdate_; }

private:
  const Function* source_;
  CommandSlots slots_;
  std::vector<PreparedCommand> commands_; ///< they point into slots_
  uint32_t firstUpdate_;
};

} // namespace titan
