#include "runtime/job/Profile.h"

#include "runtime/executor/Profiler.h"
#include "runtime/job/Batches.h"
#include "runtime/job/GemmCeiling.h"
#include "runtime/job/Plan.h"
#include "runtime/job/Scalars.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>

#include <nlohmann/json.hpp>

namespace titan {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t warmUpSteps = 3, defaultSteps = 20;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

struct Measurement {
  int64_t steps = 0;
  double plainSeconds = 0, profiledSeconds = 0; ///< per step, without and with the profiler
  double gemmCeiling = 0;
  Figures recorded; ///< of one step, counted while it ran
  std::vector<ProfileRow> rows;
};

void printText(const Measurement& m) {
  fmt::print("{:>12}{:>8}{:>9}{:>9}{:>10}  {}\n", "us/step", "share", "calls", "GB/s", "GFLOP/s",
             "kernel");
  double kernels = 0;
  for (const ProfileRow& row : m.rows)
    kernels += row.seconds;
  const double steps = static_cast<double>(m.steps);
  for (const ProfileRow& row : m.rows)
    fmt::print("{:>12.2f}{:>7.1f}%{:>9.3g}{:>9.1f}{:>10.1f}  {}\n", row.seconds / steps * 1e6,
               100 * row.seconds / kernels, static_cast<double>(row.calls) / steps,
               static_cast<double>(row.bytes) / row.seconds * 1e-9,
               static_cast<double>(row.flops) / row.seconds * 1e-9, row.label);
  fmt::print("{:>12.2f}   in kernels; a step takes {:.2f} us, profiled {:.2f} us\n",
             kernels / steps * 1e6, m.plainSeconds * 1e6, m.profiledSeconds * 1e6);
  if (m.gemmCeiling > 0)
    fmt::print("product ceiling measured here: {:.1f} GFLOP/s\n", m.gemmCeiling * 1e-9);
}

void printJson(const Measurement& m) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array();
  for (const ProfileRow& row : m.rows)
    rows.push_back({{"label", row.label},
                    {"calls", row.calls},
                    {"seconds", row.seconds},
                    {"flops", row.flops},
                    {"bytes", row.bytes}});
  fmt::print("{}\n", Json{{"steps", m.steps},
                          {"seconds_per_step", m.plainSeconds},
                          {"profiled_seconds_per_step", m.profiledSeconds},
                          {"gemm_ceiling_flops", m.gemmCeiling},
                          {"recorded", figuresJson(m.recorded)},
                          {"max_live", m.recorded.maxLiveBytes},
                          {"kernels", rows}}
                         .dump(2));
}

} // namespace

Status profileJob(Session& session) {
  std::unique_ptr<Dataset> dataset =
      TITAN_TRY(openFunctionData(session.program(), "step", session.recipe()));
  const auto seed = static_cast<uint64_t>(session.recipe().train.seed);
  TITAN_TRY(session.start(seed, {}));
  Executor& executor = session.executor();
  const Controls controls =
      TITAN_TRY(Controls::create(executor, "step", session.recipe(), session.recipe().train.seed));
  const Batches batches = bindBatches(std::move(dataset), executor, "step");
  const BatchLoader loader(
      *batches.dataset,
      {.batch = batches.samples, .seed = seed, .shuffle = session.recipe().data.shuffle});
  Measurement m;
  m.steps = session.options().steps.value_or(defaultSteps);
  auto steps = [&](int64_t count) -> Result<double> {
    double seconds = 0;
    for (int64_t i = 0; i < count; ++i) {
      TITAN_TRY(
          loader.fill(static_cast<uint64_t>(ScalarReader::counter(executor, "samples").count()),
                      batches.destination));
      controls.write();
      const Clock::time_point start = Clock::now();
      TITAN_TRY(executor.run("step"));
      seconds += secondsSince(start);
    }
    return seconds / static_cast<double>(std::max<int64_t>(count, 1));
  };
  TITAN_TRY(steps(warmUpSteps));
  m.plainSeconds = TITAN_TRY(steps(m.steps));
  Profiler profiler(session.program());
  executor.setObserver(&profiler);
  m.profiledSeconds = TITAN_TRY(steps(m.steps));
  Recorder recorder;
  executor.setObserver(&recorder);
  TITAN_TRY(steps(1));
  m.recorded = recorder.figures();
  executor.setObserver(nullptr);
  m.rows = profiler.rows();
  m.gemmCeiling = measureGemmCeiling(session.oneDnn(), executor.pool());

  const std::string trace = session.options().trace.empty()
                                ? session.image().executable + ".trace.json"
                                : session.options().trace;
  std::ofstream file(trace, std::ios::binary);
  file << profiler.chromeTrace();
  if (!file.flush())
    return Error::environment("cannot write '{}': {}", trace, std::strerror(errno));
  if (session.options().json)
    printJson(m);
  else
    printText(m);
  fmt::print(stderr, "trace: {}\n", trace);
  return {};
}

} // namespace titan
