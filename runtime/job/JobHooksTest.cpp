// `train` with checkpoint.keep_every and checkpoint.on_commit.
#include "runtime/checkpoint/Load.h"
#include "runtime/job/testing/JobTestFixture.h"

namespace titan {
namespace {

using namespace titan::testing;

class JobHooksTest : public JobTest {
protected:
  Outcome train(const std::string& out, std::vector<std::string> keys) const {
    std::vector<std::string> words = {"train", "--out", path(out)};
    for (const std::string& key : keys)
      words.insert(words.end(), {"--set", key});
    return run(words);
  }
  static std::string onCommit(const std::string& command) {
    return "checkpoint.on_commit=" + Json(command).dump();
  }
  std::vector<int64_t> stepsOf(const std::string& run) const {
    std::vector<int64_t> steps;
    const auto all = checkpoint::listCheckpoints(checkpoint::posixEnv(), path(run));
    for (const checkpoint::CheckpointInfo& info : *all)
      steps.push_back(info.step);
    return steps;
  }
};

TEST_F(JobHooksTest, KeepsSomeCheckpointsForGood) {
  const Outcome outcome =
      train("job.run", {"checkpoint.every=2", "checkpoint.keep=1", "checkpoint.keep_every=8"});
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  EXPECT_EQ(stepsOf("job.run"), (std::vector<int64_t>{8, 16, 20}));
}

TEST_F(JobHooksTest, CopiesWhatARunGoesOnFrom) {
  fs::create_directory(directory / "far away");
  for (const char* async : {"true", "false"}) {
    const Outcome outcome =
        train("job.run", {"train.steps=10", "checkpoint.every=5", "checkpoint.keep=1",
                          std::string("checkpoint.async=") + async,
                          onCommit("cp -r {path} '" + path("far away") + "'/{name}-{step}")});
    ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
    EXPECT_EQ(outcome.err.find("on_commit"), std::string::npos) << outcome.err;
    const std::string copy = path("far away/step-00000010-10");
    EXPECT_TRUE(checkpoint::verify(copy).ok());
    const Outcome resumed = run({"train", "--out", path("again"), "--resume", copy});
    EXPECT_EQ(resumed.exitCode, 0) << resumed.err;
    EXPECT_NE(resumed.err.find("at step 10"), std::string::npos) << resumed.err;
    EXPECT_NE(readFile("job.run/hooks.log").find("/checkpoints/step-00000010"), std::string::npos);
    for (const char* gone : {"job.run", "again", "far away/step-00000010-10"})
      fs::remove_all(directory / gone);
  }
}

TEST_F(JobHooksTest, IsNotDelayedByAHookThatHangs) {
  const Outcome outcome =
      train("job.run", {"checkpoint.every=2", "checkpoint.keep=1", "checkpoint.hook_timeout=1",
                        onCommit("echo {step} >> " + path("begun") + "; exec sleep 3600")});
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  // Each save was committed, and what the hook reads is still there.
  std::vector<int64_t> saved;
  for (const Json& line : saves("job.run"))
    saved.push_back(line["step"]);
  EXPECT_EQ(saved, (std::vector<int64_t>{2, 4, 6, 8, 10, 12, 14, 16, 18, 20}));
  EXPECT_EQ(stepsOf("job.run").front(), 2);
  EXPECT_EQ(readFile("begun"), "2\n20\n");
  for (const char* part :
       {"on_commit is left out for step 18: step 20 was committed",
        "waiting up to 1 s for checkpoint.on_commit of step 2\n",
        "on_commit of step 2 was ended: it took longer than 1 s", "on_commit of step 20 was ended"})
    EXPECT_NE(outcome.err.find(part), std::string::npos) << part << " in " << outcome.err;
}

TEST_F(JobHooksTest, RefusesAHookThatIsNotThere) {
  const Outcome outcome = train("job.run", {onCommit("rclone-of-nobody copy {path} x:")});
  EXPECT_EQ(outcome.exitCode, 3);
  EXPECT_NE(outcome.err.find("checkpoint.on_commit: sh finds no command 'rclone-of-nobody'"),
            std::string::npos)
      << outcome.err;
  EXPECT_FALSE(fs::exists(directory / "job.run/metrics.jsonl"));
}

TEST_F(JobHooksTest, GoesOnAfterAHookThatFails) {
  const Outcome outcome =
      train("job.run", {"checkpoint.every=10", onCommit("echo no space >&2; exit 7")});
  EXPECT_EQ(outcome.exitCode, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("note: checkpoint.on_commit failed for step 20: exit status 7 ("),
            std::string::npos)
      << outcome.err;
  EXPECT_NE(readFile("job.run/hooks.log").find("no space"), std::string::npos);
  EXPECT_EQ(stepsOf("job.run"), (std::vector<int64_t>{10, 20}));
}

TEST_F(JobHooksTest, FindsWhatAHookHasWrittenIntoACheckpoint) {
  ASSERT_EQ(train("job.run", {"train.steps=10",
                              onCommit("for f in {path}/model/*.safetensors; do printf x >> $f; "
                                       "done")})
                .exitCode,
            0);
  const Outcome resumed = run({"train"});
  EXPECT_EQ(resumed.exitCode, 1);
  EXPECT_NE(resumed.err.find("safetensors' is damaged: expected "), std::string::npos)
      << resumed.err;
}

TEST_F(JobHooksTest, TriesSavesAsFarAsItIsAskedTo) {
  const std::string missing = onCommit("rclone-of-nobody copy {path} x:");
  EXPECT_EQ(train("job.run", {"checkpoint.preflight=full", missing}).exitCode, 3);
  const Outcome off = train("job.run", {"checkpoint.preflight=off", missing});
  EXPECT_EQ(off.exitCode, 0) << off.err;
  EXPECT_NE(off.err.find("note: checkpoint.preflight = \"off\": whether checkpoints can be saved "
                         "shows at the first one"),
            std::string::npos)
      << off.err;
  EXPECT_EQ(train("full.run", {"checkpoint.preflight=full"}).exitCode, 0);
  EXPECT_EQ(stepsOf("full.run"), std::vector<int64_t>{20});
}

TEST_F(JobHooksTest, RefusesValuesThatMeanNothing) {
  for (const char* key : {"checkpoint.keep_every=-1", "checkpoint.hook_timeout=-1"})
    EXPECT_EQ(train("job.run", {key}).exitCode, 1) << key;
}

} // namespace
} // namespace titan
