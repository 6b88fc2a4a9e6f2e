#include "runtime/checkpoint/Load.h"
#include "runtime/checkpoint/testing/CrashEnv.h"
#include "runtime/checkpoint/testing/FaultEnv.h"
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

/// Has what `take` gives from its construction to end().
class OtherProcess {
public:
  template <typename Take> explicit OtherProcess(Take take) {
    EXPECT_EQ(::pipe(ready_), 0);
    EXPECT_EQ(::pipe(done_), 0);
    child_ = ::fork();
    if (child_ != 0)
      return;
    const auto taken = take();
    char byte = taken.ok() ? 'y' : 'n';
    (void)!::write(ready_[1], &byte, 1);
    (void)!::read(done_[0], &byte, 1);
    ::_exit(0);
  }
  pid_t number() const { return child_; }
  bool holds() const {
    char byte = 'n';
    EXPECT_EQ(::read(ready_[0], &byte, 1), 1);
    return byte == 'y';
  }
  void end() {
    EXPECT_EQ(::write(done_[1], "x", 1), 1);
    ::waitpid(child_, nullptr, 0);
  }

private:
  int ready_[2], done_[2];
  pid_t child_ = 0;
};

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

TEST(CheckpointStore, TakesBackWhatItMade) {
  TemporaryDirectory directory;
  const std::string run = directory.path("a/b/run");
  const auto takeBack = [&] { CheckpointStore::open(run)->takeBack(); };
  takeBack();
  EXPECT_FALSE(std::filesystem::exists(directory.path("a")));
  std::filesystem::create_directories(directory.path("a/b"));
  takeBack();
  EXPECT_FALSE(std::filesystem::exists(run));
  EXPECT_TRUE(std::filesystem::exists(directory.path("a/b")));
  ASSERT_TRUE(CheckpointStore::open(run)->save(SampleState(9).saveRequest(1), 2).ok());
  takeBack();
  EXPECT_EQ(stepsOf(*CheckpointStore::open(run)), std::vector<int64_t>{1});
}

