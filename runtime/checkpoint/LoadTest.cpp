#include "runtime/checkpoint/testing/CrashEnv.h"
#include "runtime/checkpoint/testing/FaultEnv.h"
#include "runtime/checkpoint/testing/SampleState.h"
#include "runtime/checkpoint/testing/TemporaryDirectory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <unistd.h>

namespace titan::checkpoint {
namespace {

constexpr const char* shard = "/model/shard-00001-model-00001-of-00001.safetensors";

class Load : public testing::Test {
protected:
  void SetUp() override {
    auto opened = CheckpointStore::open("run", env_);
    for (int64_t step : {1, 2, 3})
      ASSERT_TRUE(opened->save(SampleState(static_cast<uint8_t>(step)).saveRequest(step), 0).ok());
  }

  /// Loads step 3 into `state`, which must stay as it is.
  std::string refusal(SampleState& state) {
    const SampleState before = state;
    auto report = load(path_, state.loadRequest(), env_);
    EXPECT_TRUE(state == before) << "written in spite of the error";
    if (report.ok())
      return "";
    EXPECT_EQ(report.error().code(), ErrorCode::BadInput);
    return report.error().message();
  }

  CrashEnv env_;
  std::string path_ = "run/checkpoints/step-00000003";
};

TEST_F(Load, PrintsADiff) {
  SampleState state(200);
  state.remove("fc1.weight");
  state.add("fc1.wieght", StateKind::Param, DType::F32, {3, 4});
  state.entry("fc1.bias").shape = {4};
  state.bytes("fc1.bias").resize(16);
  state.entry("norm.count").dtype = DType::F64;
  EXPECT_EQ(refusal(state),
            "checkpoint 'run/checkpoints/step-00000003' does not fit this program: "
            "1 missing, 1 unexpected, 1 of another shape, 1 of another dtype\n"
            "  - fc1.wieght F32 [3, 4] is missing: did you mean 'fc1.weight'?\n"
            "  + fc1.weight F32 [3, 4] is unexpected\n"
            "  ! fc1.bias is F32 [3], the program wants F32 [4]\n"
            "  ! norm.count is I64 [], the program wants F64 []\n"
            "resume with the model that wrote it; to start from some of its weights use --init "
            "with --map and --fresh");
}

TEST_F(Load, RefusesMissingAndUnexpectedSlotsAndCounters) {
  SampleState state(200);
  state.remove("fc1.weight.exp_avg");
  state.remove("skipped");
  state.add("momentum", StateKind::Slot, DType::F32, {2});
  state.add("ticks", StateKind::Counter, DType::I64, {});
  const std::string text = refusal(state);
  for (const char* line : {"2 missing, 2 unexpected", "- momentum", "+ fc1.weight.exp_avg",
                           "- ticks I64 [] is missing", "+ skipped I64 [] is unexpected"})
    EXPECT_NE(text.find(line), std::string::npos) << line << " not in " << text;
}

TEST_F(Load, RefusesAnotherOptimizer) {
  SampleState state(200);
  state.program.optimizer = "sgd";
  EXPECT_EQ(refusal(state),
            "checkpoint 'run/checkpoints/step-00000003' holds the state of optimizer 'adamw', this "
            "job uses 'sgd': resume with 'adamw', or start from the weights alone with --init "
            "run/checkpoints/step-00000003");
}

TEST_F(Load, AcceptsAnAliasOfATiedSet) {
  SampleState state(200);
  for (const char* suffix : {"", ".exp_avg"}) {
    TableEntry& row = state.entry(fmt::format("embed.weight{}", suffix));
    const TableEntry original = row;
    state.remove(original.name);
    state.add(fmt::format("head.weight{}", suffix), original.kind, original.dtype, original.shape,
              {original.name});
  }
  auto report = load(path_, state.loadRequest(), env_);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(state.bytes("head.weight"), SampleState(3).bytes("embed.weight"));
  EXPECT_EQ(report->notes.size(), 2u);
}

TEST_F(Load, SaysWhatDiffersFromTheSavingRun) {
  SampleState state(200);
  state.program.fingerprint = "another";
  state.program.recipe = R"({"optimizer":{"kind":"adamw","lr":0.002},"train":{"steps":100}})";
  auto report = load(path_, state.loadRequest(), env_);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->notes, (std::vector<std::string>{"optimizer.lr was 0.001, is 0.002"}));
}

TEST_F(Load, RefusesWhatIsNoCheckpoint) {
  SampleState state(200);
  path_ = "run/checkpoints/step-00000004";
  EXPECT_EQ(refusal(state), "'run/checkpoints/step-00000004' is no checkpoint: there is no such "
                            "directory");
  path_ = "run/checkpoints";
  EXPECT_EQ(refusal(state), "'run/checkpoints' is no checkpoint: it has no manifest.json");
}

TEST_F(Load, FindsNothingInAnEmptyDirectory) {
  SampleState state(200);
  auto report = loadLatest("nowhere", state.loadRequest(), env_);
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->has_value());
}

