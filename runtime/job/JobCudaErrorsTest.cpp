// What keeps a job from a card or ends it there: exit codes, what is said and what is left, for
// each cause that a run can meet. What driver and device say by themselves is tested with them.
#include "runtime/device/testing/FaultDevice.h"
#include "runtime/job/testing/JobCudaFixture.h"

#include <csignal>
#include <thread>

namespace titan::testing {
namespace {

class JobCudaErrorsTest : public JobCudaTest {
protected:
  Outcome failing(const std::string& call, std::vector<std::string> arguments) const {
    const FakeVariable fail("FAIL", call);
    return runBoth(arguments);
  }
  /// "; it came after step 6, and the newest checkpoint is run/checkpoints/step-00000006"
  std::string behind(const std::string& out, int64_t step) const {
    return fmt::format("; it came after step {0}, and the newest checkpoint is "
                       "{1}/checkpoints/step-{0:08}\n",
                       step, path(out));
  }
  static std::string errorLine(const Outcome& outcome) {
    const size_t at = outcome.err.find("error: ");
    return at == std::string::npos ? "" : outcome.err.substr(at);
  }
};

void expectSays(const Outcome& outcome, int exitCode, const std::string& text) {
  EXPECT_EQ(outcome.exitCode, exitCode) << outcome.err;
  EXPECT_NE(outcome.err.find(text), std::string::npos) << text << "\n" << outcome.err;
}

TEST_F(JobCudaErrorsTest, MemoryThatIsMissingIsNamed) {
  for (const char* call : {"cuMemAlloc_v2:1:2", "cuMemAlloc_v2:2:2"}) // the arena, staged batches
    expectSays(failing(call, train("run", "cuda")), 3, "error: the job needs ");
  expectSays(failing("cuMemHostAlloc:1:2", train("run", "cuda")), 3, " of pinned host memory: ");
  EXPECT_EQ(newestStep("run"), -1);
}

TEST_F(JobCudaErrorsTest, PoisonNamesTheCommandOfAFault) {
  ASSERT_EQ(runBoth(train("run", "cuda", 6)).exitCode, 0);
  for (const auto& [result, name] :
       {std::pair{700, "ILLEGAL_ADDRESS"}, std::pair{716, "MISALIGNED_ADDRESS"},
        std::pair{719, "LAUNCH_FAILED"}}) {
    const std::string call = fmt::format("cuLaunchKernel:3:{}", result);
    std::vector<std::string> arguments = train("run", "cuda", 8);
    const Outcome alone = failing(call, arguments);
    expectSays(alone, 4, "error: a command of step failed on card 0 (Titan fake card, sm_120): ");
    expectSays(alone, 4, "run it again with --poison, which names the command");
    arguments.push_back("--poison");
    const Outcome poisoned = failing(call, arguments);
    expectSays(poisoned, 4,
               " of step) on card 0 (Titan fake card, sm_120) failed: cuLaunchKernel: ");
    for (const Outcome* outcome : {&alone, &poisoned}) {
      expectSays(*outcome, 4, fmt::format("CUDA_ERROR_{}", name));
      expectSays(*outcome, 4, behind("run", 6));
    }
    EXPECT_EQ(newestStep("run"), 6);
  }
}

TEST_F(JobCudaErrorsTest, ALostCardLeavesTheNewestCheckpoint) {
  for (const auto& [result, name] : {std::pair{214, "ECC_UNCORRECTABLE"},
                                     std::pair{702, "LAUNCH_TIMEOUT"}, std::pair{999, "UNKNOWN"}}) {
    const std::string out = std::to_string(result);
    const Outcome first = failing(fmt::format("cuLaunchKernel:3:{}", result), train(out, "cuda"));
    expectSays(first, 5, fmt::format("CUDA_ERROR_{}", name));
    expectSays(first, 5, "; it came after step 0, and there is no checkpoint yet\n");
    const Outcome later =
        failing(fmt::format("cuGraphLaunch:6:{}", result), between(train(out, "cuda")));
    expectSays(later, 5, fmt::format("CUDA_ERROR_{}", name));
    expectSays(later, 5, behind(out, 6));
    EXPECT_EQ(newestStep(out), 6);
  }
}

TEST_F(JobCudaErrorsTest, ADamagedImageIsNamed) {
  const std::string digest = deserialize(cardBytes)->images[0].digest;
  payload[payload.size() - 20] ^= 1;
  const Outcome outcome = runBoth(train("run", "cuda"));
  expectSays(outcome, 1, "error: PTX for sm_80 in the job is damaged: its digest is ");
  expectSays(outcome, 1, digest);
}

TEST_F(JobCudaErrorsTest, AnotherCardOrDriverIsNoted) {
  ASSERT_EQ(runBoth(train("run", "cuda", 2)).exitCode, 0);
  const Outcome same = runBoth(train("run", "cuda", 4));
  EXPECT_EQ(same.err.find("the bits of the continued run may differ"), std::string::npos)
      << same.err;
  {
    const FakeVariable other("CAPABILITY", "9.0");
    expectSays(runBoth(train("run", "cuda", 6)), 0,
               "note: cuda.card was 'Titan fake card, sm_120', is 'Titan fake card, sm_90': the "
               "bits of the continued run may differ");
  }
  const FakeVariable other("VERSION", "12.4");
  expectSays(runBoth(train("run", "cuda", 8)), 0,
             "note: cuda.image was 'PTX for sm_80 by the driver for CUDA 13.0', is 'PTX for sm_80 "
             "by the driver for CUDA 12.4': ");
  const Outcome cpu = runBoth(train("run", "cpu", 10));
  expectSays(cpu, 0, "note: target was 'cuda', is 'cpu': ");
  EXPECT_EQ(cpu.err.find("cuda.card"), std::string::npos) << cpu.err;
  expectSays(runBoth(train("run", "cuda", 12)), 0, "note: target was 'cpu', is 'cuda': ");
}

/// What ends a run on a CPU ends it on a card in the same way.
class JobCudaEndsTest : public JobCudaErrorsTest {
protected:
  std::pair<Outcome, Outcome> onBoth(const std::vector<std::string>& more) const {
    std::pair<Outcome, Outcome> outcomes;
    for (const char* device : {"cpu", "cuda"}) {
      std::vector<std::string> arguments = train(device, device);
      arguments.insert(arguments.end(), more.begin(), more.end());
      (device == std::string("cpu") ? outcomes.first : outcomes.second) = runBoth(arguments);
    }
    return outcomes;
  }
};

TEST_F(JobCudaEndsTest, TooManySkippedSteps) {
  writeData("inf.npz", 20, INFINITY);
  const auto [cpu, card] = onBoth({"--data", path("inf.npz"), "--set", "train.non_finite_limit=4"});
  EXPECT_EQ(cpu.exitCode, 5);
  EXPECT_EQ(card.exitCode, 5);
  EXPECT_NE(errorLine(cpu).find("steps 1 to 4 were skipped"), std::string::npos) << cpu.err;
  EXPECT_EQ(errorLine(card), errorLine(cpu));
  EXPECT_EQ(metrics("cuda").size(), 4u);
  EXPECT_EQ(newestStep("cuda"), newestStep("cpu"));
}

TEST_F(JobCudaEndsTest, AFailedSave) {
  const auto errorOn = [&](const std::string& device) {
    const std::string taken = path(device + "/checkpoints/step-00000004");
    JobImage image = both();
    image.chooseDevice = [&](const DeviceRequest& request) -> Result<ChosenDevice> {
      ChosenDevice chosen = TITAN_TRY(chooseDevice(request));
      // Fails never, and puts something else where the second checkpoint goes.
      const auto take = [&, runs = 0](std::string_view call) mutable {
        runs += call == "run";
        if (runs == 3)
          fs::create_directories(taken);
        return false;
      };
      chosen.device =
          std::make_unique<FaultDevice>(std::move(chosen.device), take, Error::internal("never"));
      return chosen;
    };
    std::vector<std::string> words = train(device, device);
    words.insert(words.end(), {"--set", "checkpoint.async=false"}); // both see it after that step
    const Outcome outcome = run(words, image);
    EXPECT_EQ(outcome.exitCode, 5);
    EXPECT_EQ(metrics(device).size(), 4u);
    std::string error = errorLine(outcome);
    EXPECT_NE(error.find(taken), std::string::npos) << outcome.err;
    EXPECT_NE(error.find("the newest checkpoint is " + path(device + "/checkpoints/step-00000002")),
              std::string::npos)
        << outcome.err;
    for (size_t at; (at = error.find(path(device))) != std::string::npos;)
      error.erase(at, path(device).size());
    return error.substr(0, error.find("; to go on: ")); // the rest names the device
  };
  EXPECT_EQ(errorOn("cuda"), errorOn("cpu"));
}

TEST_F(JobCudaEndsTest, ASignal) {
  std::thread sender([&] {
    waitForSteps("run", 5);
    kill(getpid(), SIGTERM);
  });
  const Outcome stopped = runBoth(train("run", "cuda", 100000000));
  sender.join();
  const int64_t step = metrics("run").back()["step"];
  expectSays(stopped, 0, fmt::format("stopped by SIGTERM after step {}", step));
  EXPECT_EQ(newestStep("run"), step);
}

} // namespace
} // namespace titan::testing
