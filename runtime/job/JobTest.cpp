// The job's commands on the hand-made linear program: everything but the compiler.
#include "runtime/job/JobImage.h"

#include "runtime/checkpoint/CheckpointStore.h"
#include "runtime/data/Npz.h"
#include "runtime/device/cpu/OneDnn.h"
#include "runtime/executor/testing/LinearProgram.h"
#include "runtime/program/Random.h"
#include "runtime/program/Recipe.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include <sys/stat.h>
#include <unistd.h>

namespace titan {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using titan::testing::LinearShape;

struct Outcome {
  int exitCode;
  std::string out, err;
};

class JobTest : public ::testing::Test {
protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    directory =
        fs::path(::testing::TempDir()) / fmt::format("titan-job-{}-{}", info->name(), getpid());
    fs::remove_all(directory);
    fs::create_directories(directory);
    writeData("train.npz", 50);
    writeData("eval.npz", 10);
    compile();
  }
  void TearDown() override {
    std::error_code error;
    fs::permissions(directory, fs::perms::owner_all, error);
    fs::remove_all(directory, error);
  }

  std::string path(const std::string& name) const { return (directory / name).string(); }

  void writeData(const std::string& name, int64_t samples, float poison = 0) {
    std::vector<float> x(samples * LinearShape::features), y(samples * LinearShape::outputs);
    for (int64_t i = 0; i < samples; ++i)
      for (int64_t j = 0; j < LinearShape::features; ++j) {
        float& value = x[i * LinearShape::features + j];
        value = normalDraw(5, 0, i * LinearShape::features + j);
        for (int64_t o = 0; o < LinearShape::outputs; ++o)
          y[i * LinearShape::outputs + o] += value * static_cast<float>(o - j) * 0.1f;
      }
    if (poison != 0)
      for (float& value : x)
        value = poison;
    auto bytes = [](std::vector<float>& v) {
      return std::span<const char>(reinterpret_cast<char*>(v.data()), v.size() * sizeof(float));
    };
    const NamedArray arrays[] = {
        {"x", DType::F32, {samples, LinearShape::features}, bytes(x)},
        {"targets", DType::F32, {samples, LinearShape::outputs}, bytes(y)}};
    ASSERT_TRUE(writeNpz(path(name), arrays).ok());
  }

  void compile(const std::string& extra = "") {
    program =
        titan::testing::linearProgram(fmt::format(R"(
[optimizer]
kind = "sgd"
lr = 0.05
[data]
train = "{}"
eval = "{}"
[train]
steps = 20
{})",
                                                  path("train.npz"), path("eval.npz"), extra));
    programBytes = serialize(program);
    payload = titan::testing::linearPayload();
  }

  JobImage image() const {
    return {programBytes, titan::testing::linearKernels(), payload, path("job")};
  }

  Outcome run(std::vector<std::string> arguments) const {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int exitCode = runJob(arguments, image());
    std::string out = ::testing::internal::GetCapturedStdout();
    return {exitCode, out, ::testing::internal::GetCapturedStderr()};
  }

  std::vector<Json> metrics(const std::string& run) const {
    std::vector<Json> lines;
    std::ifstream file(path(run) + "/metrics.jsonl");
    for (std::string line; std::getline(file, line);)
      lines.push_back(Json::parse(line));
    return lines;
  }

  std::string readFile(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  /// The bytes of all state in a checkpoint: model and optimizer shards.
  std::string stateOf(const std::string& run, int64_t step) const {
    std::string bytes;
    for (const char* folder : {"model", "optimizer"}) {
      const std::string relative = fmt::format("{}/checkpoints/step-{:08}/{}", run, step, folder);
      for (const auto& entry : fs::directory_iterator(path(relative)))
        if (entry.path().extension() == ".safetensors")
          bytes += readFile(fmt::format("{}/{}", relative, entry.path().filename().string()));
    }
    EXPECT_FALSE(bytes.empty());
    return bytes;
  }

  fs::path directory;
  Program program;
  std::string programBytes, payload;
};

