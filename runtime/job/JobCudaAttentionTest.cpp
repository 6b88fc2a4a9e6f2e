// Jobs whose attention a library computes: the choice of plans over the life of a run.
#include "runtime/device/cuda/testing/FakeAttention.h"
#include "runtime/device/cuda/testing/FakeCard.h"
#include "runtime/device/cuda/testing/LinearPtx.h"
#include "runtime/job/testing/JobTestFixture.h"

namespace titan::testing {
namespace {

class JobCudaAttentionTest : public JobTest {
protected:
  void SetUp() override {
    JobTest::SetUp();
    payload = linearCudaPayload();
    Program forCard = linearCudaProgram();
    forCard.recipe = program.recipe;
    cardBytes = serialize(withZeros(withAttention(forCard, payload)));
  }

  /// The values of the call are written in front of it.
  static Program withZeros(Program program) {
    Function& step = program.functions.front();
    Command zero;
    zero.kind = CommandKind::Zero;
    zero.operands = {step.commands.front().operands[2]};
    zero.operands[0].access = Access::Write;
    for (LiveRange& range : step.temporaries) {
      ++range.last;
      range.first += range.offset != zero.operands[0].address.base;
    }
    step.commands.insert(step.commands.begin(), zero);
    return program;
  }

  /// A job that finds `library`.
  JobImage image(cuda::AttentionLoader library) const {
    JobImage image{{{cardBytes, {}}}, payload, path("job")};
    image.chooseDevice = [library](const DeviceRequest& request) {
      DeviceRequest changed = request;
      changed.attentionLibrary = library;
      return chooseDevice(changed);
    };
    return image;
  }
  Outcome train(const std::string& out, int steps, cuda::AttentionLoader library,
                std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {
        "train",     "--out", path(out), "--steps",  std::to_string(steps),
        "--threads", "1",     "--gemm",  "generated"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments, image(std::move(library)));
  }
  /// "libraries" of a checkpoint's manifest.
  Json libraries(const std::string& out, int step) const {
    return Json::parse(readFile(
        fmt::format("{}/checkpoints/step-{:08}/manifest.json", out, step)))["program"]["libraries"];
  }
  std::string chosen(const std::string& out) const {
    const Json file = Json::parse(readFile(out + "/attention.json"));
    return file["algorithms"].begin().value().get<std::string>();
  }

