// What a recipe may not say: keys against one another, and against the ranks.
#include "runtime/program/testing/RecipeErrors.h"

namespace titan {
namespace {

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

} // namespace
} // namespace titan
