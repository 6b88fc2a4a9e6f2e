#include "tools/titan-ckpt/CommandLine.h"

#include "runtime/checkpoint/HookStates.h"
#include "runtime/checkpoint/testing/MeshState.h"
#include "runtime/checkpoint/testing/SampleState.h"
#include "runtime/checkpoint/testing/TemporaryDirectory.h"
#include "runtime/collective/testing/RankThreads.h"
#include "runtime/program/Collective.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <fstream>

namespace titan::ckpt {
namespace {

using namespace checkpoint;

class TitanCkpt : public ::testing::Test {
protected:
  void SetUp() override {
    auto store = CheckpointStore::open(directory_.path());
    for (int64_t step : {100, 200})
      ASSERT_TRUE(store->save(SampleState(static_cast<uint8_t>(step)).saveRequest(step), 0).ok());
  }

  std::string checkpoint(int64_t step) const {
    return joinPath(checkpointsPath(directory_.path()), stepName(step));
  }
  void damage(int64_t step) const {
    std::ofstream(checkpoint(step) + "/manifest.json", std::ios::app) << "x";
  }

  TemporaryDirectory directory_;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(TitanCkpt, ListsCheckpoints) {
  for (const std::string& path : {directory_.path(), checkpointsPath(directory_.path())}) {
    const Outcome outcome = runCommandLine({"list", path});
    EXPECT_EQ(outcome.exitCode, 0) << outcome.err;
    EXPECT_TRUE(contains(outcome.out, "mlp.onnx") && contains(outcome.out, checkpoint(200)))
        << outcome.out;
  }
  const Outcome outcome = runCommandLine({"list", "--json", directory_.path()});
  const auto json = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(json.size(), 2u);
  EXPECT_EQ(json[0]["step"], 100);
  EXPECT_GT(json[1]["bytes"], 0);
}

TEST_F(TitanCkpt, ListsTheProfilesOfACheckpoint) {
  {
    auto store = CheckpointStore::open(directory_.path());
    SampleState averaged(44);
    averaged.addAverages({"slow", "fast"});
    ASSERT_TRUE(store->save(averaged.saveRequest(300), 0).ok());
  }
  const Outcome outcome = runCommandLine({"list", directory_.path()});
  EXPECT_TRUE(contains(outcome.out, "  fast, slow  " + checkpoint(300))) << outcome.out;
  const auto json =
      nlohmann::json::parse(runCommandLine({"list", "--json", directory_.path()}).out);
  EXPECT_EQ(json[1]["profiles"], nlohmann::json::array());
  EXPECT_EQ(json[2]["profiles"], nlohmann::json::array({"fast", "slow"}));
}

TEST_F(TitanCkpt, ListsHooksOfCommits) {
  using Kind = HookState::Kind;
  EXPECT_FALSE(contains(runCommandLine({"list", directory_.path()}).out, "hook"));
  std::ofstream(hookStatesPath(directory_.path()))
      << hookLine(100, {Kind::Failed, "exit status 3", "pid 12 on a"})
      << hookLine(200, {Kind::Running, "", "pid 12 on a"});
  const Outcome outcome = runCommandLine({"list", directory_.path()});
  EXPECT_TRUE(contains(outcome.out, "averages  hook  ")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "  failed (exit status 3)  " + checkpoint(100))) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "  unknown  ")) << outcome.out;
  damage(200);
  const auto json =
      nlohmann::json::parse(runCommandLine({"list", "--json", directory_.path()}).out);
  EXPECT_EQ(json[0]["hook"]["state"], "failed");
  EXPECT_EQ(json[0]["hook"]["how"], "exit status 3");
  EXPECT_EQ(json[1]["hook"]["state"], "unknown");
  EXPECT_EQ(json[1]["hook"].size(), 1u);
}

TEST_F(TitanCkpt, ListsADamagedCheckpointAsSuch) {
  damage(200);
  const Outcome outcome = runCommandLine({"list", directory_.path()});
  EXPECT_EQ(outcome.exitCode, 1);
  EXPECT_TRUE(contains(outcome.out, "damaged")) << outcome.out;
}

TEST_F(TitanCkpt, InspectsACheckpoint) {
  const Outcome outcome = runCommandLine({"inspect", checkpoint(100)});
  EXPECT_EQ(outcome.exitCode, 0) << outcome.err;
  for (const char* part :
       {"adamw", "50000 samples", "fc1.weight.exp_avg", "[3, 4]", "head.weight", "counter samples"})
    EXPECT_TRUE(contains(outcome.out, part)) << part << " not in " << outcome.out;
  const Outcome json = runCommandLine({"inspect", checkpoint(100), "--json"});
  EXPECT_EQ(nlohmann::json::parse(json.out)["step"], 100);
}

