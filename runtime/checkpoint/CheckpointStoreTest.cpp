#include "runtime/checkpoint/testing/CrashEnv.h"
#include "runtime/checkpoint/testing/SampleState.h"
#include "runtime/checkpoint/testing/TemporaryDirectory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <sys/wait.h>
#include <unistd.h>

namespace titan::checkpoint {
namespace {

std::vector<int64_t> stepsOf(const CheckpointStore& store) {
  std::vector<int64_t> steps;
  const auto all = store.list();
  for (const CheckpointInfo& info : *all)
    steps.push_back(info.step);
  return steps;
}

TEST(CheckpointStore, LaysOutTheTreeAndLoadsItBack) {
  TemporaryDirectory directory;
  auto store = CheckpointStore::open(directory.path("a/b/job.run"));
  ASSERT_TRUE(store.ok()) << store.error().message();
  EXPECT_FALSE(store->latest()->has_value());
  auto report = store->save(SampleState(9).saveRequest(100), 2);
  ASSERT_TRUE(report.ok()) << report.error().message();
  EXPECT_EQ(report->path, directory.path("a/b/job.run/checkpoints/step-00000100"));
  EXPECT_GT(report->bytes, 0);
  for (const char* file :
       {"model/shard-00001-model-00001-of-00001.safetensors", "model/model.safetensors.index.json",
        "manifest.json", "optimizer/shard-00001-model-00001-of-00001.safetensors"})
    EXPECT_TRUE(std::filesystem::is_regular_file(report->path + "/" + file)) << file;
  EXPECT_EQ((*store->latest())->step, 100);

  SampleState loaded(255);
  auto read = load(report->path, loaded.loadRequest());
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_TRUE(loaded == SampleState(9));
  EXPECT_EQ(read->manifest.step, 100);
  EXPECT_EQ(read->manifest.data, (DataInfo{"00ff", 50000, 7}));
  EXPECT_TRUE(read->notes.empty());
}

TEST(CheckpointStore, GivesTheSameBytesForTheSameState) {
  TemporaryDirectory directory;
  for (const char* run : {"a", "b"}) {
    auto store = CheckpointStore::open(directory.path(run));
    ASSERT_TRUE(store->save(SampleState(9).saveRequest(1), 2).ok());
  }
  const auto a = readManifest(directory.path("a/checkpoints/step-00000001"));
  const auto b = readManifest(directory.path("b/checkpoints/step-00000001"));
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(*a, *b);
}

TEST(CheckpointStore, DoesNotSaveACommittedStepTwice) {
  CrashEnv env;
  auto store = CheckpointStore::open("run", env);
  ASSERT_TRUE(store->save(SampleState(1).saveRequest(5), 2).ok());
  auto again = store->save(SampleState(2).saveRequest(5), 2);
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->alreadyCommitted);
  EXPECT_EQ(again->bytes, 0);
  SampleState loaded(255);
  ASSERT_TRUE(load(again->path, loaded.loadRequest(), env).ok());
  EXPECT_TRUE(loaded == SampleState(1));
}

TEST(CheckpointStore, RefusesAStateThatItsTableDoesNotDescribe) {
  CrashEnv env;
  auto store = CheckpointStore::open("run", env);
  SampleState state(1);
  SaveRequest request = state.saveRequest(1);
  request.tensors[0].shape = {4, 3};
  EXPECT_FALSE(store->save(request, 2).ok());
  request = state.saveRequest(1);
  request.tensors.pop_back();
  EXPECT_FALSE(store->save(request, 2).ok());
  request = state.saveRequest(1);
  request.counters.erase("samples");
  EXPECT_FALSE(store->save(request, 2).ok());
  state.add("bad\xff", StateKind::Param, DType::F32, {1});
  EXPECT_FALSE(store->save(state.saveRequest(1), 2).ok());
  EXPECT_TRUE(store->list()->empty());
}

TEST(CheckpointStore, KeepsTheNewest) {
  CrashEnv env;
  auto store = CheckpointStore::open("run", env);
  for (int64_t step : {10, 20, 30, 40})
    ASSERT_TRUE(store->save(SampleState(1).saveRequest(step), 2).ok());
  EXPECT_EQ(stepsOf(*store), (std::vector<int64_t>{30, 40}));
  ASSERT_TRUE(store->save(SampleState(1).saveRequest(50), 0).ok());
  EXPECT_EQ(stepsOf(*store), (std::vector<int64_t>{30, 40, 50}));
  ASSERT_TRUE(store->save(SampleState(1).saveRequest(60), 1).ok());
  EXPECT_EQ(stepsOf(*store), (std::vector<int64_t>{60}));
}

TEST(CheckpointStore, CountsOnlyCommittedCheckpoints) {
  CrashEnv env;
  auto store = CheckpointStore::open("run", env);
  ASSERT_TRUE(store->save(SampleState(1).saveRequest(10), 2).ok());
  for (const char* name :
       {".attempt-step-00000020-1", ".doomed-step-00000005-1", "step-20", "mine"})
    ASSERT_TRUE(env.makeDirectory(joinPath("run/checkpoints", name)).ok());
  ASSERT_TRUE(store->save(SampleState(1).saveRequest(30), 2).ok());
  EXPECT_EQ(stepsOf(*store), (std::vector<int64_t>{10, 30}));
}

TEST(CheckpointStore, RemovesLeftoversAndNothingElse) {
  CrashEnv env;
  {
    auto store = CheckpointStore::open("run", env);
    for (const char* name : {".attempt-step-00000020-1", ".attempt-step-00000020-1/model",
                             ".doomed-step-00000005-1", "mine"})
      ASSERT_TRUE(env.makeDirectory(joinPath("run/checkpoints", name)).ok());
    ASSERT_TRUE(env.createFile("run/checkpoints/.attempt-step-00000020-1/model/x").ok());
  }
  auto store = CheckpointStore::open("run", env);
  ASSERT_TRUE(store.ok());
  const auto entries = env.readDirectory("run/checkpoints");
  ASSERT_EQ(entries->size(), 1u);
  EXPECT_EQ(entries->front().name, "mine");
}

TEST(CheckpointStore, SetsLaterCheckpointsAside) {
  CrashEnv env;
  auto store = CheckpointStore::open("run", env);
  for (int64_t step : {10, 20, 30})
    ASSERT_TRUE(store->save(SampleState(static_cast<uint8_t>(step)).saveRequest(step), 0).ok());
  auto aside = store->setAsideAfter(10);
  ASSERT_TRUE(aside.ok());
  EXPECT_EQ(aside->size(), 2u);
  EXPECT_EQ(stepsOf(*store), (std::vector<int64_t>{10}));
  for (const std::string& path : *aside)
    EXPECT_TRUE(verify(path, env).ok());
  auto report = store->save(SampleState(99).saveRequest(20), 0);
  ASSERT_TRUE(report.ok());
  EXPECT_FALSE(report->alreadyCommitted);
}

TEST(CheckpointStore, IsLockedAgainstASecondProcess) {
  TemporaryDirectory directory;
  int ready[2], done[2];
  ASSERT_EQ(::pipe(ready), 0);
  ASSERT_EQ(::pipe(done), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto store = CheckpointStore::open(directory.path("run"));
    char byte = store.ok() ? 'y' : 'n';
    (void)!::write(ready[1], &byte, 1);
    (void)!::read(done[0], &byte, 1);
    ::_exit(0);
  }
  char held = 'n';
  ASSERT_EQ(::read(ready[0], &held, 1), 1);
  ASSERT_EQ(held, 'y');
  auto second = CheckpointStore::open(directory.path("run"));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().exitCode(), 3);
  EXPECT_NE(second.error().message().find(fmt::format("pid {} ", child)), std::string::npos)
      << second.error().message();
  // Reading needs no lock.
  EXPECT_TRUE(listCheckpoints(posixEnv(), directory.path("run")).ok());

  ASSERT_EQ(::write(done[1], "x", 1), 1);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(CheckpointStore::open(directory.path("run")).ok());
}

TEST(CheckpointStore, RefusesADirectoryThatIsAFile) {
  TemporaryDirectory directory;
  std::ofstream(directory.path("run")) << "x";
  auto store = CheckpointStore::open(directory.path("run"));
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().exitCode(), 3);
}

} // namespace
} // namespace titan::checkpoint