class Damage : public testing::Test {
protected:
  void SetUp() override {
    auto store = CheckpointStore::open(directory_.path());
    for (int64_t step : {1, 2, 3})
      ASSERT_TRUE(store->save(SampleState(static_cast<uint8_t>(step)).saveRequest(step), 0).ok());
  }

  std::string step(int64_t number) const {
    return directory_.path("checkpoints/" + stepName(number));
  }

  std::string edit(const std::string& path, size_t position) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(position));
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(static_cast<std::streamoff>(position));
    file.put(byte);
    return path;
  }

  std::string refusal() {
    SampleState state(200);
    auto report = loadLatest(directory_.path(), state.loadRequest());
    EXPECT_FALSE(report.ok());
    EXPECT_TRUE(state == SampleState(200));
    if (report.ok())
      return "";
    EXPECT_EQ(report.error().code(), ErrorCode::BadInput);
    EXPECT_EQ(report.error().message().find('\n'), std::string::npos);
    return report.error().message();
  }

  TemporaryDirectory directory_;
};

TEST_F(Damage, OfAShardNamesFileAndDigestsAndTheGoodCheckpointBefore) {
  const std::string file = edit(step(3) + shard, 500);
  const std::string text = refusal();
  EXPECT_TRUE(text.starts_with(fmt::format("'{}' is damaged: expected digest ", file))) << text;
  EXPECT_NE(text.find(", found "), std::string::npos) << text;
  EXPECT_NE(text.find("'" + step(2) + "': train --resume good"), std::string::npos) << text;
}

TEST_F(Damage, OfSeveralCheckpointsNamesTheNewestGoodOne) {
  edit(step(3) + shard, 500);
  edit(step(2) + "/manifest.json", 10);
  EXPECT_NE(refusal().find("'" + step(1) + "': train --resume good"), std::string::npos);
  edit(step(1) + "/manifest.json", 10);
  EXPECT_NE(refusal().find("no good checkpoint before it"), std::string::npos);
}

TEST_F(Damage, OfALengthNamesBothSizes) {
  const std::string file = step(3) + shard;
  const auto size = std::filesystem::file_size(file);
  std::filesystem::resize_file(file, size - 1);
  EXPECT_TRUE(refusal().starts_with(
      fmt::format("'{}' is damaged: expected {} bytes, found {};", file, size, size - 1)));
}

TEST_F(Damage, OfAManifestNamesIt) {
  const std::string file = edit(step(3) + "/manifest.json", 60);
  EXPECT_TRUE(refusal().starts_with(fmt::format("'{}' is damaged: expected digest ", file)));
}

TEST_F(Damage, ByAMissingFileNamesIt) {
  std::filesystem::remove(step(3) + shard);
  EXPECT_NE(refusal().find(shard), std::string::npos);
  std::filesystem::remove(step(3) + "/manifest.json");
  EXPECT_NE(refusal().find("has no manifest.json"), std::string::npos);
}

TEST_F(Damage, OfAManifestIsAnotherIdentity) {
  const std::string before = *identityOf(step(3));
  EXPECT_EQ(before.size(), 32u);
  EXPECT_EQ(*identityOf(step(3)), before);
  edit(step(3) + "/manifest.json", 60);
  EXPECT_NE(*identityOf(step(3)), before);
  std::filesystem::remove(step(3) + "/manifest.json");
  EXPECT_EQ(*identityOf(step(3)), "");
  EXPECT_EQ(identityOf(step(4)).error().code(), ErrorCode::BadInput);
}

TEST_F(Damage, IsNoneWhereAnotherTitanWroteTheManifest) {
  EXPECT_EQ(*findDamage(step(3)), std::nullopt);
  const std::string file = step(3) + "/manifest.json";
  std::string text = *readWholeFile(posixEnv(), file, 1 << 20);
  text = *unsealManifest(text);
  const std::string version = "\"version\": 2";
  text.replace(text.find(version), version.size(), "\"version\": 3");
  std::ofstream(file, std::ios::trunc) << sealManifest(text);
  const auto later = findDamage(step(3));
  ASSERT_FALSE(later.ok());
  EXPECT_NE(later.error().message().find("version 3"), std::string::npos);
  EXPECT_EQ(refusal(), fmt::format("'{}': version 3 was written by another Titan, this one reads "
                                   "versions 1 to 2",
                                   file));
  edit(file, 60);
  const auto damaged = findDamage(step(3));
  ASSERT_TRUE(damaged.ok() && *damaged);
}

