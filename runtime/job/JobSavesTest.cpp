// Saves of a run: beside its steps and between them, and what becomes of one that fails.
#include "runtime/job/Saves.h"
#include "runtime/job/testing/JobTestFixture.h"

#include <thread>

namespace titan {
namespace {

using namespace titan::testing;

class JobSavesTest : public JobTest {
protected:
  /// A run with a save after each step, all of them kept.
  Outcome saveAll(const std::string& out, std::vector<std::string> settings) const {
    settings.insert(settings.end(), {"checkpoint.every=1", "checkpoint.keep=0"});
    std::vector<std::string> words = {"train", "--out", path(out)};
    for (const std::string& setting : settings)
      words.insert(words.end(), {"--set", setting});
    return run(words);
  }
};

// The bytes of every step, whatever is copied and whatever is read from the state itself.
TEST_F(JobSavesTest, SavesBesideTheStepsHoldWhatThoseBetweenThemHold) {
  const std::pair<std::string, std::string> ways[] = {{"between", "checkpoint.async=false"},
                                                      {"auto", "checkpoint.staging=auto"},
                                                      {"full", "checkpoint.staging=full"},
                                                      {"none", "checkpoint.staging=none"},
                                                      {"sized", "checkpoint.staging=16MB"}};
  for (const auto& [name, setting] : ways) {
    const Outcome outcome = saveAll(name, {setting});
    ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
    EXPECT_EQ(metrics(name).size(), 20u);
    ASSERT_EQ(saves(name).size(), 20u);
    for (int step = 1; step <= 20; ++step) {
      const Json line = saves(name)[step - 1];
      EXPECT_EQ(line["step"], step);
      EXPECT_GE(line["committed_after_step"], step);
      EXPECT_GT(line["bytes"], 0);
      EXPECT_GE(line["write"], 0);
      EXPECT_GE(line["stall"], 0);
      EXPECT_EQ(stateOf(name, step), stateOf("between", step)) << name << " " << step;
    }
  }
}

TEST_F(JobSavesTest, ARunSaysWhatASaveCopies) {
  const std::string copies = "note: a save copies ";
  const Outcome full = saveAll("full", {});
  EXPECT_NE(full.err.find(copies), std::string::npos) << full.err;
  EXPECT_EQ(full.err.find("the next update waits"), std::string::npos) << full.err;
  const Outcome none = saveAll("none", {"checkpoint.staging=none"});
  const char* note =
      "note: a save copies 0 B of the state in about 0 ms, and the next update waits "
      "for the rest\n";
  EXPECT_NE(none.err.find(note), std::string::npos) << none.err;
  EXPECT_EQ(run({"train", "--out", path("end")}).err.find(copies), std::string::npos);
  EXPECT_EQ(saveAll("between", {"checkpoint.async=false"}).err.find(copies), std::string::npos);
}

// What takes the place of checkpoints/ makes every later save fail.
TEST_F(JobSavesTest, AFailedSaveEndsTheRunOrIsNoted) {
  for (const std::string policy : {"stop", "continue"}) {
    const std::string out = "run " + policy;
    std::thread breaker([&] {
      waitForSteps(out, 5);
      fs::rename(path(out + "/checkpoints"), path(out + "/elsewhere"));
      std::ofstream(path(out + "/checkpoints")) << "no directory";
    });
    const Outcome outcome = run({"train", "--out", path(out), "--steps", "100000000", "--set",
                                 "checkpoint.every=2", "--set", "checkpoint.on_failure=" + policy});
    breaker.join();
    EXPECT_EQ(outcome.exitCode, 5) << outcome.err;
    EXPECT_NE(outcome.err.find("was not saved"), std::string::npos) << outcome.err;
    size_t notes = 0;
    for (size_t at = 0;
         (at = outcome.err.find("note: the checkpoint of step", at)) != std::string::npos; ++at)
      ++notes;
    // Fewer where checkpoints/ went between a rename and its sync: such a store saves no more.
    const bool isBroken = outcome.err.find("cannot sync") != std::string::npos;
    if (!isBroken)
      EXPECT_EQ(notes, policy == "continue" ? 2u : 0u) << outcome.err;
    EXPECT_EQ(linesWith(out, {"save_failures"}).size(), notes);
    const std::string command = fmt::format(
        "; to go on: {} train --out '{}' --steps 100000000 --set checkpoint.every=2 --set "
        "checkpoint.on_failure={}\n",
        path("job"), path(out), policy);
    EXPECT_NE(outcome.err.find(command), std::string::npos) << outcome.err;
  }
}

} // namespace
} // namespace titan
