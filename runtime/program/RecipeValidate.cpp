// The checks of a recipe that need no model: ranges, known values, the batch's division.
#include "runtime/program/Affine.h"
#include "runtime/program/Names.h"
#include "runtime/program/RecipeSchema.h"
#include "runtime/program/Strategy.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <ranges>
#include <set>

namespace titan {

namespace {

Status checkChoices(const Recipe& recipe) {
  for (const recipe::Key& key : recipe::keys()) {
    if (key.choices.empty())
      continue;
    const recipe::Json value = key.get(recipe);
    if (value.is_string() && !recipe::isChoice(key.choices, value.get<std::string>()))
      return Error::badInput("{} = \"{}\" is not known: use {}", key.path(),
                             value.get<std::string>(), key.choices);
  }
  return {};
}

/// Integers must be at least `least`.
Status checkLeast(const char* key, int64_t value, int64_t least) {
  if (value < least)
    return Error::badInput("{} = {} must be at least {}", key, value, least);
  return {};
}

/// Numbers must be in [low, high), or in [low, high] with `closed`.
Status checkRange(const char* key, double value, double low, double high, bool closed = false) {
  if (value >= low && (value < high || (closed && value == high)))
    return {};
  if (std::isinf(high))
    return Error::badInput("{} = {} must be at least {}", key, value, low);
  return Error::badInput("{} = {} must be in [{}, {}{}", key, value, low, high, closed ? ']' : ')');
}

/// Values of another distribution are a mistake; the defaults may be written out.
Status checkInitRule(const InitRule& rule) {
  if (rule.match.empty())
    return Error::badInput("a [[model.init_rule]] needs match, a pattern of parameter names");
  if (!recipe::isChoice("normal | uniform | constant", rule.dist))
    return Error::badInput("model.init_rule '{}': dist = \"{}\" is not known: use normal, "
                           "uniform or constant",
                           rule.match, rule.dist);
  struct Value {
    std::string_view dist, name;
    double value, byDefault;
  };
  const InitRule defaults;
  for (const Value& value : {Value{"normal", "mean", rule.mean, defaults.mean},
                             {"normal", "std", rule.std, defaults.std},
                             {"uniform", "low", rule.low, defaults.low},
                             {"uniform", "high", rule.high, defaults.high},
                             {"constant", "value", rule.value, defaults.value}})
    if (value.dist != rule.dist && value.value != value.byDefault)
      return Error::badInput("model.init_rule '{}': {} = {} is for dist = \"{}\", \"{}\" has no "
                             "use for it",
                             rule.match, value.name, value.value, value.dist, rule.dist);
  TITAN_TRY(checkRange("model.init_rule.std", rule.std, 0, INFINITY));
  if (rule.dist == "uniform" && !(rule.low < rule.high))
    return Error::badInput("model.init_rule '{}': low = {} must be below high = {}", rule.match,
                           rule.low, rule.high);
  return {};
}

Status checkModel(const ModelRecipe& model) {
  for (const auto& [dim, size] : model.dims)
    TITAN_TRY(checkLeast(("model.dims." + dim).c_str(), size, 1));
  if (!model.initRules.empty() && model.init != "fresh")
    return Error::badInput("model.init = \"{}\" has no use for [[model.init_rule]]: set it to "
                           "\"fresh\" or remove the rules",
                           model.init);
  for (const InitRule& rule : model.initRules)
    TITAN_TRY(checkInitRule(rule));
  return {};
}

/// Values of another kind of loss are a mistake; the defaults may be written out.
Status checkLoss(const LossRecipe& loss) {
  const std::vector<double>& weights = loss.classWeights;
  for (size_t i = 0; i < weights.size(); ++i)
    TITAN_TRY(
        checkRange(fmt::format("loss.class_weights[{}]", i).c_str(), weights[i], 0, INFINITY));
  if (!weights.empty() && std::ranges::all_of(weights, [](double weight) { return weight == 0; }))
    return Error::badInput("loss.class_weights are all 0: no target would count");
  if (loss.kind != "output" && loss.target.empty())
    return Error::badInput("loss.target is empty: name the data field with the targets");
  TITAN_TRY(checkRange("loss.label_smoothing", loss.labelSmoothing, 0, 1));
  if (loss.classDim == 0)
    return Error::badInput("loss.class_dim = 0 is the batch, not the classes");
  if (loss.kind == "cross_entropy")
    return {};
  if (!weights.empty())
    return Error::badInput(
        "loss.class_weights are for cross_entropy, loss.kind = \"{}\" has no use for them",
        loss.kind);
  if (loss.labelSmoothing != 0)
    return Error::badInput("loss.label_smoothing = {} is for cross_entropy, loss.kind = \"{}\" has "
                           "no use for it",
                           loss.labelSmoothing, loss.kind);
  // Where the model computes its loss, an input of it may be the target.
  if (loss.kind != "output" && loss.ignoreIndex != LossRecipe().ignoreIndex)
    return Error::badInput("loss.ignore_index = {} is for cross_entropy, loss.kind = \"{}\" has no "
                           "use for it",
                           loss.ignoreIndex, loss.kind);
  if (loss.classDim != LossRecipe().classDim)
    return Error::badInput(
        "loss.class_dim = {} is for cross_entropy, loss.kind = \"{}\" has no use "
        "for it",
        loss.classDim, loss.kind);
  return {};
}

Status checkOptimizer(const OptimizerRecipe& optimizer) {
  TITAN_TRY(checkRange("optimizer.lr", optimizer.lr, 0, INFINITY));
  TITAN_TRY(checkRange("optimizer.betas[0]", optimizer.beta1, 0, 1));
  TITAN_TRY(checkRange("optimizer.betas[1]", optimizer.beta2, 0, 1));
  TITAN_TRY(checkRange("optimizer.eps", optimizer.eps, 0, INFINITY));
  TITAN_TRY(checkRange("optimizer.weight_decay", optimizer.weightDecay, 0, INFINITY));
  TITAN_TRY(checkRange("optimizer.momentum", optimizer.momentum, 0, 1));
  TITAN_TRY(checkRange("optimizer.clip_norm", optimizer.clipNorm, 0, INFINITY));
  if (optimizer.momentum != 0 && optimizer.kind != "sgd")
    return Error::badInput("optimizer.momentum = {} is for sgd; {} has betas", optimizer.momentum,
                           optimizer.kind);
  const OptimizerRecipe defaults;
  if (optimizer.kind == "sgd" &&
      std::pair(optimizer.beta1, optimizer.beta2) != std::pair(defaults.beta1, defaults.beta2))
    return Error::badInput("optimizer.betas = [{}, {}] are for adam and adamw; sgd has momentum",
                           optimizer.beta1, optimizer.beta2);
  if (optimizer.kind == "sgd" && optimizer.eps != defaults.eps)
    return Error::badInput("optimizer.eps = {} is for adam and adamw; sgd has none", optimizer.eps);
  if (optimizer.nesterov && optimizer.momentum == 0)
    return Error::badInput("optimizer.nesterov = true needs optimizer.momentum above 0");
  for (const OptimizerGroup& group : optimizer.groups) {
    if (group.match.empty())
      return Error::badInput("an [[optimizer.group]] needs match, a pattern of parameter names");
    TITAN_TRY(checkRange("optimizer.group.lr_scale", group.lrScale, 0, INFINITY));
    TITAN_TRY(
        checkRange("optimizer.group.weight_decay", group.weightDecay.value_or(0), 0, INFINITY));
  }
  return {};
}

Status checkSchedule(const ScheduleRecipe& schedule, const TrainRecipe& train) {
  TITAN_TRY(checkLeast("schedule.warmup_steps", schedule.warmupSteps, 0));
  TITAN_TRY(checkLeast("schedule.steps", schedule.steps, 0));
  TITAN_TRY(checkRange("schedule.min_lr_ratio", schedule.minLrRatio, 0, 1, /*closed=*/true));
  const int64_t steps = schedule.steps > 0 ? schedule.steps : train.steps;
  if (schedule.kind != "constant" && schedule.warmupSteps > steps)
    return Error::badInput("schedule.warmup_steps = {} is more than the schedule's {} steps: set "
                           "schedule.steps or train.steps higher",
                           schedule.warmupSteps, steps);
  return {};
}

Status checkAxes(const std::vector<MeshAxis>& axes) {
  const std::vector<MeshAxis> known = MeshRecipe().axes;
  std::set<std::string_view> names;
  int64_t ranks = 1;
  for (const MeshAxis& axis : axes) {
    if (std::ranges::find(known, axis.name, &MeshAxis::name) == known.end())
      return Error::badInput("mesh.axes has an axis '{}': known are replicate, shard and tensor",
                             axis.name);
    if (!names.insert(axis.name).second)
      return Error::badInput("mesh.axes has '{}' twice", axis.name);
    TITAN_TRY(checkLeast(("mesh.axes." + axis.name).c_str(), axis.ranks, 1));
    constexpr int64_t most = std::numeric_limits<int32_t>::max();
    if (__builtin_mul_overflow(ranks, axis.ranks, &ranks) || ranks > most)
      return Error::badInput("mesh.axes.{} = {} makes more than {} ranks", axis.name, axis.ranks,
                             most);
  }
  return {};
}

/// A strategy is for meshes with ranks on the axes along which it does something.
Status checkStrategy(const MeshRecipe& mesh) {
  bool isKnown = false;
  for (const MeshAxis& axis : mesh.axes) {
    const StrategyRow* row = findStrategyRow(mesh.strategy, axis.name);
    isKnown |= row != nullptr;
    if (row && row->needsRanks && axis.ranks == 1)
      return Error::badInput("mesh.strategy = \"{}\" {} over axis '{}', which has 1 rank: set "
                             "mesh.axes.{}",
                             mesh.strategy,
                             row->slots == Share::Part ? "shards" : "replicates what it shards",
                             axis.name, axis.name);
  }
  if (!isKnown)
    return Error::badInput("mesh.strategy = \"{}\" on more than one rank is not available yet: use "
                           "\"ddp\", \"zero1\", \"zero2\", \"fsdp\" or \"hsdp\"",
                           mesh.strategy);
  if (mesh.outer != "none")
    return Error::badInput("mesh.outer = \"{}\" is not available yet: use \"none\"", mesh.outer);
  return {};
}

/// What is not there for more than one rank. One rank has no use for any of it.
Status checkManyRanks(const MeshRecipe& mesh) {
  for (const MeshAxis& axis : mesh.axes)
    if (!isDataAxis(axis.name) && axis.ranks > 1)
      return Error::badInput("mesh.axes.{} = {}: a model that is divided among ranks is not "
                             "available yet: set it to 1",
                             axis.name, axis.ranks);
  TITAN_TRY(checkStrategy(mesh));
  if (!mesh.tensorRules.empty())
    return Error::badInput("mesh.tensor_rules on more than one rank are not available yet: remove "
                           "them");
  return {};
}

/// Words of a table by axis; the word for all is a choice of the key.
Status checkSync(const SyncRecipe& sync) {
  constexpr std::string_view words = "deferred | immediate";
  for (const auto& [axis, word] : sync.byAxis) {
    if (axis != "replicate" && axis != "shard")
      return Error::badInput("mesh.sync has an axis '{}': gradients are summed over replicate and "
                             "shard",
                             axis);
    if (!recipe::isChoice(words, word))
      return Error::badInput("mesh.sync.{} = \"{}\" is not known: use {}", axis, word, words);
  }
  return {};
}

/// The numbers next to `value` that divide `whole`, as "2 or 4".
std::string divisorsNear(int64_t value, int64_t whole) {
  int64_t below = std::min(value, whole), above = below;
  while (whole % below != 0)
    --below;
  while (whole % above != 0)
    ++above;
  return below == above ? fmt::format("{}", below) : fmt::format("{} or {}", below, above);
}

/// When the ranks sum: one answer for each axis, and one that the step's microbatches allow.
Status checkSums(const MeshRecipe& mesh, int64_t microbatches) {
  const auto isImmediate = [&](std::string_view name) {
    return std::ranges::any_of(mesh.axes, [&](const MeshAxis& axis) {
      return axis.name == name && axis.ranks > 1 && mesh.sync.isImmediate(axis.name);
    });
  };
  const bool overShard = isImmediate("shard"), overReplicate = isImmediate("replicate");
  const bool hasShard = std::ranges::any_of(
      mesh.axes, [](const MeshAxis& axis) { return axis.name == "shard" && axis.ranks > 1; });
  if (overReplicate && hasShard && !overShard)
    return Error::badInput("mesh.sync = {{ replicate = \"immediate\", shard = \"deferred\" }} sums "
                           "over more ranks each microbatch and over fewer once a step: make shard "
                           "immediate, too, or replicate deferred");
  if (mesh.syncEvery == 0)
    return {};
  if (overShard || overReplicate)
    return Error::badInput("mesh.sync_every = {} contradicts mesh.sync, by which ranks sum each "
                           "microbatch: set one of them",
                           mesh.syncEvery);
  if (microbatches % mesh.syncEvery != 0)
    return Error::badInput("mesh.sync_every = {} does not divide the {} microbatches of a rank: "
                           "use {}",
                           mesh.syncEvery, microbatches,
                           divisorsNear(mesh.syncEvery, microbatches));
  return {};
}

Status checkMesh(const MeshRecipe& mesh) {
  TITAN_TRY(checkAxes(mesh.axes));
  TITAN_TRY(checkSync(mesh.sync));
  TITAN_TRY(checkLeast("mesh.sync_every", mesh.syncEvery, 0));
  TITAN_TRY(checkLeast("mesh.bucket", mesh.bucket, 0));
  TITAN_TRY(checkLeast("mesh.prefetch", mesh.prefetch, 0));
  if (mesh.prefetch > MeshRecipe::maxPrefetch)
    return Error::badInput("mesh.prefetch = {} must be at most {}", mesh.prefetch,
                           MeshRecipe::maxPrefetch);
  TITAN_TRY(checkLeast("mesh.warn_after", mesh.warnAfter, 0));
  TITAN_TRY(checkLeast("mesh.kill_after", mesh.killAfter, 0));
  const bool isOneRank =
      std::ranges::all_of(mesh.axes, [](const MeshAxis& axis) { return axis.ranks == 1; });
  return isOneRank ? Status() : checkManyRanks(mesh);
}

Status checkBatch(const BatchRecipe& batch, int64_t dataRanks) {
  TITAN_TRY(checkLeast("batch.micro", batch.micro, 1));
  TITAN_TRY(checkLeast("batch.global", batch.global, 1));
  int64_t unit;
  if (__builtin_mul_overflow(batch.micro, dataRanks, &unit))
    return Error::badInput("batch.micro = {} x data ranks {} is too large", batch.micro, dataRanks);
  if (batch.global % unit == 0)
    return {};
  const int64_t below = batch.global / unit * unit;
  const std::string suggestion =
      below > 0 ? fmt::format("{} or {}", below, below + unit) : fmt::format("{}", unit);
  return Error::badInput(
      "batch.global = {} is not a multiple of micro {} x data ranks {} = {}: use {}", batch.global,
      batch.micro, dataRanks, unit, suggestion);
}

bool isPowerOfTwo(int64_t value) { return std::has_single_bit(static_cast<uint64_t>(value)); }

/// The powers of two around `value` that are at least `least`, times `unit`: "4 or 8".
std::string powersNear(int64_t value, int64_t least = 2, int64_t unit = 1) {
  const auto below = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(value)));
  return below < least ? fmt::format("{}", 2 * below * unit)
                       : fmt::format("{} or {}", below * unit, 2 * below * unit);
}

