// What preflight finds: everything that a later save could find in its names, formats and storage.
#include "runtime/checkpoint/SavePlan.h"
#include "runtime/checkpoint/WatchedEnv.h"
#include "runtime/checkpoint/testing/CrashEnv.h"
#include "runtime/checkpoint/testing/SampleState.h"
#include "runtime/checkpoint/testing/TemporaryDirectory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

namespace titan::checkpoint {
namespace {

TEST(Preflight, PassesAndLeavesNothing) {
  TemporaryDirectory directory;
  auto store = CheckpointStore::open(directory.path("run"));
  const auto passed = store->preflight(SampleState(1).saveRequest(0), 2);
  ASSERT_TRUE(passed.ok()) << passed.error().message();
  EXPECT_TRUE(std::filesystem::is_empty(directory.path("run/checkpoints")));
}

TEST(Preflight, WritesAWholeSaveOnRequest) {
  SampleState big(0);
  big.add("big", StateKind::Param, DType::U8, {1 << 20});
  CrashEnv memory;
  for (const Probe probe : {Probe::Chunk, Probe::Whole}) {
    WatchedEnv env(memory);
    auto store = CheckpointStore::open("run", env);
    const int64_t before = env.bytesWritten();
    const auto passed = store->preflight(big.saveRequest(0), 2, probe);
    ASSERT_TRUE(passed.ok()) << passed.error().message();
    EXPECT_EQ(env.bytesWritten() - before > (1 << 20), probe == Probe::Whole);
    EXPECT_TRUE(env.readDirectory("run/checkpoints")->empty());
  }
}

TEST(Preflight, ChecksSpaceForOneMoreThanIsKept) {
  CrashEnv env;
  auto store = CheckpointStore::open("run", env);
  SampleState big(0);
  big.add("big", StateKind::Param, DType::U8, {10 << 20});
  const SaveRequest request = big.saveRequest(0);
  env.setSpace({uint64_t{32} << 20, 1000});
  auto passed = store->preflight(request, 2);
  ASSERT_FALSE(passed.ok());
  EXPECT_EQ(passed.error().exitCode(), 3);
  const std::string message = passed.error().message();
  uint64_t checkpoints = 0, each = 0, rest = 0, needed = 0;
  const size_t at = message.find("33554432 bytes free");
  ASSERT_NE(at, std::string::npos) << message;
  ASSERT_EQ(std::sscanf(message.c_str() + at,
                        "33554432 bytes free, %lu more checkpoint(s) of %lu and %lu for blocks and "
                        "manifest growth each need %lu",
                        &checkpoints, &each, &rest, &needed),
            4)
      << message;
  EXPECT_EQ(checkpoints, 3u);
  EXPECT_EQ(checkpoints * (each + rest), needed);
  EXPECT_TRUE(store->preflight(request, 1).ok());
  env.setSpace({uint64_t{1} << 40, 7});
  passed = store->preflight(request, 2);
  ASSERT_FALSE(passed.ok());
  EXPECT_NE(passed.error().message().find("7 inodes free"), std::string::npos);
  env.setSpace({});
  EXPECT_TRUE(store->preflight(request, 2).ok());
}

TEST(Preflight, FindsAQuotaThatNoCallTells) {
  CrashEnv env;
  auto store = CheckpointStore::open("run", env);
  SampleState big(0);
  constexpr uint64_t megabyte = 1 << 20;
  big.add("big", StateKind::Param, DType::U8, {10 * megabyte});
  const SaveRequest request = big.saveRequest(0);
  env.setQuota(29 * megabyte);
  const auto passed = store->preflight(request, 2);
  ASSERT_FALSE(passed.ok());
  EXPECT_EQ(passed.error().exitCode(), 3);
  const std::string message = passed.error().message();
  EXPECT_NE(message.find("room for 3 more checkpoint(s) of 104"), std::string::npos) << message;
  EXPECT_NE(message.find("Disk quota exceeded (raise the quota"), std::string::npos) << message;
  EXPECT_TRUE(env.readDirectory("run/checkpoints")->empty());
  // What was taken is given back each time.
  for (int i = 0; i < 5; ++i)
    EXPECT_TRUE(store->preflight(request, 1).ok());
}

/// What is at and below `path`, itself included.
uint64_t entriesOf(Env& env, const std::string& path) {
  uint64_t entries = 1;
  const auto found = env.readDirectory(path);
  for (const DirectoryEntry& entry : *found)
    entries += entry.kind == FileKind::Directory ? entriesOf(env, joinPath(path, entry.name)) : 1;
  return entries;
}

TEST(Preflight, CountsTheInodesOfACheckpoint) {
  CrashEnv env;
  auto store = CheckpointStore::open("run", env);
  SampleState state(1);
  state.addAverages({"slow", "fast"});
  const auto report = store->save(state.saveRequest(1), 0);
  ASSERT_TRUE(report.ok()) << report.error().message();
  const uint64_t inodes = entriesOf(env, report->path);
  env.setSpace({uint64_t{1} << 40, inodes});
  EXPECT_TRUE(store->preflight(state.saveRequest(2), 0).ok());
  env.setSpace({uint64_t{1} << 40, inodes - 1});
  EXPECT_FALSE(store->preflight(state.saveRequest(2), 0).ok());
}

class PreflightRefusal : public testing::Test {
protected:
  /// Preflight refuses, as every save of the request would; nothing is left.
  std::string refusal(const SaveRequest& request) {
    auto store = CheckpointStore::open("run", env_);
    const auto before = env_.readDirectory("run/checkpoints");
    const auto passed = store->preflight(request, 2);
    EXPECT_EQ(*env_.readDirectory("run/checkpoints"), *before);
    if (passed.ok())
      return "";
    EXPECT_EQ(passed.error().exitCode(), 3);
    EXPECT_TRUE(passed.error().message().starts_with("checkpoints cannot be saved: "));
    return passed.error().message();
  }

