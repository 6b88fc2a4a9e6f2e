#include "runtime/job/Profile.h"

#include "runtime/executor/FirstWeights.h"
#include "runtime/job/Batches.h"
#include "runtime/job/Communication.h"
#include "runtime/job/ProfileReport.h"
#include "runtime/job/Scalars.h"
#include "runtime/program/Process.h"
#include "runtime/program/Text.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <fstream>

namespace titan {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t warmUpSteps = 3, defaultSteps = 20;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// What came to any rank from others, by collective.
Result<std::vector<int64_t>> movedByAll(Peers& peers, std::span<const Traffic> mine) {
  std::vector<int64_t> moved;
  for (const Traffic& traffic : mine)
    moved.push_back(traffic.moved);
  const std::string_view bytes(reinterpret_cast<const char*>(moved.data()),
                               moved.size() * sizeof(int64_t));
  std::vector<int64_t> sums(moved.size());
  for (const std::string& all : TITAN_TRY(peers.exchange("the counts of the profile", bytes)))
    for (size_t i = 0; i < sums.size(); ++i) {
      int64_t each = 0;
      std::memcpy(&each, all.data() + i * sizeof each, sizeof each);
      sums[i] += each;
    }
  return sums;
}

/// Of --rank: what the figures are of; else nothing.
std::string withoutPeers(const Session& session) {
  const Peers& peers = session.peers();
  if (!peers.areImagined())
    return {};
  return fmt::format("rank {} of {}, no peers: memory and kernels are its own, communication takes "
                     "no time and brings nothing of others\n",
                     peers.rank(), describeRanks(session.program().mesh));
}

nlohmann::ordered_json report(const Measurement& measurement, const Session& session) {
  nlohmann::ordered_json json = profileJson(measurement, session.program());
  if (session.peers().areImagined()) {
    json["rank"] = session.peers().rank();
    json["peers"] = "no peers";
  }
  return json;
}

} // namespace

Status profileJob(Session& session) {
  std::unique_ptr<Dataset> dataset = TITAN_TRY(session.peers().agree(
      "the data", openFunctionData(session.program(), "step", session.recipe())));
  const auto seed = static_cast<uint64_t>(session.recipe().train.seed);
  TITAN_TRY(session.start(seed, {}, FirstState::Weights));
  if (!session.device().measureLimits)
    return Error::environment("profile compares with what the device can do at most, and {} "
                              "cannot be asked",
                              session.device().name);
  Executor& executor = session.executor();
  StateAccess& access = session.access();
  const Controls controls =
      TITAN_TRY(Controls::create(access, "step", session.recipe(), session.recipe().train.seed));
  const Batches batches = TITAN_TRY(Batches::create(std::move(dataset), access, "step"));
  const Scalar consumed = TITAN_TRY(counter(access, "samples"));
  const BatchLoader loader(batches.dataset(),
                           loaderOptions(batches, session.recipe(), session.peers().rank()));
  Measurement m;
  m.steps = session.options().steps.value_or(defaultSteps);
  auto steps = [&](int64_t count) -> Result<double> {
    double seconds = 0;
    for (int64_t i = 0; i < count; ++i) {
      TITAN_TRY(batches.fill(loader, static_cast<uint64_t>(consumed.count())));
      controls.write();
      const Clock::time_point start = Clock::now();
      TITAN_TRY(executor.run("step"));
      seconds += secondsSince(start);
    }
    return seconds / static_cast<double>(std::max<int64_t>(count, 1));
  };
  TITAN_TRY(steps(warmUpSteps));
  const std::vector<Traffic> before = session.device().traffic();
  m.plainSeconds = TITAN_TRY(steps(m.steps));
  m.traffic = trafficBetween(before, session.device().traffic());
  m.movedByAll = TITAN_TRY(movedByAll(session.peers(), m.traffic));
  m.firstWeights = session.peers().traffic(firstWeightsName);
  m.firstWeightsMovedByAll =
      TITAN_TRY(movedByAll(session.peers(), std::array{m.firstWeights})).front();
  Profiler profiler(session.program());
  executor.setObserver(&profiler);
  m.profiledSeconds = TITAN_TRY(steps(m.steps));
  Recorder recorder;
  executor.setObserver(&recorder);
  TITAN_TRY(steps(1));
  m.recorded = recorder.figures();
  executor.setObserver(nullptr);
  if (!session.peers().isFirst())
    return {};
  m.graphs = session.device().graphs();
  m.rows = profiler.rows();
  m.limits = TITAN_TRY(session.device().measureLimits(productType(session.program())));

  const std::string trace = session.options().trace.empty()
                                ? session.image().executable + ".trace.json"
                                : session.options().trace;
  std::ofstream file(trace, std::ios::binary);
  file << profiler.chromeTrace();
  if (!file.flush())
    return Error::environment("cannot write '{}': {}", trace, std::strerror(errno));
  if (session.options().json)
    fmt::print("{}\n", report(m, session).dump(2));
  else
    fmt::print("{}{}", withoutPeers(session), profileText(m, session.program()));
  tell("trace: {}\n", trace);
  return {};
}

} // namespace titan