/// An axis is some levels of a tree: those of replicate lie above those of shard.
Status checkTreeAxes(const std::vector<MeshAxis>& axes) {
  bool isInsideOfShard = false;
  for (const MeshAxis& axis : axes) {
    if (!isDataAxis(axis.name) || axis.ranks == 1)
      continue;
    if (!isPowerOfTwo(axis.ranks))
      return Error::badInput(
          "mesh.reduce = \"tree\" adds by twos: mesh.axes.{} = {} is no power of "
          "two: use {}",
          axis.name, axis.ranks, powersNear(axis.ranks));
    if (isInsideOfShard)
      return Error::badInput(
          "mesh.reduce = \"tree\" sums over shard before it sums over replicate: "
          "write replicate in front of shard in mesh.axes");
    isInsideOfShard = axis.name == "shard";
  }
  return {};
}

Status checkTreeBatch(const Recipe& recipe) {
  constexpr int64_t most = int64_t{1} << maxRepeatDepth;
  const int64_t microbatches = recipe.globalMicrobatches();
  if (!isPowerOfTwo(microbatches))
    return Error::badInput(
        "mesh.reduce = \"tree\" adds by twos: batch.global = {} is {} microbatches "
        "of {}, no power of two: use {}",
        recipe.batch.global, microbatches, recipe.batch.micro,
        powersNear(microbatches, recipe.dataRanks(), recipe.batch.micro));
  if (recipe.localMicrobatches() > most)
    return Error::badInput(
        "mesh.reduce = \"tree\" keeps a sum for each level: {} microbatches of a "
        "rank are more than {}: set batch.micro higher",
        recipe.localMicrobatches(), most);
  return {};
}

