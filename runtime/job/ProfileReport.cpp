#include "runtime/job/ProfileReport.h"

#include "runtime/job/Plan.h"

#include <algorithm>
#include <functional>
#include <map>

namespace titan {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view pathsSeparator = " : ";

/// "gemm [64, 256, 784] B^T" of "gemm [64, 256, 784] B^T : hidden.0.linear".
std::string_view descriptionOf(std::string_view label) {
  return label.substr(0, label.find(pathsSeparator));
}

/// Does one of the words of `text`, which anything but letters parts, begin like this?
bool hasWord(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1))
    if (at == 0 || !std::isalpha(static_cast<unsigned char>(text[at - 1])))
      return true;
  return false;
}

/// A module path that is called as norms are: norm_1, ln_f, input_layernorm, rms.
bool isNorm(std::string_view path) {
  const std::string_view last = path.substr(path.rfind('.') + 1);
  return last.find("norm") != std::string_view::npos || hasWord(last, "ln") || hasWord(last, "rms");
}

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

std::string groupOf(const ProfileRow& row) {
  const std::string_view description = descriptionOf(row.label);
  if (row.kind == CommandKind::Copy || row.kind == CommandKind::Zero)
    return "copies";
  if (row.phase == Phase::Update)
    return "optimizer";
  if (row.kind == CommandKind::Gemm || description.starts_with("gemm"))
    return "products";
  for (const char* routine : {"attention", "embedding"})
    if (description.starts_with(routine))
      return routine;
  const std::vector<std::string> modules = modulesOf(row.label);
  if (std::ranges::find(modules, "loss") != modules.end())
    return "loss";
  if (std::ranges::any_of(modules, isNorm))
    return "norms";
  return "elementwise";
}

std::vector<std::string> modulesOf(const std::string& label) {
  const size_t separator = label.find(pathsSeparator);
  if (separator == std::string::npos)
    return {};
  std::vector<std::string> modules;
  for (size_t at = separator + pathsSeparator.size(); at < label.size();) {
    const size_t end = std::min(label.find(", ", at), label.size());
    std::string module;
    for (size_t part = at; part < end;) {
      const size_t dot = std::min(label.find('.', part), end);
      const std::string_view word = std::string_view(label).substr(part, dot - part);
      const bool number = !word.empty() && std::ranges::all_of(word, [](unsigned char c) {
        return std::isdigit(c) != 0;
      });
      module += module.empty() ? "" : ".";
      module += number ? "*" : word;
      part = dot + 1;
    }
    if (std::ranges::find(modules, module) == modules.end())
      modules.push_back(std::move(module));
    at = end + 2;
  }
  return modules;
}

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
  for (const ProfileRow& row : m.rows)
    if (const std::string group = groupOf(row); group == "products" || group == "attention")
      bound.productFlops += perStep(m, static_cast<double>(row.flops));
  for (const State& state : program.states) {
    const bool trained = state.kind == StateKind::Param && state.trainable;
    // Read and written; the gradient of a parameter is f32 and read.
    if (trained || state.kind == StateKind::Slot)
      bound.optimizerBytes += 2.0 * static_cast<double>(state.bytes);
    if (trained)
      bound.optimizerBytes += 4.0 * static_cast<double>(elementCount(state.shape));
  }
  if (m.limits.productFlops > 0)
    bound.productSeconds = bound.productFlops / m.limits.productFlops;
  bound.optimizerSeconds =
      bound.optimizerBytes /
      m.limits.copyOf(static_cast<int64_t>(bound.optimizerBytes)).bytesPerSecond;
  return bound;
}

std::string profileText(const Measurement& m, const Program& program) {
  const double step = m.profiledSeconds, kernels = kernelSeconds(m);
  std::string text = fmt::format("one step of {}, mean of {}\n\n{:>12}{:>8}{:>10}  {}\n",
                                 program.model, m.steps, "us/step", "share", "of limit", "group");
  auto addShare = [&](const ProfileShare& share) {
    text += fmt::format("{:>12.2f}{:>7.1f}%{:>9.0f}%  {}\n", share.seconds * 1e6,
                        100 * share.seconds / step, 100 * share.least / share.seconds, share.name);
  };
  auto addTime = [&](double seconds, const char* name) {
    text += fmt::format("{:>12.2f}{:>7.1f}%{:>10}  {}\n", seconds * 1e6, 100 * seconds / step, "",
                        name);
  };
  std::ranges::for_each(shareByGroup(m), addShare);
  addTime(step - kernels, "(between kernels)");
  addTime(step, "step");

  text += fmt::format("\n{:>12}{:>8}{:>10}  {}\n", "us/step", "share", "of limit",
                      "module (* is any layer's number)");
  std::ranges::for_each(shareByModule(m), addShare);

  text += fmt::format("\n{:>12}{:>8}{:>9}{:>9}{:>10}{:>10}  {:<9} {}\n", "us/step", "share",
                      "calls", "GB/s", "GFLOP/s", "of limit", "limit", "kernel");
  for (const ProfileRow& row : m.rows) {
    const double seconds = perStep(m, row.seconds);
    text +=
        fmt::format("{:>12.2f}{:>7.1f}%{:>9.3g}{:>9.1f}{:>10.1f}{:>9.0f}%  {:<9} {}\n",
                    seconds * 1e6, 100 * seconds / step, perStep(m, static_cast<double>(row.calls)),
                    static_cast<double>(row.bytes) / row.seconds * 1e-9,
                    static_cast<double>(row.flops) / row.seconds * 1e-9,
                    100 * leastOf(m, row) / seconds, limitOf(m, row), row.label);
  }

  text += "\nlimits measured in this run:";
  if (m.limits.productFlops > 0)
    text += fmt::format(" products {:.1f} GFLOP/s,", m.limits.productFlops * 1e-9);
  else
    text += " no product library, so none for products;";
  for (const CopySpeed& copy : m.limits.copies)
    text += fmt::format(" {} {:.1f}", copy.level, copy.bytesPerSecond * 1e-9);
  text += " GB/s copied\n";
  const StepBound bound = boundOf(m, program);
  text +=
      fmt::format("bound of the step: {:.4g} GFLOP of products and attention {:.2f} us + "
                  "{:.4g} MB of optimizer state {:.2f} us = {:.2f} us\n",
                  bound.productFlops * 1e-9, bound.productSeconds * 1e6,
                  bound.optimizerBytes * 1e-6, bound.optimizerSeconds * 1e6, bound.seconds() * 1e6);
  text += fmt::format("a step takes {:.2f} us: {:.1f}% of the bound (profiled {:.2f} us)\n",
                      m.plainSeconds * 1e6, 100 * bound.seconds() / m.plainSeconds, step * 1e6);
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
  return {{"steps", m.steps},
          {"seconds_per_step", m.plainSeconds},
          {"profiled_seconds_per_step", m.profiledSeconds},
          {"kernel_seconds_per_step", kernelSeconds(m)},
          {"gemm_ceiling_flops", m.limits.productFlops},
          {"copy_bytes_per_second", copies},
          {"bound",
           {{"product_flops", bound.productFlops},
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
}

} // namespace titan
