// Ranks for tests: threads of this process, with shared memory or by messages of a stand-in MPI, or
// processes of their own without a launcher.
#pragma once

#include "runtime/collective/Communicator.h"
#include "runtime/host/ThreadPool.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace titan::testing {

enum class Ranks { Threads, Processes, Messages };

/// What a rank of a test does; what it returns is given to the test.
using RankBody = std::function<std::string(Communicator& communicator)>;

/// How a rank ended: with what its body returned, or (a process) by a signal or exit.
struct RankEnd {
  std::string report;
  int status = 0; ///< as of waitpid()
  bool isReported() const { return !report.empty(); }
};

/// Runs `body` on each rank; copies and sums on `threads` threads each. All ranks have ended when
/// it returns: what still runs after `seconds` is killed.
std::vector<RankEnd> runRanks(Ranks kind, int64_t ranks, int threads, const RankBody& body,
                              int seconds = 60);

/// Whole pages of zeros, as a device's staging region.
class StagingRegion {
public:
  explicit StagingRegion(int64_t bytes);
  ~StagingRegion();
  StagingRegion(const StagingRegion&) = delete;
  StagingRegion& operator=(const StagingRegion&) = delete;
  std::span<char> bytes() const { return bytes_; }

private:
  std::span<char> bytes_;
};

} // namespace titan::testing