/// What no tree of sums can be made for, the same on any number of ranks.
Status checkTree(const Recipe& recipe) {
  TITAN_TRY(checkTreeAxes(recipe.mesh.axes));
  TITAN_TRY(checkTreeBatch(recipe));
  if (recipe.precision.reduceDtype != "f32")
    return Error::badInput(
        "mesh.reduce = \"tree\" sums in f32: precision.reduce_dtype = \"{}\" would "
        "round on some meshes only",
        recipe.precision.reduceDtype);
  if (recipe.mesh.syncEvery > 0)
    return Error::badInput(
        "mesh.reduce = \"tree\" has no place for a sum after mesh.sync_every = {} "
        "microbatches: set mesh.sync",
        recipe.mesh.syncEvery);
  return {};
}

Status checkData(const DataRecipe& data) {
  if (data.scale == 0)
    return Error::badInput("data.scale = 0 makes every value the same");
  for (double std : data.std)
    if (!(std > 0))
      return Error::badInput("data.std = {} must be above 0", std);
  if (data.mean.size() > 1 && data.std.size() > 1 && data.mean.size() != data.std.size())
    return Error::badInput("data.mean has {} values, data.std has {}: give one each, or one per "
                           "channel",
                           data.mean.size(), data.std.size());
  return {};
}