TEST(CheckpointStore, LeavesWhatOthersPutIntoWhatItMade) {
  TemporaryDirectory directory;
  const std::string run = directory.path("run");
  auto store = CheckpointStore::open(run);
  std::ofstream(joinPath(run, "notes.txt")) << "of the user";
  store->takeBack();
  EXPECT_TRUE(std::filesystem::exists(joinPath(run, "notes.txt")));
  EXPECT_FALSE(std::filesystem::exists(checkpointsPath(run)));
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

TEST(CheckpointStore, KeepsWhatIsForGoodWithoutCountingIt) {
  CrashEnv env;
  auto store = CheckpointStore::open("run", env);
  Retention retention(1);
  retention.keepEvery = 20;
  for (int64_t step : {10, 20, 30, 40, 50, 60, 70})
    ASSERT_TRUE(store->save(SampleState(1).saveRequest(step), retention).ok());
  EXPECT_EQ(stepsOf(*store), (std::vector<int64_t>{20, 40, 60, 70}));
  // Behind one that stays for good, the newest that is counted is still there.
  ASSERT_TRUE(store->save(SampleState(1).saveRequest(80), retention).ok());
  EXPECT_EQ(stepsOf(*store), (std::vector<int64_t>{20, 40, 60, 70, 80}));
}

TEST(CheckpointStore, LeavesWhatIsInUseToALaterCommit) {
  CrashEnv env;
  auto store = CheckpointStore::open("run", env);
  Retention retention(1);
  retention.inUse = {10};
  for (int64_t step : {10, 20, 30})
    ASSERT_TRUE(store->save(SampleState(1).saveRequest(step), retention).ok());
  EXPECT_EQ(stepsOf(*store), (std::vector<int64_t>{10, 30}));
  ASSERT_TRUE(store->save(SampleState(1).saveRequest(40), 1).ok());
  EXPECT_EQ(stepsOf(*store), (std::vector<int64_t>{40}));
}

TEST(CheckpointStore, LeavesWhatALoadHoldsToALaterCommit) {
  CrashEnv memory;
  TemporaryDirectory directory;
  for (auto [env, run] : {std::pair<Env*, std::string>(&memory, "run"),
                          std::pair<Env*, std::string>(&posixEnv(), directory.path("run"))}) {
    auto store = CheckpointStore::open(run, *env);
    ASSERT_TRUE(store->save(SampleState(10).saveRequest(10), 1).ok());
    const std::string held = joinPath(run, "checkpoints/step-00000010");
    {
      const auto hold = holdCheckpoint(held, *env), second = holdCheckpoint(held, *env);
      ASSERT_TRUE(hold.ok() && second.ok());
      for (int64_t step : {20, 30}) {
        auto report = store->save(SampleState(1).saveRequest(step), 1);
        ASSERT_TRUE(report.ok());
        EXPECT_TRUE(report->notes.empty()) << report->notes.front();
      }
      EXPECT_EQ(stepsOf(*store), (std::vector<int64_t>{10, 30}));
      SampleState loaded(255);
      EXPECT_TRUE(load(held, loaded.loadRequest(), *env).ok());
      EXPECT_TRUE(loaded == SampleState(10));
    }
    ASSERT_TRUE(store->save(SampleState(1).saveRequest(40), 1).ok());
    EXPECT_EQ(stepsOf(*store), (std::vector<int64_t>{40}));
  }
}

TEST(CheckpointStore, LeavesWhatAnotherProcessLoads) {
  TemporaryDirectory directory;
  auto store = CheckpointStore::open(directory.path("run"));
  const std::string held = store->save(SampleState(1).saveRequest(10), 1)->path;
  OtherProcess other([&] { return holdCheckpoint(held); });
  ASSERT_TRUE(other.holds());
  ASSERT_TRUE(store->save(SampleState(1).saveRequest(20), 1).ok());
  EXPECT_EQ(stepsOf(*store), (std::vector<int64_t>{10, 20}));
  other.end();
  ASSERT_TRUE(store->save(SampleState(1).saveRequest(30), 1).ok());
  EXPECT_EQ(stepsOf(*store), (std::vector<int64_t>{30}));
}

/// Every reader of a checkpoint holds it for as long as it reads: a run that commits before any one
/// of the reader's operations, and keeps one checkpoint, does not delete it.
TEST(CheckpointStore, IsHeldByEveryReaderWhileItReads) {
  SampleState loaded(255);
  const std::string path = "run/checkpoints/step-00000010";
  const std::function<bool(Env&)> readers[] = {
      [&](Env& env) { return load(path, loaded.loadRequest(), env).ok(); },
      [&](Env& env) { return loadWeights(path, loaded.initRequest(), env).ok(); },
      [&](Env& env) { return verify(path, env).ok(); }};
  for (const auto& read : readers)
    for (int64_t at = 1;; ++at) {
      CrashEnv memory;
      auto store = CheckpointStore::open("run", memory);
      ASSERT_TRUE(store->save(SampleState(1).saveRequest(10), 1).ok());
      FaultEnv env(memory);
      bool isCommitted = false;
      env.beforeEach([&](int64_t operation) {
        if (operation == at)
          isCommitted = store->save(SampleState(1).saveRequest(20), 1).ok();
      });
      EXPECT_TRUE(read(env)) << "operation " << at;
      if (!isCommitted)
        break;
      EXPECT_EQ(stepsOf(*store), (std::vector<int64_t>{10, 20})) << "operation " << at;
    }
}

TEST(CheckpointStore, IsNotHeldWhileItIsDeleted) {
  CrashEnv env;
  auto store = CheckpointStore::open("run", env);
  const std::string path = store->save(SampleState(1).saveRequest(10), 1)->path;
  const auto deleting = env.tryLock(joinPath(path, Manifest::fileName), LockKind::Exclusive);
  ASSERT_TRUE(deleting.ok() && *deleting);
  SampleState loaded(255);
  const auto report = load(path, loaded.loadRequest(), env);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().exitCode(), 1);
  EXPECT_EQ(report.error().message(),
            "'run/checkpoints/step-00000010' is being deleted by the run that wrote it: load a "
            "newer checkpoint");
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
  OtherProcess other([&] { return CheckpointStore::open(directory.path("run")); });
  ASSERT_TRUE(other.holds());
  auto second = CheckpointStore::open(directory.path("run"));
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().exitCode(), 3);
  EXPECT_NE(second.error().message().find(fmt::format("pid {} ", other.number())),
            std::string::npos)
      << second.error().message();
  // Reading needs no lock.
  EXPECT_TRUE(listCheckpoints(posixEnv(), directory.path("run")).ok());

  other.end();
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