  std::string cardBytes;
  mutable FakeRuns runs;
};

void expectSays(const Outcome& outcome, const std::string& text) {
  EXPECT_NE(outcome.err.find(text), std::string::npos) << outcome.err;
}
void expectSilent(const Outcome& outcome, const std::string& text) {
  EXPECT_EQ(outcome.err.find(text), std::string::npos) << outcome.err;
}

TEST_F(JobCudaAttentionTest, TheChoiceStandsInTheRunDirectoryAndTheManifest) {
  const Outcome outcome = train("run", 4, fakeAttention({{"one"}}, runs));
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  expectSays(outcome, "generated products, attention by cuDNN 9.19.0, arena");
  const Json attention = libraries("run", 4)["cuda.attention"],
             file = Json::parse(readFile("run/attention.json"));
  EXPECT_EQ(attention["library"], "cudnn");
  EXPECT_EQ(attention["version"], "9.19.0");
  EXPECT_EQ(attention["device"], "Titan fake card, sm_120");
  EXPECT_EQ(attention["algorithms"].size(), 1u);
  for (const char* key : {"library", "version", "device", "algorithms"})
    EXPECT_EQ(attention[key], file[key]);

  const Outcome own = train("own", 4, noAttention(), {"--attention=generated"});
  ASSERT_EQ(own.exitCode, 0) << own.err;
  expectSays(own, "generated products, generated attention, arena");
  expectSilent(own, "note: ");
  EXPECT_FALSE(fs::exists(path("own/attention.json")));
  EXPECT_EQ(libraries("own", 4)["cuda.attention"], Json({{"library", "generated"}}));
}

TEST_F(JobCudaAttentionTest, AResumeTakesTheChoice) {
  ASSERT_EQ(train("run", 4, fakeAttention({{"two"}}, runs)).exitCode, 0);
  const Outcome resumed = train("run", 8, fakeAttention({{"one"}, {"two"}}, runs));
  ASSERT_EQ(resumed.exitCode, 0) << resumed.err;
  expectSilent(resumed, "attention was");
  EXPECT_EQ(chosen("run"), "two");
  EXPECT_EQ(runs.count("one"), 0u);

  runs.clear();
  const Outcome evaluated =
      run({"eval", "--out", path("run")}, image(fakeAttention({{"one"}, {"two"}}, runs)));
  ASSERT_EQ(evaluated.exitCode, 0) << evaluated.err;
  EXPECT_EQ(runs.count("one"), 0u);
  EXPECT_GT(runs["two"], 0);
}

TEST_F(JobCudaAttentionTest, GeneratedAttentionStaysGenerated) {
  ASSERT_EQ(train("run", 4, noAttention(), {"--attention=generated"}).exitCode, 0);
  const Outcome resumed = train("run", 8, fakeAttention({{"one"}}, runs));
  ASSERT_EQ(resumed.exitCode, 0) << resumed.err;
  expectSays(resumed, "generated attention, arena");
  expectSays(train("run", 12, fakeAttention({{"one"}}, runs), {"--attention=cudnn"}),
             "cuda.attention was 'generated', is 'cudnn 9.19.0'");
}

TEST_F(JobCudaAttentionTest, AnotherVersionPlansAnewAndSaysFromWhere) {
  ASSERT_EQ(train("run", 4, fakeAttention({{"two"}}, runs, "9.12.0")).exitCode, 0);
  const Outcome resumed = train("run", 8, fakeAttention({{"one"}, {"two"}}, runs));
  ASSERT_EQ(resumed.exitCode, 0) << resumed.err;
  expectSays(resumed, "note: the run's attention was planned for cudnn 9.12.0 on Titan fake card, "
                      "sm_120, and here is cudnn 9.19.0 on Titan fake card, sm_120: it is planned "
                      "anew, and the bits may differ from step 5 on");
  expectSays(resumed, "cuda.attention was 'cudnn 9.12.0', is 'cudnn 9.19.0'");
  EXPECT_EQ(chosen("run"), "one");
}

TEST_F(JobCudaAttentionTest, TrainsWithoutTheLibrary) {
  ASSERT_EQ(train("own", 8, noAttention(), {"--attention=generated"}).exitCode, 0);
  ASSERT_EQ(train("run", 4, fakeAttention({{"one"}}, runs)).exitCode, 0);
  const Outcome lost = train("run", 8, noAttention());
  ASSERT_EQ(lost.exitCode, 0) << lost.err;
  expectSays(lost, "note: attention is generated: cannot load cuDNN: the fake is not there");
  expectSays(lost, "cuda.attention was 'cudnn 9.19.0', is 'generated'");
  EXPECT_EQ(stateOf("run", 8), stateOf("own", 8));
}

TEST_F(JobCudaAttentionTest, ANamedLibraryHasToBeThere) {
  const Outcome outcome = train("run", 4, noAttention(), {"--attention=cudnn"});
  EXPECT_EQ(outcome.exitCode, 3);
  expectSays(outcome, "error: cannot load cuDNN: the fake is not there");
  const Outcome cpu = run({"train", "--attention=cudnn", "--out", path("cpu")});
  EXPECT_EQ(cpu.exitCode, 3);
  expectSays(cpu,
             "error: --attention=cudnn: cuDNN computes on cards, and this job runs on the CPU");
}

TEST_F(JobCudaAttentionTest, PoisonAndMisbehaviourChangeNothing) {
  const FakeWay careless{"one", FakeWay::How::Careless};
  ASSERT_EQ(train("own", 8, noAttention(), {"--attention=generated"}).exitCode, 0);
  const Outcome poisoned = train("poisoned", 8, fakeAttention({{"one"}}, runs), {"--poison"});
  ASSERT_EQ(poisoned.exitCode, 0) << poisoned.err;
  EXPECT_EQ(stateOf("poisoned", 8), stateOf("own", 8));
  const Outcome refused = train("refused", 8, fakeAttention({careless}, runs));
  ASSERT_EQ(refused.exitCode, 0) << refused.err;
  expectSays(refused, "note: 1 of 1 attention calls are generated, since cudnn 9.19.0 does not "
                      "compute them: 'attention forward': one gives other bits in a second run");
  EXPECT_EQ(stateOf("refused", 8), stateOf("own", 8));
}

TEST_F(JobCudaAttentionTest, InfoSaysWhatWouldComputeIt) {
  const Outcome outcome = run({"info", "--json", "--attention=generated"}, image(noAttention()));
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  const Json found = Json::parse(outcome.out)["libraries"];
  EXPECT_TRUE(found["cudnn"].contains("found"));
  EXPECT_EQ(found["attention"], "generated");
}

} // namespace
} // namespace titan::testing
