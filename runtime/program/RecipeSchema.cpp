#include "runtime/program/RecipeSchema.h"

#include "runtime/program/Text.h"

#include "runtime/program/RecipeAccessors.h"

#include <algorithm>
#include <numeric>

namespace titan::recipe {

namespace {

template <typename Accessor>
constexpr Key key(std::string_view section, std::string_view name, bool runTime,
                  std::string_view doc, std::string_view choices = "") {
  return {section,          name,           Accessor::type, doc, choices, runTime,
          Accessor::tables, &Accessor::set, &Accessor::get};
}

template <auto pointer> using Model = Plain<&Recipe::model, pointer>;
template <auto pointer> using Loss = Plain<&Recipe::loss, pointer>;
template <auto pointer> using Optimizer = Plain<&Recipe::optimizer, pointer>;
template <auto pointer> using Schedule = Plain<&Recipe::schedule, pointer>;
template <auto pointer> using Batch = Plain<&Recipe::batch, pointer>;
template <auto pointer> using Precision = Plain<&Recipe::precision, pointer>;
template <auto pointer> using Mesh = Plain<&Recipe::mesh, pointer>;
template <auto pointer> using Memory = Plain<&Recipe::memory, pointer>;
template <auto pointer> using Data = Plain<&Recipe::data, pointer>;
template <auto pointer> using Train = Plain<&Recipe::train, pointer>;
template <auto pointer> using Ema = Plain<&Recipe::ema, pointer>;
template <auto pointer> using Checkpoint = Plain<&Recipe::checkpoint, pointer>;

constexpr bool compiled = false, runTime = true;

// --- The table ---
// clang-format off
constexpr Key table[] = {
  key<Model<&ModelRecipe::dims>>("model", "dims", compiled, "sizes of the model's symbolic dims, { seq = 256 }; the batch dim is batch.micro"),
  key<Model<&ModelRecipe::mode>>("model", "mode", compiled, "dropout and batch norm as exported, or as in training", "as-exported | train"),
  key<Model<&ModelRecipe::init>>("model", "init", compiled, "start from the model file's weights, or afresh", "model | fresh"),
  key<Tables<&Recipe::model, &ModelRecipe::initRules>>("model", "init_rule", compiled, "fresh weights by name: match, dist (normal: mean, std; uniform: low, high; constant: value)"),
  key<Model<&ModelRecipe::frozen>>("model", "frozen", compiled, "patterns of parameters that are not trained"),
  key<Model<&ModelRecipe::names>>("model", "names", compiled, "file with name, kind and layout by initialiser; empty: none"),

  key<Loss<&LossRecipe::kind>>("loss", "kind", compiled, "output: the model's first output is the loss", "cross_entropy | mse | l1 | bce_with_logits | output"),
  key<Loss<&LossRecipe::output>>("loss", "output", compiled, "model output that the loss reads; empty: the first"),
  key<Loss<&LossRecipe::target>>("loss", "target", compiled, "data field with the targets"),
  key<Loss<&LossRecipe::ignoreIndex>>("loss", "ignore_index", compiled, "cross_entropy and output: targets with this value do not count"),
  key<Loss<&LossRecipe::labelSmoothing>>("loss", "label_smoothing", compiled, "cross_entropy: in [0, 1)"),
  key<Loss<&LossRecipe::classDim>>("loss", "class_dim", compiled, "cross_entropy: the output's dimension of classes, 1 of [batch, classes, height, width]; -1: the last"),
  key<Loss<&LossRecipe::classWeights>>("loss", "class_weights", compiled, "cross_entropy: how much a target of each class counts; the loss is the weighted mean; empty: all alike"),

  key<Optimizer<&OptimizerRecipe::kind>>("optimizer", "kind", compiled, "update rule", "sgd | adam | adamw"),
  key<Optimizer<&OptimizerRecipe::lr>>("optimizer", "lr", runTime, "learning rate before the schedule"),
  key<Betas>("optimizer", "betas", compiled, "adam, adamw: decay of the first and second moment"),
  key<Optimizer<&OptimizerRecipe::eps>>("optimizer", "eps", compiled, "adam, adamw: added to the root of the second moment"),
  key<WeightDecay>("optimizer", "weight_decay", runTime, "default 0.01 for adamw, 0 for the others"),
  key<Optimizer<&OptimizerRecipe::momentum>>("optimizer", "momentum", compiled, "sgd: in [0, 1)"),
  key<Optimizer<&OptimizerRecipe::nesterov>>("optimizer", "nesterov", compiled, "sgd: Nesterov's momentum"),
  key<Optimizer<&OptimizerRecipe::noDecay>>("optimizer", "no_decay", compiled, "patterns of parameters without weight decay"),
  key<Optimizer<&OptimizerRecipe::clipNorm>>("optimizer", "clip_norm", compiled, "limit of the global gradient norm; 0: off"),
  key<Tables<&Recipe::optimizer, &OptimizerRecipe::groups>>("optimizer", "group", compiled, "parameters that differ: match, lr_scale, weight_decay; the first matching group counts"),

  key<Schedule<&ScheduleRecipe::kind>>("schedule", "kind", compiled, "learning rate over the steps", "constant | cosine | linear | wsd"),
  key<Schedule<&ScheduleRecipe::warmupSteps>>("schedule", "warmup_steps", runTime, "steps of linear warm-up"),
  key<Schedule<&ScheduleRecipe::steps>>("schedule", "steps", runTime, "length of the schedule; 0: train.steps as compiled"),
  key<Schedule<&ScheduleRecipe::minLrRatio>>("schedule", "min_lr_ratio", runTime, "last learning rate / lr"),

  key<Batch<&BatchRecipe::micro>>("batch", "micro", compiled, "samples per rank and microbatch"),
  key<Batch<&BatchRecipe::global>>("batch", "global", compiled, "samples per optimizer step: a multiple of micro x data ranks"),

  key<Precision<&PrecisionRecipe::compute>>("precision", "compute", compiled, "type of contractions' operands", "f32 | bf16"),
  key<Precision<&PrecisionRecipe::reduceDtype>>("precision", "reduce_dtype", compiled, "type of gradient collectives", "f32 | bf16"),
  key<Precision<&PrecisionRecipe::matmul>>("precision", "matmul", compiled, "tf32: products of f32 that cuBLASLt computes on a card may use it", "f32 | tf32"),

  key<Axes>("mesh", "axes", compiled, "ranks along each axis"),
  key<Mesh<&MeshRecipe::strategy>>("mesh", "strategy", compiled, "what is sharded", "ddp | zero1 | zero2 | zero3 | fsdp | hsdp | tensor"),
  key<Mesh<&MeshRecipe::outer>>("mesh", "outer", compiled, "what fsdp shards over the axis replicate, too", "none | zero1"),
  key<Reshard>("mesh", "reshard", compiled, "gathered parameters after forward: dropped (\"always\"), kept (\"never\"), gathered once a step (\"step\"), or patterns of those that are kept"),
  key<Mesh<&MeshRecipe::allowReshard>>("mesh", "allow_reshard", compiled, "gathers that the strategy does not ask for are no error"),
  key<Sync>("mesh", "sync", compiled, "when gradients are summed over the ranks: once a step or behind each microbatch; or a table by axis", "auto | deferred | immediate"),
  key<Mesh<&MeshRecipe::syncEvery>>("mesh", "sync_every", compiled, "a sum over the ranks after so many microbatches of each; 0: as sync says"),
  key<Bytes<&Recipe::mesh, &MeshRecipe::bucket>>("mesh", "bucket", compiled, "bytes of whole tensors, or \"25MB\", that are exchanged together at most; 0: each tensor by itself"),
  key<Mesh<&MeshRecipe::prefetch>>("mesh", "prefetch", compiled, "buckets that are on their way while others are in use; 0: none"),
  key<Mesh<&MeshRecipe::reduce>>("mesh", "reduce", compiled, "tree: the same bits on 1, 2, 4, 8 data ranks", "fast | tree"),
  key<Mesh<&MeshRecipe::tensorRules>>("mesh", "tensor_rules", compiled, "how parameters split over the tensor axis"),
  key<Mesh<&MeshRecipe::warnAfter>>("mesh", "warn_after", runTime, "seconds that ranks wait for one that gets nothing done before a note says so; 0: never"),
  key<Mesh<&MeshRecipe::killAfter>>("mesh", "kill_after", runTime, "seconds that ranks wait for one that gets nothing done before the run fails; 0: never"),

  key<Bytes<&Recipe::memory, &MemoryRecipe::limit>>("memory", "limit", compiled, "bytes, or \"2.3GB\"; 0: none"),
  key<Memory<&MemoryRecipe::remat>>("memory", "remat", compiled, "recompute activations: to fit the limit, never, or all that lowers the peak", "auto | none | full"),
  key<Memory<&MemoryRecipe::lossChunks>>("memory", "loss_chunks", compiled, "pieces of rows in which the loss is computed; 0: as the limit asks for, under mesh.reduce = \"tree\" one"),

  key<Files<&DataRecipe::train>>("data", "train", runTime, "files: .npy, .npz, .safetensors, .bin or .txt"),
  key<Files<&DataRecipe::eval>>("data", "eval", runTime, "files for evaluation"),
  key<Data<&DataRecipe::fields>>("data", "fields", runTime, "array of each input, { input_ids = \"ids\" }; default: the same name"),
  key<Data<&DataRecipe::scale>>("data", "scale", runTime, "uint8 arrays are read as (x * scale - mean) / std"),
  key<Data<&DataRecipe::mean>>("data", "mean", runTime, "one value, or one per channel; empty: 0"),
  key<Data<&DataRecipe::std>>("data", "std", runTime, "one value, or one per channel; empty: 1"),
  key<Data<&DataRecipe::shuffle>>("data", "shuffle", runTime, "a new order each epoch"),

  key<Train<&TrainRecipe::steps>>("train", "steps", runTime, "optimizer steps"),
  key<Train<&TrainRecipe::seed>>("train", "seed", runTime, "of initial weights, dropout and data order; on a fresh run only"),
  key<Train<&TrainRecipe::logEvery>>("train", "log_every", runTime, "steps between progress lines"),
  key<Train<&TrainRecipe::evalEvery>>("train", "eval_every", runTime, "steps between evaluations; 0: only on request"),
  key<Train<&TrainRecipe::evalBatches>>("train", "eval_batches", runTime, "batches of an evaluation; 0: all"),
  key<Train<&TrainRecipe::evalEma>>("train", "eval_ema", runTime, "profiles of [ema] that are evaluated with the model"),
  key<Train<&TrainRecipe::nonFiniteLimit>>("train", "non_finite_limit", runTime, "consecutive skipped steps that end the run"),

  key<Ema<&EmaRecipe::profiles>>("ema", "profiles", compiled, "moving averages of the parameters: the decay of each, { slow = 0.999 }, or a table with decay, every (updates from one change of the average to the next) and warmup (a decay of at most (1 + n) / (10 + n) after n updates)"),
  key<Ema<&EmaRecipe::buffers>>("ema", "buffers", compiled, "patterns of buffers that are averaged too; all others are copied"),
  key<Ema<&EmaRecipe::device>>("ema", "device", compiled, "whose memory holds the averages; on a CPU they are the same", "device | host"),

  key<Checkpoint<&CheckpointRecipe::every>>("checkpoint", "every", runTime, "steps between checkpoints; 0: only at the end"),
  key<Checkpoint<&CheckpointRecipe::keep>>("checkpoint", "keep", runTime, "committed checkpoints kept; 0: all"),
  key<Checkpoint<&CheckpointRecipe::keepEvery>>("checkpoint", "keep_every", runTime, "checkpoints of steps that it divides are kept for good and not counted by keep; 0: none"),
  key<Checkpoint<&CheckpointRecipe::async>>("checkpoint", "async", runTime, "a save goes on beside the next steps"),
  key<Staging>("checkpoint", "staging", runTime, "memory for copies of the state: all of it, as much as fits, none, or \"512MB\"; what is not copied is read before the next update"),
  key<Checkpoint<&CheckpointRecipe::whenBusy>>("checkpoint", "when_busy", runTime, "a save that falls due during another waits, or is left out", "wait | skip"),
  key<Checkpoint<&CheckpointRecipe::onFailure>>("checkpoint", "on_failure", runTime, "what a failed save between steps does to the run", "stop | continue"),
  key<Checkpoint<&CheckpointRecipe::timeout>>("checkpoint", "timeout", runTime, "seconds that a save beside the steps may be without progress"),
  key<Checkpoint<&CheckpointRecipe::preflight>>("checkpoint", "preflight", runTime, "before the first step a save is tried: all but the bytes of its tensors, all of it, or nothing", "on | full | off"),
  key<Checkpoint<&CheckpointRecipe::onCommit>>("checkpoint", "on_commit", runTime, "a command of sh for each checkpoint, with {path}, {name} and {step} for its own; nothing waits for it but the end of the run"),
  key<Checkpoint<&CheckpointRecipe::hookTimeout>>("checkpoint", "hook_timeout", runTime, "seconds that the end of a run waits for on_commit"),
};
// clang-format on

std::vector<std::string> sections() {
  std::vector<std::string> names;
  for (const Key& key : table)
    if (names.empty() || names.back() != key.section)
      names.emplace_back(key.section);
  return names;
}

} // namespace

std::span<const Key> keys() { return table; }

const Key* findKey(std::string_view path) {
  const size_t dot = path.find('.');
  if (dot == std::string_view::npos)
    return nullptr;
  const std::string_view section = path.substr(0, dot), name = path.substr(dot + 1);
  const auto* found = std::ranges::find_if(
      table, [&](const Key& key) { return key.section == section && key.name == name; });
  return found == std::end(table) ? nullptr : found;
}

Error unknownKey(std::string_view path) {
  // A known name in a wrong table is a likelier slip than any spelling.
  const std::string_view name = path.substr(path.rfind('.') + 1);
  for (const Key& key : table)
    if (key.name == name)
      return Error::badInput("unknown key '{}'; did you mean '{}'?", path, key.path());
  std::vector<std::string> paths;
  for (const Key& key : table)
    paths.push_back(key.path());
  return Error::badInput("unknown key '{}'; did you mean '{}'?", path, nearest(path, paths));
}

Error unknownSection(std::string_view section) {
  return Error::badInput("unknown table [{}]; did you mean [{}]?", section,
                         nearest(section, sections()));
}

bool isChoice(std::string_view choices, std::string_view value) {
  constexpr std::string_view separator = " | ";
  for (;;) {
    const size_t end = choices.find(separator);
    if (choices.substr(0, end) == value)
      return true;
    if (end == std::string_view::npos)
      return false;
    choices.remove_prefix(end + separator.size());
  }
}

Status assign(Recipe& recipe, const Json& document) {
  if (!document.is_object())
    return Error::badInput("a recipe is a table of tables");
  const std::vector<std::string> known = sections();
  for (const auto& [section, values] : document.items()) {
    if (std::ranges::find(known, section) == known.end())
      return values.is_object() ? unknownSection(section) : unknownKey(section);
    if (!values.is_object())
      return wrongType(section, values, "a table");
    for (const auto& [name, value] : values.items()) {
      const std::string path = section + "." + name;
      const Key* key = findKey(path);
      if (!key)
        return unknownKey(path);
      TITAN_TRY(key->set(recipe, value, path));
    }
  }
  if (!recipe.optimizer.weightDecayGiven.value)
    recipe.optimizer.weightDecay = recipe.optimizer.kind == "adamw" ? 0.01 : 0;
  return {};
}

Json toDocument(const Recipe& recipe) {
  Json document = Json::object();
  for (const Key& key : table)
    document[std::string(key.section)][std::string(key.name)] = key.get(recipe);
  return document;
}

} // namespace titan::recipe
