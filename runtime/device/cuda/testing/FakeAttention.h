// The tests' attention library, for the call of withAttention(): it computes by copies and fills of
// the tests' driver, and can be wrong in several ways.
#pragma once

#include "runtime/device/cuda/AttentionLibrary.h"

#include <map>

namespace titan::testing {

struct FakeWay {
  enum class How : uint8_t {
    Right,
    ReadsKeys,       ///< in place of values
    OtherStatistics, ///< as of another logarithm
    Varies,          ///< every second run has another last element
    Careless,        ///< the workspace's first bytes are the last element
    DoesNotRun,
    DoesNotBuild,
  };
  std::string name;
  How how = How::Right;
  int64_t workspace = 512;
};

/// How often each way ran.
using FakeRuns = std::map<std::string, int>;

class FakePlan final : public cuda::AttentionPlan {
public:
  FakePlan(const cuda::Driver& driver, FakeWay way, FakeRuns& runs)
      : driver_(driver), way_(std::move(way)), runs_(runs) {}

  cuda::Answer queue(std::span<const int64_t> operands, cuda::CUstream stream) const override {
    using How = FakeWay::How;
    constexpr size_t resultBytes = 256, statisticBytes = 64, element = 2;
    const auto at = [&](size_t i) { return static_cast<cuda::CUdeviceptr>(operands[i]); };
    const int run = ++runs_[way_.name];
    if (way_.how == How::DoesNotRun)
      return {cuda::CUDA_ERROR_INVALID_VALUE, "fakeAttention"};
    const cuda::CUdeviceptr last = at(3) + resultBytes - element;
    cuda::Answer answer = driver_.cuMemcpyDtoDAsync_v2(
        at(3), at(way_.how == How::ReadsKeys ? 1 : 2), resultBytes, stream);
    if (answer.ok())
      answer = driver_.cuMemsetD8Async(at(4), way_.how == How::OtherStatistics ? 0x40 : 0x3f,
                                       statisticBytes, stream);
    if (answer.ok() && way_.how == How::Varies && run % 2 == 0)
      answer = driver_.cuMemsetD8Async(last, 0, element, stream);
    if (answer.ok() && way_.how == How::Careless)
      answer = driver_.cuMemcpyDtoDAsync_v2(last, at(5), element, stream);
    return answer;
  }

private:
  const cuda::Driver& driver_;
  FakeWay way_;
  FakeRuns& runs_;
};

class FakeAttention final : public cuda::AttentionLibrary {
public:
  FakeAttention(std::vector<FakeWay> ways, std::string version, FakeRuns& runs)
      : driver_(cuda::Driver::load().take()), ways_(std::move(ways)), version_(std::move(version)),
        runs_(runs) {}

  const std::string& version() const override { return version_; }

  Result<std::vector<cuda::AttentionOffer>> offers(const Attention&, int64_t) const override {
    if (ways_.empty())
      return Error::environment("the fake knows nothing");
    std::vector<cuda::AttentionOffer> offers;
    for (const FakeWay& way : ways_)
      offers.push_back(
          {way.name, way.workspace, [this, way]() -> Result<std::unique_ptr<cuda::AttentionPlan>> {
             if (way.how == FakeWay::How::DoesNotBuild)
               return Error::environment("the fake builds nothing");
             return std::unique_ptr<cuda::AttentionPlan>(new FakePlan(driver_, way, runs_));
           }});
    return offers;
  }

private:
  cuda::Driver driver_;
  std::vector<FakeWay> ways_;
  std::string version_;
  FakeRuns& runs_;
};

/// `runs` outlives what is loaded.
inline cuda::AttentionLoader fakeAttention(std::vector<FakeWay> ways, FakeRuns& runs,
                                           std::string version = "9.19.0") {
  return [=, &runs](const cuda::Card&) -> Result<std::unique_ptr<cuda::AttentionLibrary>> {
    return std::unique_ptr<cuda::AttentionLibrary>(new FakeAttention(ways, version, runs));
  };
}

inline cuda::AttentionLoader noAttention() {
  return [](const cuda::Card&) -> Result<std::unique_ptr<cuda::AttentionLibrary>> {
    return Error::environment("cannot load cuDNN: the fake is not there");
  };
}

} // namespace titan::testing
