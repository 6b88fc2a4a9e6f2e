#include "runtime/job/Compare.h"

#include "runtime/executor/Comparer.h"
#include "runtime/job/Batches.h"
#include "runtime/job/Scalars.h"

#include <nlohmann/json.hpp>

namespace titan {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t defaultSteps = 2;

Json differenceJson(const Comparer::Difference& difference) {
  return {{"kernel", difference.label},    {"function", difference.function},
          {"command", difference.command}, {"operand", difference.operand},
          {"element", difference.index},   {"device", difference.device},
          {"reference", difference.host},  {"bound", difference.bound}};
}

Json summaryJson(const Comparer& comparer, int64_t steps) {
  const Comparer::Summary& summary = comparer.summary();
  Json json = {{"steps", steps},
               {"commands", summary.commands},
               {"elements", summary.elements},
               {"largest_share", summary.largestShare},
               {"kernel", summary.label},
               {"difference", nullptr}};
  if (comparer.difference())
    json["difference"] = differenceJson(*comparer.difference());
  return json;
}

std::string summaryText(const Comparer& comparer, int64_t steps, const std::string& device) {
  const Comparer::Summary& summary = comparer.summary();
  const std::string largest = summary.label.empty()
                                  ? "none differs"
                                  : fmt::format("the largest share of a bound is {:.2g}, of '{}'",
                                                summary.largestShare, summary.label);
  return fmt::format("{} steps on {}: {} commands with {} elements compared, {}\n", steps, device,
                     summary.commands, summary.elements, largest);
}

Status describe(const Comparer::Difference& d, const std::string& device) {
  return Error::internal("'{}' (command {} of {}) on {}: element {} of operand {} is {:.9g}, its "
                         "host code makes it {:.9g}, and they may be {:.3g} apart",
                         d.label, d.command, d.function, device, d.index, d.operand, d.device,
                         d.host, d.bound);
}

} // namespace

Status compareJob(Session& session) {
  const Program& program = session.program();
  if (program.comparisons.empty())
    return Error::usage("compare runs each kernel on the host, too, and the job has no code for "
                        "that: compile it with --target=cuda --reference-kernels");
  std::unique_ptr<Dataset> dataset = TITAN_TRY(openFunctionData(program, "step", session.recipe()));
  const int64_t seed = session.recipe().train.seed;
  TITAN_TRY(session.start(static_cast<uint64_t>(seed), {}, FirstState::Weights));
  Executor& executor = session.executor();
  StateAccess& access = session.access();
  const Controls controls = TITAN_TRY(Controls::create(access, "step", session.recipe(), seed));
  const Batches batches = TITAN_TRY(Batches::create(std::move(dataset), access, "step"));
  const Scalar consumed = TITAN_TRY(counter(access, "samples"));
  const BatchLoader loader(batches.dataset(),
                           loaderOptions(batches, session.recipe(), session.peers().rank()));
  const std::unique_ptr<Comparer> comparer = TITAN_TRY(
      Comparer::create(program, session.kernels(), *session.device().device, session.pool()));
  executor.setObserver(comparer.get());
  const int64_t steps = session.options().steps.value_or(defaultSteps);
  for (int64_t i = 0; i < steps && !comparer->difference(); ++i) {
    TITAN_TRY(batches.fill(loader, static_cast<uint64_t>(consumed.count())));
    controls.write();
    TITAN_TRY(executor.run("step"));
    for (int64_t every : session.recipe().ema.intervals())
      TITAN_TRY(executor.run(averageFunction(every)));
    TITAN_TRY(comparer->status());
  }
  executor.setObserver(nullptr);
  if (session.options().json)
    fmt::print("{}\n", summaryJson(*comparer, steps).dump(2));
  if (comparer->difference())
    return describe(*comparer->difference(), session.device().name);
  if (!session.options().json)
    fmt::print("{}", summaryText(*comparer, steps, session.device().name));
  return {};
}

} // namespace titan
