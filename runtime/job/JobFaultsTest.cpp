// Any operation of a save fails beside a run that goes on, once or for good, with each error that a
// disk can give: the run ends or goes on as its recipe says, what was saved before is whole, and
// both the next save and the next process work.
#include "runtime/checkpoint/Load.h"
#include "runtime/checkpoint/testing/FaultEnv.h"
#include "runtime/job/testing/JobTestFixture.h"

#include <cerrno>
#include <cstring>

namespace titan {
namespace {

using namespace titan::testing;
using checkpoint::FaultEnv;

constexpr int errors[] = {ENOSPC, EDQUOT, EIO, EROFS, EINTR};
constexpr int64_t steps = 5, hitStep = 3; ///< keep = 2: that save is the first to delete one

class JobFaultsTest : public JobTest {
protected:
  void SetUp() override {
    JobTest::SetUp();
    // A sync costs nothing there.
    memory = fs::path("/dev/shm") / directory.filename();
    std::error_code error;
    fs::remove_all(memory, error);
    if (!fs::create_directory(memory, error))
      memory = directory;
    EXPECT_EQ(train("alone", steps, {"checkpoint.keep=0"}).exitCode, 0);
  }
  void TearDown() override {
    std::error_code error;
    fs::remove_all(memory, error);
    JobTest::TearDown();
  }

  std::string runPath(const std::string& out) const { return (memory / out).string(); }

  /// A run that saves each step, by `files`.
  Outcome train(const std::string& out, int64_t last, std::vector<std::string> settings = {},
                checkpoint::Env* files = nullptr) const {
    std::vector<std::string> words = {"train",
                                      "--out",
                                      runPath(out),
                                      "--threads",
                                      "1",
                                      "--steps",
                                      std::to_string(last),
                                      "--set",
                                      "checkpoint.every=1",
                                      "--set",
                                      "checkpoint.preflight=off"};
    for (const std::string& setting : settings)
      words.insert(words.end(), {"--set", setting});
    JobImage job = image();
    job.files = files;
    // To measure its speed takes longer than the run.
    job.chooseDevice =
        [choose = job.chooseDevice](const DeviceRequest& request) -> Result<ChosenDevice> {
      ChosenDevice chosen = TITAN_TRY(choose ? choose(request) : chooseDevice(request));
      chosen.measureProducts = [](DType) { return 0.0; };
      return chosen;
    };
    return run(words, job);
  }

  std::vector<int64_t> committed(const std::string& out) const {
    std::vector<int64_t> found;
    const auto all = checkpoint::listCheckpoints(checkpoint::posixEnv(), runPath(out));
    EXPECT_TRUE(all.ok());
    for (const checkpoint::CheckpointInfo& info : *all)
      found.push_back(info.step);
    return found;
  }
  std::string savePath(const std::string& out, int64_t step) const {
    return runPath(out) + "/checkpoints/" + checkpoint::stepName(step);
  }
  /// Every checkpoint that is there is what the run that was left alone has of its step.
  void expectWhole(const std::string& out) const {
    for (const int64_t step : committed(out)) {
      const auto found = checkpoint::verify(savePath(out, step));
      EXPECT_TRUE(found.ok()) << found.error().message();
      if (found.ok())
        EXPECT_EQ(stateOf(runPath(out), step), stateOf(runPath("alone"), step)) << step;
    }
  }

  /// Operations of the save of `hitStep` and what follows it, as a run does them.
  std::pair<int64_t, int64_t> operationsOfSave() const {
    FaultEnv env(checkpoint::posixEnv());
    EXPECT_EQ(train("counted", steps, {}, &env).exitCode, 0);
    const auto beginOf = [&](int64_t step) {
      const std::string first = fmt::format("look at '{}'", savePath("counted", step));
      return std::ranges::find(env.history(), first) - env.history().begin();
    };
    return {beginOf(hitStep), beginOf(hitStep + 1)};
  }

  /// One run whose operation `operation` fails, and the one that goes on from it.
  void runWithFault(int64_t operation, int errorNumber, bool forGood, bool continues);

