// A job made by hand with code for a CPU and for a card, on the driver without a card.
#pragma once

#include "runtime/checkpoint/Load.h"
#include "runtime/device/cuda/testing/FakeCard.h"
#include "runtime/device/cuda/testing/LinearPtx.h"
#include "runtime/job/testing/JobTestFixture.h"

namespace titan::testing {

class JobCudaTest : public JobTest {
protected:
  void SetUp() override {
    JobTest::SetUp();
    Program forCard = linearCudaProgram();
    forCard.recipe = program.recipe;
    cardBytes = serialize(forCard);
    payload = linearCudaPayload();
  }

  /// A job with code for both devices.
  JobImage both() const {
    return {{{cardBytes, {}}, {programBytes, kernels}}, payload, path("job")};
  }
  std::vector<std::string> train(const std::string& out, const std::string& device,
                                 int steps = 20) const {
    return {"train",
            "--out",
            path(out),
            "--steps",
            std::to_string(steps),
            "--threads",
            "1",
            "--set",
            "checkpoint.every=2",
            "--device=" + device,
            "--gemm",
            "generated"};
  }
  /// With saves between the steps.
  static std::vector<std::string> between(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--set", "checkpoint.async=false"});
    return arguments;
  }
  Outcome runBoth(const std::vector<std::string>& arguments) const {
    return run(arguments, both());
  }
  int64_t newestStep(const std::string& out) const {
    const auto checkpoints = checkpoint::listCheckpoints(checkpoint::posixEnv(), path(out));
    return checkpoints.ok() && !checkpoints->empty() ? checkpoints->back().step : -1;
  }

  std::string cardBytes;
};

} // namespace titan::testing