TEST_F(JobTest, TrainsAndWritesARunDirectory) {
  Outcome outcome = run({"train"});
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("step 20  loss"), std::string::npos) << outcome.out;
  EXPECT_TRUE(fs::exists(path("job.run/checkpoints/step-00000020/manifest.json")));
  std::vector<Json> lines = metrics("job.run");
  ASSERT_EQ(lines.size(), 20u);
  for (const char* key : {"step", "loss", "lr", "grad_norm", "samples", "seconds", "memory"})
    EXPECT_TRUE(lines[0].contains(key)) << key << " in " << lines[0];
  EXPECT_EQ(lines[19]["step"], 20);
  EXPECT_FLOAT_EQ(lines[0]["lr"], 0.05f);
  EXPECT_LT(lines[19]["loss"], lines[0]["loss"]);
  bool events = false;
  for (const auto& entry : fs::directory_iterator(path("job.run")))
    events = events || entry.path().filename().string().starts_with("events.out.tfevents");
  EXPECT_TRUE(events);
}

TEST_F(JobTest, ResumedRunsEqualUninterruptedOnesBitForBit) {
  ASSERT_EQ(run({"train", "--out", path("whole")}).exitCode, 0);
  // Stopped three times, once between epochs.
  for (const char* steps : {"3", "9", "15", "20"}) {
    Outcome outcome = run({"train", "--out", path("parts"), "--steps", steps});
    ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  }
  EXPECT_EQ(stateOf("whole", 20), stateOf("parts", 20));
  std::vector<Json> whole = metrics("whole"), parts = metrics("parts");
  ASSERT_EQ(parts.size(), 20u);
  for (size_t i = 0; i < 20; ++i)
    EXPECT_EQ(whole[i]["loss"], parts[i]["loss"]) << "step " << i + 1;
}

TEST_F(JobTest, ThreadsDoNotMatter) {
  for (const char* gemm : {"generated", "onednn"}) {
    if (gemm == std::string("onednn") && !OneDnn::load().ok())
      continue;
    for (const char* threads : {"1", "2", "3"}) {
      Outcome outcome = run({"train", "--out", path(gemm + std::string(threads)), "--threads",
                             threads, "--gemm", gemm});
      ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
    }
    EXPECT_EQ(stateOf(gemm + std::string("1"), 20), stateOf(gemm + std::string("2"), 20));
    EXPECT_EQ(stateOf(gemm + std::string("1"), 20), stateOf(gemm + std::string("3"), 20));
  }
}

TEST_F(JobTest, PoisonChangesNothing) {
  ASSERT_EQ(run({"train", "--out", path("plain")}).exitCode, 0);
  Outcome outcome = run({"train", "--out", path("poisoned"), "--poison"});
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  EXPECT_EQ(stateOf("plain", 20), stateOf("poisoned", 20));
  EXPECT_EQ(run({"eval", "--out", path("plain"), "--json"}).out,
            run({"eval", "--out", path("plain"), "--json", "--poison"}).out);
}

TEST_F(JobTest, ResumeKeepsTheProductLibrary) {
  ASSERT_EQ(run({"train", "--steps", "5", "--gemm", "generated"}).exitCode, 0);
  ASSERT_EQ(run({"train"}).exitCode, 0);
  ASSERT_EQ(run({"train", "--out", path("whole"), "--gemm", "generated"}).exitCode, 0);
  EXPECT_EQ(stateOf("job.run", 20), stateOf("whole", 20));
  Json manifest = Json::parse(readFile("job.run/checkpoints/step-00000020/manifest.json"));
  EXPECT_EQ(manifest["program"]["libraries"]["gemm"], "generated");
}