Status checkEma(const EmaRecipe& ema, const std::vector<std::string>& evaluated) {
  for (const auto& [name, profile] : ema.profiles) {
    if (!isProfileName(name))
      return Error::badInput("ema.profiles has a profile '{}': a name is letters, digits and '_'",
                             name);
    const std::string path = "ema.profiles." + name;
    TITAN_TRY(checkRange((path + ".decay").c_str(), profile.decay, 0, 1));
    TITAN_TRY(checkLeast((path + ".every").c_str(), profile.every, 1));
  }
  if (!ema.buffers.empty() && ema.profiles.empty())
    return Error::badInput("ema.buffers are averaged by ema.profiles, and there are none");
  for (const std::string& name : evaluated)
    if (!ema.profiles.contains(name))
      return Error::badInput("train.eval_ema names '{}': [ema] has {} profiles{}{}", name,
                             ema.profiles.size(), ema.profiles.empty() ? "" : ": ",
                             fmt::join(ema.profiles | std::views::keys, ", "));
  return {};
}

/// Averages are evaluated with the model, between steps.
Status checkEvaluations(const TrainRecipe& train) {
  if (!train.evalEma.empty() && train.evalEvery == 0)
    return Error::badInput("train.eval_ema is of evaluations between steps, and there are none: "
                           "set train.eval_every");
  return {};
}