TEST_F(TitanCkpt, VerifiesOneOrAll) {
  EXPECT_EQ(runCommandLine({"verify", checkpoint(100)}).exitCode, 0);
  EXPECT_EQ(runCommandLine({"verify", directory_.path()}).exitCode, 0);
  damage(200);
  const Outcome outcome = runCommandLine({"verify", directory_.path()});
  EXPECT_EQ(outcome.exitCode, 1);
  EXPECT_TRUE(contains(outcome.out, "ok: '" + checkpoint(100))) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "damaged: '" + checkpoint(200) + "/manifest.json' is damaged"))
      << outcome.out;
  EXPECT_EQ(runCommandLine({"verify", checkpoint(100)}).exitCode, 0);
  EXPECT_EQ(runCommandLine({"verify", directory_.path("nothing")}).exitCode, 1);
}

TEST_F(TitanCkpt, ComparesTwoCheckpoints) {
  EXPECT_EQ(runCommandLine({"diff", checkpoint(100), checkpoint(100)}).exitCode, 0);
  const Outcome outcome = runCommandLine({"diff", checkpoint(100), checkpoint(200)});
  EXPECT_EQ(outcome.exitCode, 1);
  EXPECT_TRUE(contains(outcome.out, "fc1.bias: 3 of 3 elements differ")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "counter samples: ")) << outcome.out;
  const Outcome json = runCommandLine({"diff", "--json", checkpoint(100), checkpoint(200)});
  EXPECT_TRUE(nlohmann::json::parse(json.out).is_array());
}

TEST_F(TitanCkpt, KnowsTheAveragesOfEachProfile) {
  const auto save = [&](const std::string& run, std::vector<std::string> profiles, char change) {
    SampleState state(7);
    state.addAverages(profiles);
    state.bytes("slow/fc1.weight")[0] = change;
    auto store = CheckpointStore::open(directory_.path(run));
    EXPECT_TRUE(store->save(state.saveRequest(1), 0).ok());
    return directory_.path(run + "/checkpoints/step-00000001");
  };
  const std::string a = save("a", {"slow", "fast"}, 1), b = save("b", {"slow", "fast"}, 2),
                    c = save("c", {"slow"}, 1);
  EXPECT_EQ(runCommandLine({"verify", a}).exitCode, 0);
  EXPECT_TRUE(contains(runCommandLine({"inspect", a}).out, "ema slow"));
  EXPECT_EQ(runCommandLine({"diff", a, a}).exitCode, 0);
  const Outcome values = runCommandLine({"diff", a, b});
  EXPECT_TRUE(values.out.starts_with("ema-slow/fc1.weight: 1 of 12 elements differ")) << values.out;
  EXPECT_EQ(std::count(values.out.begin(), values.out.end(), '\n'), 1) << values.out;
  for (const Outcome& names : {runCommandLine({"diff", a, c}), runCommandLine({"diff", c, a})}) {
    EXPECT_EQ(names.exitCode, 1);
    EXPECT_TRUE(contains(names.out, "ema-fast/fc1.weight: F32 [3, 4] is in ")) << names.out;
    EXPECT_FALSE(contains(names.out, "ema-slow")) << names.out;
  }
}

TEST_F(TitanCkpt, CopiesACheckpoint) {
  const std::string run = directory_.path("copy");
  const Outcome outcome = runCommandLine({"copy", checkpoint(100), "-o", run});
  EXPECT_EQ(outcome.exitCode, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("copied: '" + run + "/checkpoints/step-00000100', "))
      << outcome.out;
  const std::string copied = run + "/checkpoints/step-00000100";
  EXPECT_EQ(runCommandLine({"verify", copied}).exitCode, 0);
  EXPECT_EQ(runCommandLine({"diff", checkpoint(100), copied}).exitCode, 0);
  const Outcome again = runCommandLine({"copy", checkpoint(100), "-o", run});
  EXPECT_EQ(again.exitCode, 2);
  EXPECT_TRUE(contains(again.err, "exists already")) << again.err;
  damage(200);
  EXPECT_EQ(runCommandLine({"copy", checkpoint(200), "-o", run}).exitCode, 1);
  EXPECT_EQ(runCommandLine({"copy", checkpoint(100)}).exitCode, 2);
}