TEST_F(JobTest, ResumeSaysWhatDiffers) {
  ASSERT_EQ(run({"train", "--steps", "5"}).exitCode, 0);
  writeData("other.npz", 33);
  Outcome outcome = run({"train", "--set", "optimizer.lr=0.01", "--data", path("other.npz")});
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("resumed from"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("optimizer.lr was 0.05, is 0.01"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("33 samples"), std::string::npos) << outcome.err;
  EXPECT_FLOAT_EQ(metrics("job.run")[5]["lr"], 0.01f);
}

TEST_F(JobTest, AFinishedRunHasNothingToDo) {
  ASSERT_EQ(run({"train"}).exitCode, 0);
  Outcome outcome = run({"train"});
  EXPECT_EQ(outcome.exitCode, 0);
  EXPECT_NE(outcome.err.find("nothing to do"), std::string::npos) << outcome.err;
  EXPECT_EQ(metrics("job.run").size(), 20u);
}

TEST_F(JobTest, CheckpointsEveryNStepsAndKeepsSome) {
  ASSERT_EQ(run({"train", "--set", "checkpoint.every=4", "--set", "checkpoint.keep=3"}).exitCode,
            0);
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path("job.run/checkpoints")))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"step-00000012", "step-00000016", "step-00000020"}));
}

TEST_F(JobTest, ResumeNeverAndResumeFromAPath) {
  ASSERT_EQ(run({"train", "--steps", "5"}).exitCode, 0);
  ASSERT_EQ(run({"train", "--steps", "10"}).exitCode, 0);
  EXPECT_EQ(run({"train", "--resume", "never"}).exitCode, 2);
  // From the older one, in the same directory: the newer one would not be saved again.
  Outcome mixed = run({"train", "--resume", path("job.run/checkpoints/step-00000005")});
  EXPECT_EQ(mixed.exitCode, 2) << mixed.err;
  Outcome other =
      run({"train", "--resume", path("job.run/checkpoints/step-00000005"), "--out", path("other")});
  ASSERT_EQ(other.exitCode, 0) << other.err;
  ASSERT_EQ(run({"train"}).exitCode, 0);
  EXPECT_EQ(stateOf("job.run", 20), stateOf("other", 20));
  EXPECT_EQ(run({"train", "--resume", path("nowhere"), "--out", path("third")}).exitCode, 1);
}

TEST_F(JobTest, TheSeedIsFixedOnceTheRunHasStarted) {
  ASSERT_EQ(run({"train", "--steps", "5", "--set", "train.seed=3"}).exitCode, 0);
  Outcome changed = run({"train", "--set", "train.seed=4"});
  EXPECT_EQ(changed.exitCode, 2);
  EXPECT_NE(changed.err.find("train.seed = 4"), std::string::npos) << changed.err;
  ASSERT_EQ(run({"train"}).exitCode, 0); // keeps 3
  ASSERT_EQ(run({"train", "--out", path("whole"), "--set", "train.seed=3"}).exitCode, 0);
  EXPECT_EQ(stateOf("job.run", 20), stateOf("whole", 20));
}

TEST_F(JobTest, SignalsStopAfterTheStepAndSave) {
  for (int signal : {SIGTERM, SIGINT, SIGUSR1}) {
    const std::string out = fmt::format("run{}", signal);
    std::thread sender([&] {
      while (metrics(out).size() < 5)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      kill(getpid(), signal);
    });
    Outcome outcome = run({"train", "--out", path(out), "--steps", "100000000"});
    sender.join();
    ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("stopped by"), std::string::npos) << outcome.err;
    const int64_t step = metrics(out).back()["step"];
    EXPECT_TRUE(fs::exists(path(fmt::format("{}/checkpoints/step-{:08}/manifest.json", out, step))))
        << step;
    Outcome resumed = run({"train", "--out", path(out), "--steps", std::to_string(step + 2)});
    ASSERT_EQ(resumed.exitCode, 0) << resumed.err;
    EXPECT_EQ(metrics(out).size(), static_cast<size_t>(step + 2));
  }
}

TEST_F(JobTest, ALockedDirectoryIsRefused) {
  auto store = checkpoint::CheckpointStore::open(path("job.run"));
  ASSERT_TRUE(store.ok());
  Outcome outcome = run({"train"});
  EXPECT_EQ(outcome.exitCode, 3);
  EXPECT_NE(outcome.err.find("in use by another process"), std::string::npos) << outcome.err;
}