TEST_F(Damage, ByAStrangeShardIsFoundByVerify) {
  std::filesystem::copy_file(step(3) + shard, step(3) + "/model/other.safetensors");
  auto verified = verify(step(3));
  ASSERT_FALSE(verified.ok());
  EXPECT_NE(verified.error().message().find("other.safetensors' is not in the manifest"),
            std::string::npos);
}

/// Loads step 3 while `change` happens before one operation, each in turn: a load that succeeds has
/// what was saved, any other says so. Returns how many errors there were, and adds to `inPart`
/// those of the second pass.
template <typename Change>
int changeBeforeEachOperation(const std::string& checkpoint, Change change, int& inPart) {
  int errors = 0;
  for (int64_t at = 0;; ++at) {
    const TemporaryDirectory copy;
    const std::string path = copy.path("step-00000003");
    std::filesystem::copy(checkpoint, path, std::filesystem::copy_options::recursive);
    bool changed = false;
    FaultEnv env(posixEnv());
    env.beforeEach([&](int64_t operation) {
      if (operation == at) {
        change(path);
        changed = true;
      }
    });
    SampleState state(200);
    auto report = load(path, state.loadRequest(), env);
    if (report.ok()) {
      EXPECT_TRUE(state == SampleState(3)) << "other bytes, changed before operation " << at;
    } else {
      ++errors;
      EXPECT_EQ(report.error().exitCode(), 1) << report.error().message();
      const bool says =
          report.error().message().find("the state is loaded in part") != std::string::npos;
      inPart += says ? 1 : 0;
      EXPECT_TRUE(says || state == SampleState(200)) << report.error().message();
    }
    if (!changed)
      return errors;
  }
}

TEST_F(Damage, OfAByteDuringALoadIsAnErrorOrTooLate) {
  int inPart = 0;
  // In the header, in the first tensor and in the last.
  const auto size = std::filesystem::file_size(step(3) + shard);
  for (const size_t position : {size_t{20}, size_t{size - 100}, size_t{size - 1}})
    EXPECT_GT(changeBeforeEachOperation(
                  step(3), [&](const std::string& path) { edit(path + shard, position); }, inPart),
              0);
  EXPECT_GT(inPart, 0);
}

TEST_F(Damage, OfALengthDuringALoadIsAnErrorOrTooLate) {
  int inPart = 0;
  const auto size = std::filesystem::file_size(step(3) + shard);
  EXPECT_GT(
      changeBeforeEachOperation(
          step(3),
          [&](const std::string& path) { std::filesystem::resize_file(path + shard, size - 1); },
          inPart),
      0);
  EXPECT_GT(inPart, 0);
}

TEST_F(Damage, ByAnotherFileDuringALoadIsAnErrorOrNotRead) {
  int inPart = 0;
  EXPECT_GT(changeBeforeEachOperation(
                step(3),
                [&](const std::string& path) {
                  std::filesystem::copy_file(step(2) + shard, path + "/other");
                  std::filesystem::rename(path + "/other", path + shard);
                },
                inPart),
            0);
  // The file that was checked stays open.
  EXPECT_EQ(inPart, 0);
}

int64_t residentBytes() {
  int64_t total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

TEST(LoadMemory, IsAFewBuffers) {
  if (residentBytes() == 0)
    GTEST_SKIP() << "no /proc/self/statm";
  const TemporaryDirectory directory;
  const auto enlarge = [](SampleState& state, uint8_t fill) {
    for (const char* suffix : {"", ".exp_avg", ".exp_avg_sq"})
      state.add(fmt::format("wte.weight{}", suffix), *suffix ? StateKind::Slot : StateKind::Param,
                DType::F32, {4096, 1024});
    state.refill(fill);
  };
  // Both stay, so that what they hold is not free for a load to take.
  SampleState saved(3), state(200);
  enlarge(saved, 3);
  enlarge(state, 200);
  auto store = CheckpointStore::open(directory.path());
  ASSERT_TRUE(store->save(saved.saveRequest(1), 0).ok());

  const std::string path = directory.path("checkpoints/step-00000001");
  FaultEnv env(posixEnv());
  const int64_t before = residentBytes();
  int64_t most = before;
  env.beforeEach([&](int64_t) { most = std::max(most, residentBytes()); });
  ASSERT_TRUE(load(path, state.loadRequest(), env).ok());
  EXPECT_TRUE(state == saved);
  ASSERT_TRUE(loadWeights(path, state.initRequest(), env).ok());
  EXPECT_TRUE(verify(path, env).ok());
  EXPECT_LE(most - before, 8 << 20) << "for 48 MB of state";
}

} // namespace
} // namespace titan::checkpoint