  CrashEnv env_;
};

TEST_F(PreflightRefusal, OfADiskThatDoesNotKeepWhatItSaysItDoes) {
  const SaveRequest request = SampleState(1).saveRequest(0);
  ASSERT_EQ(refusal(request), "");                 // makes the directories
  env_.faultAtSync(-1, CrashEnv::SyncFault::Lost); // counts from here
  ASSERT_EQ(refusal(request), "");
  const std::vector<std::string> syncs = env_.syncs();
  int files = 0;
  for (size_t sync = 0; sync < syncs.size(); ++sync) {
    constexpr std::string_view endings[] = {".safetensors", ".chunks", ".json", ".json.tmp"};
    if (std::ranges::none_of(endings, [&](auto end) { return syncs[sync].ends_with(end); }))
      continue; // a directory's names are not read from the storage
    ++files;
    env_.faultAtSync(static_cast<int64_t>(sync), CrashEnv::SyncFault::Lost);
    EXPECT_NE(refusal(request), "") << syncs[sync];
  }
  EXPECT_EQ(files, 6); // of model and optimizer a file and its chunks, the index, the manifest
}

TEST_F(PreflightRefusal, OfNamesThatNoFileCanHold) {
  for (const char* name : {"__metadata__", "bad\xff"}) {
    SampleState state(1);
    state.add(name, StateKind::Buffer, DType::F32, {1});
    EXPECT_NE(refusal(state.saveRequest(0)).find(fmt::format("'{}' cannot be the name", name)),
              std::string::npos);
  }
}

TEST_F(PreflightRefusal, OfWhatTheManifestCannotHold) {
  SampleState state(1);
  state.entry("fc1.weight").aliases = {"bad\xff"};
  EXPECT_NE(refusal(state.saveRequest(0)).find("does not hold the state 'fc1.weight'"),
            std::string::npos);
  SampleState deep(1);
  deep.add("deep", StateKind::Buffer, DType::F32, Shape(65, 1));
  EXPECT_NE(refusal(deep.saveRequest(0)).find("65 extents"), std::string::npos);
}

TEST_F(PreflightRefusal, OfWhatStandsAtTheNameOfALaterStep) {
  ASSERT_EQ(refusal(SampleState(1).saveRequest(0)), ""); // makes the directory
  ASSERT_TRUE(env_.createFile("run/checkpoints/step-00000200").ok());
  const std::string text = refusal(SampleState(1).saveRequest(0));
  EXPECT_NE(text.find("'run/checkpoints/step-00000200' is no directory and stands where the "
                      "checkpoint of step 200 is to be"),
            std::string::npos)
      << text;
  // Behind the run it harms nothing.
  EXPECT_EQ(refusal(SampleState(1).saveRequest(201)), "");
  ASSERT_TRUE(env_.removeFile("run/checkpoints/step-00000200").ok());
  ASSERT_TRUE(env_.makeDirectory("run/checkpoints/step-00000200").ok());
  EXPECT_NE(refusal(SampleState(1).saveRequest(0)).find("step-00000200' is no checkpoint"),
            std::string::npos);
  ASSERT_TRUE(env_.removeDirectory("run/checkpoints/step-00000200").ok());
  SampleState other(1);
  other.program.fingerprint = "another";
  {
    auto foreign = CheckpointStore::open("run", env_);
    ASSERT_TRUE(foreign->save(other.saveRequest(200), 0).ok());
  }
  EXPECT_NE(refusal(SampleState(1).saveRequest(0)).find("saved by another program"),
            std::string::npos);
  EXPECT_EQ(refusal(other.saveRequest(0)), "");
}

TEST(Preflight, OfARequestThatContradictsItselfIsAnInternalError) {
  CrashEnv env;
  auto store = CheckpointStore::open("run", env);
  SaveRequest request = SampleState(1).saveRequest(0);
  request.tensors.pop_back();
  const auto passed = store->preflight(request, 2);
  ASSERT_FALSE(passed.ok());
  EXPECT_EQ(passed.error().code(), ErrorCode::Internal);
}

} // namespace
} // namespace titan::checkpoint
