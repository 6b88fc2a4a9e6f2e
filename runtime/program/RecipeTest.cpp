#include "runtime/program/Recipe.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

namespace titan {
namespace {

Recipe parsed(std::string_view toml) {
  auto recipe = parseRecipe(toml);
  EXPECT_TRUE(recipe.ok()) << recipe.error().message();
  return recipe.ok() ? recipe.take() : Recipe();
}

std::string parseError(std::string_view toml) {
  const auto recipe = parseRecipe(toml, "r.toml");
  if (recipe.ok())
    return "";
  EXPECT_EQ(recipe.error().code(), ErrorCode::BadInput);
  return recipe.error().message();
}

std::string validateError(std::string_view toml) {
  const Status status = validate(parsed(toml));
  return status.ok() ? "" : status.error().message();
}

constexpr std::string_view full = R"(
[model]
dims = { seq = 256 }
mode = "train"
init = "fresh"
frozen = ["embed.*"]
names = "map.toml"
[[model.init_rule]]
match = "*.weight"
std = 0.01
[[model.init_rule]]
match = "head.*"
dist = "uniform"
low = -1
high = 1

[loss]
kind = "cross_entropy"
output = "logits"
target = "labels"
ignore_index = -1
label_smoothing = 0.1
class_dim = 1

[optimizer]
kind = "adam"
lr = 3e-4
betas = [0.8, 0.95]
eps = 1e-6
weight_decay = 0.1
no_decay = []
clip_norm = 1
[[optimizer.group]]
match = "head.*"
lr_scale = 10
[[optimizer.group]]
match = "*"
weight_decay = 0

[schedule]
kind = "cosine"
warmup_steps = 10
steps = 1000
min_lr_ratio = 0.1

[batch]
micro = 16
global = 64

[mesh]
axes = { replicate = 1, shard = 1 }

[memory]
limit = "2.3GB"

[data]
train = ["a.npz", "b.npz"]
eval = "c.npz"
fields = { input_ids = "ids" }
scale = 0.00392156862745098
mean = [0.5]
std = [0.25]
shuffle = false

[train]
steps = 500
seed = 7

[checkpoint]
every = 50
keep = 3
async = false
staging = "512MB"
when_busy = "skip"
on_failure = "continue"
timeout = 60
)";

TEST(Recipe, EmptyGivesDefaults) { EXPECT_EQ(parsed(""), Recipe()); }

TEST(Recipe, EveryTable) {
  const Recipe recipe = parsed(full);
  EXPECT_EQ(recipe.model.dims.at("seq"), 256);
  ASSERT_EQ(recipe.model.initRules.size(), 2u);
  EXPECT_EQ(recipe.model.initRules[0].std, 0.01);
  EXPECT_EQ(recipe.model.initRules[1].low, -1);
  EXPECT_EQ(recipe.optimizer.beta1, 0.8);
  EXPECT_EQ(recipe.optimizer.beta2, 0.95);
  EXPECT_EQ(recipe.optimizer.clipNorm, 1);
  ASSERT_EQ(recipe.optimizer.groups.size(), 2u);
  EXPECT_EQ(recipe.optimizer.groups[0].weightDecay, std::nullopt);
  EXPECT_EQ(recipe.optimizer.groups[1].weightDecay, 0.0);
  EXPECT_EQ(recipe.memory.limit, 2'300'000'000);
  EXPECT_FALSE(recipe.checkpoint.async);
  EXPECT_EQ(recipe.checkpoint.staging, (StagingRecipe{"", 512'000'000}));
  EXPECT_EQ(recipe.checkpoint.whenBusy, "skip");
  EXPECT_EQ(recipe.checkpoint.onFailure, "continue");
  EXPECT_EQ(recipe.checkpoint.timeout, 60);
  EXPECT_EQ(recipe.data.train, (std::vector<std::string>{"a.npz", "b.npz"}));
  EXPECT_EQ(recipe.data.eval, (std::vector<std::string>{"c.npz"}));
  EXPECT_EQ(recipe.globalMicrobatches(), 4);
  EXPECT_EQ(recipe.localMicrobatches(), 4);
  EXPECT_TRUE(validate(recipe).ok());
}

TEST(Recipe, JsonAndTomlRoundTrip) {
  for (const Recipe& recipe : {Recipe(), parsed(full)}) {
    const auto json = parseRecipeJson(toJson(recipe));
    ASSERT_TRUE(json.ok()) << json.error().message();
    EXPECT_EQ(*json, recipe);
    EXPECT_EQ(parsed(toToml(recipe)), recipe) << toToml(recipe);
  }
}

TEST(Recipe, TomlQuotesWhatNeedsIt) {
  Recipe recipe;
  recipe.loss.output = "a \"b\"\\\n\x7f ü";
  recipe.data.fields = {{"input.0", "x y"}};
  EXPECT_EQ(parsed(toToml(recipe)), recipe) << toToml(recipe);
}

TEST(Recipe, TomlCommentsEveryKey) {
  const std::string toml = toToml(Recipe());
  EXPECT_NE(toml.find("# update rule (sgd | adam | adamw)\nkind = \"adamw\"\n"), std::string::npos);
  EXPECT_NE(toml.find("lr = 0.001\n"), std::string::npos);
}

TEST(Recipe, UnknownKeyNamesTheNearest) {
  EXPECT_EQ(parseError("[optimizer]\nweight_decya = 1"),
            "r.toml: unknown key 'optimizer.weight_decya'; did you mean 'optimizer.weight_decay'?");
  EXPECT_EQ(parseError("[train]\nlr = 1"),
            "r.toml: unknown key 'train.lr'; did you mean 'optimizer.lr'?");
  EXPECT_EQ(parseError("lr = 1"), "r.toml: unknown key 'lr'; did you mean 'optimizer.lr'?");
  EXPECT_EQ(parseError("[optimzer]\nlr = 1"),
            "r.toml: unknown table [optimzer]; did you mean [optimizer]?");
  EXPECT_EQ(parseError("[[optimizer.group]]\nlr_scal = 1"),
            "r.toml: unknown key 'optimizer.group[0].lr_scal'; did you mean 'lr_scale'?");
  EXPECT_EQ(parseError("[mesh]\naxes = { replica = 2 }"),
            "r.toml: unknown key 'mesh.axes.replica'; did you mean 'replicate'?");
}

TEST(Recipe, WrongTypes) {
  EXPECT_EQ(parseError("[optimizer]\nlr = \"fast\""),
            "r.toml: optimizer.lr = \"fast\" is not a finite number");
  EXPECT_EQ(parseError("[batch]\nmicro = 8.5"), "r.toml: batch.micro = 8.5 is not an integer");
  EXPECT_EQ(parseError("[optimizer]\nbetas = [0.9]"),
            "r.toml: optimizer.betas = [0.9] is not a list of two numbers");
  EXPECT_EQ(parseError("[data]\nshuffle = 1"), "r.toml: data.shuffle = 1 is not true or false");
  EXPECT_EQ(parseError("[data]\ntrain = [1]"), "r.toml: data.train[0] = 1 is not a string");
  EXPECT_EQ(parseError("optimizer = 3"), "r.toml: optimizer = 3 is not a table");
  EXPECT_NE(parseError("[optimizer]\nlr = nan"), "");
  EXPECT_NE(parseError("[optimizer]\nlr = 1979-05-27"), "");
  EXPECT_NE(parseError("[memory]\nlimit = \"much\""), "");
}

TEST(Recipe, SyntaxErrorsHaveALine) {
  EXPECT_TRUE(parseError("[optimizer]\nlr = = 1").starts_with("r.toml:2:")) << parseError("[a\nb");
}

TEST(Recipe, WhatTheParserMishandlesIsRefused) {
  EXPECT_NE(parseError("[[[1]]]"), "");
  EXPECT_NE(parseError("\u03d5 = 1"), "");
}

TEST(Recipe, ProfilesAreDecaysOrTables) {
  Recipe recipe =
      parsed("[ema]\nprofiles = { slow = 0.999, fast = { decay = 0.5, warmup = true } }");
  ASSERT_EQ(recipe.ema.profiles.size(), 2);
  EXPECT_EQ(recipe.ema.profiles["slow"], (EmaProfile{.decay = 0.999}));
  EXPECT_EQ(recipe.ema.profiles["fast"], (EmaProfile{.decay = 0.5, .warmup = true}));
  EXPECT_EQ(parsed("[ema.profiles.fast]\ndecay = 0.5\nwarmup = true\n[ema.profiles]\nslow = 0.999"),
            recipe);
  EXPECT_EQ(*parseRecipeJson(toJson(recipe)), recipe);
  EXPECT_EQ(parsed(toToml(recipe)), recipe);
  ASSERT_TRUE(setKey(recipe, "ema.profiles.third=0.9").ok());
  EXPECT_EQ(recipe.ema.profiles.size(), 3);
  EXPECT_TRUE(validate(recipe).ok());
}

TEST(Recipe, ProfilesHaveIntervals) {
  const Recipe recipe = parsed("[ema]\nbuffers = [\"*.running_mean\"]\ndevice = \"host\"\n"
                               "[ema.profiles]\nslow = 0.999\na = { decay = 0.9, every = 4 }\n"
                               "b = { decay = 0.8, every = 4 }\nc = { decay = 0.8, every = 10 }");
  EXPECT_TRUE(validate(recipe).ok());
  EXPECT_EQ(recipe.ema.intervals(), (std::set<int64_t>{4, 10}));
  EXPECT_EQ(averageFunction(10), "ema.10");
  EXPECT_EQ(*parseRecipeJson(toJson(recipe)), recipe);
  EXPECT_EQ(parsed(toToml(recipe)), recipe);
  const EmaProfile& fourth = recipe.ema.profiles.at("a");
  EXPECT_EQ(fourth.whyNone(0), "no update was made");
  EXPECT_EQ(fourth.whyNone(3), "3 updates were made, and the first average is that after 4");
  EXPECT_EQ(fourth.whyNone(4), "");
}

TEST(Recipe, ProfilesThatMeanNothingAreRefused) {
  EXPECT_EQ(parseError("[ema]\nprofiles = 0.9"),
            "r.toml: ema.profiles = 0.9 is not a table of tables");
  EXPECT_EQ(parseError("[ema.profiles.slow]\nwarmup = true"),
            "r.toml: ema.profiles.slow needs decay, what an update leaves of the average");
  EXPECT_EQ(parseError("[ema.profiles.slow]\ndecay = 0.9\nwarmpu = true"),
            "r.toml: unknown key 'ema.profiles.slow.warmpu'; did you mean 'warmup'?");
  EXPECT_EQ(parseError("[ema]\nprofiles = { slow = \"0.9\" }"),
            "r.toml: ema.profiles.slow = \"0.9\" is not a finite number");
  const auto refusal = [](const char* toml) {
    Status status = validate(parsed(toml));
    return status.ok() ? "" : status.takeError().message();
  };
  EXPECT_EQ(refusal("[ema]\nprofiles = { slow = 1.0 }"),
            "ema.profiles.slow.decay = 1 must be in [0, 1)");
  EXPECT_EQ(refusal("[ema]\nprofiles = { \"a-b\" = 0.9 }"),
            "ema.profiles has a profile 'a-b': a name is letters, digits and '_'");
  EXPECT_EQ(refusal("[ema]\nprofiles = { slow = { decay = 0.9, every = 0 } }"),
            "ema.profiles.slow.every = 0 must be at least 1");
  EXPECT_EQ(refusal("[train]\neval_ema = [\"slow\"]"),
            "train.eval_ema names 'slow': [ema] has 0 profiles");
  EXPECT_EQ(refusal("[train]\neval_ema = [\"slow\"]\n[ema]\nprofiles = { a = 0.9, b = 0.5 }"),
            "train.eval_ema names 'slow': [ema] has 2 profiles: a, b");
  EXPECT_EQ(refusal("[train]\neval_ema = [\"a\"]\n[ema]\nprofiles = { a = 0.9 }"),
            "train.eval_ema is of evaluations between steps, and there are none: "
            "set train.eval_every");
  EXPECT_EQ(refusal("[train]\neval_every = 5\neval_ema = [\"a\"]\n[ema]\nprofiles = { a = 0.9 }"),
            "");
}

TEST(Recipe, WeightDecayFollowsTheKind) {
  EXPECT_EQ(parsed("").optimizer.weightDecay, 0.01);
  EXPECT_EQ(parsed("[optimizer]\nkind = \"sgd\"").optimizer.weightDecay, 0);
  EXPECT_EQ(parsed("[optimizer]\nkind = \"sgd\"\nweight_decay = 0.1").optimizer.weightDecay, 0.1);
  Recipe recipe = parsed("");
  ASSERT_TRUE(setKey(recipe, "optimizer.kind=sgd").ok());
  EXPECT_EQ(recipe.optimizer.weightDecay, 0);
  recipe = parsed("[optimizer]\nweight_decay = 0.01");
  ASSERT_TRUE(setKey(recipe, "optimizer.kind=sgd").ok());
  EXPECT_EQ(recipe.optimizer.weightDecay, 0.01);
}

TEST(Recipe, SetKey) {
  Recipe recipe;
  for (const char* assignment :
       {"optimizer.lr=1e-2", "optimizer.kind=sgd", "data.train=some/file.npz",
        "data.eval=['a','b']", "optimizer.betas=[0.5, 0.6]", "model.dims.seq=128",
        "data.fields.x=images", "memory.limit=512MiB", "loss.output=2024", "data.shuffle=false",
        "schedule.kind=\"cosine\""})
    EXPECT_TRUE(setKey(recipe, assignment).ok()) << assignment;
  EXPECT_EQ(recipe.optimizer.lr, 0.01);
  EXPECT_EQ(recipe.optimizer.kind, "sgd");
  EXPECT_EQ(recipe.data.train, (std::vector<std::string>{"some/file.npz"}));
  EXPECT_EQ(recipe.data.eval, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(recipe.optimizer.beta2, 0.6);
  EXPECT_EQ(recipe.model.dims.at("seq"), 128);
  EXPECT_EQ(recipe.data.fields.at("x"), "images");
  EXPECT_EQ(recipe.memory.limit, 512 << 20);
  EXPECT_EQ(recipe.loss.output, "2024");
  EXPECT_FALSE(recipe.data.shuffle);
  EXPECT_EQ(recipe.schedule.kind, "cosine");
}

TEST(Recipe, StagingIsAWordOrBytes) {
  Recipe recipe;
  EXPECT_EQ(recipe.checkpoint.staging.amount, "auto");
  for (const char* word : {"full", "none", "auto"}) {
    ASSERT_TRUE(setKey(recipe, fmt::format("checkpoint.staging={}", word)).ok());
    EXPECT_EQ(recipe.checkpoint.staging, (StagingRecipe{word, 0}));
    EXPECT_EQ(parseRecipeJson(toJson(recipe)).take(), recipe);
  }
  ASSERT_TRUE(setKey(recipe, "checkpoint.staging=16MB").ok());
  EXPECT_EQ(recipe.checkpoint.staging, (StagingRecipe{"", 16'000'000}));
  EXPECT_EQ(parseRecipeJson(toJson(recipe)).take(), recipe);
  for (const char* wrong : {"some", "true"})
    EXPECT_FALSE(setKey(recipe, fmt::format("checkpoint.staging={}", wrong)).ok()) << wrong;
  EXPECT_EQ(validateError("[checkpoint]\nstaging = \"1MB\""),
            "checkpoint.staging = 1000000 must be at least 16000000, or \"none\"");
}

TEST(Recipe, SetKeyErrors) {
  Recipe recipe;
  EXPECT_EQ(setKey(recipe, "optimizer.lr").error().code(), ErrorCode::Usage);
  EXPECT_EQ(setKey(recipe, "optimiser.lr=1").error().message(),
            "unknown key 'optimiser.lr'; did you mean 'optimizer.lr'?");
  EXPECT_EQ(setKey(recipe, "train.steps=many").error().message(),
            "train.steps = \"many\" is not an integer");
  EXPECT_FALSE(setKey(recipe, "train.steps=1\n[data]\nscale=2").ok());
  EXPECT_EQ(recipe, Recipe());
}

TEST(Recipe, RunTimeKeys) {
  for (const char* key :
       {"train.steps", "train.seed", "data.train", "data.fields.x", "checkpoint.every",
        "checkpoint.async", "optimizer.lr", "optimizer.weight_decay", "schedule.warmup_steps",
        "schedule.steps", "schedule.min_lr_ratio", "mesh.warn_after", "mesh.kill_after"})
    EXPECT_TRUE(isRunTimeKey(key)) << key;
  for (const char* key : {"optimizer.kind", "optimizer.betas", "schedule.kind", "batch.micro",
                          "model.dims.seq", "train.nonsense", "train", ""})
    EXPECT_FALSE(isRunTimeKey(key)) << key;
}

TEST(RecipeValidate, Defaults) { EXPECT_EQ(validateError(""), ""); }

TEST(RecipeValidate, BatchDivision) {
  EXPECT_EQ(validateError("[batch]\nmicro = 8\nglobal = 30"),
            "batch.global = 30 is not a multiple of micro 8 x data ranks 1 = 8: use 24 or 32");
  EXPECT_EQ(validateError("[batch]\nmicro = 8\nglobal = 4"),
            "batch.global = 4 is not a multiple of micro 8 x data ranks 1 = 8: use 8");
  EXPECT_NE(validateError("[batch]\nmicro = 0"), "");
}

TEST(RecipeValidate, BatchDivisionAmongRanks) {
  const auto error = [](int global) {
    return validateError(
        "[mesh]\naxes = { replicate = 2, shard = 3 }\n[batch]\nmicro = 4\nglobal = " +
        std::to_string(global));
  };
  EXPECT_EQ(error(48), "");
  EXPECT_EQ(error(40),
            "batch.global = 40 is not a multiple of micro 4 x data ranks 6 = 24: use 24 or 48");
}

/// What more than one rank cannot have; one rank has no use for it, and may say it.
TEST(RecipeValidate, NotYetOnManyRanks) {
  const auto error = [](const std::string& keys, const std::string& axes) {
    return validateError("[batch]\nglobal = 48\n[mesh]\naxes = " + axes + "\n" + keys);
  };
  const std::pair<std::string, std::string> refused[] = {
      {"strategy = \"tensor\"",
       "mesh.strategy = \"tensor\" on more than one rank is not available yet: use \"ddp\", "
       "\"zero1\", \"zero2\", \"fsdp\" or \"hsdp\""},
      {"strategy = \"fsdp\"\nouter = \"zero1\"",
       "mesh.outer = \"zero1\" is not available yet: use \"none\""},
      {"tensor_rules = [\"*\"]",
       "mesh.tensor_rules on more than one rank are not available yet: remove them"}};
  for (const auto& [keys, message] : refused) {
    EXPECT_EQ(error(keys, "{ replicate = 2, shard = 3 }"), message);
    EXPECT_EQ(error(keys, "{ shard = 1 }"), "") << keys;
  }
  for (const char* sync : {"auto", "deferred", "immediate"})
    EXPECT_EQ(error("sync = \"" + std::string(sync) + "\"", "{ shard = 6 }"), "");
  EXPECT_EQ(error("", "{ shard = 2, tensor = 3 }"),
            "mesh.axes.tensor = 3: a model that is divided among ranks is not available yet: set "
            "it to 1");
  EXPECT_EQ(error("", "{ replicate = 65536, shard = 65536 }"),
            "mesh.axes.shard = 65536 makes more than 2147483647 ranks");
}

/// Whatever the number of ranks: one recipe has the same bits on each mesh.
TEST(RecipeValidate, TreesAreOfTwos) {
  const auto error = [](const std::string& keys, int global = 32,
                        const std::string& axes = "{ replicate = 2, shard = 2 }") {
    return validateError("[mesh]\nreduce = \"tree\"\naxes = " + axes +
                         "\n[batch]\nglobal = " + std::to_string(global) + "\n" + keys);
  };
  const char *one = "{ replicate = 1 }", *wide = "{ replicate = 2, shard = 4 }";
  for (const char* axes : {one, wide, "{ replicate = 2, shard = 2, tensor = 1 }"})
    EXPECT_EQ(error("", 64, axes), "") << axes;
  EXPECT_EQ(
      error("", 48, "{ shard = 3 }"),
      "mesh.reduce = \"tree\" adds by twos: mesh.axes.shard = 3 is no power of two: use 2 or 4");
  EXPECT_EQ(
      error("", 64, "[{ name = \"shard\", ranks = 2 }, { name = \"replicate\", ranks = 2 }]"),
      "mesh.reduce = \"tree\" sums over shard before it sums over replicate: write replicate in "
      "front of shard in mesh.axes");
  EXPECT_EQ(error("", 64, "[{ name = \"shard\", ranks = 2 }, { name = \"replicate\", ranks = 1 }]"),
            "");
  EXPECT_EQ(
      error("", 48, one),
      "mesh.reduce = \"tree\" adds by twos: batch.global = 48 is 6 microbatches of 8, no power "
      "of two: use 32 or 64");
  EXPECT_EQ(
      error("", 96, "{ shard = 4 }"),
      "mesh.reduce = \"tree\" adds by twos: batch.global = 96 is 12 microbatches of 8, no power "
      "of two: use 64 or 128");
  EXPECT_EQ(
      error("", 24 * 8, wide),
      "mesh.reduce = \"tree\" adds by twos: batch.global = 192 is 24 microbatches of 8, no power "
      "of two: use 128 or 256");
  EXPECT_EQ(
      error("", 4096, one),
      "mesh.reduce = \"tree\" keeps a sum for each level: 512 microbatches of a rank are more "
      "than 256: set batch.micro higher");
  EXPECT_EQ(error("", 4096, "{ shard = 2 }"), "");
  EXPECT_EQ(error("[precision]\nreduce_dtype = \"bf16\""),
            "mesh.reduce = \"tree\" sums in f32: precision.reduce_dtype = \"bf16\" would round on "
            "some meshes only");
  EXPECT_EQ(validateError("[mesh]\nreduce = \"tree\"\nsync_every = 2"),
            "mesh.reduce = \"tree\" has no place for a sum after mesh.sync_every = 2 microbatches: "
            "set mesh.sync");
  EXPECT_EQ(error("[optimizer]\nclip_norm = 0.5"), "");
}

TEST(RecipeValidate, LossChunks) {
  EXPECT_EQ(validateError("[memory]\nloss_chunks = 4"), "");
  EXPECT_EQ(validateError("[memory]\nloss_chunks = -1"),
            "memory.loss_chunks = -1 must be at least 0");
}

/// On several ranks; one has nothing to shard.
TEST(RecipeValidate, StrategiesNeedRanksOnTheirAxes) {
  const auto error = [](const std::string& strategy, const std::string& axes) {
    return validateError("[batch]\nglobal = 48\n[mesh]\naxes = " + axes + "\nstrategy = \"" +
                         strategy + "\"");
  };
  for (const std::string strategy : {"zero1", "zero2", "zero3", "fsdp", "hsdp"}) {
    EXPECT_EQ(error(strategy, "{ replicate = 2 }"),
              "mesh.strategy = \"" + strategy +
                  "\" shards over axis 'shard', which has 1 rank: set mesh.axes.shard");
    EXPECT_EQ(error(strategy, "{ replicate = 2, shard = 3 }"), "") << strategy;
    EXPECT_EQ(error(strategy, "{ shard = 1 }"), "") << strategy;
  }
  EXPECT_EQ(error("fsdp", "{ shard = 2 }"), "");
  EXPECT_EQ(error("hsdp", "{ shard = 2 }"),
            "mesh.strategy = \"hsdp\" replicates what it shards over axis 'replicate', which has 1 "
            "rank: set mesh.axes.replicate");
}

TEST(RecipeParse, ReshardIsAWordOrPatterns) {
  const auto mesh = [](const std::string& reshard) {
    return parseRecipe("[mesh]\nreshard = " + reshard).take().mesh;
  };
  EXPECT_EQ(mesh("\"never\"").reshard, "never");
  EXPECT_EQ(mesh("[\"wte.*\"]").reshard, "always");
  EXPECT_EQ(mesh("[\"wte.*\"]").kept, std::vector<std::string>{"wte.*"});
  for (const char* wrong : {"\"sometimes\"", "2", "[2]"})
    EXPECT_NE(parseError(std::string("[mesh]\nreshard = ") + wrong), "") << wrong;
  EXPECT_EQ(parseError("[mesh]\nreshard = \"sometimes\""),
            "r.toml: mesh.reshard = \"sometimes\" is not \"always\", \"never\", \"step\" or a list "
            "of patterns");
}

/// When ranks sum: one answer an axis, that the microbatches of a rank (4) allow.
TEST(RecipeValidate, SumsOverRanks) {
  const auto error = [](const std::string& keys,
                        const std::string& axes = "{ replicate = 2, shard = 3 }") {
    return validateError("[batch]\nglobal = 192\n[mesh]\naxes = " + axes + "\n" + keys);
  };
  EXPECT_EQ(error("sync_every = 2"), "");
  EXPECT_EQ(error("sync = { shard = \"immediate\" }"), "");
  EXPECT_EQ(error("sync = { shard = \"immediate\", replicate = \"immediate\" }"), "");
  EXPECT_EQ(error("sync_every = 2\nsync = { shard = \"deferred\" }"), "");

  EXPECT_EQ(error("sync = \"often\""),
            "mesh.sync = \"often\" is not known: use auto | deferred | immediate");
  EXPECT_EQ(error("sync = { shard = \"auto\" }"),
            "mesh.sync.shard = \"auto\" is not known: use deferred | immediate");
  EXPECT_EQ(error("sync = { tensor = \"deferred\" }"),
            "mesh.sync has an axis 'tensor': gradients are summed over replicate and shard");
  const std::string turned =
      "mesh.sync = { replicate = \"immediate\", shard = \"deferred\" } sums over more ranks each "
      "microbatch and over fewer once a step: make shard immediate, too, or replicate deferred";
  EXPECT_EQ(error("sync = { replicate = \"immediate\", shard = \"deferred\" }"), turned);
  EXPECT_EQ(error("sync = { replicate = \"immediate\" }"), turned);
  EXPECT_EQ(error("sync = { replicate = \"immediate\" }", "{ replicate = 2 }"), "");

  EXPECT_EQ(error("sync_every = 3"),
            "mesh.sync_every = 3 does not divide the 4 microbatches of a rank: use 2 or 4");
  EXPECT_EQ(error("sync_every = 9"),
            "mesh.sync_every = 9 does not divide the 4 microbatches of a rank: use 4");
  EXPECT_EQ(error("sync_every = -1"), "mesh.sync_every = -1 must be at least 0");
  const std::string both =
      "mesh.sync_every = 2 contradicts mesh.sync, by which ranks sum each microbatch: set one of "
      "them";
  EXPECT_EQ(error("sync_every = 2\nsync = \"immediate\""), both);
  EXPECT_EQ(error("sync_every = 2\nsync = { shard = \"immediate\" }"), both);
  // One rank sums with nobody.
  for (const char* keys : {"sync_every = 5", "sync_every = 2\nsync = \"immediate\""})
    EXPECT_EQ(error(keys, "{ shard = 1 }"), "") << keys;
}

TEST(RecipeValidate, Buckets) {
  const MeshRecipe mesh = parseRecipe("[mesh]\nbucket = \"2MB\"\nprefetch = 3").take().mesh;
  EXPECT_EQ(mesh.bucket, 2'000'000);
  EXPECT_EQ(mesh.prefetch, 3);
  EXPECT_EQ(validateError("[mesh]\nbucket = 0\nprefetch = 0"), "");
  EXPECT_EQ(validateError("[mesh]\nprefetch = 16"), "");
  EXPECT_EQ(validateError("[mesh]\nprefetch = 17"), "mesh.prefetch = 17 must be at most 16");
  EXPECT_EQ(validateError("[mesh]\nprefetch = -1"), "mesh.prefetch = -1 must be at least 0");
  EXPECT_EQ(validateError("[mesh]\nbucket = -1"), "mesh.bucket = -1 must be at least 0");
  EXPECT_EQ(parseError("[mesh]\nbucket = \"many\""),
            "r.toml: mesh.bucket = \"many\" is not a number of bytes (an integer, \"2.3GB\" or "
            "\"512MiB\")");
}

TEST(RecipeValidate, Refusals) {
  EXPECT_EQ(validateError("[optimizer]\nkind = \"lion\""),
            "optimizer.kind = \"lion\" is not known: use sgd | adam | adamw");
  EXPECT_EQ(validateError("[precision]\ncompute = \"bf16\""), "");
  EXPECT_EQ(validateError("[precision]\nmatmul = \"bf16\""),
            "precision.matmul = \"bf16\" is not known: use f32 | tf32");
  EXPECT_EQ(
      validateError("[loss]\nkind = \"mse\"\nlabel_smoothing = 0.1"),
      "loss.label_smoothing = 0.1 is for cross_entropy, loss.kind = \"mse\" has no use for it");
  EXPECT_EQ(validateError("[loss]\nkind = \"mse\"\nignore_index = 0"),
            "loss.ignore_index = 0 is for cross_entropy, loss.kind = \"mse\" has no use for it");
  EXPECT_EQ(validateError("[loss]\nkind = \"output\"\nignore_index = 0"), "");
  EXPECT_EQ(validateError("[loss]\nkind = \"mse\"\nclass_dim = 1"),
            "loss.class_dim = 1 is for cross_entropy, loss.kind = \"mse\" has no use for it");
  EXPECT_EQ(validateError("[loss]\nclass_dim = 0"),
            "loss.class_dim = 0 is the batch, not the classes");
  EXPECT_EQ(validateError("[loss]\nclass_weights = [1, 0.5, 0]"), "");
  EXPECT_EQ(validateError("[loss]\nclass_weights = [0, 0]"),
            "loss.class_weights are all 0: no target would count");
  EXPECT_EQ(validateError("[loss]\nkind = \"mse\"\nclass_weights = [1]"),
            "loss.class_weights are for cross_entropy, loss.kind = \"mse\" has no use for them");
  EXPECT_EQ(validateError("[loss]\nclass_weights = [1, 2]\nlabel_smoothing = 0.1"), "");
  EXPECT_EQ(validateError("[optimizer]\nkind = \"sgd\"\nbetas = [0.9, 0.95]"),
            "optimizer.betas = [0.9, 0.95] are for adam and adamw; sgd has momentum");
  EXPECT_EQ(validateError("[optimizer]\nkind = \"sgd\"\neps = 1e-6"),
            "optimizer.eps = 1e-06 is for adam and adamw; sgd has none");
  for (const char* bad :
       {"[optimizer]\nlr = -1", "[optimizer]\nbetas = [0.9, 1.0]", "[optimizer]\nmomentum = 0.9",
        "[optimizer]\nkind = \"sgd\"\nnesterov = true", "[loss]\nlabel_smoothing = 1",
        "[loss]\nkind = \"hinge\"", "[schedule]\nmin_lr_ratio = 2",
        "[schedule]\nkind = \"cosine\"\nwarmup_steps = 101", "[train]\nsteps = 0",
        "[train]\nseed = -1", "[checkpoint]\nkeep = -1", "[data]\nstd = [0.0]",
        "[data]\nmean = [1.0, 2.0]\nstd = [1.0, 2.0, 3.0]", "[model]\ndims = { seq = 0 }",
        "[[model.init_rule]]\nmatch = \"*\"", "[[optimizer.group]]\nlr_scale = 2"})
    EXPECT_NE(validateError(bad), "") << bad;
}

TEST(Recipe, MissingFile) {
  const auto recipe = readRecipe("/nonexistent/r.toml");
  ASSERT_FALSE(recipe.ok());
  EXPECT_EQ(recipe.error().message(),
            "cannot open the recipe '/nonexistent/r.toml': No such file or directory");
}

TEST(Recipe, DamageNeverCrashes) {
  std::mt19937 random(5);
  for (int i = 0; i < 3000; ++i) {
    std::string text(full);
    for (unsigned flips = 1 + random() % 6; flips > 0; --flips)
      text[random() % text.size()] = static_cast<char>(random());
    if (const auto recipe = parseRecipe(text); recipe.ok()) {
      (void)validate(*recipe);
      EXPECT_TRUE(parseRecipe(toToml(*recipe)).ok());
      EXPECT_TRUE(parseRecipeJson(toJson(*recipe)).ok());
    }
    (void)parseRecipeJson(text);
  }
}

TEST(Recipe, MeshAxesAreAnOrderedList) {
  const std::vector<MeshAxis> usual = {{"replicate", 1}, {"shard", 1}, {"tensor", 1}};
  EXPECT_EQ(Recipe().mesh.axes, usual);
  EXPECT_EQ(parsed("[mesh]\naxes = { tensor = 1, replicate = 1 }").mesh.axes, usual);
  const Recipe turned = parsed("[mesh]\naxes = [{ name = \"shard\", ranks = 1 }, { name = "
                               "\"replicate\", ranks = 1 }]");
  EXPECT_EQ(turned.mesh.axes, (std::vector<MeshAxis>{{"shard", 1}, {"replicate", 1}}));
  EXPECT_EQ(parseRecipeJson(toJson(turned)).take(), turned);
  EXPECT_EQ(parseRecipe(toToml(turned)).take(), turned);
  Recipe recipe;
  ASSERT_TRUE(setKey(recipe, "mesh.axes.shard=4").ok());
  EXPECT_EQ(recipe.mesh.axes,
            (std::vector<MeshAxis>{{"replicate", 1}, {"shard", 4}, {"tensor", 1}}));
  EXPECT_EQ(recipe.dataRanks(), 4);
  recipe.batch.micro = 2, recipe.batch.global = 48;
  EXPECT_EQ(recipe.globalMicrobatches(), 24);
  EXPECT_EQ(recipe.localMicrobatches(), 6);
}

TEST(Recipe, SyncIsAWordOrATableByAxis) {
  EXPECT_EQ(Recipe().mesh.sync.all, "auto");
  const Recipe word = parsed("[mesh]\nsync = \"immediate\"");
  const Recipe table = parsed("[mesh]\nsync = { shard = \"immediate\", replicate = \"deferred\" }");
  EXPECT_EQ(table.mesh.sync, (SyncRecipe{"", {{"replicate", "deferred"}, {"shard", "immediate"}}}));
  for (const Recipe& recipe : {word, table}) {
    EXPECT_EQ(parseRecipeJson(toJson(recipe)).take(), recipe);
    EXPECT_EQ(parseRecipe(toToml(recipe)).take(), recipe);
    EXPECT_TRUE(recipe.mesh.sync.isImmediate("shard"));
  }
  EXPECT_TRUE(word.mesh.sync.isImmediate("replicate"));
  EXPECT_FALSE(table.mesh.sync.isImmediate("replicate"));

  // The last one counts; an entry alone begins a table.
  Recipe recipe = word;
  ASSERT_TRUE(setKey(recipe, "mesh.sync.shard=immediate").ok());
  ASSERT_TRUE(setKey(recipe, "mesh.sync.replicate=deferred").ok());
  EXPECT_EQ(recipe.mesh.sync, table.mesh.sync);
  ASSERT_TRUE(setKey(recipe, "mesh.sync={ shard = \"deferred\" }").ok());
  EXPECT_EQ(recipe.mesh.sync, (SyncRecipe{"", {{"shard", "deferred"}}}));
  ASSERT_TRUE(setKey(recipe, "mesh.sync=auto").ok());
  EXPECT_EQ(recipe.mesh.sync, SyncRecipe());
  EXPECT_EQ(parseError("[mesh]\nsync = 2"),
            "r.toml: mesh.sync = 2 is not a string or a table of strings by axis");
  EXPECT_EQ(parseError("[mesh]\nsync = { shard = 2 }"),
            "r.toml: mesh.sync.shard = 2 is not a string");
}

TEST(Recipe, MeshAxesThatAreNone) {
  const auto error = [](const std::string& axes) {
    return validateError("[mesh]\naxes = " + axes);
  };
  EXPECT_EQ(error("[{ name = \"expert\", ranks = 1 }]"),
            "mesh.axes has an axis 'expert': known are replicate, shard and tensor");
  EXPECT_EQ(error("[{ name = \"shard\" }, { name = \"shard\" }]"), "mesh.axes has 'shard' twice");
  EXPECT_NE(error("{ shard = 0 }").find("mesh.axes.shard = 0"), std::string::npos);
}

} // namespace
} // namespace titan