Status checkTrain(const TrainRecipe& train, const CheckpointRecipe& checkpoint) {
  TITAN_TRY(checkLeast("train.steps", train.steps, 1));
  TITAN_TRY(checkLeast("train.seed", train.seed, 0));
  TITAN_TRY(checkLeast("train.log_every", train.logEvery, 1));
  TITAN_TRY(checkLeast("train.eval_every", train.evalEvery, 0));
  TITAN_TRY(checkLeast("train.eval_batches", train.evalBatches, 0));
  TITAN_TRY(checkLeast("train.non_finite_limit", train.nonFiniteLimit, 1));
  TITAN_TRY(checkLeast("checkpoint.every", checkpoint.every, 0));
  TITAN_TRY(checkLeast("checkpoint.keep", checkpoint.keep, 0));
  TITAN_TRY(checkLeast("checkpoint.keep_every", checkpoint.keepEvery, 0));
  TITAN_TRY(checkLeast("checkpoint.hook_timeout", checkpoint.hookTimeout, 0));
  if (const StagingRecipe& staging = checkpoint.staging;
      staging.amount.empty() && staging.bytes < StagingRecipe::leastBytes)
    return Error::badInput("checkpoint.staging = {} must be at least {}, or \"none\"",
                           staging.bytes, StagingRecipe::leastBytes);
  return checkLeast("checkpoint.timeout", checkpoint.timeout, 1);
}

} // namespace

