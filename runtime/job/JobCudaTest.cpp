// Jobs on a card: the hand-made linear program, whose kernels have the same bits on both devices,
// on the driver without a card.
#include "runtime/job/testing/JobCudaFixture.h"

#include <sys/wait.h>

namespace titan::testing {
namespace {

TEST_F(JobCudaTest, TrainsWithTheBitsOfTheCpu) {
  ASSERT_EQ(runBoth(train("cpu", "cpu")).exitCode, 0);
  const Outcome outcome = runBoth(train("card", "auto"));
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  EXPECT_NE((outcome.out + outcome.err).find("card 0 (Titan fake card, sm_120)"), std::string::npos)
      << outcome.out << outcome.err;
  EXPECT_EQ(stateOf("card", 20), stateOf("cpu", 20));
  const std::vector<Json> cpu = metrics("cpu"), card = metrics("card");
  ASSERT_EQ(card.size(), 20u);
  for (size_t i = 0; i < 20; ++i)
    EXPECT_EQ(card[i]["loss"], cpu[i]["loss"]) << "step " << i + 1;
}

TEST_F(JobCudaTest, OrdersOfStreamsAndBlocksDoNotMatter) {
  ASSERT_EQ(runBoth(train("plain", "cuda")).exitCode, 0);
  for (const char* seed : {"1", "2", "3"}) {
    const FakeVariable order("ORDER", "random"), variable("SEED", seed);
    ASSERT_EQ(runBoth(train(seed, "cuda")).exitCode, 0);
    EXPECT_EQ(stateOf(seed, 20), stateOf("plain", 20));
  }
}

TEST_F(JobCudaTest, RunsGoFromDeviceToDevice) {
  ASSERT_EQ(runBoth(train("whole", "cpu")).exitCode, 0);
  int steps = 0;
  for (const char* device : {"cpu", "cuda", "cpu", "cuda"}) {
    const Outcome outcome = runBoth(train("parts", device, steps += 5));
    ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  }
  EXPECT_EQ(stateOf("parts", 20), stateOf("whole", 20));
  const auto eval = [&](const char* device) {
    return Json::parse(runBoth({"eval", "--out", path("parts"), "--json", "--gemm", "generated",
                                std::string("--device=") + device})
                           .out);
  };
  EXPECT_EQ(eval("cuda")["loss"], eval("cpu")["loss"]);
}

TEST_F(JobCudaTest, PoisonChangesNothing) {
  ASSERT_EQ(runBoth(train("plain", "cuda")).exitCode, 0);
  std::vector<std::string> arguments = train("poisoned", "cuda");
  arguments.push_back("--poison");
  const Outcome outcome = runBoth(arguments);
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  EXPECT_EQ(stateOf("poisoned", 20), stateOf("plain", 20));
}

TEST_F(JobCudaTest, ASplitArenaHasTheSameBits) {
  ASSERT_EQ(runBoth(train("whole", "cuda")).exitCode, 0);
  setenv("TITAN_CUDA_SPLIT_ARENA", "1", 1);
  const FakeVariable record("RECORD", path("record"));
  const Outcome split = runBoth(train("split", "cuda"));
  std::vector<std::string> poisoned = train("poisoned", "cuda");
  poisoned.push_back("--poison");
  const Outcome refused = runBoth(poisoned);
  unsetenv("TITAN_CUDA_SPLIT_ARENA");
  ASSERT_EQ(split.exitCode, 0) << split.err;
  EXPECT_EQ(stateOf("split", 20), stateOf("whole", 20));
  int64_t allocations = 0;
  std::ifstream file(path("record"));
  for (std::string line; std::getline(file, line);)
    allocations += line.starts_with("cuMemAlloc_v2");
  EXPECT_GT(allocations, 2 * 10) << "of two devices";
  EXPECT_EQ(refused.exitCode, 2);
  EXPECT_NE(refused.err.find("are of no single state or binding: leave the variable out"),
            std::string::npos)
      << refused.err;
}

/// Calls of the driver in a run, as entry point and its how manieth call.
std::vector<std::pair<std::string, int64_t>> callsIn(const std::string& record) {
  std::vector<std::pair<std::string, int64_t>> calls;
  std::map<std::string, int64_t> counts;
  std::ifstream file(record);
  for (std::string line; std::getline(file, line);) {
    const std::string entry = line.substr(0, line.find('('));
    if (entry == "cuEventDestroy_v2")
      break; // the reader of saves and the device end: nobody hears of errors from there on
    if (entry == "cuDriverGetVersion")
      counts.clear(), calls.clear(); // the fake counts anew, too
    if (!line.starts_with("#"))
      calls.emplace_back(entry, ++counts[entry]);
  }
  return calls;
}

/// Runs a job whose `call`, as in "cuLaunchKernel:3", ends it as kill -9 does.
void runAndKill(const std::vector<std::string>& arguments, const JobImage& image,
                const std::string& call) {
  const pid_t child = fork();
  if (child == 0) {
    const FakeVariable fail("FAIL", call + ":kill");
    freopen("/dev/null", "w", stderr);
    freopen("/dev/null", "w", stdout);
    _exit(runJob(arguments, image));
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << call << ": " << status;
}

TEST_F(JobCudaTest, KilledRunsResumeBitForBit) {
  ASSERT_EQ(runBoth(train("whole", "cuda")).exitCode, 0);
  // In the first step, in the fifth, and at a copy to the host.
  for (const char* call : {"cuLaunchKernel:3", "cuGraphLaunch:4", "cuMemcpyDtoHAsync_v2:40"})
    runAndKill(train("killed", "cuda"), both(), call);
  const Outcome resumed = runBoth(train("killed", "cuda"));
  ASSERT_EQ(resumed.exitCode, 0) << resumed.err;
  EXPECT_NE(resumed.err.find("resumed from"), std::string::npos) << resumed.err;
  EXPECT_EQ(stateOf("killed", 20), stateOf("whole", 20));
}

TEST_F(JobCudaTest, ASaveMayBeKilledAtEachCall) {
  constexpr int steps = 4; // saves after 2 and 4
  {
    const FakeVariable record("RECORD", path("record"));
    ASSERT_EQ(runBoth(train("whole", "cuda", steps)).exitCode, 0);
  }
  const auto calls = callsIn(path("record"));
  const auto launch = [&](int64_t number) {
    return std::ranges::find(calls, std::pair(std::string("cuGraphLaunch"), number));
  };
  int killed = 0;
  for (auto call = launch(1); call != launch(2); ++call) {
    const auto& [entry, number] = *call;
    // The one is before each of the others, and a walk is many of the other.
    if (entry == "cuCtxSetCurrent" || (entry == "cuLaunchKernel" && number % 4 != 0))
      continue;
    const std::string out = fmt::format("killed-{}-{}", entry, number);
    runAndKill(train(out, "cuda", steps), both(), fmt::format("{}:{}", entry, number));
    ASSERT_EQ(runBoth(train(out, "cuda", steps)).exitCode, 0) << out;
    EXPECT_EQ(stateOf(out, steps), stateOf("whole", steps)) << out;
    ++killed;
  }
  EXPECT_GT(killed, 20);
}

// The bytes of every step, whatever the card has copied when the update comes.
TEST_F(JobCudaTest, SavesBesideTheStepsHoldWhatThoseBetweenThemHold) {
  constexpr int steps = 10;
  const auto saveAll = [&](const std::string& out, const std::string& setting) {
    std::vector<std::string> arguments = train(out, "cuda", steps);
    for (const std::string& key :
         {std::string("checkpoint.every=1"), std::string("checkpoint.keep=0"), setting})
      arguments.insert(arguments.end(), {"--set", key});
    return runBoth(arguments);
  };
  ASSERT_EQ(saveAll("between", "checkpoint.async=false").exitCode, 0);
  const std::pair<std::string, std::string> ways[] = {{"full", "0"}, {"full", "1"}, {"full", "2"},
                                                      {"none", "0"}, {"none", "1"}, {"16MB", "0"}};
  for (const auto& [staging, seed] : ways) {
    const FakeVariable variable("SEED", seed);
    const std::string out = staging + seed;
    const Outcome outcome = saveAll(out, "checkpoint.staging=" + staging);
    ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
    EXPECT_EQ(outcome.err.find("the next update waits for the rest") != std::string::npos,
              staging == "none")
        << outcome.err;
    for (int step = 1; step <= steps; ++step)
      EXPECT_EQ(stateOf(out, step), stateOf("between", step)) << out << " " << step;
  }
}

// A save whose copies were not there yet is lost with the card; the one before is not.
TEST_F(JobCudaTest, ACardMayBeLostDuringASave) {
  ASSERT_EQ(runBoth(train("whole", "cuda")).exitCode, 0);
  for (const std::string call :
       {"cuLaunchKernel:55", "cuGraphLaunch:6", "cuMemcpyDtoHAsync_v2:80"}) {
    const std::string& out = call;
    {
      const FakeVariable fail("FAIL", call + ":214");
      const Outcome failed = runBoth(train(out, "cuda"));
      EXPECT_EQ(failed.exitCode, 5) << failed.err;
      EXPECT_NE(failed.err.find(fmt::format("the newest checkpoint is {}/checkpoints/step-{:08}",
                                            path(out), newestStep(out))),
                std::string::npos)
          << failed.err;
    }
    EXPECT_GT(newestStep(out), 0);
    ASSERT_EQ(runBoth(train(out, "cuda")).exitCode, 0);
    EXPECT_EQ(stateOf(out, 20), stateOf("whole", 20));
  }
}

TEST_F(JobCudaTest, AFailedCardSavesNothing) {
  ASSERT_EQ(runBoth(train("whole", "cuda")).exitCode, 0);
  for (const auto& [result, exitCode] : {std::pair{700, 4}, std::pair{214, 5}}) {
    const std::string out = std::to_string(result);
    {
      const FakeVariable fail("FAIL", fmt::format("cuGraphLaunch:6:{}", result)); // of step 7
      const Outcome failed = runBoth(between(train(out, "cuda")));
      EXPECT_EQ(failed.exitCode, exitCode) << failed.err;
      EXPECT_NE(failed.err.find("card 0 (Titan fake card, sm_120)"), std::string::npos)
          << failed.err;
    }
    EXPECT_EQ(newestStep(out), 6);
    ASSERT_EQ(runBoth(train(out, "cuda")).exitCode, 0);
    EXPECT_EQ(stateOf(out, 20), stateOf("whole", 20));
  }
}

TEST_F(JobCudaTest, RefusesWhatIsTheCpus) {
  const Outcome outcome = runBoth({"train", "--device=cuda", "--gemm=onednn"});
  EXPECT_EQ(outcome.exitCode, 3);
  EXPECT_NE(outcome.err.find("--gemm=onednn: oneDNN computes on CPUs, and this job runs on cuda"),
            std::string::npos)
      << outcome.err;
}

TEST_F(JobCudaTest, ProfileTimesCommandsOnTheCard) {
  const FakeVariable record("RECORD", path("record"));
  const std::vector<std::string> profile = {"profile", "--device=cuda", "--steps", "4"};
  const Outcome outcome = runBoth(profile);
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("no product library, so none for products; memory "),
            std::string::npos)
      << outcome.out;
  std::ifstream file(path("record"));
  int64_t timed = 0;
  for (std::string line; std::getline(file, line);)
    timed += line.starts_with("cuEventElapsedTime");
  const int64_t commands = 2 + 4 * LinearShape::microbatches + 3;
  EXPECT_EQ(timed, 4 * commands + 1) << "each command of the profiled steps, and the copy";
  EXPECT_EQ(Json::parse(readFile("job.trace.json"))["traceEvents"].size(),
            static_cast<size_t>(4 * commands));

  std::vector<std::string> json = profile;
  json.push_back("--json");
  const Json card = Json::parse(runBoth(json).out);
  EXPECT_GT(card["copy_bytes_per_second"]["memory"], 0);
  EXPECT_EQ(card["gemm_ceiling_flops"], 0);
  EXPECT_EQ(
      card["recorded"]["flops"],
      Json::parse(runBoth({"plan", "--device=cuda", "--json"}).out)["functions"]["step"]["flops"]);
  for (const Json& kernel : card["kernels"])
    EXPECT_GT(kernel["seconds"], 0) << kernel;
}

TEST_F(JobCudaTest, ProfileNeedsMemoryForACopy) {
  const FakeVariable memory("MEMORY", std::to_string(int64_t{200} << 20));
  const Outcome outcome = runBoth({"profile", "--device=cuda", "--steps", "1"});
  EXPECT_EQ(outcome.exitCode, 3);
  EXPECT_NE(outcome.err.find("reserving 128.0 MiB to measure card 0"), std::string::npos)
      << outcome.err;
}

TEST_F(JobCudaTest, SaysWhatKeepsItFromTheCard) {
  const FakeVariable capability("CAPABILITY", "7.5");
  const std::string reason = "card 0 (Titan fake card, sm_75) can run none of the job's images";
  Outcome outcome = runBoth(train("wished", "cuda"));
  EXPECT_EQ(outcome.exitCode, 3);
  EXPECT_NE(outcome.err.find("error: " + reason), std::string::npos) << outcome.err;
  outcome = runBoth(train("auto", "auto")); // goes on with the CPU
  EXPECT_EQ(outcome.exitCode, 0);
  EXPECT_NE(outcome.err.find(reason), std::string::npos) << outcome.err;
}

/// Steps without saves, whose calls the fake records.
class JobCudaStepsTest : public JobCudaTest {
protected:
  static constexpr int steps = 20;

