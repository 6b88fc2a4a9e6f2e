// `train` on the hand-made linear program: resume, threads, signals, evaluations.
#include "runtime/checkpoint/Manifest.h"
#include "runtime/job/ChooseDevice.h"
#include "runtime/job/testing/JobTestFixture.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <thread>

#include <sys/wait.h>

namespace titan {
namespace {

using namespace titan::testing;

class JobTrainTest : public JobTest {
protected:
  size_t entriesThatStartWith(const std::string& prefix) const {
    return static_cast<size_t>(std::ranges::count_if(
        fs::directory_iterator(path("job.run/checkpoints")), [&](const fs::directory_entry& entry) {
          return entry.path().filename().string().starts_with(prefix);
        }));
  }
};

size_t countLines(const std::string& file) {
  std::ifstream stream(file);
  return static_cast<size_t>(std::count(std::istreambuf_iterator<char>(stream), {}, '\n'));
}

TEST_F(JobTrainTest, TrainsAndWritesARunDirectory) {
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

TEST_F(JobTrainTest, ResumedRunsEqualUninterruptedOnesBitForBit) {
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

TEST_F(JobTrainTest, KilledRunsResumeBitForBit) {
  const std::vector<std::string> arguments = {
      "train", "--steps", "4000", "--threads", "1", "--set", "checkpoint.every=250"};
  auto train = [&](const char* out) {
    std::vector<std::string> all = arguments;
    all.insert(all.end(), {"--out", path(out)});
    return all;
  };
  for (size_t lines : {100, 900, 2100}) { // killed while it trains or saves, wherever it is by then
    const pid_t child = fork();
    if (child == 0) {
      freopen("/dev/null", "w", stderr);
      _exit(runJob(train("killed"), image()));
    }
    while (waitpid(child, nullptr, WNOHANG) == 0 &&
           countLines(path("killed/metrics.jsonl")) < lines)
      std::this_thread::sleep_for(std::chrono::microseconds(300));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }
  Outcome outcome = run(train("killed"));
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("resumed from"), std::string::npos) << outcome.err;
  ASSERT_EQ(run(train("whole")).exitCode, 0);
  EXPECT_EQ(stateOf("whole", 4000), stateOf("killed", 4000));
  std::vector<Json> whole = metrics("whole"), killed = metrics("killed");
  ASSERT_EQ(whole.size(), killed.size());
  for (size_t i = 0; i < whole.size(); ++i)
    ASSERT_EQ(whole[i]["loss"], killed[i]["loss"]) << "step " << i + 1;
}

TEST_F(JobTrainTest, ThreadsDoNotMatter) {
  for (const char* gemm : {"generated", "onednn"}) {
    if (gemm == std::string("onednn") && !findProductLibrary().found)
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

TEST_F(JobTrainTest, PoisonChangesNothing) {
  ASSERT_EQ(run({"train", "--out", path("plain")}).exitCode, 0);
  Outcome outcome = run({"train", "--out", path("poisoned"), "--poison"});
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  EXPECT_EQ(stateOf("plain", 20), stateOf("poisoned", 20));
  EXPECT_EQ(run({"eval", "--out", path("plain"), "--json"}).out,
            run({"eval", "--out", path("plain"), "--json", "--poison"}).out);
}

TEST_F(JobTrainTest, ResumeKeepsTheProductLibrary) {
  ASSERT_EQ(run({"train", "--steps", "5", "--gemm", "generated"}).exitCode, 0);
  ASSERT_EQ(run({"train"}).exitCode, 0);
  ASSERT_EQ(run({"train", "--out", path("whole"), "--gemm", "generated"}).exitCode, 0);
  EXPECT_EQ(stateOf("job.run", 20), stateOf("whole", 20));
  Json manifest = Json::parse(readFile("job.run/checkpoints/step-00000020/manifest.json"));
  EXPECT_EQ(manifest["program"]["libraries"]["cpu.gemm"]["library"], "generated");
}

TEST_F(JobTrainTest, SaysWhatComputesProducts) {
  const ProductLibrary library = findProductLibrary();
  if (!library.found)
    GTEST_SKIP() << library.reason;
  const std::string byLibrary = "products by oneDNN " + library.version;
  for (const auto& [forward, gradient, says] :
       {std::tuple{false, false, byLibrary + ", arena"},
        std::tuple{true, false, byLibrary + ", others generated, arena"},
        std::tuple{true, true, std::string("generated products, arena")}}) {
    program.libraryCalls[0].generated = forward;
    program.libraryCalls[1].generated = gradient;
    programBytes = serialize(program);
    const Outcome outcome = run({"train", "--steps", "1", "--out", path(says)});
    ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
    EXPECT_NE(outcome.err.find(says), std::string::npos) << outcome.err;
  }
}

TEST_F(JobTrainTest, ResumeSaysWhatDiffers) {
  ASSERT_EQ(run({"train", "--steps", "5"}).exitCode, 0);
  writeData("other.npz", 33);
  Outcome outcome = run({"train", "--set", "optimizer.lr=0.01", "--data", path("other.npz")});
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  EXPECT_NE(outcome.err.find("resumed from"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("optimizer.lr was 0.05, is 0.01"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("33 samples"), std::string::npos) << outcome.err;
  EXPECT_FLOAT_EQ(metrics("job.run")[5]["lr"], 0.01f);
}

TEST_F(JobTrainTest, AFinishedRunHasNothingToDo) {
  ASSERT_EQ(run({"train"}).exitCode, 0);
  Outcome outcome = run({"train"});
  EXPECT_EQ(outcome.exitCode, 0);
  EXPECT_NE(outcome.err.find("nothing to do"), std::string::npos) << outcome.err;
  EXPECT_EQ(metrics("job.run").size(), 20u);
}

TEST_F(JobTrainTest, CheckpointsEveryNStepsAndKeepsSome) {
  ASSERT_EQ(run({"train", "--set", "checkpoint.every=4", "--set", "checkpoint.keep=3"}).exitCode,
            0);
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path("job.run/checkpoints")))
    names.push_back(entry.path().filename());
  std::ranges::sort(names);
  EXPECT_EQ(names, (std::vector<std::string>{"step-00000012", "step-00000016", "step-00000020"}));
}

TEST_F(JobTrainTest, ResumeNeverAndResumeFromAPath) {
  ASSERT_EQ(run({"train", "--steps", "5"}).exitCode, 0);
  ASSERT_EQ(run({"train", "--steps", "10"}).exitCode, 0);
  EXPECT_EQ(run({"train", "--resume", "never"}).exitCode, 2);
  // From the older one, in the same directory: the newer one would not be saved again.
  Outcome mixed = run({"train", "--resume", path("job.run/checkpoints/step-00000005")});
  EXPECT_EQ(mixed.exitCode, 2) << mixed.err;
  EXPECT_NE(mixed.err.find("--set-aside"), std::string::npos) << mixed.err;
  Outcome other =
      run({"train", "--resume", path("job.run/checkpoints/step-00000005"), "--out", path("other")});
  ASSERT_EQ(other.exitCode, 0) << other.err;
  ASSERT_EQ(run({"train"}).exitCode, 0);
  EXPECT_EQ(stateOf("job.run", 20), stateOf("other", 20));
  EXPECT_EQ(run({"train", "--resume", path("nowhere"), "--out", path("third")}).exitCode, 1);
}

TEST_F(JobTrainTest, SetAsideMakesWayForARunFromAnOlderCheckpoint) {
  const std::string older = path("job.run/checkpoints/step-00000005");
  ASSERT_EQ(run({"train", "--steps", "5"}).exitCode, 0);
  ASSERT_EQ(run({"train", "--steps", "10"}).exitCode, 0);
  for (const char* steps : {"5", "20"})
    ASSERT_EQ(run({"train", "--out", path("whole"), "--steps", steps}).exitCode, 0);
  Outcome resumed = run({"train", "--resume", older, "--set-aside"});
  ASSERT_EQ(resumed.exitCode, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("set aside as '"), std::string::npos) << resumed.err;
  EXPECT_EQ(stateOf("job.run", 20), stateOf("whole", 20));
  EXPECT_EQ(metrics("job.run").size(), 20u);
  EXPECT_EQ(entriesThatStartWith("aside-step-00000010-"), 1u);
  // From elsewhere, a checkpoint of the same step makes way as well.
  Outcome foreign = run({"train", "--out", path("whole"), "--resume", older, "--set-aside"});
  ASSERT_EQ(foreign.exitCode, 0) << foreign.err;
  EXPECT_FALSE(fs::exists(path("whole/checkpoints/step-00000005")));
  for (const char* start : {"auto", "good", "never"})
    EXPECT_EQ(run({"train", "--resume", start, "--set-aside"}).exitCode, 2);
}

TEST_F(JobTrainTest, ResumeGoodIsResumeWhereNothingIsDamaged) {
  EXPECT_EQ(run({"train", "--steps", "5", "--resume", "good"}).exitCode, 0);
  ASSERT_EQ(run({"train", "--resume", "good"}).exitCode, 0);
  ASSERT_EQ(run({"train", "--out", path("whole")}).exitCode, 0);
  EXPECT_EQ(stateOf("job.run", 20), stateOf("whole", 20));
  EXPECT_EQ(entriesThatStartWith("aside"), 0u);
}

TEST_F(JobTrainTest, ResumeGoodPassesOverWhatIsDamagedOnly) {
  ASSERT_EQ(run({"train", "--set", "checkpoint.every=5", "--set", "checkpoint.keep=0"}).exitCode,
            0);
  const std::string whole = stateOf("job.run", 20);
  const auto manifestOf = [&](int step) {
    return path(fmt::format("job.run/checkpoints/step-{:08}/manifest.json", step));
  };
  for (int step : {20, 15})
    std::ofstream(manifestOf(step), std::ios::app) << "x";
  // Auto refuses, and what it prints works.
  Outcome refused = run({"train"});
  EXPECT_EQ(refused.exitCode, 1) << refused.err;
  const size_t flag = refused.err.find("--resume ");
  ASSERT_NE(flag, std::string::npos) << refused.err;
  const size_t word = flag + std::string("--resume ").size();
  const std::string value = refused.err.substr(word, refused.err.find(' ', word) - word);
  Outcome resumed = run({"train", "--resume", value});
  ASSERT_EQ(resumed.exitCode, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("at step 10"), std::string::npos) << resumed.err;
  EXPECT_EQ(stateOf("job.run", 20), whole);
  EXPECT_EQ(entriesThatStartWith("aside-step-"), 2u);

  // A checkpoint of a later Titan is not damaged: nobody may pass over it.
  std::string text = readFile("job.run/checkpoints/step-00000020/manifest.json");
  text = checkpoint::unsealManifest(text).take();
  text.replace(text.find("\"version\": 2"), 12, "\"version\": 3");
  std::ofstream(manifestOf(20), std::ios::trunc) << checkpoint::sealManifest(text);
  for (const char* start : {"good", "auto"}) {
    Outcome later = run({"train", "--resume", start});
    EXPECT_EQ(later.exitCode, 1);
    EXPECT_NE(later.err.find("version 3"), std::string::npos) << later.err;
    EXPECT_EQ(later.err.find("damaged"), std::string::npos) << later.err;
  }
  EXPECT_EQ(entriesThatStartWith("aside-step-"), 2u);

  for (const auto& entry : fs::directory_iterator(path("job.run/checkpoints")))
    fs::remove(entry.path() / "manifest.json");
  Outcome none = run({"train", "--resume", "good"});
  EXPECT_EQ(none.exitCode, 1);
  EXPECT_NE(none.err.find("no good checkpoint"), std::string::npos) << none.err;
}

TEST_F(JobTrainTest, ResumeSeesAnotherLibrary) {
  ASSERT_EQ(run({"train", "--steps", "5"}).exitCode, 0);
  const std::string name = "job.run/checkpoints/step-00000005/manifest.json";
  Json manifest = Json::parse(readFile(name));
  manifest.erase("xxh3_128");
  Json& libraries = manifest["program"]["libraries"];
  ASSERT_TRUE(libraries.contains("libc")) << libraries;
  libraries["libc"]["version"] = "1.9";
  libraries["cpu.gemm"] = {{"library", "onednn"}, {"version", "0.1"}};
  libraries["cuda.gemm"] = {{"library", "cublas"}, {"version", "12.4"}};
  std::ofstream(path(name), std::ios::trunc) << checkpoint::sealManifest(manifest.dump(2));
  Outcome resumed = run({"train"});
  ASSERT_EQ(resumed.exitCode, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("libc was 'glibc 1.9', is 'glibc "), std::string::npos) << resumed.err;
  EXPECT_NE(resumed.err.find("cpu.gemm was 'onednn 0.1', is '"), std::string::npos) << resumed.err;
  EXPECT_EQ(resumed.err.find("cuda"), std::string::npos) << resumed.err;
}

TEST_F(JobTrainTest, AveragesAreResumed) {
  // The same program with other initial averages: they are loaded over. No kernel updates them.
  const auto withAverages = [&](double slow, double fast) {
    compile();
    for (const auto& [profile, value] : {std::pair{"slow", slow}, {"fast", fast}})
      for (const char* name : {"linear.weight", "linear.bias"}) {
        State state = *program.findState(name);
        state.kind = StateKind::Ema, state.profile = profile, state.trainable = false;
        state.init = {}, state.init.a = value;
        state.offset = (program.arenaBytes + 63) / 64 * 64;
        program.arenaBytes = state.offset + state.bytes, program.stateBytes += state.bytes;
        program.states.push_back(state);
      }
    programBytes = serialize(program);
  };
  withAverages(0.25, 0.5);
  ASSERT_EQ(run({"train", "--steps", "5"}).exitCode, 0);
  withAverages(3, 4);
  Outcome resumed = run({"train", "--steps", "6"});
  ASSERT_EQ(resumed.exitCode, 0) << resumed.err;
  const auto shardOf = [&](int step, const char* folder) {
    return readFile(fmt::format("job.run/checkpoints/step-{:08}/{}/"
                                "shard-00001-model-00001-of-00001.safetensors",
                                step, folder));
  };
  for (const char* folder : {"ema-slow", "ema-fast"}) {
    EXPECT_EQ(shardOf(5, folder), shardOf(6, folder));
    EXPECT_NE(shardOf(5, folder).find("linear.bias"), std::string::npos);
  }
  EXPECT_NE(shardOf(5, "ema-slow"), shardOf(5, "ema-fast"));
  compile(); // without averages: they are not to be lost in silence
  Outcome refused = run({"train"});
  EXPECT_EQ(refused.exitCode, 1);
  EXPECT_NE(refused.err.find("+ ema-fast/linear.weight"), std::string::npos) << refused.err;
}

TEST_F(JobTrainTest, TheSeedIsFixedOnceTheRunHasStarted) {
  ASSERT_EQ(run({"train", "--steps", "5", "--set", "train.seed=3"}).exitCode, 0);
  Outcome changed = run({"train", "--set", "train.seed=4"});
  EXPECT_EQ(changed.exitCode, 2);
  EXPECT_NE(changed.err.find("train.seed = 4"), std::string::npos) << changed.err;
  Outcome kept = run({"train"});
  ASSERT_EQ(kept.exitCode, 0) << kept.err;
  EXPECT_NE(kept.err.find("this one goes on with 3"), std::string::npos) << kept.err;
  ASSERT_EQ(run({"train", "--out", path("whole"), "--set", "train.seed=3"}).exitCode, 0);
  EXPECT_EQ(stateOf("job.run", 20), stateOf("whole", 20));
}

TEST_F(JobTrainTest, SignalsStopAfterTheStepAndSave) {
  for (int signal : {SIGTERM, SIGINT, SIGUSR1}) {
    const std::string out = fmt::format("run{}", signal);
    std::thread sender([&] {
      waitForSteps(out, 5);
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

TEST_F(JobTrainTest, TooManySkippedStepsEndTheRun) {
  writeData("inf.npz", 20, INFINITY);
  Outcome outcome = run({"train", "--data", path("inf.npz"), "--set", "train.non_finite_limit=4"});
  EXPECT_EQ(outcome.exitCode, 5);
  EXPECT_NE(outcome.err.find("steps 1 to 4 were skipped"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("input 'x'"), std::string::npos) << outcome.err;
  ASSERT_EQ(metrics("job.run").size(), 4u);
  EXPECT_TRUE(metrics("job.run")[0]["loss"].is_null());
}

TEST_F(JobTrainTest, InitLoadsWeightsIntoAFreshRun) {
  ASSERT_EQ(run({"train"}).exitCode, 0);
  const std::string trained = path("job.run/checkpoints/step-00000020");
  Outcome fresh = run({"train", "--out", path("tuned"), "--steps", "1", "--init", trained});
  ASSERT_EQ(fresh.exitCode, 0) << fresh.err;
  EXPECT_LT(metrics("tuned")[0]["loss"], metrics("job.run")[10]["loss"]);
  EXPECT_EQ(metrics("tuned")[0]["step"], 1);
}

TEST_F(JobTrainTest, EvaluatesDuringTrainingWithoutDisturbingIt) {
  ASSERT_EQ(run({"train", "--out", path("with"), "--set", "train.eval_every=5"}).exitCode, 0);
  ASSERT_EQ(run({"train", "--out", path("without")}).exitCode, 0);
  EXPECT_EQ(stateOf("with", 20), stateOf("without", 20));
  std::vector<int64_t> evaluated;
  for (const Json& line : metrics("with"))
    if (line.contains("eval_loss"))
      evaluated.push_back(line["step"]);
  EXPECT_EQ(evaluated, (std::vector<int64_t>{5, 10, 15, 20}));
}

TEST_F(JobTrainTest, AResumeSeesOtherKernels) {
  program.images = {{Image::Kind::Object, "x86-64", 0, 100, std::string(32, 'a')}};
  programBytes = serialize(program);
  ASSERT_EQ(run({"train", "--steps", "2"}).exitCode, 0);
  EXPECT_EQ(run({"train", "--steps", "3"}).err.find("kernels"), std::string::npos);
  program.images[0].digest = std::string(32, 'b');
  programBytes = serialize(program);
  const Outcome outcome = run({"train", "--steps", "4"});
  EXPECT_EQ(outcome.exitCode, 0);
  EXPECT_NE(outcome.err.find("the kernels' digest was"), std::string::npos) << outcome.err;
}

} // namespace
} // namespace titan