bool isDataAxis(std::string_view axis) { return axis != "tensor"; }

bool SyncRecipe::isImmediate(const std::string& axis) const {
  const auto found = byAxis.find(axis);
  return (found == byAxis.end() ? all : found->second) == "immediate";
}

std::string EmaProfile::whyNone(int64_t updates) const {
  if (updates >= every)
    return "";
  return updates == 0 ? "no update was made"
                      : fmt::format("{} updates were made, and the first average is that after {}",
                                    updates, every);
}

std::set<int64_t> EmaRecipe::intervals() const {
  std::set<int64_t> intervals;
  for (const auto& [name, profile] : profiles)
    if (profile.every > 1)
      intervals.insert(profile.every);
  return intervals;
}

std::string averageFunction(int64_t every) { return fmt::format("ema.{}", every); }

int64_t Recipe::dataRanks() const {
  int64_t ranks = 1;
  for (const MeshAxis& axis : mesh.axes)
    ranks *= isDataAxis(axis.name) ? axis.ranks : 1;
  return ranks;
}

Status validate(const Recipe& recipe) {
  TITAN_TRY(checkChoices(recipe));
  TITAN_TRY(checkModel(recipe.model));
  TITAN_TRY(checkLoss(recipe.loss));
  TITAN_TRY(checkOptimizer(recipe.optimizer));
  TITAN_TRY(checkSchedule(recipe.schedule, recipe.train));
  TITAN_TRY(checkMesh(recipe.mesh));
  TITAN_TRY(checkBatch(recipe.batch, recipe.dataRanks()));
  if (recipe.dataRanks() > 1)
    TITAN_TRY(checkSums(recipe.mesh, recipe.localMicrobatches()));
  if (recipe.mesh.isTree())
    TITAN_TRY(checkTree(recipe));
  TITAN_TRY(checkLeast("memory.limit", recipe.memory.limit, 0));
  TITAN_TRY(checkLeast("memory.loss_chunks", recipe.memory.lossChunks, 0));
  TITAN_TRY(checkData(recipe.data));
  TITAN_TRY(checkEma(recipe.ema, recipe.train.evalEma));
  TITAN_TRY(checkEvaluations(recipe.train));
  return checkTrain(recipe.train, recipe.checkpoint);
}

} // namespace titan
