// The recipe: everything about a training job that is not in the model file. One struct a TOML
// table, defaults as in the README's table. Parsed strictly: an unknown key is an error with the
// nearest known one.
#pragma once

#include "runtime/program/Error.h"
#include "runtime/program/Placement.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace titan {

struct InitRule {
  std::string match;           ///< glob over canonical names
  std::string dist = "normal"; ///< normal | uniform | constant
  double mean = 0, std = 0.02; ///< normal
  double low = 0, high = 0;    ///< uniform
  double value = 0;            ///< constant
  bool operator==(const InitRule&) const = default;
};

struct ModelRecipe {
  std::map<std::string, int64_t> dims; ///< binds symbolic dims
  std::string mode = "as-exported";    ///< or "train"
  std::string init = "model";          ///< or "fresh"
  std::vector<InitRule> initRules;     ///< [[model.init_rule]]
  std::vector<std::string> frozen;     ///< glob patterns
  std::string names;                   ///< path of a names file, empty: none
  bool operator==(const ModelRecipe&) const = default;
};

struct LossRecipe {
  std::string kind = "cross_entropy"; ///< mse | l1 | bce_with_logits | output
  std::string output;                 ///< model output; empty: the first
  std::string target = "targets";     ///< name of the target field
  int64_t ignoreIndex = -100;
  double labelSmoothing = 0;
  int64_t classDim = -1;            ///< of the output; -1 is its last dimension
  std::vector<double> classWeights; ///< one for each class; empty: all count alike
  bool operator==(const LossRecipe&) const = default;
};

struct OptimizerGroup {
  std::string match; ///< glob over canonical names; the first matching group counts
  double lrScale = 1;
  std::optional<double> weightDecay;
  bool operator==(const OptimizerGroup&) const = default;
};

/// Whether the user wrote a value whose default depends on another key. It is no part of the
/// recipe's value.
struct GivenByUser {
  bool value = false;
  bool operator==(const GivenByUser&) const { return true; }
};

struct OptimizerRecipe {
  std::string kind = "adamw"; ///< sgd | adam | adamw
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weightDecay = 0.01;    ///< default 0.01 for adamw, 0 for the others
  GivenByUser weightDecayGiven; ///< else it follows `kind`
  double momentum = 0;          ///< sgd
  bool nesterov = false;        ///< sgd
  std::vector<std::string> noDecay = {"*.bias"};
  double clipNorm = 0; ///< 0: off
  std::vector<OptimizerGroup> groups;
  bool operator==(const OptimizerRecipe&) const = default;
};

struct ScheduleRecipe {
  std::string kind = "constant"; ///< cosine | linear | wsd
  int64_t warmupSteps = 0;
  int64_t steps = 0; ///< 0: train.steps
  double minLrRatio = 0;
  bool operator==(const ScheduleRecipe&) const = default;
};

struct BatchRecipe {
  int64_t micro = 8;  ///< samples per rank and microbatch
  int64_t global = 8; ///< samples per optimizer step
  bool operator==(const BatchRecipe&) const = default;
};

struct PrecisionRecipe {
  std::string compute = "f32"; ///< bf16
  std::string reduceDtype = "f32";
  std::string matmul = "f32"; ///< tf32
  bool operator==(const PrecisionRecipe&) const = default;
};

/// When the ranks of each axis sum their gradients: "deferred", once a step, or "immediate", behind
/// each round of microbatches.
struct SyncRecipe {
  std::string all = "auto"; ///< or "deferred", "immediate"; empty: as `byAxis` says
  std::map<std::string, std::string> byAxis; ///< of data axes; those left out are deferred
  /// "auto", of which the compiler makes one of the others, is not.
  bool isImmediate(const std::string& axis) const;
  bool operator==(const SyncRecipe&) const = default;
};

struct MeshRecipe {
  static constexpr int64_t maxPrefetch = 16; ///< gathers and sums: few of what may be under way
  std::vector<MeshAxis> axes = {{"replicate", 1}, {"shard", 1}, {"tensor", 1}};
  std::string strategy = "ddp";
  std::string outer = "none";     ///< zero1
  std::string reshard = "always"; ///< never | step
  std::vector<std::string> kept;  ///< by mesh.reshard = [globs]: parameters that "always" keeps
  bool allowReshard = false;
  SyncRecipe sync;
  int64_t syncEvery = 0; ///< microbatches of a rank between sums over the ranks; 0: as `sync` says
  int64_t bucket =
      25'000'000;       ///< bytes of whole tensors that are exchanged together; 0: each alone
  int64_t prefetch = 1; ///< buckets on their way while others are in use, 0 ... maxPrefetch
  std::string reduce = "fast"; ///< tree
  std::vector<std::string> tensorRules;
  int64_t warnAfter = 30;  ///< seconds that ranks wait for another one before a note; 0: never
  int64_t killAfter = 600; ///< and before the run fails; 0: never
  /// Does each sum over microbatches depend on them alone, on no mesh?
  bool isTree() const { return reduce == "tree"; }
  bool operator==(const MeshRecipe&) const = default;
};

struct MemoryRecipe {
  int64_t limit = 0; ///< bytes, 0: none; TOML: an integer or "2.3GB"
  std::string remat = "auto";
  int64_t lossChunks = 0; ///< pieces of the loss; 0: what fits, under mesh.reduce = "tree" one
  bool operator==(const MemoryRecipe&) const = default;
};

