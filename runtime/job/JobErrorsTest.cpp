// What bad input gets: one line, the exit code of its kind, nothing damaged.
#include "runtime/checkpoint/CheckpointStore.h"
#include "runtime/device/cpu/CpuFeatures.h"
#include "runtime/device/cpu/testing/RefusedTiles.h"
#include "runtime/job/testing/JobTestFixture.h"

#include <algorithm>
#include <tuple>

namespace titan {
namespace {

using namespace titan::testing;

class JobErrorsTest : public JobTest {};

TEST_F(JobErrorsTest, ALockedDirectoryIsRefused) {
  auto store = checkpoint::CheckpointStore::open(path("job.run"));
  ASSERT_TRUE(store.ok());
  Outcome outcome = run({"train"});
  EXPECT_EQ(outcome.exitCode, 3);
  EXPECT_NE(outcome.err.find("in use by another process"), std::string::npos) << outcome.err;
}

TEST_F(JobErrorsTest, WhatNoCheckpointCanHoldIsRefusedBeforeTheFirstStep) {
  program.states[1].name = "__metadata__";
  programBytes = serialize(program);
  Outcome outcome = run({"train"});
  EXPECT_EQ(outcome.exitCode, 3) << outcome.err;
  EXPECT_NE(outcome.err.find("'__metadata__' cannot be the name of a tensor"), std::string::npos)
      << outcome.err;
  EXPECT_FALSE(fs::exists(path("job.run")));

  compile();
  fs::create_directories(path("job.run/checkpoints"));
  std::ofstream(path("job.run/checkpoints/step-00000200")) << "mine";
  outcome = run({"train"});
  EXPECT_EQ(outcome.exitCode, 3) << outcome.err;
  EXPECT_NE(outcome.err.find("checkpoint of step 200"), std::string::npos) << outcome.err;
  EXPECT_FALSE(fs::exists(path("job.run/metrics.jsonl")));
}

TEST_F(JobErrorsTest, AnUnwritableDirectoryIsRefused) {
  std::ofstream(path("file")) << "x";
  Outcome outcome = run({"train", "--out", path("file") + "/run"});
  EXPECT_EQ(outcome.exitCode, 3) << outcome.err;
}

TEST_F(JobErrorsTest, BadDataIsReportedBeforeTheRunDirectoryIsMade) {
  for (auto [arguments, code, text] :
       std::vector<std::tuple<std::vector<std::string>, int, std::string>>{
           {{"train", "--data", path("missing.npz")}, 1, "missing.npz"},
           {{"train", "--set", "data.fields={ x = \"none\" }"}, 1, "none"},
           {{"train", "--set", "train.eval_every=5", "--set", "data.eval=[]"}, 1, "data.eval"}}) {
    Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exitCode, code) << outcome.err;
    EXPECT_NE(outcome.err.find(text), std::string::npos) << outcome.err;
    EXPECT_TRUE(outcome.err.starts_with("error: ")) << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_FALSE(fs::exists(path("job.run")));
  }
}

TEST_F(JobErrorsTest, WrongCommandLinesAreUsageErrors) {
  for (auto [arguments, code, text] :
       std::vector<std::tuple<std::vector<std::string>, int, std::string>>{
           {{}, 2, "subcommand"},
           {{"dance"}, 2, "dance"},
           {{"train", "--frobnicate"}, 2, "--frobnicate"},
           {{"train", "--threads", "0"}, 2, "--threads"},
           {{"train", "--gemm", "magic"}, 2, "--gemm"},
           {{"predict", "--data", "x"}, 2, "--output"},
           {{"train", "--fresh", "head.*"}, 2, "--init"},
           {{"train", "--set", "optimizer.lr"}, 2, "key=value"},
           {{"train", "--set", "batch.micro=16"}, 2, "compile it again"},
           {{"train", "--set", "optimizer.lrr=1"}, 1, "optimizer.lr"},
           {{"train", "--set", "optimizer.lr=fast"}, 1, "optimizer.lr"}}) {
    Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.exitCode, code) << outcome.err;
    EXPECT_NE(outcome.err.find(text), std::string::npos) << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  }
  EXPECT_EQ(run({"--help"}).exitCode, 0);
  EXPECT_EQ(run({"train", "--help"}).exitCode, 0);
  EXPECT_EQ(run({"--version"}).exitCode, 0);
}

