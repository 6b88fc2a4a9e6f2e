// Prints the time of each collective of 64 MB on two ranks, processes of this host with one thread
// each, and as a ratio to a copy of 64 MB by both ranks at once: the same memory is read and
// written by the same threads. Sources lie in staging. Medians of five after one warm-up.
//
//   build/release/bin/titan_collective_bench
#include "runtime/collective/CommDelay.h"
#include "runtime/collective/testing/RunRanks.h"

#include <algorithm>
#include <cstring>

#include <sched.h>

using namespace titan;

namespace {

constexpr int64_t bytes = 64 << 20;
constexpr int rounds = 5;

/// Each rank on a CPU of its own, where there are two.
void takeCpu(int64_t rank) {
  cpu_set_t allowed, mine;
  CPU_ZERO(&allowed);
  CPU_ZERO(&mine);
  sched_getaffinity(0, sizeof allowed, &allowed);
  int64_t seen = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed) && seen++ == rank)
      CPU_SET(cpu, &mine);
  if (CPU_COUNT(&mine) > 0)
    sched_setaffinity(0, sizeof mine, &mine);
}

/// Milliseconds of run(), which all ranks begin together: median of the rounds after the first.
template <typename Run> double median(Communicator& communicator, const Run& run) {
  std::vector<double> times;
  for (int round = 0; round <= rounds; ++round) {
    std::vector<std::string> all;
    if (!communicator.exchange("a round", "", all).ok())
      return -1;
    const int64_t begin = monotonicNow();
    run();
    times.push_back(static_cast<double>(monotonicNow() - begin) / 1e6);
  }
  times.erase(times.begin());
  std::ranges::sort(times);
  return times[rounds / 2];
}

std::string measure(Communicator& communicator, DType dtype) {
  takeCpu(communicator.rank());
  const std::vector<MeshAxis> mesh = {{"shard", 2}};
  const int64_t elements = bytes / byteSize(dtype);
  std::vector<Collective> collectives;
  for (const CollectiveKind kind :
       {CollectiveKind::ReduceScatter, CollectiveKind::AllReduce, CollectiveKind::AllGather})
    collectives.push_back({kind, SumOrder::Rank, {0}, {{dtype, 1, elements}}, "w"});
  titan::testing::StagingRegion staging(bytes);
  if (!communicator.setCollectives(collectives, mesh).ok() ||
      !communicator.shareStaging(staging.bytes()).ok())
    return "cannot share memory";
  std::vector<char> result(static_cast<size_t>(bytes));
  char* const in = staging.bytes().data();
  char* const out = result.data();
  std::memset(in, 0, static_cast<size_t>(bytes));
  const double copy = median(communicator, [&] { std::memcpy(out, in, bytes); });
  std::string text = fmt::format("{:<6}{:<16}{:>8.2f} ms\n", name(dtype), "copy", copy);
  for (uint32_t i = 0; i < collectives.size(); ++i) {
    const double time = median(communicator, [&] {
      Communicator::Ticket ticket;
      (void)communicator.start(i, {&in, 1}, {&out, 1}, ticket).ok();
      (void)communicator.wait(ticket).ok();
    });
    text += fmt::format("{:<6}{:<16}{:>8.2f} ms{:>8.2f} x copy\n", name(dtype),
                        toString(collectives[i].kind), time, time / copy);
  }
  (void)communicator.finish().ok();
  return text;
}

} // namespace

int main() {
  for (const DType dtype : {DType::F32, DType::BF16}) {
    const auto ends = titan::testing::runRanks(
        titan::testing::Ranks::Processes, 2, 1,
        [&](Communicator& communicator) { return measure(communicator, dtype); });
    fmt::print("{}", ends[0].report);
  }
}