  fs::path memory;
};

void JobFaultsTest::runWithFault(int64_t operation, int errorNumber, bool forGood, bool continues) {
  const std::string out = "run";
  fs::remove_all(runPath(out));
  FaultEnv env(checkpoint::posixEnv());
  env.failAt(operation, errorNumber, forGood);
  const Outcome outcome =
      train(out, steps,
            {continues ? "checkpoint.on_failure=continue" : "checkpoint.on_failure=stop"}, &env);
  SCOPED_TRACE(fmt::format("operation {}: {}, {}, {}, {}\n{}", operation, env.failed(),
                           std::strerror(errorNumber), forGood ? "for good" : "once",
                           continues ? "continue" : "stop", outcome.err));
  const std::vector<int64_t> left = committed(out);
  const auto says = [&](const std::string& text) {
    return outcome.err.find(text) != std::string::npos;
  };
  ASSERT_FALSE(env.failed().empty());
  EXPECT_TRUE(says(std::strerror(errorNumber)));
  expectWhole(out);

  // Behind the commit only the deletion of an old checkpoint can fail.
  const std::string notDeleted = "note: an old checkpoint was not deleted: ";
  const std::string notSaved = fmt::format("the checkpoint of step {} was not saved: ",
                                           says(notDeleted) ? hitStep + 1 : hitStep);
  const bool isBroken = env.failed() == fmt::format("sync '{}/checkpoints'", runPath(out));
  EXPECT_TRUE(says(notDeleted) || says(notSaved));
  const size_t failures = linesWith(runPath(out), {"save_failures"}).size();
  if (says(notDeleted) ? !forGood && !isBroken : !forGood && continues && !isBroken) {
    EXPECT_EQ(outcome.exitCode, 0);
    EXPECT_EQ(left.back(), steps);
    EXPECT_EQ(failures, says(notDeleted) ? 0u : 1u);
    EXPECT_EQ(says("note: " + notSaved), !says(notDeleted));
  } else {
    EXPECT_EQ(outcome.exitCode, 5);
    EXPECT_TRUE(says(notSaved));
    EXPECT_TRUE(says("; the run ends after step "));
    EXPECT_TRUE(says(
        fmt::format(", and the newest checkpoint is {}; to go on: ", savePath(out, left.back()))));
    EXPECT_GE(left.back(), hitStep - 1);
    // The last save of a run is not noted, but for one that had failed as any other when the run
    // came to its end, and tried once more.
    const int64_t later = steps - hitStep - int64_t{says(notDeleted)} +
                          says(fmt::format("note: the checkpoint of step {} was not saved", steps));
    EXPECT_EQ(failures, !continues || isBroken ? 0u : static_cast<size_t>(later));
  }
  if (HasFailure() || errorNumber != EIO)
    return;

  const Outcome next = train(out, steps + 1);
  EXPECT_EQ(next.exitCode, 0) << next.err;
  EXPECT_EQ(stateOf(runPath(out), steps + 1), stateOf(runPath("longer"), steps + 1));
  for (const auto& entry : fs::directory_iterator(runPath(out) + "/checkpoints"))
    EXPECT_TRUE(entry.path().filename().string().starts_with("step-")) << entry.path();
}

TEST_F(JobFaultsTest, OfAnyOperationOfASaveEndTheRunOrAreNoted) {
  ASSERT_EQ(train("longer", steps + 1).exitCode, 0);
  const auto [begin, end] = operationsOfSave();
  ASSERT_GT(end - begin, 30);
  for (int64_t operation = begin; operation < end && !HasFailure(); ++operation)
    for (const int errorNumber : errors)
      for (const bool forGood : {false, true})
        for (const bool continues : {false, true})
          // Where each one ends the run, one of them is enough.
          if (!HasFailure() && (continues || errorNumber == errors[operation % std::size(errors)]))
            runWithFault(operation, errorNumber, forGood, continues);
}

} // namespace
} // namespace titan
