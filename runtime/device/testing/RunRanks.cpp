#include "runtime/device/testing/RunRanks.h"

#include "runtime/device/cpu/CpuDevice.h"
#include "runtime/device/testing/RanksProgram.h"

#include <mutex>

namespace titan::testing {

namespace {

Result<RankRun> runOn(const Program& program, std::span<const KernelFunction> kernels,
                      uint32_t function, const std::string& arena, int threads,
                      Communicator& communicator) {
  const std::unique_ptr<ThreadPool> pool = ThreadPool::create(threads).take();
  const std::unique_ptr<CpuDevice> device = TITAN_TRY(
      CpuDevice::create(program, kernels, *pool, {}, {&communicator, communicator.rank()}));
  RankRun run;
  run.arena.resize(static_cast<size_t>(program.arenaBytes));
  TITAN_TRY(device->upload(0, arena));
  TITAN_TRY(device->run(function, nullptr));
  TITAN_TRY(device->download(0, run.arena));
  TITAN_TRY(device->wait(device->record()));
  const std::span<const Traffic> traffic = communicator.traffic();
  run.traffic.assign(traffic.begin(), traffic.end());
  return run;
}

} // namespace

Result<std::vector<RankRun>> runOnCpus(const Program& program,
                                       std::span<const KernelFunction> kernels, uint32_t function,
                                       std::span<const std::string> arenas, int threads) {
  std::vector<RankRun> runs(arenas.size());
  std::mutex mutex;
  std::optional<Error> failed;
  onRanks(static_cast<int64_t>(arenas.size()), [&](Communicator& communicator) {
    const auto rank = static_cast<size_t>(communicator.rank());
    Result<RankRun> run = runOn(program, kernels, function, arenas[rank], threads, communicator);
    if (run.ok()) {
      runs[rank] = run.take();
      return;
    }
    communicator.fail(run.error());
    const std::lock_guard lock(mutex);
    if (!failed)
      failed = run.error();
  });
  if (failed)
    return *failed;
  return runs;
}

} // namespace titan::testing
