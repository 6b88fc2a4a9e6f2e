#include "runtime/job/Trainer.h"

#include "runtime/host/ResidentMemory.h"
#include "runtime/job/Averages.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace titan {
namespace {

constexpr std::chrono::milliseconds residentInterval{100};

Result<bool> allFinite(DType dtype, const ByteSource& source) {
  const auto elementBytes = static_cast<size_t>(byteSize(dtype));
  bool finite = true;
  TITAN_TRY(source.forEachPiece([&](std::span<const char> piece) -> Status {
    for (size_t i = 0; finite && i + elementBytes <= piece.size(); i += elementBytes)
      finite = std::isfinite(readScalar(dtype, piece.data() + i));
    return {};
  }));
  return finite;
}

bool isFloating(DType dtype) {
  return dtype == DType::F32 || dtype == DType::F64 || dtype == DType::BF16;
}

constexpr std::string_view advice = ": lower optimizer.lr or check the data";

Result<bool> holdsNonFinite(DType dtype, const ByteSource& source) {
  return isFloating(dtype) && !TITAN_TRY(allFinite(dtype, source));
}

/// The input of this rank that made the last step's loss or gradients non-finite, or nothing.
Result<std::string> inputCulprit(StateAccess& access) {
  for (const Binding& binding : access.program().findFunction("step")->bindings)
    if (binding.role == Binding::Role::Input &&
        TITAN_TRY(holdsNonFinite(binding.dtype, access.source(placeOf(binding)))))
      return fmt::format("input '{}' of the last batch holds non-finite values{}", binding.name,
                         advice);
  return std::string();
}

/// The first state whose part on this rank holds non-finite values, by its place in the program;
/// their number where there is none.
Result<size_t> nonFiniteState(StateAccess& access) {
  const std::vector<State>& states = access.program().states;
  size_t i = 0;
  while (i < states.size() && !TITAN_TRY(holdsNonFinite(states[i].dtype, access.valid(states[i]))))
    ++i;
  return i;
}

} // namespace

Trainer::Trainer(Session& session, checkpoint::CheckpointStore& store,
                 const checkpoint::WatchedEnv& files, Batches batches, RunIdentity identity)
    : session_(&session), store_(&store), batches_(std::move(batches)),
      saves_(session, store, files, log_, std::move(identity)) {}

Status Trainer::findScalars() {
  StateAccess& access = session_->access();
  loss_ = TITAN_TRY(metric(access, "step", "loss"));
  gradNorm_ = TITAN_TRY(metric(access, "step", "grad_norm"));
  lr_ = TITAN_TRY(metric(access, "step", "lr"));
  stepCounter_ = TITAN_TRY(counter(access, "step"));
  skippedCounter_ = TITAN_TRY(counter(access, "skipped"));
  if (const std::optional<Place> place = access.binding("step", "stop"))
    stop_ = TITAN_TRY(access.scalar(*place));
  stops_ = TITAN_TRY(metric(access, "step", "stop"));
  begun_ = step_ = stepCounter_.count();
  skipped_ = skippedCounter_.count();
  averageIntervals_ = session_->recipe().ema.intervals();
  return {};
}

Status Trainer::openLog() {
  const Recipe& recipe = session_->recipe();
  const auto ranks = static_cast<double>(session_->peers().count());
  log_ = TITAN_TRY(RunLog::open(
      store_->directory(),
      {.firstStep = step_,
       .steps = recipe.train.steps,
       .logEvery = recipe.train.logEvery,
       .flopsPerStep = session_->program().findFunction("step")->modelFlops,
       .peakFlops = ranks * session_->device().measureProducts(productType(session_->program()))}));
  return {};
}

Status Trainer::openLoader() {
  StateAccess& access = session_->access();
  const Dataset& dataset = batches_.dataset();
  const LoaderOptions options =
      loaderOptions(batches_, session_->recipe(), session_->peers().rank());
  const auto position = static_cast<uint64_t>(TITAN_TRY(counter(access, "samples")).count());
  if (DirectLoader::suits(dataset, batches_.sinks())) {
    loader_ = std::make_unique<DirectLoader>(dataset, options, position, session_->pool());
    return {};
  }
  const int64_t slot = BatchSlot::bytesFor(dataset, options.rows());
  const int64_t slots =
      PrefetchLoader::depthFor(slot) + (access.runsBehind() ? PrefetchLoader::mostOnTheWay : 0);
  loader_ = std::make_unique<PrefetchLoader>(dataset, options, position,
                                             TITAN_TRY(access.hostBuffer(slots * slot)));
  return {};
}

