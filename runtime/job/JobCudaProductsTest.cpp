// Jobs whose products a library computes: the choice of algorithms over the life of a run.
#include "runtime/checkpoint/Manifest.h"
#include "runtime/device/cuda/testing/FakeCard.h"
#include "runtime/device/cuda/testing/FakeLt.h"
#include "runtime/device/cuda/testing/LinearPtx.h"
#include "runtime/job/testing/JobTestFixture.h"

namespace titan::testing {
namespace {

class JobCudaProductsTest : public JobTest {
protected:
  void SetUp() override {
    JobTest::SetUp();
    Program forCard = withWorkspace(linearCudaProgram());
    forCard.recipe = program.recipe;
    cardBytes = serialize(forCard);
    payload = linearCudaPayload();
  }

  JobImage onCard() const { return {{{cardBytes, {}}}, payload, path("job")}; }
  Outcome runOnCard(const std::vector<std::string>& arguments) const {
    return run(arguments, onCard());
  }
  Outcome train(const std::string& out, int steps, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {
        "train", "--out", path(out), "--steps", std::to_string(steps), "--threads", "1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return runOnCard(arguments);
  }
  /// "libraries" of a checkpoint's manifest.
  Json libraries(const std::string& out, int step) const {
    return Json::parse(readFile(
        fmt::format("{}/checkpoints/step-{:08}/manifest.json", out, step)))["program"]["libraries"];
  }
  Json products(const std::string& out) const {
    return Json::parse(readFile(out + "/products.json"));
  }
  bool exists(const std::string& name) const { return fs::exists(path(name)); }

  std::string cardBytes;
};

void expectSays(const Outcome& outcome, const std::string& text) {
  EXPECT_NE(outcome.err.find(text), std::string::npos) << outcome.err;
}
void expectSilent(const Outcome& outcome, const std::string& text) {
  EXPECT_EQ(outcome.err.find(text), std::string::npos) << outcome.err;
}

TEST_F(JobCudaProductsTest, ChoicesStandInTheRunDirectoryAndTheManifest) {
  const Outcome outcome = train("run", 4);
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  expectSays(outcome, "products by cuBLASLt 13.1.0, arena");
  const Json gemm = libraries("run", 4)["cuda.gemm"], file = products("run");
  EXPECT_EQ(gemm["library"], "cublaslt");
  EXPECT_EQ(gemm["version"], "13.1.0");
  EXPECT_EQ(gemm["device"], "Titan fake card, sm_120");
  EXPECT_EQ(gemm["algorithms"].size(), 2u);
  for (const char* key : {"library", "version", "device", "algorithms"})
    EXPECT_EQ(gemm[key], file[key]);

  ASSERT_EQ(train("own", 4, {"--gemm=generated"}).exitCode, 0);
  EXPECT_FALSE(exists("own/products.json"));
  EXPECT_EQ(libraries("own", 4)["cuda.gemm"], Json({{"library", "generated"}}));
}

TEST_F(JobCudaProductsTest, AResumeTakesTheChoices) {
  {
    const FakeLtVariable misrounds("MISROUND", "0");
    ASSERT_EQ(train("whole", 20).exitCode, 0);
    ASSERT_EQ(train("parts", 10).exitCode, 0);
  }
  ASSERT_EQ(train("first", 20).exitCode, 0);
  const Outcome resumed = train("parts", 20);
  ASSERT_EQ(resumed.exitCode, 0) << resumed.err;
  expectSilent(resumed, "chosen anew");
  EXPECT_EQ(products("parts"), products("whole"));
  EXPECT_NE(products("parts"), products("first"));
  EXPECT_EQ(stateOf("parts", 20), stateOf("whole", 20));
}

TEST_F(JobCudaProductsTest, EvaluationsTakeTheChoices) {
  const FakeVariable record("RECORD", path("record"));
  {
    const FakeLtVariable misrounds("MISROUND", "0");
    ASSERT_EQ(train("run", 4).exitCode, 0);
  }
  fs::remove(path("record"));
  ASSERT_EQ(runOnCard({"eval", "--out", path("run")}).exitCode, 0);
  const std::string ran = readFile("record");
  EXPECT_NE(ran.find("cublasLtMatmul algorithm 1 ran"), std::string::npos);
  EXPECT_EQ(ran.find("cublasLtMatmul algorithm 0 ran"), std::string::npos);
}

TEST_F(JobCudaProductsTest, AnotherVersionChoosesAnewAndSaysFromWhere) {
  ASSERT_EQ(train("run", 4).exitCode, 0);
  const FakeLtVariable version("VERSION", "13.2.0");
  const Outcome resumed = train("run", 8);
  ASSERT_EQ(resumed.exitCode, 0) << resumed.err;
  expectSays(resumed,
             "note: the run's products were chosen for cublaslt 13.1.0 on Titan fake card, sm_120, "
             "and here is cublaslt 13.2.0 on Titan fake card, sm_120: they are chosen anew, and "
             "the bits may differ from step 5 on");
  expectSays(resumed, "cuda.gemm was 'cublaslt 13.1.0', is 'cublaslt 13.2.0'");
  EXPECT_EQ(libraries("run", 8)["cuda.gemm"]["version"], "13.2.0");
}

TEST_F(JobCudaProductsTest, GeneratedProductsStayGenerated) {
  ASSERT_EQ(train("run", 4, {"--gemm=generated"}).exitCode, 0);
  const Outcome resumed = train("run", 8);
  ASSERT_EQ(resumed.exitCode, 0) << resumed.err;
  expectSays(resumed, "generated products, arena");
  expectSays(train("run", 12, {"--gemm=cublaslt"}), "cuda.gemm was 'generated', is 'cublaslt");
}

TEST_F(JobCudaProductsTest, TrainsWithoutTheLibrary) {
  ASSERT_EQ(train("own", 8, {"--gemm=generated"}).exitCode, 0);
  ASSERT_EQ(train("lost", 4).exitCode, 0);
  const WithoutLt none;
  const Outcome outcome = train("run", 8);
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  expectSays(outcome, "note: products are generated: cannot load cuBLASLt: ");
  EXPECT_EQ(stateOf("run", 8), stateOf("own", 8));
  const Outcome lost = train("lost", 8);
  ASSERT_EQ(lost.exitCode, 0) << lost.err;
  expectSays(lost, "note: products are generated: cannot load cuBLASLt: ");
  expectSays(lost, "cuda.gemm was 'cublaslt 13.1.0', is 'generated'");
}

TEST_F(JobCudaProductsTest, ANamedLibraryHasToBeThere) {
  {
    const WithoutLt none;
    const Outcome outcome = train("run", 4, {"--gemm=cublaslt"});
    EXPECT_EQ(outcome.exitCode, 3);
    expectSays(outcome, "error: cannot load cuBLASLt: ");
  }
  {
    const FakeLtVariable old("VERSION", "12.8.0");
    EXPECT_EQ(train("run", 4, {"--gemm=cublaslt"}).exitCode, 3);
  }
  const Outcome outcome = train("run", 4, {"--gemm=cublaslt"});
  EXPECT_EQ(outcome.exitCode, 0) << outcome.err;
  expectSays(outcome, "products by cuBLASLt 13.1.0");
  const Outcome cpu = run({"train", "--gemm=cublaslt", "--out", path("cpu")});
  EXPECT_EQ(cpu.exitCode, 3);
  expectSays(cpu, "error: --gemm=cublaslt: cuBLASLt computes on cards, and this job runs on the "
                  "CPU");
}

TEST_F(JobCudaProductsTest, TrainsWithEachMisbehaviour) {
  for (const char* how : {"REFUSE", "MISROUND", "COARSE", "VARY", "GREEDY", "CARELESS"}) {
    const FakeLtVariable misbehaves(how, "0");
    const Outcome outcome = train(how, 8);
    ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
    expectSilent(outcome, "note: ");
    EXPECT_EQ(products(how), products("REFUSE")) << how;
    EXPECT_EQ(stateOf(how, 8), stateOf("REFUSE", 8)) << how;
  }
  const FakeLtVariable misbehaves("VARY", "all");
  const Outcome outcome = train("none", 8);
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  expectSays(outcome, "note: 2 of 2 products are generated, since cublaslt 13.1.0 does not compute "
                      "them: 'forward product of linear': gives other bits in a second run");
  ASSERT_EQ(train("own", 8, {"--gemm=generated"}).exitCode, 0);
  EXPECT_EQ(stateOf("none", 8), stateOf("own", 8));
}

TEST_F(JobCudaProductsTest, PoisonChangesNothing) {
  const FakeLtVariable misrounds("MISROUND", "0"); // what runs uses the workspace
  ASSERT_EQ(train("plain", 8).exitCode, 0);
  const Outcome outcome = train("poisoned", 8, {"--poison"});
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  EXPECT_EQ(stateOf("poisoned", 8), stateOf("plain", 8));
}

TEST_F(JobCudaProductsTest, LaterRunsTakeWhatTuneWrites) {
  const Outcome tuned = runOnCard({"tune"});
  ASSERT_EQ(tuned.exitCode, 0) << tuned.err;
  EXPECT_NE(tuned.out.find("forward product of linear"), std::string::npos) << tuned.out;
  expectSays(tuned, "written: " + path("job.tuning.json"));
  EXPECT_EQ(Json::parse(readFile("job.tuning.json"))["algorithms"].size(), 2u);

  // Times are chance here: a file of another algorithm shows who was asked.
  {
    const FakeLtVariable misrounds("MISROUND", "0,1,2");
    ASSERT_EQ(runOnCard({"tune"}).exitCode, 0);
  }
  const Json file = Json::parse(readFile("job.tuning.json"));
  ASSERT_EQ(train("run", 4).exitCode, 0);
  EXPECT_EQ(products("run"), file);
  {
    const FakeLtVariable version("VERSION", "13.2.0");
    const Outcome outcome = train("elsewhere", 4);
    EXPECT_EQ(outcome.exitCode, 0) << outcome.err;
    expectSays(outcome, "note: the tuning file is for cublaslt 13.1.0 on Titan fake card, sm_120, "
                        "and here is cublaslt 13.2.0 on Titan fake card, sm_120: products are "
                        "chosen anew; `tune` makes another file");
  }
  // A run that has its choices keeps them.
  fs::remove(path("job.tuning.json"));
  ASSERT_EQ(train("run", 8).exitCode, 0);
  EXPECT_EQ(products("run"), file);
}

TEST_F(JobCudaProductsTest, ABrokenTuningFileIsAnError) {
  const std::pair<const char*, const char*> files[] = {
      {"[]", "it is no JSON object"},
      {"{", "it is no JSON object"},
      {R"({"library": "cublaslt"})", "it does not say for which library and device it is"},
      {R"({"library": "a", "version": "b", "device": "c"})", "it has no 'algorithms'"},
      {R"({"library": "a", "version": "b", "device": "c", "algorithms": {"x": 1}})",
       "an algorithm is no text"}};
  for (const auto& [text, why] : files) {
    std::ofstream(path("job.tuning.json")) << text;
    const Outcome outcome = train("run", 4);
    EXPECT_EQ(outcome.exitCode, 1) << text;
    expectSays(outcome, fmt::format("error: '{}' is no file of product choices: {}: remove it, or "
                                    "run tune again",
                                    path("job.tuning.json"), why));
    EXPECT_EQ(train("own", 4, {"--gemm=generated"}).exitCode, 0);
  }
}

TEST_F(JobCudaProductsTest, TuneIsForCardsWithALibrary) {
  const Outcome cpu = run({"tune"});
  EXPECT_EQ(cpu.exitCode, 2);
  expectSays(cpu, "error: tune is for the product library of a card, and this job runs on the CPU");
  Program relu = deserialize(cardBytes).take();
  for (LibraryCall& call : relu.libraryCalls)
    call.gemm.relu = true;
  const std::string bytes = serialize(relu);
  const Outcome nothing = run({"tune"}, {{{bytes, {}}}, payload, path("job")});
  EXPECT_EQ(nothing.exitCode, 2);
  expectSays(nothing, "and this job has no products for one");
  const Outcome without = runOnCard({"tune", "--gemm=generated"});
  EXPECT_EQ(without.exitCode, 2);
  expectSays(without,
             "error: tune times the product library, and --gemm=generated does without it");
  const WithoutLt none;
  const Outcome outcome = runOnCard({"tune"});
  EXPECT_EQ(outcome.exitCode, 3);
  expectSays(outcome, "error: cannot load cuBLASLt: ");
  EXPECT_FALSE(exists("job.tuning.json"));
}

TEST_F(JobCudaProductsTest, TheFileIsReplacedOrAnErrorNamesIt) {
  fs::create_directories(path("job.tuning.json.next"));
  const Outcome outcome = runOnCard({"tune"});
  EXPECT_EQ(outcome.exitCode, 3);
  expectSays(outcome, fmt::format("error: cannot write '{}'", path("job.tuning.json")));
}

} // namespace
} // namespace titan::testing
