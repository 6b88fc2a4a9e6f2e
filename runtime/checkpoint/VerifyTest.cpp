// All damage of a checkpoint, by several threads.
#include "runtime/checkpoint/Verify.h"

#include "runtime/checkpoint/Chunks.h"
#include "runtime/checkpoint/testing/CrashEnv.h"
#include "runtime/checkpoint/testing/FaultEnv.h"
#include "runtime/checkpoint/testing/SampleState.h"
#include "runtime/checkpoint/testing/TemporaryDirectory.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <filesystem>
#include <fstream>

namespace titan::checkpoint {
namespace {

constexpr const char* model = "/model/shard-00001-model-00001-of-00001.safetensors";
constexpr const char* optimizer = "/optimizer/shard-00001-model-00001-of-00001.safetensors";

/// A checkpoint of 20 MB, its tensors "a" and "b" of 8 MB one behind the other.
class Verify : public ::testing::Test {
protected:
  void SetUp() override {
    SampleState state(7);
    for (const char* name : {"a", "b"})
      state.add(name, StateKind::Buffer, DType::F64, {1'000'000});
    state.add("a.exp_avg", StateKind::Slot, DType::F64, {500'000});
    state.refill(7);
    auto store = CheckpointStore::open(directory_.path());
    ASSERT_TRUE(store->save(state.saveRequest(1), 0).ok());
  }

  std::string checkpoint() const { return directory_.path("checkpoints/step-00000001"); }

  void flip(const std::string& file, int64_t position) const {
    std::fstream stream(checkpoint() + file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(position);
    const char byte = static_cast<char>(stream.get() ^ 1);
    stream.seekp(position);
    stream.put(byte);
  }

  /// Alike for any number of threads.
  std::vector<std::string> damages() const {
    const auto one = verifyWhole(checkpoint(), 1);
    EXPECT_TRUE(one.ok()) << one.error().message();
    for (int threads : {2, 7, 100})
      EXPECT_EQ(verifyWhole(checkpoint(), threads)->damages, one->damages) << threads;
    return one->damages;
  }

  TemporaryDirectory directory_;
};

TEST_F(Verify, FindsNothingInASoundOne) {
  EXPECT_TRUE(damages().empty());
  EXPECT_EQ(verifyWhole(checkpoint(), 2)->manifest->step, 1);
}

TEST_F(Verify, NamesEachDamagedChunk) {
  flip(model, 20);
  flip(model, 9'000'000);
  flip(model, 16'000'000);
  flip(optimizer, 3 << 20);
  const std::vector<std::string> found = damages();
  ASSERT_EQ(found.size(), 4u) << fmt::format("{}", fmt::join(found, "\n"));
  const auto expect = [&](size_t i, const std::string& file, const std::string& says) {
    EXPECT_TRUE(found[i].starts_with("'" + checkpoint() + file + "' is damaged: expected digest "))
        << found[i];
    EXPECT_NE(found[i].find(says), std::string::npos) << found[i];
  };
  // Of the file whose header may be wrong nothing is said of tensors unless it can be parsed.
  expect(0, model, " of chunk 0 (bytes 0 to 1048575");
  expect(1, model, " of chunk 8 (bytes 8388608 to 9437183");
  expect(2, model, " of chunk 15 (bytes 15728640 to ");
  expect(3, optimizer, " of chunk 3 (bytes 3145728 to 4000");
  EXPECT_NE(found[3].find("'a.exp_avg'"), std::string::npos) << found[3];
}

TEST_F(Verify, NamesTheTensors) {
  flip(model, 9'000'000);
  const std::vector<std::string> found = damages();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].find("tensor 'b'"), std::string::npos) << found[0];
}

TEST_F(Verify, TellsADamagedListFromADamagedFile) {
  flip(std::string(model) + ".chunks", 40);
  std::filesystem::remove(checkpoint() + optimizer + ".chunks");
  const std::vector<std::string> found = damages();
  ASSERT_EQ(found.size(), 2u) << fmt::format("{}", fmt::join(found, "\n"));
  EXPECT_NE(found[0].find(".chunks' is damaged: the digest of chunk 2"), std::string::npos)
      << found[0];
  EXPECT_TRUE(found[1].starts_with("cannot open '")) << found[1];
}

TEST_F(Verify, FindsFilesThatAreMissingCutOrStrange) {
  std::filesystem::remove(checkpoint() + "/model/model.safetensors.index.json");
  std::filesystem::resize_file(checkpoint() + optimizer, 100);
  std::ofstream(checkpoint() + "/model/more.safetensors") << "x";
  std::vector<std::string> found = damages();
  ASSERT_EQ(found.size(), 3u) << fmt::format("{}", fmt::join(found, "\n"));
  std::ranges::sort(found);
  EXPECT_NE(found[0].find("more.safetensors' is not in the manifest"), std::string::npos)
      << found[0];
  EXPECT_NE(found[1].find(" bytes, found 100"), std::string::npos) << found[1];
  EXPECT_TRUE(found[2].starts_with("cannot open '")) << found[2];
}

TEST_F(Verify, OfADamagedManifestSaysThatAlone) {
  flip("/manifest.json", 30);
  const auto report = verifyWhole(checkpoint(), 2);
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->manifest);
  ASSERT_EQ(report->damages.size(), 1u);
  EXPECT_NE(report->damages[0].find("manifest.json' is damaged"), std::string::npos);
}

TEST(VerifyFaults, AreErrorsOfTheStorage) {
  CrashEnv disk;
  ASSERT_TRUE(CheckpointStore::open("run", disk)->save(SampleState(7).saveRequest(1), 0).ok());
  bool met = true;
  for (int64_t operation = 0; met; ++operation) {
    FaultEnv env(disk);
    env.failAt(operation, EIO, /*forGood=*/false);
    const auto report = verifyWhole("run/checkpoints/step-00000001", 1, env);
    met = !env.failed().empty();
    EXPECT_EQ(report.ok(), !met) << env.failed();
    if (met && !report.ok())
      EXPECT_EQ(report.error().exitCode(), 3) << report.error().message();
  }
}

} // namespace
} // namespace titan::checkpoint