struct DataRecipe {
  std::vector<std::string> train, eval;      ///< files; TOML: one string or a list
  std::map<std::string, std::string> fields; ///< input -> array; default: same name
  double scale = 1;                          ///< uint8 arrays: (x * scale - mean) / std
  std::vector<double> mean, std; ///< one value, or one per channel (the sample's first dim)
  bool shuffle = true;
  bool operator==(const DataRecipe&) const = default;
};

struct TrainRecipe {
  int64_t steps = 100;
  int64_t seed = 0;
  int64_t logEvery = 1;
  int64_t evalEvery = 0;            ///< 0: only on request
  int64_t evalBatches = 0;          ///< 0: all
  std::vector<std::string> evalEma; ///< profiles of [ema] that are evaluated with the model
  int64_t nonFiniteLimit = 100;     ///< consecutive skipped steps that end the run with exit code 5
  bool operator==(const TrainRecipe&) const = default;
};

/// An exponential moving average of the parameters.
struct EmaProfile {
  double decay = 0;    ///< [0, 1)
  int64_t every = 1;   ///< applied updates from one change of the average to the next
  bool warmup = false; ///< after n updates a decay of at most (1 + n) / (10 + n)
  /// Of a run that has made so many updates: "no update was made", "2 updates were made, and the
  /// first average is that after 4"; empty where there is an average.
  std::string whyNone(int64_t updates) const;
  bool operator==(const EmaProfile&) const = default;
};

struct EmaRecipe {
  std::map<std::string, EmaProfile> profiles; ///< by name: letters, digits and '_'
  std::vector<std::string> buffers;           ///< patterns; those of no pattern are copied
  std::string device = "device";              ///< | host: whose memory has the averages
  /// The values of `every` above 1: what each such interval moves is a function of its own.
  std::set<int64_t> intervals() const;
  bool operator==(const EmaRecipe&) const = default;
};

/// The function that moves the averages of all profiles with this `every`, above 1: "ema.4".
std::string averageFunction(int64_t every);

/// How much of the state is copied before a save goes on beside the next steps.
struct StagingRecipe {
  static constexpr int64_t leastBytes = 16'000'000;
  std::string amount = "auto"; ///< | full | none; empty: `bytes`
  int64_t bytes = 0;           ///< at most
  bool operator==(const StagingRecipe&) const = default;
};

struct CheckpointRecipe {
  int64_t every = 0;     ///< steps; 0: only at the end
  int64_t keep = 2;      ///< committed checkpoints kept; 0: all
  int64_t keepEvery = 0; ///< those of steps that it divides stay, uncounted; 0: none
  bool async = true;     ///< a save goes on beside the next steps
  StagingRecipe staging;
  std::string whenBusy = "wait";  ///< of a save that falls due during another
  std::string onFailure = "stop"; ///< of a save between steps
  int64_t timeout = 600;          ///< seconds that one operation of a save may take
  std::string preflight = "on";   ///< | full | off: what is tried before the first step
  std::string onCommit;           ///< a command of sh for each checkpoint; empty: none
  int64_t hookTimeout = 600;      ///< seconds that the end of a run waits for it
  bool operator==(const CheckpointRecipe&) const = default;
};

/// Are the samples divided along `axis`? The ranks of a tensor axis have the same.
bool isDataAxis(std::string_view axis);

struct Recipe {
  ModelRecipe model;
  LossRecipe loss;
  OptimizerRecipe optimizer;
  ScheduleRecipe schedule;
  BatchRecipe batch;
  PrecisionRecipe precision;
  MeshRecipe mesh;
  MemoryRecipe memory;
  DataRecipe data;
  TrainRecipe train;
  EmaRecipe ema;
  CheckpointRecipe checkpoint;
  bool operator==(const Recipe&) const = default;

  /// Ranks among which the samples are divided.
  int64_t dataRanks() const;
  /// Of one step, on all ranks: batch.global / batch.micro.
  int64_t globalMicrobatches() const { return batch.global / batch.micro; }
  /// Of one step, on each rank.
  int64_t localMicrobatches() const { return globalMicrobatches() / dataRanks(); }
};

/// `[section] key = value` as in the README; `source` names the file in errors. An empty text gives
/// the defaults.
Result<Recipe> parseRecipe(std::string_view toml, std::string_view source = "recipe");
Result<Recipe> readRecipe(const std::string& path);
/// The whole recipe, every key, in the table's order; parseRecipeJson reads it back to an equal
/// Recipe.
std::string toJson(const Recipe& recipe);
Result<Recipe> parseRecipeJson(std::string_view json);
/// The recipe as TOML with every key and a comment on each: what `--write-recipe` writes.
std::string toToml(const Recipe& recipe);
/// `--set optimizer.lr=1e-3`: `assignment` is key=value, the value in TOML or a bare word.
Status setKey(Recipe& recipe, std::string_view assignment);
/// Checks the values that do not depend on the model (ranges, batch.global a multiple of micro,
/// known kinds).
Status validate(const Recipe& recipe);
/// May `key` be overridden when a job runs (`./job train --set`)? Others are compiled in.
bool isRunTimeKey(std::string_view key);
/// Does `glob` (`*`, `?`, `[...]`) match the whole of `name`? `*` also matches dots.
bool matchesGlob(std::string_view glob, std::string_view name);

} // namespace titan