TEST_F(JobTest, AnUnwritableDirectoryIsRefused) {
  std::ofstream(path("file")) << "x";
  Outcome outcome = run({"train", "--out", path("file") + "/run"});
  EXPECT_EQ(outcome.exitCode, 3) << outcome.err;
}

TEST_F(JobTest, TooManySkippedStepsEndTheRun) {
  writeData("inf.npz", 20, INFINITY);
  Outcome outcome = run({"train", "--data", path("inf.npz"), "--set", "train.non_finite_limit=4"});
  EXPECT_EQ(outcome.exitCode, 5);
  EXPECT_NE(outcome.err.find("steps 1 to 4 were skipped"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("input 'x'"), std::string::npos) << outcome.err;
  ASSERT_EQ(metrics("job.run").size(), 4u);
  EXPECT_TRUE(metrics("job.run")[0]["loss"].is_null());
}

TEST_F(JobTest, BadDataIsReportedBeforeTheRunDirectoryIsMade) {
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

TEST_F(JobTest, WrongCommandLinesAreUsageErrors) {
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

TEST_F(JobTest, MissingCpuFeaturesAreNamed) {
  program.cpuFeatures = {"sse2", "quantum"};
  programBytes = serialize(program);
  Outcome outcome = run({"train"});
  EXPECT_EQ(outcome.exitCode, 3);
  EXPECT_NE(outcome.err.find("lacks quantum"), std::string::npos) << outcome.err;
  EXPECT_FALSE(fs::exists(path("job.run")));
  EXPECT_EQ(run({"plan"}).exitCode, 0);
  EXPECT_EQ(run({"info"}).exitCode, 0);
}

TEST_F(JobTest, ADamagedJobIsRefused) {
  programBytes.resize(programBytes.size() / 2);
  EXPECT_EQ(run({"plan"}).exitCode, 1);
}

TEST_F(JobTest, InitLoadsWeightsIntoAFreshRun) {
  ASSERT_EQ(run({"train"}).exitCode, 0);
  const std::string trained = path("job.run/checkpoints/step-00000020");
  Outcome fresh = run({"train", "--out", path("tuned"), "--steps", "1", "--init", trained});
  ASSERT_EQ(fresh.exitCode, 0) << fresh.err;
  EXPECT_LT(metrics("tuned")[0]["loss"], metrics("job.run")[10]["loss"]);
  EXPECT_EQ(metrics("tuned")[0]["step"], 1);
}

TEST_F(JobTest, EvalMasksThePaddingOfTheLastBatch) {
  ASSERT_EQ(run({"train"}).exitCode, 0);
  Outcome outcome = run({"eval", "--json"});
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  Json result = Json::parse(outcome.out);
  EXPECT_EQ(result["samples"], 10); // batches of 4: 4 + 4 + 2
  EXPECT_EQ(result["step"], 20);

  // The same from predict's outputs and the targets.
  ASSERT_EQ(run({"predict", "-o", path("out.npz")}).exitCode, 0);
  std::vector<Array> outputs = readArrays(path("out.npz")).take(),
                     data = readArrays(path("eval.npz")).take();
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].name, "prediction");
  EXPECT_EQ(outputs[0].shape, (Shape{10, LinearShape::outputs}));
  const auto* predicted = reinterpret_cast<const float*>(outputs[0].bytes.data());
  const Array& targets = data[0].name == "targets" ? data[0] : data[1];
  const auto* target = reinterpret_cast<const float*>(targets.bytes.data());
  double sum = 0;
  for (int64_t i = 0; i < 10 * LinearShape::outputs; ++i)
    sum += (predicted[i] - target[i]) * (predicted[i] - target[i]);
  EXPECT_NEAR(result["loss"], sum / (10 * LinearShape::outputs), 1e-5);
}

TEST_F(JobTest, EvalOfNamedAndMissingCheckpoints) {
  ASSERT_EQ(run({"train", "--set", "checkpoint.every=10"}).exitCode, 0);
  Outcome early = run({"eval", "--ckpt", path("job.run/checkpoints/step-00000010"), "--json"});
  ASSERT_EQ(early.exitCode, 0) << early.err;
  EXPECT_EQ(Json::parse(early.out)["step"], 10);
  EXPECT_EQ(Json::parse(run({"eval", "--ckpt", path("job.run"), "--json"}).out)["step"], 20);
  EXPECT_EQ(run({"eval", "--ckpt", path("none")}).exitCode, 1);
  Outcome untrained = run({"eval", "--out", path("empty"), "--json"});
  EXPECT_EQ(untrained.exitCode, 0);
  EXPECT_NE(untrained.err.find("no checkpoint"), std::string::npos);
  EXPECT_EQ(Json::parse(untrained.out)["step"], 0);
}

TEST_F(JobTest, EvaluatesDuringTrainingWithoutDisturbingIt) {
  ASSERT_EQ(run({"train", "--out", path("with"), "--set", "train.eval_every=5"}).exitCode, 0);
  ASSERT_EQ(run({"train", "--out", path("without")}).exitCode, 0);
  EXPECT_EQ(stateOf("with", 20), stateOf("without", 20));
  std::vector<int64_t> evaluated;
  for (const Json& line : metrics("with"))
    if (line.contains("eval_loss"))
      evaluated.push_back(line["step"]);
  EXPECT_EQ(evaluated, (std::vector<int64_t>{5, 10, 15, 20}));
}

TEST_F(JobTest, PlanIsTheTruthOfTheProgram) {
  Outcome outcome = run({"plan", "--json"});
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  Json plan = Json::parse(outcome.out);
  EXPECT_EQ(plan["memory"]["arena"], program.arenaBytes);
  EXPECT_EQ(plan["memory"]["state"]["param"],
            (LinearShape::features + 1) * LinearShape::outputs * 4);
  EXPECT_EQ(plan["memory"]["state"]["counter"], 32);
  EXPECT_EQ(plan["functions"]["step"]["gemms"], 2 * LinearShape::microbatches);
  EXPECT_EQ(plan["gemms"].size(), 2u);
  EXPECT_GT(plan["functions"]["step"]["flops"], 0);
  EXPECT_EQ(run({"plan"}).exitCode, 0);
  ASSERT_EQ(run({"train", "--steps", "1", "--gemm", "generated"}).exitCode, 0);
  EXPECT_EQ(metrics("job.run")[0]["memory"], plan["memory"]["arena"]);
}

TEST_F(JobTest, InfoListsParametersAndLibraries) {
  Outcome outcome = run({"info", "--json", "--gemm", "generated"});
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  Json info = Json::parse(outcome.out);
  ASSERT_EQ(info["parameters"].size(), 2u);
  EXPECT_EQ(info["parameters"][0]["name"], "linear.weight");
  EXPECT_EQ(info["parameters"][0]["shape"], (Json{3, 8}));
  EXPECT_EQ(info["parameters"][0]["dtype"], "F32");
  EXPECT_EQ(info["parameters"][0]["trainable"], true);
  EXPECT_EQ(info["fingerprint"], fingerprint(program));
  EXPECT_EQ(info["libraries"]["gemm"], "generated");
  EXPECT_EQ(info["recipe"]["train"]["steps"], 20);
  EXPECT_EQ(run({"info"}).exitCode, 0);
}

TEST_F(JobTest, ProfileWritesATableAndATrace) {
  Outcome outcome = run({"profile", "--steps", "4"});
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("forward product of linear"), std::string::npos) << outcome.out;
  EXPECT_FALSE(fs::exists(path("job.run")));
  Json trace = Json::parse(readFile("job.trace.json"));
  EXPECT_EQ(trace["traceEvents"].size(), 4u * (2 + 4 * LinearShape::microbatches + 3));
  // What was counted while a step ran is what the plan says.
  Json json = Json::parse(run({"profile", "--steps", "4", "--json"}).out);
  Json plan = Json::parse(run({"plan", "--json"}).out);
  EXPECT_EQ(json["steps"], 4);
  EXPECT_EQ(json["recorded"], plan["functions"]["step"]);
  EXPECT_EQ(json["max_live"], plan["memory"]["max_live"]["step"]);
}

} // namespace
} // namespace titan