Result<std::unique_ptr<Trainer>>
Trainer::create(Session& session, checkpoint::CheckpointStore& store,
                const checkpoint::WatchedEnv& files, std::unique_ptr<Dataset> trainData,
                std::unique_ptr<Dataset> evalData, RunIdentity identity) {
  const Recipe& recipe = session.recipe();
  StateAccess& access = session.access();
  Batches batches = TITAN_TRY(Batches::create(std::move(trainData), access, "step"));
  std::unique_ptr<Trainer> trainer(
      new Trainer(session, store, files, std::move(batches), std::move(identity)));
  Trainer& t = *trainer;
  TITAN_TRY(t.findScalars());
  TITAN_TRY(t.saves_.preflight(t.step_));
  t.controls_ = TITAN_TRY(Controls::create(access, "step", recipe, recipe.train.seed));
  if (evalData)
    t.evaluator_ = TITAN_TRY(Evaluator::create(session, std::move(evalData)));
  t.last_.samples = t.batches_.globalSamples();
  t.last_.tokens = t.last_.samples * t.batches_.dataset().tokensPerSample();
  t.last_.memoryBytes = session.device().memoryBytes;
  TITAN_TRY(t.openLoader());
  TITAN_TRY(t.saves_.prepare(/*savedStep=*/t.step_ > 0 ? t.step_ : -1));
  if (const Peers& peers = session.peers(); peers.isFirst() && !peers.isAlone()) {
    t.stragglers_.emplace(peers.count());
    t.waited_.resize(static_cast<size_t>(peers.count()));
  }
  // The first files of a run, which stay: what refuses it comes before them.
  TITAN_TRY(session.peers().byFirst("the start of the log", [&] { return t.openLog(); }));
  return trainer;
}

/// Ranks leave after the step whose metrics say that one of them was asked to.
bool Trainer::isToStop() const {
  return stops_.exists() ? stops_.count() > 0 : signals_.received() != 0;
}

Status Trainer::run() {
  Status ended = runSteps();
  // Whatever ended the run: a save that was begun is finished.
  if (Status saved = saves_.await(step_); !saved.ok())
    log_.note("note: " + saved.error().message());
  // A card that failed answers every call with its error.
  const bool isLost =
      !ended.ok() && session_->access().runsBehind() && !session_->device().device->wait({}).ok();
  return isLost ? Status(located(ended.takeError())) : ended;
}

Error Trainer::located(const Error& error) const {
  return {error.code(), fmt::format("{}; it came after step {}, and {}", error.message(), step_,
                                    describeNewest(*store_))};
}

Status Trainer::runSteps() {
  const Recipe& recipe = session_->recipe();
  beginSteps();
  while (begun_ < recipe.train.steps && !isToStop()) {
    if (Status begun = beginStep(); !begun.ok()) {
      TITAN_TRY(endSteps(0)); // what was done before is told
      return begun;
    }
    const bool evaluates = evaluator_ && begun_ % recipe.train.evalEvery == 0;
    const bool saves = recipe.checkpoint.every > 0 && begun_ % recipe.checkpoint.every == 0;
    TITAN_TRY(endSteps(1));
    const bool averages = mayMoveAverages();
    if (averages || evaluates || saves || !mayRunAhead())
      TITAN_TRY(endSteps(0));
    if (averages && last_.skipped == Skip::No)
      TITAN_TRY(moveAverages());
    if (evaluates)
      TITAN_TRY(evaluate());
    if (saves)
      TITAN_TRY(saves_.begin(step_));
    if (evaluates || saves)
      beginSteps();
    TITAN_TRY(saves_.look(step_));
  }
  TITAN_TRY(endSteps(0));
  TITAN_TRY(saves_.finish(step_));
  log_.finish();
  if (isToStop() && step_ < recipe.train.steps)
    log_.note(fmt::format("stopped by {} after step {}",
                          signals_.received() != 0 ? signals_.name() : "a signal to another rank",
                          step_));
  return {};
}

void Trainer::beginSteps() {
  stepStart_ = Clock::now();
  session_->peers().readWaits(waited_);
  if (stragglers_)
    stragglers_->begin(waited_);
}

/// Of the step that has ended.
void Trainer::noteWaits() {
  if (!stragglers_)
    return;
  session_->peers().readWaits(waited_);
  const Stragglers::Step step = stragglers_->end(last_.seconds, waited_);
  last_.waitSeconds = step.waitSeconds;
  last_.slowestRank = step.slowestRank;
  if (const std::optional<std::string> verdict = stragglers_->verdict())
    log_.note("note: " + *verdict);
}

bool Trainer::mayMoveAverages() const {
  const int64_t most = updates() + begun_ - step_;
  return std::ranges::any_of(averageIntervals_, [&](int64_t every) { return most % every == 0; });
}

Status Trainer::moveAverages() {
  for (int64_t every : averageIntervals_)
    if (updates() % every == 0)
      TITAN_TRY(session_->executor().run(averageFunction(every)));
  return {};
}

/// Not where a step decides on the next one: on the CPU it is done anyway, of several ranks one may
/// ask to stop, and at the limit of skipped steps its batch and state are looked at.
bool Trainer::mayRunAhead() const {
  const int64_t limit = session_->recipe().train.nonFiniteLimit;
  return session_->access().runsBehind() && !stops_.exists() &&
         (limit == 0 || skippedInARow_ + begun_ - step_ < limit);
}

Status Trainer::endSteps(int64_t most) {
  while (begun_ - step_ > most)
    TITAN_TRY(endStep());
  return {};
}