TEST_F(TitanCkpt, ExportsWeights) {
  const std::string file = directory_.path("w.safetensors"), folder = directory_.path("hf");
  const Outcome outcome =
      runCommandLine({"export", checkpoint(100), "-o", file, "--torch", "--dtype", "bf16"});
  EXPECT_EQ(outcome.exitCode, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "exported: '" + file + "', 6 tensors, 1 file, 98 B\n");
  EXPECT_EQ(runCommandLine({"export", checkpoint(100), "-o", folder, "--hf"}).out,
            "exported: '" + folder + "', 5 tensors, 1 file, 98 B\n");
  EXPECT_EQ(runCommandLine({"export", checkpoint(100), "-o", folder, "--hf"}).exitCode, 2);
  const std::string other = directory_.path("o.safetensors");
  const Outcome slow = runCommandLine({"export", checkpoint(100), "-o", other, "--ema", "slow"});
  EXPECT_EQ(slow.exitCode, 1);
  EXPECT_TRUE(contains(slow.err, "has no averages 'slow'")) << slow.err;
  EXPECT_EQ(runCommandLine({"export", checkpoint(100), "-o", other, "--dtype", "i8"}).exitCode, 2);
  EXPECT_FALSE(std::filesystem::exists(other));
}

TEST_F(TitanCkpt, ListsWhatIsNotCommitted) {
  const std::string parent = checkpointsPath(directory_.path());
  for (const char* name : {"/.attempt-step-00000300-00ff/model", "/.doomed-step-00000001-00ff",
                           "/aside-step-00000400-00ff"})
    std::filesystem::create_directories(parent + name);
  std::ofstream(parent + "/.attempt-step-00000300-00ff/model/a.safetensors")
      << std::string(600, 'x');
  std::ofstream(directory_.path(".lock")) << "pid 7 on host\nsaving step 300 of 1000 bytes\n";
  const Outcome dead = runCommandLine({"list", directory_.path()});
  EXPECT_EQ(dead.exitCode, 0) << dead.err;
  for (const char* part : {"100   committed", "saving, cut off (pid 7 on host is dead)", " 600 B ",
                           "deleting, cut off (pid 7 on host is dead)", "400   set aside"})
    EXPECT_TRUE(contains(dead.out, part)) << part << " not in\n" << dead.out;
  auto lock = posixEnv().lockFile(directory_.path(".lock"),
                                  "pid 8 on host\nsaving step 300 of 1000 bytes\n");
  ASSERT_TRUE(lock->lock);
  const Outcome alive = runCommandLine({"list", directory_.path()});
  for (const char* part : {"saving 60% (pid 8 on host)", "deleting (pid 8 on host)"})
    EXPECT_TRUE(contains(alive.out, part)) << part << " not in\n" << alive.out;
  const auto json = nlohmann::json::parse(runCommandLine({"list", "--json", parent}).out);
  ASSERT_EQ(json.size(), 5u);
  EXPECT_EQ(json[0]["state"], "committed");
  EXPECT_EQ(json[2]["state"], "saving");
  EXPECT_EQ(json[2]["bytes"], 600);
  EXPECT_EQ(json[2]["total"], 1000);
  EXPECT_EQ(json[2]["holder_alive"], true);
  EXPECT_FALSE(json[4].contains("holder"));
}

TEST_F(TitanCkpt, VerifiesWithAsManyThreadsAsAreAskedFor) {
  std::fstream shard(checkpoint(200) + "/model/shard-00001-model-00001-of-00001.safetensors",
                     std::ios::in | std::ios::out);
  shard.seekp(-1, std::ios::end);
  shard.put('\xff');
  shard.close();
  const Outcome one = runCommandLine({"verify", "--threads", "1", directory_.path()});
  EXPECT_EQ(one.exitCode, 1);
  EXPECT_TRUE(contains(one.out, "of chunk 0 (bytes 0 to ")) << one.out;
  for (const char* threads : {"2", "64"})
    EXPECT_EQ(runCommandLine({"verify", "--threads", threads, directory_.path()}).out, one.out);
  EXPECT_EQ(runCommandLine({"verify", "--threads", "0", directory_.path()}).exitCode, 2);
  const Outcome json = runCommandLine({"verify", "--json", checkpoint(200)});
  EXPECT_EQ(nlohmann::json::parse(json.out)[0]["damages"].size(), 1u);
}

