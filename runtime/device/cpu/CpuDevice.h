// The CPU as a device: walks the command table on the threads of a pool over an arena in host
// memory. Every call is done when it returns.
//
// run() allocates nothing, takes no lock and starts no thread.
#pragma once

#include "runtime/device/HostDevice.h"
#include "runtime/device/RankPlace.h"
#include "runtime/device/cpu/Arena.h"
#include "runtime/device/cpu/Exchange.h"
#include "runtime/device/cpu/OneDnn.h"
#include "runtime/device/cpu/PreparedFunction.h"

#include <optional>
#include <vector>

namespace titan {

class CpuDevice final : public HostDevice {
public:
  /// `program`, `kernels` and `pool` outlive the device; `kernels` has one function per
  /// Program::kernels. Without `oneDnn`, or where it cannot, products are the generated kernels'.
  /// Checks the program (verify()). Environment when there is no memory for the arena. With a
  /// communicator in `place` all ranks make their devices; a device without one runs a program
  /// without collectives.
  static Result<std::unique_ptr<CpuDevice>>
  create(const Program& program, std::span<const KernelFunction> kernels, ThreadPool& pool,
         std::optional<OneDnn> oneDnn = {}, const RankPlace& place = {});

  Status run(uint32_t function, CommandObserver* observer) override;
  Status upload(int64_t offset, std::span<const char> from) override;
  Status download(int64_t offset, std::span<char> into) override;
  Status fill(int64_t offset, int64_t bytes, char value) override;

private:
  template <bool watched> struct Walker;

  CpuDevice(const Program& program, ThreadPool& pool, Arena arena, std::optional<OneDnn> oneDnn);
  template <bool watched> Status walk(const PreparedFunction& function, CommandObserver* observer);
  Error commandFailed(const PreparedFunction& function, uint32_t command);

  const Program* program_;
  ThreadPool* pool_;
  Arena memory_;
  std::unique_ptr<LoadedLibrary> library_; ///< null: there is none
  Exchange exchange_;
  std::vector<PreparedFunction> functions_; ///< as Program::functions
};

} // namespace titan
