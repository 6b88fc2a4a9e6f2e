#include "runtime/job/ProfileReport.h"

#include "runtime/job/Communication.h"
#include "runtime/job/KernelLabel.h"
#include "runtime/job/Plan.h"
#include "runtime/program/Collective.h"

#include <algorithm>
#include <functional>
#include <map>

namespace titan {
namespace {

using Json = nlohmann::ordered_json;

double perStep(const Measurement& m, double total) { return total / static_cast<double>(m.steps); }

/// The least time of one step's calls of `row`.
double leastOf(const Measurement& m, const ProfileRow& row) {
  const auto calls = static_cast<double>(row.calls);
  return perStep(m, calls * m.limits.least(static_cast<double>(row.flops) / calls,
                                           static_cast<double>(row.bytes) / calls));
}

/// "FLOP/s", "L2", "L3" or "memory": what bounds a call of `row`.
std::string limitOf(const Measurement& m, const ProfileRow& row) {
  const int64_t flops = row.flops / row.calls, bytes = row.bytes / row.calls;
  const CopySpeed& copy = m.limits.copyOf(bytes);
  const bool arithmetic =
      m.limits.productFlops > 0 && static_cast<double>(flops) / m.limits.productFlops >
                                       static_cast<double>(bytes) / copy.bytesPerSecond;
  return arithmetic ? "FLOP/s" : copy.level;
}

std::vector<ProfileShare>
shareBy(const Measurement& m,
        const std::function<std::vector<std::string>(const ProfileRow&)>& key) {
  std::map<std::string, ProfileShare> shares;
  for (const ProfileRow& row : m.rows) {
    const std::vector<std::string> names = key(row);
    for (const std::string& name : names) {
      ProfileShare& share = shares[name];
      share.name = name;
      share.seconds += perStep(m, row.seconds) / static_cast<double>(names.size());
      share.least += leastOf(m, row) / static_cast<double>(names.size());
    }
  }
  std::vector<ProfileShare> sorted;
  for (auto& [name, share] : shares)
    sorted.push_back(std::move(share));
  std::ranges::sort(sorted, [](const ProfileShare& a, const ProfileShare& b) {
    return a.seconds != b.seconds ? a.seconds > b.seconds : a.name < b.name;
  });
  return sorted;
}

double kernelSeconds(const Measurement& m) {
  double seconds = 0;
  for (const ProfileRow& row : m.rows)
    seconds += row.seconds;
  return perStep(m, seconds);
}

} // namespace

std::vector<ProfileShare> shareByGroup(const Measurement& m) {
  return shareBy(m, [](const ProfileRow& row) { return std::vector{groupOf(row)}; });
}

std::vector<ProfileShare> shareByModule(const Measurement& m) {
  return shareBy(m, [](const ProfileRow& row) {
    std::vector<std::string> modules = modulesOf(row.label);
    return modules.empty() ? std::vector<std::string>{"(no module)"} : modules;
  });
}

StepBound boundOf(const Measurement& m, const Program& program) {
  StepBound bound;
  if (const Function* step = program.findFunction("step"))
    bound.modelFlops =
        static_cast<double>(step->modelFlops) / static_cast<double>(rankCount(program.mesh));
  for (const State& state : program.states) {
    const bool trained = state.kind == StateKind::Param && state.trainable;
    // Read and written; the gradient of a parameter is f32 and read.
    if (trained || state.kind == StateKind::Slot)
      bound.optimizerBytes += 2.0 * static_cast<double>(state.bytes);
    if (trained)
      bound.optimizerBytes += 4.0 * static_cast<double>(elementCount(state.shape));
  }
  if (m.limits.productFlops > 0)
    bound.productSeconds = bound.modelFlops / m.limits.productFlops;
  bound.optimizerSeconds =
      bound.optimizerBytes /
      m.limits.copyOf(static_cast<int64_t>(bound.optimizerBytes)).bytesPerSecond;
  return bound;
}

std::string profileText(const Measurement& m, const Program& program) {
  const double step = m.profiledSeconds, kernels = kernelSeconds(m);
  // Steps of microseconds and of seconds: both get four digits or so.
  const bool large = step >= 0.01;
  const char* unit = large ? "ms" : "us";
  const double scale = large ? 1e3 : 1e6;
  const std::string column = fmt::format("{}/step", unit);
  std::string text = fmt::format("one step of {}, mean of {}\n\n{:>12}{:>8}{:>10}  {}\n",
                                 program.model, m.steps, column, "share", "of limit", "group");
  auto addShare = [&](const ProfileShare& share) {
    text += fmt::format("{:>12.2f}{:>7.1f}%{:>9.0f}%  {}\n", share.seconds * scale,
                        100 * share.seconds / step, 100 * share.least / share.seconds, share.name);
  };
  auto addTime = [&](double seconds, const char* name) {
    text += fmt::format("{:>12.2f}{:>7.1f}%{:>10}  {}\n", seconds * scale, 100 * seconds / step, "",
                        name);
  };
  std::ranges::for_each(shareByGroup(m), addShare);
  addTime(step - kernels, "(between kernels)");
  addTime(step, "step");

  text += fmt::format("\n{:>12}{:>8}{:>10}  {}\n", column, "share", "of limit",
                      "module (* is any layer's number)");
  std::ranges::for_each(shareByModule(m), addShare);

  text += fmt::format("\n{:>12}{:>8}{:>9}{:>9}{:>10}{:>10}  {:<9} {}\n", column, "share", "calls",
                      "GB/s", "GFLOP/s", "of limit", "limit", "kernel");
  for (const ProfileRow& row : m.rows) {
    const double seconds = perStep(m, row.seconds);
    text += fmt::format("{:>12.2f}{:>7.1f}%{:>9.3g}{:>9.1f}{:>10.1f}{:>9.0f}%  {:<9} {}\n",
                        seconds * scale, 100 * seconds / step,
                        perStep(m, static_cast<double>(row.calls)),
                        static_cast<double>(row.bytes) / row.seconds * 1e-9,
                        static_cast<double>(row.flops) / row.seconds * 1e-9,
                        100 * leastOf(m, row) / seconds, limitOf(m, row), shortLabel(row.label));
  }

  if (!program.collectives.empty())
    text += "\n" +
            countedText(ledgerOf(program), m.traffic, std::max<int64_t>(m.steps, 1), program.mesh);

  text += "\nlimits measured in this run:";
  if (m.limits.productFlops > 0)
    text += fmt::format(" products {:.1f} GFLOP/s,", m.limits.productFlops * 1e-9);
  else
    text += " no product library, so none for products;";
  for (const CopySpeed& copy : m.limits.copies)
    text += fmt::format(" {} {:.1f}", copy.level, copy.bytesPerSecond * 1e-9);
  text += " GB/s copied\n";
  const StepBound bound = boundOf(m, program);
  text += fmt::format("bound of the step: {:.4g} GFLOP of the model {:.2f} {} + {:.4g} MB of "
                      "optimizer state {:.2f} {} = {:.2f} {}\n",
                      bound.modelFlops * 1e-9, bound.productSeconds * scale, unit,
                      bound.optimizerBytes * 1e-6, bound.optimizerSeconds * scale, unit,
                      bound.seconds() * scale, unit);
  text += fmt::format("a step takes {:.2f} {}: {:.1f}% of the bound (profiled {:.2f} {})\n",
                      m.plainSeconds * scale, unit, 100 * bound.seconds() / m.plainSeconds,
                      step * scale, unit);
  for (const GraphFigures& graph : m.graphs)
    text += fmt::format("{} is one graph of {} nodes, made in {:.2f} ms\n", graph.function,
                        graph.nodes, graph.seconds * 1e3);
  return text;
}

Json profileJson(const Measurement& m, const Program& program) {
  auto sharesJson = [](const std::vector<ProfileShare>& shares) {
    Json list = Json::array();
    for (const ProfileShare& share : shares)
      list.push_back({{"name", share.name},
                      {"seconds_per_step", share.seconds},
                      {"least_seconds_per_step", share.least}});
    return list;
  };
  Json rows = Json::array();
  for (const ProfileRow& row : m.rows)
    rows.push_back({{"label", row.label},
                    {"group", groupOf(row)},
                    {"calls", row.calls},
                    {"seconds", row.seconds},
                    {"flops", row.flops},
                    {"bytes", row.bytes},
                    {"limit", limitOf(m, row)},
                    {"least_seconds", leastOf(m, row) * static_cast<double>(m.steps)}});
  Json copies = Json::object();
  for (const CopySpeed& copy : m.limits.copies)
    copies[copy.level] = copy.bytesPerSecond;
  const StepBound bound = boundOf(m, program);
  Json json = {{"steps", m.steps},
               {"seconds_per_step", m.plainSeconds},
               {"profiled_seconds_per_step", m.profiledSeconds},
               {"kernel_seconds_per_step", kernelSeconds(m)},
               {"gemm_ceiling_flops", m.limits.productFlops},
               {"copy_bytes_per_second", copies},
               {"bound",
                {{"model_flops", bound.modelFlops},
                 {"product_seconds", bound.productSeconds},
                 {"optimizer_bytes", bound.optimizerBytes},
                 {"optimizer_seconds", bound.optimizerSeconds},
                 {"seconds", bound.seconds()},
                 {"share", bound.seconds() / m.plainSeconds}}},
               {"recorded", figuresJson(m.recorded)},
               {"max_live", m.recorded.maxLiveBytes},
               {"groups", sharesJson(shareByGroup(m))},
               {"modules", sharesJson(shareByModule(m))},
               {"kernels", rows}};
  for (const GraphFigures& graph : m.graphs)
    json["graphs"].push_back(
        {{"function", graph.function}, {"nodes", graph.nodes}, {"seconds", graph.seconds}});
  if (!program.collectives.empty()) {
    json["communication"] =
        countedJson(ledgerOf(program), m.traffic, m.movedByAll, std::max<int64_t>(m.steps, 1));
    if (m.firstWeights.executions > 0)
      json["communication"].push_back(
          countedHostJson({"initialize", m.firstWeights}, m.firstWeightsMovedByAll, program.mesh));
  }
  return json;
}

} // namespace titan
