#include "runtime/job/RunLog.h"

#include "runtime/checkpoint/Env.h"

#include <cstdio>
#include <optional>
#include <vector>

namespace titan {

Result<RunLog> RunLog::open(const std::string& directory, const ProgressOptions& options) {
  MetricsFile metrics = TITAN_TRY(
      MetricsFile::open(checkpoint::joinPath(directory, "metrics.jsonl"), options.firstStep));
  EventFile events = TITAN_TRY(EventFile::create(directory, options.firstStep));
  RunLog log;
  log.files_.reset(
      new Files{options, std::move(metrics), std::move(events), ProgressLine(stderr, options)});
  return log;
}

Status RunLog::write(const StepMetrics& metrics) {
  if (!files_)
    return {};
  TITAN_TRY(files_->metrics.write(metrics));
  const ProgressOptions& options = files_->options;
  if (metrics.step % options.logEvery == 0 || metrics.step == options.steps)
    TITAN_TRY(files_->events.write(metrics));
  files_->progress.update(metrics);
  return {};
}

Status RunLog::write(int64_t step, const Evaluation& evaluation, const std::string& profile) {
  if (!files_)
    return {};
  struct Named {
    std::string key, tag;
    double value;
  };
  std::vector<Named> named;
  const std::string of = profile.empty() ? "" : "_ema_" + profile;
  std::string text =
      fmt::format("step {}  eval{}", step, profile.empty() ? "" : fmt::format(" of '{}'", profile));
  const auto add = [&](std::string_view name, std::optional<double> value) {
    if (!value)
      return;
    text += fmt::format("{} {} {:.6g}", named.empty() ? "" : " ", name, *value);
    named.push_back(
        {fmt::format("eval_{}{}", name, of), fmt::format("eval/{}{}", name, of), *value});
  };
  add("loss", evaluation.loss);
  add("accuracy", evaluation.accuracy);
  add("perplexity", evaluation.perplexity);
  std::vector<Metric> values;
  std::vector<EventScalar> scalars;
  for (const Named& one : named) {
    values.emplace_back(one.key, one.value);
    scalars.emplace_back(one.tag, static_cast<float>(one.value));
  }
  TITAN_TRY(files_->metrics.write(step, values));
  TITAN_TRY(files_->events.write(step, scalars));
  note(text);
  return {};
}

void RunLog::showSave(int64_t step, double share) {
  if (files_)
    files_->progress.setSave(step, share);
}

void RunLog::hideSave() {
  if (files_)
    files_->progress.clearSave();
}

Status RunLog::write(int64_t step, std::string_view name, int64_t count) {
  if (!files_)
    return {};
  const Metric values[] = {{name, count}};
  const std::string tag = fmt::format("save/{}", name);
  const EventScalar scalars[] = {{tag, static_cast<float>(count)}};
  TITAN_TRY(files_->metrics.write(step, values));
  return files_->events.write(step, scalars);
}

Status RunLog::write(const SaveFigures& figures) {
  if (!files_)
    return {};
  const Metric values[] = {{"bytes", figures.bytes},
                           {"stall", figures.stallSeconds},
                           {"write", figures.writeSeconds},
                           {"cpu", figures.cpuSeconds},
                           {"committed_after_step", figures.endedAfterStep}};
  const EventScalar scalars[] = {{"save/stall", static_cast<float>(figures.stallSeconds)},
                                 {"save/write", static_cast<float>(figures.writeSeconds)}};
  TITAN_TRY(files_->metrics.write(figures.step, values));
  return files_->events.write(figures.step, scalars);
}

void RunLog::note(const std::string& message) {
  if (files_)
    files_->progress.note(message);
}

void RunLog::finish() {
  if (files_)
    files_->progress.finish();
}

} // namespace titan
