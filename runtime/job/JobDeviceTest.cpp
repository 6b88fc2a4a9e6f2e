// Jobs on a device that fails: they end in order, say what failed, and save nothing behind it.
#include "runtime/checkpoint/Load.h"
#include "runtime/device/testing/FaultDevice.h"
#include "runtime/job/testing/JobTestFixture.h"

namespace titan::testing {
namespace {

class JobDeviceTest : public JobTest {
protected:
  static constexpr const char* message = "'forward product of linear' of step failed";

  /// The job's image with a device that fails where `fails` says so.
  JobImage faulty(FaultDevice::Fails fails) const {
    JobImage image = JobTest::image();
    DeviceChooser inner = image.chooseDevice ? image.chooseDevice : DeviceChooser(chooseDevice);
    image.chooseDevice = [=](const DeviceRequest& request) -> Result<ChosenDevice> {
      ChosenDevice chosen = TITAN_TRY(inner(request));
      chosen.device = std::make_unique<FaultDevice>(std::move(chosen.device), fails,
                                                    Error::runFailed("{}", message));
      return chosen;
    };
    return image;
  }

  std::vector<std::string> train(const std::string& out, int steps) const {
    return {"train",     "--out", path(out), "--steps",           std::to_string(steps),
            "--threads", "1",     "--set",   "checkpoint.every=2"};
  }
};

TEST_F(JobDeviceTest, AFailedCommandEndsTheRunAndLeavesTheLastCheckpoint) {
  ASSERT_EQ(run(train("alone", 8)).exitCode, 0);
  int runs = 0;
  const Outcome failed =
      run(train("failed", 8),
          faulty([&](std::string_view call) { return call == "run" && ++runs == 6; }));
  EXPECT_EQ(failed.exitCode, 5);
  EXPECT_NE(
      failed.err.find(fmt::format("error: {}; it came after step 4, and the newest checkpoint "
                                  "is {}/checkpoints/step-00000004\n",
                                  message, path("failed"))),
      std::string::npos)
      << failed.err;
  EXPECT_EQ(runs, 6);
  const auto checkpoints = checkpoint::listCheckpoints(checkpoint::posixEnv(), path("failed"));
  ASSERT_EQ(checkpoints->size(), 2u);
  EXPECT_EQ(checkpoints->back().step, 4);
  const Outcome resumed = run(train("failed", 8));
  EXPECT_EQ(resumed.exitCode, 0) << resumed.err;
  EXPECT_EQ(stateOf("failed", 8), stateOf("alone", 8));
}

TEST_F(JobDeviceTest, AStartThatIsRefusedLeavesNothing) {
  JobImage little = JobTest::image();
  little.chooseDevice = [](const DeviceRequest&) -> Result<ChosenDevice> {
    return Error::environment("no memory for the arena");
  };
  const Outcome refused = run(train("new/run", 4), little);
  EXPECT_EQ(refused.exitCode, 3) << refused.err;
  EXPECT_NE(refused.err.find("no memory for the arena"), std::string::npos) << refused.err;
  EXPECT_FALSE(fs::exists(path("new")));
  ASSERT_EQ(run(train("new/run", 4)).exitCode, 0);
  EXPECT_EQ(run(train("new/run", 6), little).exitCode, 3);
  EXPECT_EQ(run(train("new/run", 6)).exitCode, 0);
  EXPECT_EQ(metrics("new/run").size(), 6u);
}

TEST_F(JobDeviceTest, EveryCallMayFail) {
  int64_t calls = 0;
  const auto count = [&](std::string_view) { return ++calls < 0; };
  const Outcome sound = run(train("sound", 3), faulty(count));
  ASSERT_EQ(sound.exitCode, 0) << sound.err;
  ASSERT_GT(calls, 100);
  constexpr int64_t stride = 7; // meets every kind of call, in a few seconds
  for (int64_t i = 1; i <= calls; i += stride) {
    const std::string out = fmt::format("run-{}", i);
    int64_t made = 0;
    const Outcome failed =
        run(train(out, 3), faulty([&](std::string_view) { return ++made == i; }));
    EXPECT_EQ(failed.exitCode, 5) << "call " << i << ": " << failed.err;
    EXPECT_NE(failed.err.find(message), std::string::npos) << failed.err;
    const auto committed = checkpoint::listCheckpoints(checkpoint::posixEnv(), path(out));
    for (const auto& info : *committed)
      EXPECT_TRUE(checkpoint::verify(info.path).ok()) << info.path;
  }
}

TEST_F(JobDeviceTest, PredictAndEvalReportWhatTheDeviceSays) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"eval"}, {"predict", "-o", path("p.npz")}}) {
    const Outcome failed =
        run(arguments, faulty([](std::string_view call) { return call == "run"; }));
    EXPECT_EQ(failed.exitCode, 5) << failed.err;
    EXPECT_NE(failed.err.find(message), std::string::npos) << failed.err;
    EXPECT_FALSE(fs::exists(path("p.npz")));
  }
}

} // namespace
} // namespace titan::testing