TEST_F(JobErrorsTest, MissingCpuFeaturesAreNamed) {
  program.target.features = {"sse2", "quantum"};
  programBytes = serialize(program);
  Outcome outcome = run({"train"});
  EXPECT_EQ(outcome.exitCode, 3);
  EXPECT_NE(outcome.err.find("lacks quantum"), std::string::npos) << outcome.err;
  EXPECT_FALSE(fs::exists(path("job.run")));
  EXPECT_EQ(run({"plan"}).exitCode, 0);
  EXPECT_EQ(run({"info"}).exitCode, 0);
}

TEST_F(JobErrorsTest, RegistersThatTheKernelRefusesAreNamed) {
  program.target.features = {"amx-bf16", "amx-tile"};
  programBytes = serialize(program);
  if (!hasCpuFeature("amx-bf16"))
    GTEST_SKIP() << "this CPU has no AMX";
  Outcome outcome;
  if (!whereTilesAreRefused([&] { outcome = run({"train"}); }))
    GTEST_SKIP() << "this system lets no seccomp filter be set";
  EXPECT_EQ(outcome.exitCode, 3);
  EXPECT_NE(outcome.err.find("does not let this process use amx-tile (Operation not permitted)"),
            std::string::npos)
      << outcome.err;
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  EXPECT_FALSE(fs::exists(path("job.run")));
  EXPECT_EQ(run({"train", "--steps", "2"}).exitCode, 0);
}

TEST_F(JobErrorsTest, TheProgramForACpuIsChosen) {
  Program other = program;
  other.target = {"cuda", "sm_90", {}};
  std::string otherBytes = serialize(other);
  JobImage both = image();
  both.programs.insert(both.programs.begin(), {otherBytes});
  EXPECT_EQ(run({"train", "--steps", "2"}, both).exitCode, 0);

  JobImage none = image();
  none.programs = {{otherBytes}};
  Outcome outcome = run({"train"}, none);
  EXPECT_EQ(outcome.exitCode, 3);
  EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
  EXPECT_EQ(run({"plan"}, none).exitCode, 0);
  EXPECT_EQ(run({"info"}, none).exitCode, 0);

  other.target.kind = "abacus";
  const std::string unknown = serialize(other);
  none.programs = {{unknown}};
  outcome = run({"train"}, none);
  EXPECT_EQ(outcome.exitCode, 3);
  EXPECT_NE(outcome.err.find("the job is compiled for abacus, and this version runs jobs for cuda, "
                             "cpu"),
            std::string::npos)
      << outcome.err;
  none.programs = {};
  outcome = run({"train"}, none);
  EXPECT_EQ(outcome.exitCode, 3);
  EXPECT_NE(outcome.err.find("the job has no program"), std::string::npos) << outcome.err;
  other.target.kind = "cuda";

  outcome = run({"train", "--device", "cuda"});
  EXPECT_EQ(outcome.exitCode, 3);
  EXPECT_NE(outcome.err.find("--device=cuda: the job is compiled for cpu: compile it with "
                             "--target=cuda"),
            std::string::npos)
      << outcome.err;
  EXPECT_EQ(run({"train", "--device", "cpu", "--steps", "3"}, both).exitCode, 0);
  for (const char* wish :
       {"gpu", "cpu:0", "cuda:", "cuda:-1", "cuda:1x", "cuda:99999999999999999999"}) {
    outcome = run({"train", "--device", wish});
    EXPECT_EQ(outcome.exitCode, 2) << wish;
    EXPECT_NE(outcome.err.find(fmt::format("--device={}: use auto, cpu, cuda or cuda:N", wish)),
              std::string::npos)
        << outcome.err;
  }

  other.optimizer = "lion";
  otherBytes = serialize(other);
  both.programs[0] = {otherBytes};
  outcome = run({"train"}, both);
  EXPECT_EQ(outcome.exitCode, 1);
  EXPECT_NE(outcome.err.find("for cuda and cpu have optimizers 'lion' and 'sgd'"),
            std::string::npos)
      << outcome.err;
}

TEST_F(JobErrorsTest, ADamagedJobIsRefused) {
  programBytes.resize(programBytes.size() / 2);
  EXPECT_EQ(run({"plan"}).exitCode, 1);
}

} // namespace
} // namespace titan
