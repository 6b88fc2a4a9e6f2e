#include "runtime/checkpoint/Import.h"

#include "runtime/checkpoint/Export.h"
#include "runtime/checkpoint/testing/CrashEnv.h"
#include "runtime/checkpoint/testing/JobElf.h"
#include "runtime/checkpoint/testing/SampleState.h"
#include "runtime/checkpoint/testing/WholeOrNothing.h"
#include "runtime/device/testing/LinearProgram.h"

#include <gtest/gtest.h>

namespace titan::checkpoint {
namespace {

/// A run "a" with the checkpoint of step 7, and its weights as "w.safetensors" and "hf/".
class Import : public ::testing::Test {
protected:
  void SetUp() override {
    auto store = CheckpointStore::open("a", env_);
    ASSERT_TRUE(store->save(state_.saveRequest(7), 0).ok());
    ASSERT_TRUE(exportWeights({.checkpoint = from_, .output = "w.safetensors"}, env_).ok());
    ASSERT_TRUE(exportWeights({.checkpoint = from_, .output = "hf", .shardBytes = 40}, env_).ok());
  }

  ImportRequest request(const std::string& weights) {
    return {.weights = weights, .directory = "b", .target = targetLike(from_, env_).take()};
  }

  /// The state that a run goes on from.
  SampleState imported() {
    SampleState loaded = withAverages(99);
    const auto report = load(to_, loaded.loadRequest(), env_);
    EXPECT_TRUE(report.ok()) << report.error().message();
    return loaded;
  }

  /// Parameters and buffers of `state_`, and zeros.
  SampleState expected() {
    SampleState expected = state_;
    for (const TableEntry& row : state_.program.table)
      if (row.kind != StateKind::Param && row.kind != StateKind::Buffer) {
        std::string& bytes =
            expected.bytes(row.profile.empty() ? row.name : row.profile + "/" + row.name);
        bytes.assign(bytes.size(), '\0');
      }
    return expected;
  }

  void expectRefused(const ImportRequest& request, int exitCode, const std::string& says) {
    const std::string before = env_.digest();
    const auto report = importWeights(request, env_);
    ASSERT_FALSE(report.ok()) << "expected: " << says;
    EXPECT_EQ(report.error().exitCode(), exitCode);
    EXPECT_NE(report.error().message().find(says), std::string::npos) << report.error().message();
    EXPECT_EQ(env_.digest(), before);
  }

  CrashEnv env_;
  SampleState state_ = withAverages(7);
  const std::string from_ = "a/checkpoints/step-00000007", to_ = "b/checkpoints/step-00000000";
};

TEST_F(Import, OfEachFormIsACheckpointThatLoads) {
  for (const char* weights : {"w.safetensors", "hf", "hf/model.safetensors.index.json",
                              "a/checkpoints/step-00000007", "a/checkpoints/step-00000007/model"}) {
    SCOPED_TRACE(weights);
    const auto report = importWeights(request(weights), env_);
    ASSERT_TRUE(report.ok()) << report.error().message();
    EXPECT_EQ(report->saved.path, to_);
    EXPECT_TRUE(verify(to_, env_).ok());
    EXPECT_TRUE(imported() == expected());
    const Manifest manifest = readManifest(to_, env_).take();
    EXPECT_EQ(manifest.init.source, weights);
    EXPECT_EQ(manifest.data.digest, "00ff");
    EXPECT_TRUE(manifest.program.libraries.empty());
    ASSERT_TRUE(removeTree(env_, "b").ok());
  }
}

TEST_F(Import, ConvertsAsInitDoes) {
  ImportRequest wanted = request("w.safetensors");
  const auto row = [&](const char* name) -> TableEntry& {
    return *std::ranges::find(wanted.target.program.table, name, &TableEntry::name);
  };
  row("embed.weight").dtype = DType::F64; // was BF16
  row("fc1.bias").dtype = DType::BF16;    // was F32
  expectRefused(wanted, 1, "! fc1.bias is F32 [3], the program wants BF16 [3]: --cast rounds it");
  wanted.cast = true;
  const auto report = importWeights(wanted, env_);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->notes.size(), 2u);
  EXPECT_EQ(readManifest(to_, env_)->init.rounded, std::vector<std::string>{"fc1.bias"});
  EXPECT_TRUE(verify(to_, env_).ok());
}

TEST_F(Import, RefusesWhatDoesNotFit) {
  ImportRequest wanted = request("w.safetensors");
  std::erase_if(wanted.target.program.table,
                [](const TableEntry& row) { return row.name == "fc1.bias"; });
  expectRefused(wanted, 1, "+ fc1.bias F32 [3] is unexpected");
  wanted.ignored = {"fc1.b*"};
  ASSERT_TRUE(importWeights(wanted, env_).ok());
  EXPECT_EQ(readManifest(to_, env_)->init.ignored, std::vector<std::string>{"fc1.bias"});
  ASSERT_TRUE(removeTree(env_, "b").ok());

  wanted = request("w.safetensors");
  TableEntry more;
  more.name = "more";
  more.shape = {2};
  wanted.target.program.table.push_back(more);
  expectRefused(wanted, 1, "- more F32 [2] is missing");
  wanted.renames = {{"nothing", "more"}};
  expectRefused(wanted, 1, "--map 'nothing=more' matches no tensor");
  expectRefused(request("nowhere"), 1, "no such file or directory: 'nowhere'");
}

TEST_F(Import, RefusesARunThatHasCheckpoints) {
  ImportRequest wanted = request("w.safetensors");
  wanted.directory = "a";
  expectRefused(wanted, 2, "'a' has checkpoints already, up to 'a/checkpoints/step-00000007'");
  ASSERT_TRUE(importWeights(request("w.safetensors"), env_).ok());
  expectRefused(request("w.safetensors"), 2, "'b' has checkpoints already");
}

// Whatever fails, there is no checkpoint and nothing of an attempt, or the whole.
TEST_F(Import, LeavesNothingWhereAnyOperationFails) {
  const ImportRequest wanted = request("hf");
  expectWholeOrNothing(env_, [&](Env& env) -> Result<SaveReport> {
    return TITAN_TRY(importWeights(wanted, env)).saved;
  });
}

TEST(ImportTargets, OfAJobAreWhatItsRunSays) {
  CrashEnv env;
  Program program = titan::testing::linearProgram("[train]\nseed = 5\n");
  ASSERT_TRUE(
      (*env.createFile("job"))->append(JobElf{.tables = {serialize(program)}}.bytes()).ok());
  const auto target = targetOfJob("job", env);
  ASSERT_TRUE(target.ok()) << target.error().message();
  EXPECT_EQ(target->program.fingerprint, fingerprint(program));
  EXPECT_EQ(target->program.table.size(), program.states.size());
  EXPECT_EQ(target->data, (DataInfo{"", 0, 5}));
  for (State& state : program.states)
    if (state.kind == StateKind::Slot)
      state.init.a = 0.5;
  ASSERT_TRUE(
      (*env.createFile("warm"))->append(JobElf{.tables = {serialize(program)}}.bytes()).ok());
  const auto warm = targetOfJob("warm", env);
  ASSERT_FALSE(warm.ok());
  EXPECT_NE(warm.error().message().find("of job 'warm' does not start as zeros: start the run"),
            std::string::npos)
      << warm.error().message();
}

} // namespace
} // namespace titan::checkpoint