  std::vector<std::string> plainTrain(const std::string& out) const {
    std::vector<std::string> arguments = train(out, "cuda", steps);
    arguments.insert(arguments.end(), {"--set", "checkpoint.every=0"});
    return arguments;
  }
  std::vector<Json> losses(const std::string& out) const {
    std::vector<Json> losses;
    for (const Json& row : metrics(out))
      losses.push_back(row["loss"]);
    return losses;
  }
  /// Of the steps, from the launch of the third one to that of the last.
  std::vector<std::string> recorded() const {
    std::vector<std::string> lines;
    std::ifstream file(path("record"));
    int64_t launches = 1; // the first step is a walk
    for (std::string line; std::getline(file, line);) {
      launches += line.starts_with("cuGraphLaunch");
      if (launches >= 3 && !line.starts_with("#") && !line.starts_with("cuCtxSetCurrent"))
        lines.push_back(line);
      if (launches == steps)
        return lines;
    }
    return {};
  }
};

TEST_F(JobCudaStepsTest, AStepIsOneLaunchAndIsFollowedBeforeItIsWaitedFor) {
  const FakeVariable record("RECORD", path("record"));
  ASSERT_EQ(runBoth(plainTrain("run")).exitCode, 0);
  const std::vector<std::string> lines = recorded();
  ASSERT_FALSE(lines.empty());
  std::string order; // launches and waits of the host
  for (const std::string& line : lines) {
    const std::string entry = line.substr(0, line.find('('));
    if (entry == "cuGraphLaunch")
      order += 'L';
    else if (entry == "cuEventSynchronize")
      order += 'W';
    else
      EXPECT_TRUE(entry == "cuMemcpyHtoDAsync_v2" || entry == "cuMemcpyDtoHAsync_v2" ||
                  entry == "cuMemcpyDtoDAsync_v2" || entry == "cuEventRecord" ||
                  entry == "cuStreamWaitEvent")
          << line;
    EXPECT_EQ(line.find("pageable"), line.npos) << line;
  }
  std::string expected = "L";
  for (int step = 3; step < steps; ++step)
    expected += "WL";
  EXPECT_EQ(order, expected);
  EXPECT_EQ(losses("run").size(), static_cast<size_t>(steps));
}

TEST_F(JobCudaStepsTest, MetricsComeOneStepLaterWithTheSameRows) {
  std::vector<std::string> cpu = plainTrain("cpu");
  std::ranges::replace(cpu, std::string("--device=cuda"), std::string("--device=cpu"));
  ASSERT_EQ(runBoth(cpu).exitCode, 0);
  for (const char* seed : {"0", "1", "2", "3", "4"}) {
    const FakeVariable variable("SEED", seed);
    ASSERT_EQ(runBoth(plainTrain(seed)).exitCode, 0);
    EXPECT_EQ(losses(seed), losses("cpu")) << seed;
    EXPECT_EQ(stateOf(seed, steps), stateOf("cpu", steps)) << seed;
  }
}

TEST_F(JobCudaStepsTest, AWaitThatIsMissingShows) {
  {
    const FakeVariable record("RECORD", path("record"));
    ASSERT_EQ(runBoth(plainTrain("right")).exitCode, 0);
  }
  const std::vector<Json> right = losses("right");
  // Those of one step, in the middle of the run.
  for (const auto& [entry, perStep] :
       {std::pair{"cuStreamWaitEvent", 4}, std::pair{"cuEventSynchronize", 1}}) {
    int64_t calls = 0;
    std::ifstream file(path("record"));
    for (std::string line; std::getline(file, line);)
      calls += line.starts_with(entry);
    const int64_t first = calls / 2 / perStep * perStep + 1;
    for (int64_t call = first; call < first + perStep; ++call) {
      bool shows = false;
      for (int seed = 0; seed < 24 && !shows; ++seed) {
        const FakeVariable variable("SEED", std::to_string(seed)),
            leftOut("FAIL", fmt::format("{}:{}:0", entry, call)); // says success, and does nothing
        const std::string out = fmt::format("{}-{}-{}", entry, call, seed);
        shows = runBoth(plainTrain(out)).exitCode != 0 || losses(out) != right;
      }
      EXPECT_TRUE(shows) << "without call " << call << " of " << entry;
    }
  }
}

TEST_F(JobCudaStepsTest, MetricsOfAnotherStepAreOurBug) {
  int64_t waits = 0;
  {
    const FakeVariable record("RECORD", path("record"));
    ASSERT_EQ(runBoth(plainTrain("right")).exitCode, 0);
    std::ifstream file(path("record"));
    for (std::string line; std::getline(file, line);)
      waits += line.starts_with("cuEventSynchronize");
  }
  // A wait that says success and waits for nothing: the page holds garbage.
  const FakeVariable leftOut("FAIL", fmt::format("cuEventSynchronize:{}:0", waits / 2));
  const Outcome outcome = runBoth(plainTrain("wrong"));
  EXPECT_EQ(outcome.exitCode, 4);
  EXPECT_NE(outcome.err.find("the device counts step "), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find(" where the run is at step "), std::string::npos) << outcome.err;
}

TEST_F(JobCudaStepsTest, MemoryIsTakenAtTheStart) {
  const FakeVariable record("RECORD", path("record"));
  ASSERT_EQ(runBoth(plainTrain("run")).exitCode, 0);
  std::ifstream file(path("record"));
  std::vector<int64_t> device;
  bool started = false;
  for (std::string line; std::getline(file, line);) {
    started = started || line.starts_with("cuLaunchKernel");
    if (line.starts_with("cuMemAlloc_v2("))
      device.push_back(std::stoll(line.substr(line.find('(') + 1)));
    EXPECT_FALSE(started && line.starts_with("cuMemHostAlloc")) << line;
  }
  ASSERT_EQ(device.size(), 2u) << "the arena and the staged batch";
  const Program forCard = deserialize(cardBytes).take();
  EXPECT_GE(device[0], forCard.arenaBytes);
  EXPECT_LT(device[0], forCard.arenaBytes + 512);
  int64_t inputs = 0;
  for (const Function& function : forCard.functions)
    for (const Binding& binding : function.bindings)
      inputs += binding.role == Binding::Role::Input ? binding.bytes + 256 : 0;
  EXPECT_LE(device[1], inputs);
}

TEST_F(JobCudaTest, EveryCallOfTheDriverMayFail) {
  {
    const FakeVariable record("RECORD", path("record"));
    ASSERT_EQ(runBoth(train("sound", "cuda", 3)).exitCode, 0);
  }
  const auto calls = callsIn(path("record"));
  ASSERT_GT(calls.size(), 200u);
  std::set<std::string> met;
  constexpr size_t stride = 5;
  for (size_t i = 0; i < calls.size(); ++i) {
    const auto& [entry, number] = calls[i];
    if (i % stride != 0 && met.contains(entry))
      continue;
    met.insert(entry);
    // What is not freed, and nothing else, is no matter of the run's.
    const int results[] = {entry.ends_with("Destroy") ? 999 : 2, 700, 999};
    const std::string call = fmt::format("{}:{}:{}", entry, number, results[i % 3]);
    const FakeVariable fail("FAIL", call);
    const std::string out = fmt::format("run-{}", i);
    const Outcome failed = runBoth(train(out, "cuda", 3));
    EXPECT_TRUE(failed.exitCode >= 3 && failed.exitCode <= 5) << call << ": " << failed.exitCode;
    EXPECT_NE(failed.err.find("error: "), std::string::npos) << call << ": " << failed.err;
    const auto committed = checkpoint::listCheckpoints(checkpoint::posixEnv(), path(out));
    for (const auto& info : *committed)
      EXPECT_TRUE(checkpoint::verify(info.path).ok()) << info.path;
  }
}

} // namespace
} // namespace titan::testing
