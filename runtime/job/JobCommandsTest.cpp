// `eval`, `predict`, `plan`, `info` and `profile` on the hand-made linear program.
#include "runtime/data/Array.h"
#include "runtime/job/testing/JobTestFixture.h"

namespace titan {
namespace {

using namespace titan::testing;

class JobCommandsTest : public JobTest {};

TEST_F(JobCommandsTest, EvalMasksThePaddingOfTheLastBatch) {
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

TEST_F(JobCommandsTest, EvalOfNamedAndMissingCheckpoints) {
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

TEST_F(JobCommandsTest, PlanIsTheTruthOfTheProgram) {
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
  EXPECT_FALSE(plan["memory"]["outside"].contains("copy_for_saves"));
  const Json asked = Json::parse(run({"plan", "--json", "--set", "checkpoint.every=5"}).out);
  EXPECT_EQ(asked["memory"]["outside"]["copy_for_saves"], program.stateBytes);
  EXPECT_EQ(run({"plan", "--set", "batch.micro=4"}).exitCode, 2);
  compile("[checkpoint]\nevery = 5\n");
  Json saving = Json::parse(run({"plan", "--json"}).out);
  EXPECT_EQ(saving["memory"]["outside"]["copy_for_saves"], program.stateBytes);
  EXPECT_EQ(saving["memory"]["outside"]["bound"],
            plan["memory"]["outside"]["bound"].get<int64_t>() + program.stateBytes);
  compile();
  ASSERT_EQ(run({"train", "--steps", "1", "--gemm", "generated"}).exitCode, 0);
  EXPECT_EQ(metrics("job.run")[0]["memory"], plan["memory"]["arena"]);
  int64_t bytes = 0, files = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(path("job.run/checkpoints/step-00000001")))
    if (entry.is_regular_file() && entry.path().filename() != "manifest.json")
      bytes += static_cast<int64_t>(entry.file_size()), ++files;
  EXPECT_EQ(plan["save"]["bytes"], bytes);
  EXPECT_EQ(plan["save"]["files"], files);
}

TEST_F(JobCommandsTest, InfoListsParametersAndLibraries) {
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

TEST_F(JobCommandsTest, ProfileWritesATableAndATrace) {
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
  Json step = plan["functions"]["step"];
  EXPECT_EQ(step["model_flops"], program.findFunction("step")->modelFlops);
  EXPECT_EQ(json["bound"]["model_flops"], step["model_flops"]);
  step.erase("model_flops");
  EXPECT_EQ(json["recorded"], step);
  EXPECT_EQ(json["max_live"], plan["memory"]["max_live"]["step"]);
}

TEST_F(JobCommandsTest, ProfileNeedsADeviceThatIsMeasured) {
  JobImage plain = image();
  plain.chooseDevice = [](const DeviceRequest& request) -> Result<ChosenDevice> {
    ChosenDevice chosen = TITAN_TRY(chooseDevice(request));
    chosen.name = "an abacus";
    chosen.measureLimits = nullptr;
    return chosen;
  };
  const Outcome outcome = run({"profile"}, plain);
  EXPECT_EQ(outcome.exitCode, 3);
  EXPECT_NE(outcome.err.find("profile compares with what the device can do at most, and an abacus "
                             "cannot be asked"),
            std::string::npos)
      << outcome.err;
}

TEST_F(JobCommandsTest, ProfileOfOneRankAloneNeedsNoPeers) {
  program.mesh = {{"replicate", 2}, {"shard", 2}};
  programBytes = serialize(program);
  for (const char* rank : {"0", "3"}) {
    Outcome outcome = run({"profile", "--rank", rank, "--steps", "2"});
    ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
    EXPECT_TRUE(outcome.out.starts_with(
        fmt::format("rank {} of 4 ranks (replicate 2 x shard 2), no peers: ", rank)))
        << outcome.out;
    EXPECT_NE(outcome.out.find("forward product of linear"), std::string::npos) << outcome.out;
    Json json = Json::parse(run({"profile", "--rank", rank, "--steps", "2", "--json"}).out);
    EXPECT_EQ(json["rank"], std::stoi(rank));
    EXPECT_EQ(json["peers"], "no peers");
  }
  EXPECT_FALSE(fs::exists(path("job.run")));
  Outcome other = run({"profile", "--rank", "4"});
  EXPECT_EQ(other.exitCode, 2);
  EXPECT_EQ(other.err,
            "error: --rank 4: this job runs on 4 ranks (replicate 2 x shard 2), give 0 to 3\n");
  EXPECT_EQ(run({"train", "--rank", "3"}).exitCode, 2); // there is nothing to learn alone
}

} // namespace
} // namespace titan
