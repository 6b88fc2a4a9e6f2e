// Kinds and their folders, and what follows from the one list of them: averages are saved, loaded,
// verified and refused like any other state.
#include "runtime/checkpoint/Folders.h"
#include "runtime/checkpoint/testing/CrashEnv.h"
#include "runtime/checkpoint/testing/SampleState.h"

#include <gtest/gtest.h>

namespace titan::checkpoint {
namespace {

constexpr const char* checkpointPath = "run/checkpoints/step-00000001";

TEST(Folders, HaveAPlaceForEveryKind) {
  EXPECT_EQ((*folderOf(StateKind::Param, ""))->name, "model");
  EXPECT_EQ((*folderOf(StateKind::Buffer, ""))->name, "model");
  EXPECT_EQ((*folderOf(StateKind::Slot, ""))->name, "optimizer");
  EXPECT_EQ((*folderOf(StateKind::Ema, "slow"))->name, "ema-slow");
  EXPECT_EQ(*folderOf(StateKind::Counter, ""), std::nullopt);
  EXPECT_LT(folderOfModel(), **folderOf(StateKind::Slot, ""));
  EXPECT_LT(**folderOf(StateKind::Slot, ""), **folderOf(StateKind::Ema, "a"));
}

TEST(Folders, OfAnUnknownKindAreAnInternalError) {
  const auto folder = folderOf(static_cast<StateKind>(99), "");
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.error().code(), ErrorCode::Internal);
}

TEST(Folders, TakeAProfileWhereTheKindHasOne) {
  for (const auto& [kind, profile] : {std::pair{StateKind::Ema, ""},
                                      {StateKind::Ema, "../x"},
                                      {StateKind::Ema, "a b"},
                                      {StateKind::Param, "slow"},
                                      {StateKind::Counter, "slow"}}) {
    const auto folder = folderOf(kind, profile);
    ASSERT_FALSE(folder.ok()) << profile;
    EXPECT_EQ(folder.error().code(), ErrorCode::Internal);
  }
  for (const char* name : {"slow", "S_1", "0"})
    EXPECT_TRUE(isProfileName(name));
  for (const char* name : {"", ".", "..", "a/b", "a-b", "a.b", "\xc3\xa4"})
    EXPECT_FALSE(isProfileName(name)) << name;
}

TEST(Folders, OfAStateWithoutAPlaceFailTheSave) {
  CrashEnv env;
  auto store = CheckpointStore::open("run", env);
  SampleState state(1);
  state.add("strange", static_cast<StateKind>(99), DType::F32, {2});
  const auto report = store->save(state.saveRequest(1), 0);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().code(), ErrorCode::Internal);
  EXPECT_NE(report.error().message().find("kind 99 has no place"), std::string::npos)
      << report.error().message();
  EXPECT_TRUE(store->list()->empty());
}

/// Two averages of each parameter, under the parameters' names.
class Averages : public testing::Test {
protected:
  SampleState sample(uint8_t fill) const {
    SampleState state;
    state.addAverages({"slow", "fastest"});
    state.refill(fill);
    return state;
  }
  void SetUp() override {
    auto store = CheckpointStore::open("run", env_);
    const auto report = store->save(sample(5).saveRequest(1), 0);
    ASSERT_TRUE(report.ok()) << report.error().message();
  }
  std::string refusal(SampleState& state) {
    const SampleState before = state;
    const auto report = load(checkpointPath, state.loadRequest(), env_);
    EXPECT_TRUE(state == before);
    return report.ok() ? "" : report.error().message();
  }

  CrashEnv env_;
};

TEST_F(Averages, LieInAFolderEachUnderTheParametersNames) {
  for (const char* folder : {"model", "optimizer", "ema-slow", "ema-fastest"})
    EXPECT_TRUE(*env_.kindOf(joinPath(checkpointPath, folder)) == FileKind::Directory) << folder;
  const auto manifest = verify(checkpointPath, env_);
  ASSERT_TRUE(manifest.ok()) << manifest.error().message();
  EXPECT_EQ(manifest->program.table, sample(5).program.table);
}

TEST_F(Averages, AreLoaded) {
  SampleState state = sample(200);
  const auto report = load(checkpointPath, state.loadRequest(), env_);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_TRUE(state == sample(5));
  EXPECT_NE(state.bytes("slow/fc1.weight"), state.bytes("fastest/fc1.weight"));
}

TEST_F(Averages, ThatOneSideHasAreRefusedWithTheirNames) {
  SampleState fewer(200), other(200);
  fewer.addAverages({"slow"});
  EXPECT_NE(refusal(fewer).find("+ ema-fastest/fc1.weight F32 [3, 4] is unexpected"),
            std::string::npos)
      << refusal(fewer);
  other.addAverages({"slow", "fastest", "third"});
  EXPECT_NE(refusal(other).find("- ema-third/fc1.bias F32 [3] is missing"), std::string::npos)
      << refusal(other);
}

TEST_F(Averages, InPlaceOfTheModelAreWeights) {
  SampleState saved, state;
  for (SampleState* each : {&saved, &state}) {
    each->program.table.clear();
    each->add("fc.weight", StateKind::Param, DType::F32, {2, 3});
    each->addAverages({"slow"});
    each->refill(each == &saved ? 5 : 200);
  }
  auto store = CheckpointStore::open("other", env_);
  ASSERT_TRUE(store->save(saved.saveRequest(1), 0).ok());
  ASSERT_TRUE(
      loadWeights("other/checkpoints/step-00000001/ema-slow", state.initRequest(), env_).ok());
  EXPECT_EQ(state.bytes("fc.weight"), saved.bytes("slow/fc.weight"));
}

TEST_F(Averages, ThatAreGoneAreDamage) {
  for (const char* folder : {"ema-slow", "ema-fastest"}) {
    const auto copy = env_.clone();
    ASSERT_TRUE(removeTree(*copy, joinPath(checkpointPath, folder)).ok());
    EXPECT_FALSE(verify(checkpointPath, *copy).ok());
    SampleState state = sample(200);
    EXPECT_FALSE(load(checkpointPath, state.loadRequest(), *copy).ok());
    EXPECT_TRUE(state == sample(200));
  }
}

} // namespace
} // namespace titan::checkpoint