TEST_F(TitanCkpt, ImportsWeights) {
  const std::string file = directory_.path("w.safetensors"), run = directory_.path("b");
  ASSERT_EQ(runCommandLine({"export", checkpoint(100), "-o", file, "--dtype", "bf16"}).exitCode, 0);
  const Outcome outcome = runCommandLine(
      {"import", file, "-o", run, "--like", checkpoint(200), "--map", "fc1.bias=fc1.bias"});
  EXPECT_EQ(outcome.exitCode, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("imported: '" + run + "/checkpoints/step-00000000', "))
      << outcome.out;
  EXPECT_EQ(outcome.err, "note: 3 tensor(s) of BF16 became F32: no value changed: 'fc1.weight', "
                         "'fc1.bias', 'norm.empty'\n");
  EXPECT_EQ(runCommandLine({"verify", run}).exitCode, 0);
  const Outcome shown = runCommandLine({"inspect", run + "/checkpoints/step-00000000"});
  EXPECT_TRUE(contains(shown.out, "started from")) << shown.out;
  EXPECT_EQ(runCommandLine({"import", file, "-o", run, "--like", checkpoint(200)}).exitCode, 2);
  const std::string other = directory_.path("c");
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{},
                                             {"--like", checkpoint(200), "--job", "j"},
                                             {"--like", checkpoint(200), "--map", "x"}}) {
    std::vector<std::string> arguments = {"import", file, "-o", other};
    arguments.insert(arguments.end(), more.begin(), more.end());
    EXPECT_EQ(runCommandLine(arguments).exitCode, 2);
  }
  const Outcome job = runCommandLine({"import", file, "-o", other, "--job", file});
  EXPECT_EQ(job.exitCode, 1);
  EXPECT_EQ(job.err, "error: '" + file + "' is no job that can be read: it is no ELF file\n");
  EXPECT_FALSE(std::filesystem::exists(other));
}

TEST_F(TitanCkpt, ExplainsItsUsage) {
  EXPECT_EQ(runCommandLine({"--version"}).exitCode, 0);
  const Outcome help = runCommandLine({"--help"});
  EXPECT_EQ(help.exitCode, 0);
  for (const char* command : {"list", "inspect", "verify", "diff", "copy", "export", "import"})
    EXPECT_TRUE(contains(help.out, command));
  EXPECT_EQ(runCommandLine({}).exitCode, 2);
  EXPECT_EQ(runCommandLine({"frobnicate"}).exitCode, 2);
  EXPECT_EQ(runCommandLine({"inspect"}).exitCode, 2);
  EXPECT_EQ(runCommandLine({"inspect", checkpoint(1)}).exitCode, 1);
}

TEST_F(TitanCkpt, AnUnknownCommandIsNamed) {
  const Outcome outcome = runCommandLine({"prune"});
  EXPECT_EQ(outcome.exitCode, 2);
  EXPECT_EQ(outcome.err, "error: unknown command 'prune': use list, inspect, verify, diff, copy, "
                         "export or import\n");
}

TEST_F(TitanCkpt, ReadsWhatRanksWrote) {
  const auto save = [&](const std::string& run, const std::vector<MeshAxis>& mesh,
                        const Placement& placement) {
    const std::vector<MeshState::Tensor> tensors = {
        {"w", StateKind::Param, DType::I64, {5, 3}, placement},
        {"w.exp_avg", StateKind::Slot, DType::I64, {5, 3}, placement}};
    for (const bool saved : titan::testing::onRanks(rankCount(mesh), [&](Peers& peers) {
           MeshState state(tensors, mesh, peers.rank());
           state.fill(7);
           auto store = CheckpointStore::open(directory_.path(run), peers);
           return store.ok() && store->save(state.saveRequest(1), 0).ok();
         }))
      EXPECT_TRUE(saved);
    return joinPath(checkpointsPath(directory_.path(run)), stepName(1));
  };
  const std::string one = save("one", {}, {});
  const std::string four = save("four", {{"replicate", 2}, {"shard", 2}}, {{0, 0}, {1, 1}});
  const Outcome verified = runCommandLine({"verify", four});
  EXPECT_EQ(verified.exitCode, 0) << verified.err;
  EXPECT_TRUE(contains(verified.out, "8 files")) << verified.out;
  EXPECT_EQ(runCommandLine({"diff", one, four}).out,
            "equal: all names, shapes, dtypes, bits and counters\n");
  for (const char* command : {"list", "inspect"})
    EXPECT_EQ(
        runCommandLine({command, command[0] == 'l' ? directory_.path("four") : four}).exitCode, 0);
}

} // namespace
} // namespace titan::ckpt
