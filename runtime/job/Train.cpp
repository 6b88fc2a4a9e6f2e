#include "runtime/job/Train.h"

#include "runtime/job/Agreement.h"
#include "runtime/job/Averages.h"
#include "runtime/job/Overrides.h"
#include "runtime/job/ProductFile.h"
#include "runtime/job/Resume.h"
#include "runtime/job/Trainer.h"
#include "runtime/program/Process.h"
#include "runtime/program/Text.h"

#include <algorithm>

namespace titan {
namespace {

/// Of products that a library is offered: "products by oneDNN 2.6.3", "generated products", or
/// both.
std::string productsText(const Program& program, const ChosenDevice& device) {
  if (device.gemmVersion.empty())
    return device.gemm + " products";
  const auto hasAny = [&](bool generated) {
    return std::ranges::any_of(program.libraryCalls, [&](const LibraryCall& call) {
      return call.routine == LibraryRoutine::Gemm && call.generated == generated;
    });
  };
  if (!hasAny(/*generated=*/false))
    return "generated products";
  return fmt::format("products by {} {}{}", device.products.library.empty() ? "oneDNN" : "cuBLASLt",
                     device.gemmVersion, hasAny(/*generated=*/true) ? ", others generated" : "");
}

/// ", attention by cuDNN 9.19.0" where a library might compute it.
std::string attentionText(const LibraryChoices& attention) {
  if (attention.library.empty())
    return "";
  return attention.library == LibraryChoices::generated
             ? ", generated attention"
             : fmt::format(", attention by cuDNN {}", attention.version);
}

/// The first line of a run: what trains on what.
void printHeader(const Session& session) {
  if (!session.peers().isFirst())
    return;
  const Program& program = session.program();
  const Recipe& recipe = session.recipe();
  int64_t parameters = 0;
  for (const State& state : program.states)
    parameters += state.kind == StateKind::Param ? elementCount(state.shape) : 0;
  const bool alone = session.peers().isAlone();
  tell("{}: {} parameters, batch {} = {} x {}{}, {}, {}{}, arena {}\n", program.model, parameters,
       recipe.batch.global, recipe.globalMicrobatches(), recipe.batch.micro,
       alone ? "" : " on " + describeRanks(program.mesh), session.device().name,
       productsText(program, session.device()), attentionText(session.device().attention),
       readableBytes(program.arenaBytes));
}

/// The seed of the run: a resumed run keeps the one it started with.
Status adoptSeed(Session& session, const Start& start) {
  if (!start.manifest)
    return {};
  int64_t& seed = session.recipe().train.seed;
  const int64_t saved = start.manifest->data.seed;
  if (setsKey(session.options(), "train.seed") && seed != saved)
    return Error::usage(
        "train.seed = {}, but the run was started with {}: a seed can be set on a fresh run only",
        seed, saved);
  if (seed != saved)
    session.note(fmt::format("train.seed = {} is for a fresh run: this one goes on with {}, with "
                             "which it was started",
                             seed, saved));
  seed = saved;
  return {};
}

void noteDataDifferences(const Session& session, const checkpoint::DataInfo& saved,
                         const checkpoint::DataInfo& current) {
  if (saved.digest.empty()) // imported weights know no data
    return;
  if (saved.digest != current.digest || saved.length != current.length)
    session.note(
        fmt::format("the training data differs from the run's: {} samples (digest {}) were {} ({})",
                    current.length, current.digest, saved.length, saved.digest));
}

/// Renames what the run does not go on from. Only now, when its start is loaded: a refusal leaves
/// everything as it was.
Status setAside(checkpoint::CheckpointStore& store, const Start& start) {
  if (!start.setAsideAfter)
    return {};
  for (const std::string& damage : start.damage)
    printNote(damage);
  for (const std::string& path : TITAN_TRY(store.setAsideAfter(*start.setAsideAfter)))
    printNote(fmt::format("set aside as '{}'", path));
  return {};
}

/// Loads what the run starts from; returns the run's --init.
Result<checkpoint::InitInfo> loadStart(Session& session, const Start& start,
                                       const checkpoint::DataInfo& data) {
  const JobOptions& options = session.options();
  if (!start.checkpoint.empty()) {
    const checkpoint::LoadRequest request = TITAN_TRY(requestForTraining(session));
    checkpoint::LoadReport report = TITAN_TRY(start.load(options.out, request));
    if (session.peers().isFirst())
      tell("resumed from {} at step {}\n", start.checkpoint, report.manifest.step);
    for (const std::string& message : report.notes)
      session.note(message);
    TITAN_TRY(startAverages(session, report.manifest));
    noteDataDifferences(session, report.manifest.data, data);
    if (!options.init.empty() && options.init != report.manifest.init.source)
      session.note(fmt::format("--init {} is for a fresh run and was not read", options.init));
    return report.manifest.init;
  }
  if (!options.emaStart.empty() || !options.emaDrop.empty())
    session.note("--ema-start and --ema-drop are for a run that goes on: this one begins, and its "
                 "averages with the first update");
  if (options.init.empty())
    return checkpoint::InitInfo();
  checkpoint::InitReport report = TITAN_TRY(checkpoint::loadWeights(
      options.init, {checkpoint::destinations(session.access()), options.fresh, options.renames,
                     &session.peers(), session.program().mesh, options.ignored, options.cast}));
  for (const std::string& message : report.notes)
    session.note(message);
  return std::move(report.init);
}

struct RunData {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> eval; ///< null: the run does not evaluate
};

Result<RunData> openData(const Session& session) {
  const Recipe& recipe = session.recipe();
  RunData data;
  data.train = TITAN_TRY(openFunctionData(session.program(), "step", recipe));
  if (recipe.train.evalEvery == 0)
    return data;
  if (recipe.data.eval.empty())
    return Error::badInput("train.eval_every = {}, but data.eval names no file",
                           recipe.train.evalEvery);
  data.eval = TITAN_TRY(openFunctionData(session.program(), "eval", recipe));
  return data;
}

/// Writes beside the run's checkpoints what the libraries compute by which algorithm.
Status writeChoices(const Session& session) {
  const std::string folder = session.options().out + "/";
  if (const LibraryChoices& products = session.device().products; !products.library.empty())
    TITAN_TRY(writeProducts(folder + productFileName, products));
  if (const LibraryChoices& attention = session.device().attention; !attention.algorithms.empty())
    TITAN_TRY(writeProducts(folder + attentionFileName, attention));
  return {};
}

/// All that comes before the first step, in the run directory that rank 0 has locked for all. Null
/// where there is nothing to do.
Result<std::unique_ptr<Trainer>> beginRun(Session& session, checkpoint::CheckpointStore& store,
                                          const checkpoint::WatchedEnv& files, RunData data) {
  const JobOptions& options = session.options();
  Peers& peers = session.peers();
  TITAN_TRY(checkIsShared(peers, options.out));
  peers.setRunDirectory(options.out);
  Start start = TITAN_TRY(chooseTogether(peers, [&] { return chooseStart(options, store); }));
  TITAN_TRY(peers.together(adoptSeed(session, start)));
  const int64_t seed = session.recipe().train.seed;
  TITAN_TRY(session.start(static_cast<uint64_t>(seed),
                          start.products(session.program().target.kind), start.firstState()));

  printHeader(session);
  RunIdentity identity;
  identity.data = {fmt::format("{:016x}", data.train->digest()), data.train->size(), seed};
  identity.program = session.describe();
  identity.init = TITAN_TRY(loadStart(session, start, identity.data));
  start.hold.reset();
  TITAN_TRY(peers.byFirst("setting aside", [&] { return setAside(store, start); }));
  const int64_t step = TITAN_TRY(counter(session.access(), "step")).count();
  if (!start.checkpoint.empty() && step >= session.recipe().train.steps) {
    session.note(fmt::format(
        "the run is at step {}, train.steps = {}: nothing to do, raise --steps to go on", step,
        session.recipe().train.steps));
    return std::unique_ptr<Trainer>();
  }
  return Trainer::create(session, store, files, std::move(data.train), std::move(data.eval),
                         std::move(identity));
}

} // namespace

Status trainJob(Session& session) {
  Peers& peers = session.peers();
  // Whatever can be wrong with the input shows before the run directory is touched.
  RunData data = TITAN_TRY(peers.agree("the data", openData(session)));
  TITAN_TRY(agreeOnData(peers, "data.train", *data.train));
  if (data.eval)
    TITAN_TRY(agreeOnData(peers, "data.eval", *data.eval));
  checkpoint::Env* const given = session.image().files;
  checkpoint::WatchedEnv files(given ? *given : checkpoint::posixEnv());
  auto store = TITAN_TRY(checkpoint::CheckpointStore::open(session.options().out, peers, files));
  Result<std::unique_ptr<Trainer>> begun = beginRun(session, store, files, std::move(data));
  if (!begun.ok()) {
    store.takeBack();
    return begun.takeError();
  }
  const std::unique_ptr<Trainer> trainer = begun.take();
  if (!trainer)
    return {};
  TITAN_TRY(writeChoices(session));
  TITAN_TRY(trainer->run());
  if (!peers.isFirst())
    return {};
  const std::string skipped = trainer->skippedSteps();
  fmt::print("step {}  loss {:.6g}{}  checkpoint {}\n", trainer->step(), trainer->loss(),
             skipped.empty() ? "" : "  " + skipped, trainer->savedPath());
  return {};
}

} // namespace titan