Status Trainer::beginStep() {
  TITAN_TRY(loader_->next(batches_.sinks()));
  controls_->write();
  if (stop_.exists())
    stop_.write(int64_t{signals_.received() != 0});
  session_->peers().setStep(begun_ + 1);
  TITAN_TRY(session_->executor().begin("step"));
  ++begun_;
  return {};
}

Status Trainer::endStep() {
  TITAN_TRY(session_->access().finish());
  last_.step = ++step_;
  if (stepCounter_.count() != step_)
    return Error::internal("the device counts step {} where the run is at step {}",
                           stepCounter_.count(), step_);
  const int64_t skipped = skippedCounter_.count();
  last_.loss = static_cast<float>(loss_.read());
  last_.gradNorm = static_cast<float>(gradNorm_.read());
  // A step is skipped because loss or gradients are not finite, or because no target counts.
  const bool finite = std::isfinite(last_.loss) && std::isfinite(last_.gradNorm);
  last_.skipped = skipped == skipped_ ? Skip::No
                  : finite            ? Skip::NoValidTargets
                                      : Skip::NonFiniteGradients;
  skipped_ = skipped;
  ++stepsRun_;
  if (last_.skipped != Skip::No)
    ++skips_[last_.skipped];
  last_.lr = static_cast<float>(lr_.read(session_->recipe().optimizer.lr));
  const Clock::time_point end = Clock::now();
  // Not in every step: the system writes a page of text for each answer.
  if (end - residentRead_ >= residentInterval || step_ == session_->recipe().train.steps) {
    last_.residentBytes = peakResidentBytes();
    residentRead_ = end;
  }
  last_.seconds = std::chrono::duration<double>(end - stepStart_).count();
  stepStart_ = end;
  noteWaits();
  TITAN_TRY(log_.write(last_));
  return checkSkipped();
}

std::string Trainer::skippedSteps() const {
  int64_t all = 0;
  std::string causes;
  for (const auto& [cause, count] : skips_) {
    all += count;
    causes += causes.empty() ? "" : ", ";
    causes += skips_.size() > 1 ? fmt::format("{} {}", count, nameOf(cause)) : nameOf(cause);
  }
  return all == 0 ? "" : fmt::format("skipped {} of {} steps ({})", all, stepsRun_, causes);
}

/// Why the last step was skipped, as far as inputs and state show, and what to do.
Result<std::string> Trainer::culprit() {
  if (last_.skipped == Skip::NoValidTargets)
    return std::string("the last batch has no valid target, every one is loss.ignore_index: check "
                       "the targets and loss.ignore_index");
  Peers& peers = session_->peers();
  StateAccess& access = session_->access();
  constexpr std::string_view name = "the search for non-finite values";
  const std::vector<std::string> inputs =
      TITAN_TRY(peers.exchange(name, TITAN_TRY(inputCulprit(access))));
  for (size_t rank = 0; rank < inputs.size(); ++rank)
    if (!inputs[rank].empty())
      return peers.isAlone() ? inputs[rank] : fmt::format("rank {}: {}", rank, inputs[rank]);
  // Each rank has looked at its parts.
  size_t first = access.program().states.size();
  for (const std::string& found :
       TITAN_TRY(peers.exchange(name, std::to_string(TITAN_TRY(nonFiniteState(access))))))
    first = std::min<size_t>(first, std::stoul(found));
  if (first < access.program().states.size())
    return fmt::format("'{}' holds non-finite values{}", access.program().states[first].name,
                       advice);
  return std::isfinite(last_.loss)
             ? fmt::format("the gradient norm is {}{}", last_.gradNorm, advice)
             : fmt::format("the loss is {} on finite inputs and weights{}", last_.loss, advice);
}

Status Trainer::checkSkipped() {
  skippedInARow_ = last_.skipped != Skip::No ? skippedInARow_ + 1 : 0;
  const int64_t limit = session_->recipe().train.nonFiniteLimit;
  if (limit == 0 || skippedInARow_ < limit)
    return {};
  log_.finish();
  return session_->peers().together(Error::runFailed(
      "the updates of steps {} to {} were skipped, train.non_finite_limit = {}: {}",
      step_ - skippedInARow_ + 1, step_, limit, TITAN_TRY(culprit())));
}

Status Trainer::evaluate() {
  const TrainRecipe& train = session_->recipe().train;
  TITAN_TRY(log_.write(step_, TITAN_TRY(evaluator_->run(train.evalBatches))));
  const std::map<std::string, EmaProfile>& profiles = session_->recipe().ema.profiles;
  for (const std::string& profile : train.evalEma) {
    if (!profiles.at(profile).whyNone(updates()).empty())
      continue;
    TITAN_TRY(exchangeAverages(session_->access(), profile));
    Result<Evaluation> evaluation = evaluator_->run(train.evalBatches);
    TITAN_TRY(exchangeAverages(session_->access(), profile));
    TITAN_TRY(log_.write(step_, TITAN_TRY(std::move(evaluation)), profile));
  }
  return {};
}

} // namespace titan
