#include "runtime/program/testing/RecipeErrors.h"

#include <fstream>
#include <random>

namespace titan {
namespace {

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
