#include "runtime/checkpoint/Copy.h"

#include "runtime/checkpoint/testing/CrashEnv.h"
#include "runtime/checkpoint/testing/MeshState.h"
#include "runtime/checkpoint/testing/SampleState.h"
#include "runtime/checkpoint/testing/TemporaryDirectory.h"
#include "runtime/checkpoint/testing/WholeOrNothing.h"
#include "runtime/collective/testing/RankThreads.h"
#include "runtime/program/Collective.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

namespace titan::checkpoint {
namespace {

/// A run "a" with the checkpoint of step 7.
class Copy : public ::testing::Test {
protected:
  void SetUp() override {
    auto store = CheckpointStore::open("a", env_);
    const SampleState state = withAverages(7);
    SaveRequest request = state.saveRequest(7);
    request.init = {"w.safetensors", {"head.weight"}, {{"old.*", "new.*"}}};
    ASSERT_TRUE(store->save(request, 0).ok());
  }

  const std::string from_ = "a/checkpoints/step-00000007", to_ = "b/checkpoints/step-00000007";
  CrashEnv env_;
};

TEST_F(Copy, HoldsTheSame) {
  const auto report = copyCheckpoint(from_, "b", env_);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->path, to_);
  SampleState loaded = withAverages(0);
  const auto load = checkpoint::load(to_, loaded.loadRequest(), env_);
  ASSERT_TRUE(load.ok()) << load.error().message();
  EXPECT_TRUE(loaded == withAverages(7));
  EXPECT_EQ(load->notes, std::vector<std::string>());
  const auto before = readManifest(from_, env_), after = readManifest(to_, env_);
  EXPECT_TRUE(*before == *after);
  // Alike byte by byte.
  EXPECT_EQ(identityOf(from_, env_).take(), identityOf(to_, env_).take());
}

TEST_F(Copy, RefusesWhatExists) {
  ASSERT_TRUE(copyCheckpoint(from_, "b", env_).ok());
  const std::string before = env_.digest();
  for (const char* run : {"a", "b"}) {
    const auto report = copyCheckpoint(from_, run, env_);
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.error().exitCode(), 2);
    EXPECT_EQ(report.error().message(),
              fmt::format("'{}/checkpoints/step-00000007' exists already: give another run "
                          "directory",
                          run));
  }
  EXPECT_EQ(env_.digest(), before);
}

TEST_F(Copy, JoinsOtherSteps) {
  for (int64_t step : {1, 9}) {
    auto store = CheckpointStore::open("b", env_);
    ASSERT_TRUE(store->save(SampleState(1).saveRequest(step), 0).ok());
  }
  ASSERT_TRUE(copyCheckpoint(from_, "b", env_).ok());
  EXPECT_EQ(listCheckpoints(env_, "b").take().size(), 3u);
}

TEST_F(Copy, OfWhatIsNoCheckpointIsRefused) {
  ASSERT_TRUE(env_.removeFile(from_ + "/manifest.json").ok());
  const auto report = copyCheckpoint(from_, "b", env_);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().exitCode(), 1);
  EXPECT_NE(report.error().message().find("it has no manifest.json"), std::string::npos);
  EXPECT_EQ(*env_.kindOf("b"), FileKind::Missing);
}

// Whatever fails, there is no checkpoint and nothing of an attempt, or the whole.
TEST_F(Copy, LeavesNothingWhereAnyOperationFails) {
  expectWholeOrNothing(
      env_,
      [&](Env& env) {
        auto report = copyCheckpoint(from_, "b", env);
        if (!report.ok())
          EXPECT_NE(report.error().message().find(std::strerror(EIO)), std::string::npos);
        return report;
      },
      [&](Env& disk) { EXPECT_TRUE(verify(from_, disk).ok()); });
}

TEST(CopyOfRanks, PutsPiecesTogether) {
  const TemporaryDirectory directory;
  const std::vector<MeshAxis> mesh = {{"replicate", 2}, {"shard", 2}};
  const std::vector<MeshState::Tensor> tensors = {
      {"rows", StateKind::Param, DType::I64, {5, 3}, {{1, 0}}},
      {"both", StateKind::Param, DType::I64, {5, 2}, {{0, 0}, {1, 1}}},
      {"rows.exp_avg", StateKind::Slot, DType::I64, {5, 3}, {{1, 0}, {0, 1}}}};
  for (const bool saved : titan::testing::onRanks(4, [&](Peers& peers) {
         MeshState state(tensors, mesh, peers.rank());
         state.fill(7);
         auto store = CheckpointStore::open(directory.path("four"), peers);
         return store.ok() && store->save(state.saveRequest(1), 0).ok();
       }))
    ASSERT_TRUE(saved);
  const std::string step = "/checkpoints/step-00000001";
  const auto report = copyCheckpoint(directory.path("four") + step, directory.path("one"));
  ASSERT_TRUE(report.ok()) << report.error().message();
  const auto manifest = verify(directory.path("one") + step);
  ASSERT_TRUE(manifest.ok()) << manifest.error().message();
  EXPECT_EQ(*posixEnv().kindOf(report->path + "/model/model.safetensors.index.json"),
            FileKind::File);
  MeshState loaded(tensors, {{"replicate", 1}, {"shard", 1}}, 0);
  ASSERT_TRUE(load(report->path, loaded.loadRequest(nullptr)).ok());
  EXPECT_EQ(loaded.differing(7), "");
}

} // namespace
} // namespace titan::checkpoint
