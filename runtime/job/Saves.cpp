#include "runtime/job/Saves.h"

#include "runtime/host/AvailableMemory.h"
#include "runtime/program/Process.h"
#include "runtime/program/Text.h"

#include <chrono>

#include <unistd.h>

namespace titan {
namespace {

using Clock = std::chrono::steady_clock;

/// Saves that may fail one after another before the run ends.
constexpr int64_t mostFailures = 2;

double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

} // namespace

std::string describeNewest(const checkpoint::CheckpointStore& store) {
  checkpoint::Env& files = checkpoint::posixEnv();
  const auto saved = checkpoint::listCheckpoints(files, store.directory());
  // A name alone is no checkpoint: something else may stand there.
  for (size_t i = saved.ok() ? saved->size() : 0; i-- > 0;)
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

Result<checkpoint::SaveRequest> Saves::request(int64_t step) const {
  return request(step, checkpoint::tensors(session_->access()));
}

Result<checkpoint::SaveRequest> Saves::request(int64_t step,
                                               std::vector<checkpoint::TensorView> tensors) const {
  checkpoint::SaveRequest request;
  request.step = step;
  request.tensors = std::move(tensors);
  request.counters = TITAN_TRY(checkpoint::counters(session_->access()));
  request.data = identity_.data;
  request.program = identity_.program;
  request.init = identity_.init;
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
    return {};
  }
  if (!recipe().onCommit.empty())
    TITAN_TRY(session_->peers().byFirst("the check of checkpoint.on_commit", [&] {
      return CommitHooks::check(recipe().onCommit, printNote);
    }));
  return store_->preflight(TITAN_TRY(request(step)), retention(),
                           recipe().preflight == "full" ? checkpoint::Probe::Whole
                                                        : checkpoint::Probe::Chunk);
}

Status Saves::prepare(int64_t savedStep) {
  savedStep_ = savedStep;
  // Of several ranks a save is an exchange, which would meet those of the steps.
  if (recipe().every == 0 || !recipe().async || !session_->peers().isAlone() ||
      session_->access().runsBehind())
    return {};
  snapshot_ = checkpoint::Snapshot::of(session_->access());
  if (!snapshot_)
    return {};
  if (const int64_t available = availableMemoryBytes(); snapshot_->bytes() > available) {
    session_->note(fmt::format("steps wait for saves: a copy of the state takes {}, and {} are "
                               "available",
                               readableBytes(snapshot_->bytes()), readableBytes(available)));
    snapshot_.reset();
    return {};
  }
  TITAN_TRY(snapshot_->reserve());
  saver_ = TITAN_TRY(checkpoint::BackgroundSaver::create(*store_));
  return {};
}

Status Saves::begin(int64_t step) {
  if (!saver_)
    return saveNow(step, /*isLast=*/false);
  const Clock::time_point start = Clock::now();
  if (recipe().whenBusy == "skip") {
    TITAN_TRY(look(step));
    if (saver_->isBusy()) {
      log_->note(
          fmt::format("note: step {} is not saved: the save of step {} goes on", step, savedStep_));
      return {};
    }
  }
  TITAN_TRY(await(step));
  TITAN_TRY(snapshot_->take());
  saver_->begin(TITAN_TRY(request(step, snapshot_->tensors())), retention());
  savedStep_ = step;
  stallSeconds_ = secondsSince(start);
  return {};
}

Status Saves::look(int64_t step) {
  if (hooks_)
    hooks_->look();
  if (!saver_ || !saver_->isBusy())
    return {};
  checkProgress();
  const std::optional<checkpoint::Saved> saved = saver_->poll();
  return saved ? end(*saved, step, /*isLast=*/false) : Status();
}

Status Saves::await(int64_t step, bool isLast) {
  if (!saver_ || !saver_->isBusy())
    return {};
  return end(saver_->wait([this] { checkProgress(); }), step, isLast);
}

Status Saves::finish(int64_t step) {
  TITAN_TRY(await(step, /*isLast=*/savedStep_ == step));
  if (savedStep_ != step)
    TITAN_TRY(saveNow(step, /*isLast=*/true));
  if (hooks_)
    hooks_->finish(std::chrono::seconds(recipe().hookTimeout));
  return {};
}

Status Saves::saveNow(int64_t step, bool isLast) {
  const Clock::time_point start = Clock::now();
  Result<checkpoint::SaveReport> report = store_->save(TITAN_TRY(request(step)), retention());
  savedStep_ = step;
  stallSeconds_ = secondsSince(start);
  return end({step, std::move(report), stallSeconds_}, step, isLast);
}

Status Saves::end(const checkpoint::Saved& saved, int64_t step, bool isLast) {
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
    return {};
  }
  return Error{error.code(), fmt::format("{}; the run ends after step {}, and {}", error.message(),
                                         step, describeNewest(*store_))};
}

void Saves::checkProgress() const {
  const std::optional<checkpoint::WatchedEnv::Operation> running = files_->running();
  if (!running || running->seconds < static_cast<double>(recipe().timeout))
    return;
  log_->finish();
  tell("error: the checkpoint of step {} makes no progress: to {} '{}' takes more than {} s, "
       "checkpoint.timeout; {}; the process stays until the system gives the operation back\n",
       savedStep_, running->verb, running->path, recipe().timeout, describeNewest(*store_));
  // Not by a return: what waits for the thread would wait for ever.
  ::_exit(static_cast<int>(ErrorCode::RunFailed));
}

} // namespace titan
