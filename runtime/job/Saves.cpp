#include "runtime/job/Saves.h"

#include "runtime/host/AvailableMemory.h"
#include "runtime/program/Process.h"
#include "runtime/program/Text.h"

#include <chrono>
#include <utility>

#include <unistd.h>

namespace titan {
namespace {

using Clock = std::chrono::steady_clock;

/// Of the available memory, what a copy of the state leaves: one part in so many.
constexpr int64_t marginShare = 16;
/// Saves that may fail one after another before the run ends.
constexpr int64_t mostFailures = 2;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

} // namespace

std::string describeNewest(const checkpoint::CheckpointStore& store) {
  checkpoint::Env& files = checkpoint::posixEnv();
  const auto saved = checkpoint::listCheckpoints(files, store.directory());
  if (!saved.ok())
    return "which checkpoint is the newest is not known: " + saved.error().message();
  // A name alone is no checkpoint: something else may stand there.
  for (size_t i = saved->size(); i-- > 0;)
    if (checkpoint::readManifest((*saved)[i].path, files).ok())
      return "the newest checkpoint is " + (*saved)[i].path;
  return "there is no checkpoint yet";
}

Saves::Saves(Session& session, checkpoint::CheckpointStore& store,
             const checkpoint::WatchedEnv& files, RunLog& log, RunIdentity identity)
    : session_(&session), store_(&store), files_(&files), log_(&log),
      identity_(std::move(identity)) {
  if (!recipe().onCommit.empty() && session.peers().isFirst())
    hooks_.emplace(recipe().onCommit, store.directory(),
                   [this](const std::string& message) { log_->note("note: " + message); });
}

Result<checkpoint::SaveRequest> Saves::request(int64_t step) {
  checkpoint::SaveRequest request;
  request.step = step;
  request.tensors = checkpoint::tensors(session_->access());
  request.counters = TITAN_TRY(checkpoint::counters(session_->access()));
  request.data = std::move(identity_.data);
  request.program = std::move(identity_.program);
  request.init = std::move(identity_.init);
  return request;
}

checkpoint::Retention Saves::retention() const {
  checkpoint::Retention retention(recipe().keep);
  retention.keepEvery = recipe().keepEvery;
  if (hooks_)
    retention.inUse = hooks_->inUse();
  return retention;
}

Status Saves::preflight(int64_t step) {
  if (recipe().preflight == "off") {
    session_->note(
        "checkpoint.preflight = \"off\": whether checkpoints can be saved shows at the first "
        "one");
    plan_ = TITAN_TRY(store_->plan(TITAN_TRY(request(step))));
    return {};
  }
  if (!recipe().onCommit.empty())
    TITAN_TRY(session_->peers().byFirst("the check of checkpoint.on_commit", [&] {
      return CommitHooks::check(recipe().onCommit, printNote);
    }));
  plan_ = TITAN_TRY(store_->preflight(TITAN_TRY(request(step)), retention(),
                                      recipe().preflight == "full" ? checkpoint::Probe::Whole
                                                                   : checkpoint::Probe::Chunk));
  return {};
}

Result<int64_t> Saves::staging(int64_t bytes) const {
  const StagingRecipe& wanted = recipe().staging;
  const int64_t available = availableMemoryBytes();
  const int64_t most = wanted.amount == "none" ? 0
                       : wanted.amount.empty() ? std::min(wanted.bytes, bytes)
                                               : bytes;
  const int64_t room = available - available / marginShare;
  const bool fits = most <= room;
  const auto figures = [&] {
    return fmt::format("a copy of the state takes {}, and {} are available", readableBytes(most),
                       readableBytes(available));
  };
  if (!fits && wanted.amount != "auto")
    return Error::environment(
        "checkpoint.staging = {}: {}: free some memory, or leave it to \"auto\"",
        wanted.amount.empty() ? std::to_string(wanted.bytes) : '"' + wanted.amount + '"',
        figures());
  if (fits)
    return most;
  session_->note(fmt::format("{}: what is not copied is read before the next update", figures()));
  return room;
}

Status Saves::prepare(int64_t savedStep) {
  savedStep_ = savedStep;
  if (recipe().every == 0 || !recipe().async)
    return {};
  snapshot_ = checkpoint::Snapshot::of(session_->access());
  // Of several ranks a save is an exchange, which would meet those of the steps.
  if (!session_->peers().isAlone() || !snapshot_) {
    snapshot_.reset();
    session_->note("steps wait for saves, in which all ranks take part");
    return {};
  }
  TITAN_TRY(snapshot_->reserve(TITAN_TRY(staging(snapshot_->bytes()))));
  TITAN_TRY(plan_->readFrom(snapshot_->tensors()));
  const Clock::time_point start = Clock::now();
  TITAN_TRY(snapshot_->take());
  TITAN_TRY(snapshot_->wait());
  session_->note(
      fmt::format("a save copies {} of the state in about {:.0f} ms{}",
                  readableBytes(snapshot_->stagedBytes()), 1e3 * secondsSince(start),
                  snapshot_->isPartial() ? ", and the next update waits for the rest" : ""));
  saver_ = TITAN_TRY(checkpoint::BackgroundSaver::create(*store_));
  return {};
}

Status Saves::begin(int64_t step) {
  if (!saver_)
    return saveNow(step, /*isLast=*/false);
  TITAN_TRY(look(step));
  if (saver_->isBusy() && recipe().whenBusy == "skip") // the last one is finish()'s
    return step == session_->recipe().train.steps ? Status() : skip(step);
  const Clock::time_point start = Clock::now();
  if (saver_->isBusy())
    noteSlowness();
  TITAN_TRY(await(step));
  begun_ = Clock::now();
  TITAN_TRY(snapshot_->take());
  writtenBefore_ = files_->bytesWritten();
  saver_->begin(*plan_,
                {.step = step,
                 .counters = TITAN_TRY(checkpoint::counters(session_->access())),
                 .beforeRead = [this] { return snapshot_->wait(); }},
                retention());
  if (snapshot_->needsGate())
    session_->access().setGate([this] { passGate(); });
  savedStep_ = step;
  stallSeconds_ = secondsSince(start);
  return {};
}

Status Saves::skip(int64_t step) {
  log_->note(
      fmt::format("note: step {} is not saved: the save of step {} goes on", step, savedStep_));
  return log_->write(step, "saves_skipped", ++skipped_);
}

void Saves::noteSlowness() {
  if (!std::exchange(isSlownessTold_, true))
    log_->note(
        fmt::format("note: the save of step {} goes on after {:.1f} s, in which the run has "
                    "made the {} steps to the next one and now waits: raise checkpoint.every, "
                    "or set checkpoint.when_busy = \"skip\"",
                    savedStep_, secondsSince(begun_), recipe().every));
}

void Saves::passGate() {
  const Clock::time_point start = Clock::now();
  saver_->waitUntilRead([this] { checkProgress(); });
  // A device that cannot wait fails: so does the step.
  (void)snapshot_->hold();
  stallSeconds_ += secondsSince(start);
}

Status Saves::look(int64_t step) {
  if (hooks_)
    hooks_->look();
  if (!saver_ || !saver_->isBusy())
    return {};
  checkProgress();
  if (const std::optional<checkpoint::Saved> saved = saver_->poll())
    return end(*saved, step, /*isLast=*/false);
  // What it writes beside the tensors is small.
  const auto written = static_cast<double>(files_->bytesWritten() - writtenBefore_);
  log_->showSave(savedStep_, std::min(1.0, written / static_cast<double>(snapshot_->bytes())));
  return {};
}

Status Saves::await(int64_t step, bool isLast) {
  if (!saver_ || !saver_->isBusy())
    return {};
  bool isTold = !isFinishing_; // of the others the metrics tell
  return end(saver_->wait([&] {
    checkProgress();
    if (!std::exchange(isTold, true))
      log_->note(fmt::format("note: waiting for the save of step {}", savedStep_));
  }),
             step, isLast);
}

Status Saves::finish(int64_t step) {
  isFinishing_ = true;
  TITAN_TRY(await(step, /*isLast=*/savedStep_ == step));
  if (savedStep_ != step)
    TITAN_TRY(saveNow(step, /*isLast=*/true));
  if (hooks_)
    hooks_->finish(std::chrono::seconds(recipe().hookTimeout));
  return {};
}

Status Saves::saveNow(int64_t step, bool isLast) {
  const Clock::time_point start = Clock::now();
  // The last save of a run needs no copy.
  if (saver_)
    TITAN_TRY(plan_->readFrom(checkpoint::tensors(session_->access())));
  Result<checkpoint::SaveReport> report = store_->save(
      *plan_, {step, TITAN_TRY(checkpoint::counters(session_->access()))}, retention());
  savedStep_ = step;
  stallSeconds_ = secondsSince(start);
  return end({step, std::move(report), stallSeconds_}, step, isLast);
}

Status Saves::end(const checkpoint::Saved& saved, int64_t step, bool isLast) {
  session_->access().setGate(nullptr);
  log_->hideSave();
  if (saved.report.ok()) {
    failedInARow_ = 0;
    newestPath_ = saved.report->path;
    for (const std::string& message : saved.report->notes)
      log_->note("note: " + message);
    if (hooks_)
      hooks_->committed(saved.step, newestPath_, retention().isForGood(saved.step));
    return log_->write(SaveFigures{saved.step, saved.report->bytes, stallSeconds_,
                                   saved.report->seconds, saved.cpuSeconds, step});
  }
  const Error& error = saved.report.error();
  savedStep_ = -1;
  ++failedInARow_;
  if (recipe().onFailure == "continue" && !isLast && !store_->isBroken() &&
      failedInARow_ <= mostFailures) {
    log_->note("note: " + error.message());
    return log_->write(saved.step, "save_failures", ++failures_);
  }
  return Error{error.code(), fmt::format("{}; the run ends after step {}, and {}", error.message(),
                                         step, describeRestart())};
}

std::string Saves::describeRestart() const {
  // Of several ranks the launcher has a command line of its own.
  return describeNewest(*store_) +
         (session_->peers().isAlone() ? "; to go on: " + session_->options().goOn : "");
}

void Saves::checkProgress() const {
  const std::optional<checkpoint::WatchedEnv::Running> running = files_->running();
  if (!running || running->seconds < static_cast<double>(recipe().timeout))
    return;
  log_->finish();
  tell("error: the checkpoint of step {} makes no progress: to {} '{}' takes more than {} s, "
       "checkpoint.timeout; {}; the process stays until the system gives the operation back\n",
       savedStep_, running->verb, running->path, recipe().timeout, describeRestart());
  // Not by a return: what waits for the thread would wait for ever.
  ::_exit(static_cast<int>(ErrorCode::RunFailed));
}

} // namespace titan
