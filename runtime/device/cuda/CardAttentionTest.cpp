// Which attention calls a library computes, by which plans: of a call that is none, and a library
// of the tests.
#include "runtime/device/cuda/CardAttention.h"

#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/testing/FakeAttention.h"
#include "runtime/device/cuda/testing/FakeCard.h"
#include "runtime/device/cuda/testing/LinearPtx.h"

#include <gtest/gtest.h>

namespace titan::cuda {
namespace {

using titan::testing::fakeAttention;
using titan::testing::FakeRuns;
using titan::testing::FakeWay;
using titan::testing::noAttention;
using How = FakeWay::How;
using Mode = AttentionRequest::Mode;
using Notes = std::vector<std::string>;

/// Its step is the call.
struct AttentionProgram {
  explicit AttentionProgram(int64_t workspace = 1024)
      : payload(titan::testing::ptxHeader()),
        program(titan::testing::withAttention(titan::testing::ptxProgram(payload, {}), payload,
                                              workspace)) {}

  std::unique_ptr<CudaDevice> open(const AttentionRequest& request) const {
    auto made = CudaDevice::create(program, payload, 0, {}, request);
    EXPECT_TRUE(made.ok()) << made.error().message();
    return made.ok() ? made.take() : nullptr;
  }
  /// The result, after a run whose values are all `value`.
  std::string run(CudaDevice& device, char value) const {
    const std::vector<Operand>& operands = program.functions[0].commands[0].operands;
    EXPECT_TRUE(device.fill(operands[2].address.base, operands[2].bytes, value).ok());
    EXPECT_TRUE(device.run(0, nullptr).ok());
    std::string result(static_cast<size_t>(operands[3].bytes), '\0');
    EXPECT_TRUE(device.download(operands[3].address.base, result).ok());
    EXPECT_TRUE(device.wait(device.record()).ok());
    return result;
  }
  std::string chosen(const CudaDevice& device) const {
    const auto& algorithms = device.attention().choices().algorithms;
    EXPECT_EQ(algorithms.size(), 1u);
    return algorithms.empty() ? "" : algorithms.begin()->second;
  }

  std::string payload;
  Program program;
};

TEST(CardAttention, TakesTheFirstWayOfTheLibrary) {
  FakeRuns runs;
  const AttentionProgram attention;
  const auto device =
      attention.open({.mode = Mode::IfThere, .load = fakeAttention({{"one"}, {"two"}}, runs)});
  EXPECT_EQ(device->attention().notes(), Notes());
  EXPECT_EQ(device->attention().choices().library, "cudnn");
  EXPECT_EQ(device->attention().choices().version, "9.19.0");
  EXPECT_EQ(device->attention().choices().device, "Titan fake card, sm_120");
  EXPECT_EQ(attention.chosen(*device), "one");
  EXPECT_EQ(runs, (FakeRuns{{"one", 2}})) << "two runs admit a plan";
  // A walk, a recording that is run, and a run of the graph.
  for (char value : {1, 2, 3})
    EXPECT_EQ(attention.run(*device, value), std::string(256, value));
  EXPECT_EQ(runs, (FakeRuns{{"one", 4}}));
}

TEST(CardAttention, GeneratedCallsRunWithoutAWorkspace) {
  const AttentionProgram attention;
  const auto device = attention.open({});
  EXPECT_FALSE(device->attention().isOpen());
  for (char value : {1, 2, 3})
    EXPECT_EQ(attention.run(*device, value), std::string(256, value));
}

TEST(CardAttention, RefusesWaysThatMisbehave) {
  const std::pair<How, const char*> ways[] = {
      {How::ReadsKeys, "one differs from the generated kernels: the result by "},
      {How::OtherStatistics, "one differs from the generated kernels: the logarithm of sums by "},
      {How::Varies, "one gives other bits in a second run"},
      {How::Careless, "one gives other bits in a second run"},
      {How::DoesNotRun, "one does not run: fakeAttention"},
      {How::DoesNotBuild, "one: the fake builds nothing"}};
  const AttentionProgram attention;
  for (const auto& [how, why] : ways) {
    FakeRuns runs;
    const auto next = attention.open(
        {.mode = Mode::IfThere, .load = fakeAttention({{"one", how}, {"two"}}, runs)});
    EXPECT_EQ(attention.chosen(*next), "two") << why;
    EXPECT_EQ(next->attention().notes(), Notes()) << why;
    const auto none =
        attention.open({.mode = Mode::Library, .load = fakeAttention({{"one", how}}, runs)});
    EXPECT_EQ(attention.chosen(*none), LibraryChoices::generated);
    ASSERT_EQ(none->attention().notes().size(), 1u);
    EXPECT_EQ(none->attention().notes()[0].find(
                  fmt::format("1 of 1 attention calls are generated, since cudnn 9.19.0 does not "
                              "compute them: 'attention forward': {}",
                              why)),
              0u)
        << none->attention().notes()[0];
    EXPECT_EQ(attention.run(*none, 5), std::string(256, 5));
  }
}

TEST(CardAttention, RefusesWhatNeedsMoreThanIsPlanned) {
  FakeRuns runs;
  const AttentionProgram attention(1024);
  const auto device = attention.open(
      {.mode = Mode::IfThere,
       .load = fakeAttention({{"one", How::Right, 1025}, {"two", How::Right, 1024}}, runs)});
  EXPECT_EQ(attention.chosen(*device), "two");
  EXPECT_EQ(runs.count("one"), 0u);
  const auto none = attention.open(
      {.mode = Mode::IfThere, .load = fakeAttention({{"one", How::Right, 1025}}, runs)});
  EXPECT_EQ(none->attention().notes(),
            (Notes{"1 of 1 attention calls are generated, since cudnn 9.19.0 does not compute "
                   "them: 'attention forward': one needs 1025 bytes of workspace, and 1024 are "
                   "planned"}));
  const auto silent = attention.open({.mode = Mode::IfThere, .load = fakeAttention({}, runs)});
  EXPECT_NE(silent->attention().notes().at(0).find("the fake knows nothing"), std::string::npos);
}

TEST(CardAttention, RefusesOperandsThatAreNotAligned) {
  FakeRuns runs;
  AttentionProgram attention;
  attention.program.functions[0].commands[0].operands[2].address.base += 8;
  attention.program.functions[0].temporaries[2].bytes += 8;
  const auto device =
      attention.open({.mode = Mode::IfThere, .load = fakeAttention({{"one"}}, runs)});
  EXPECT_NE(device->attention().notes().at(0).find("an operand is not aligned to 16 bytes"),
            std::string::npos);
}

TEST(CardAttention, AMissingLibraryIsANoteUnlessItWasNamed) {
  const AttentionProgram attention;
  const auto device = attention.open({.mode = Mode::IfThere, .load = noAttention()});
  EXPECT_FALSE(device->attention().isOpen());
  EXPECT_EQ(device->attention().notes(),
            Notes{"attention is generated: cannot load cuDNN: the fake is not there"});
  const auto named = CudaDevice::create(attention.program, attention.payload, 0, {},
                                        {.mode = Mode::Library, .load = noAttention()});
  ASSERT_FALSE(named.ok());
  EXPECT_EQ(named.error().exitCode(), 3);
  EXPECT_EQ(named.error().message(), "cannot load cuDNN: the fake is not there");
  // Nobody looks for it where there is nothing to compute.
  const Program other = titan::testing::linearCudaProgram();
  EXPECT_TRUE(CudaDevice::create(other, titan::testing::linearCudaPayload(), 0, {},
                                 {.mode = Mode::Library, .load = noAttention()})
                  .ok());
}

TEST(CardAttention, TakesTheSavedWay) {
  FakeRuns runs;
  const AttentionProgram attention;
  const LibraryChoices saved =
      attention.open({.mode = Mode::IfThere, .load = fakeAttention({{"two"}}, runs)})
          ->attention()
          .choices();
  const auto load = fakeAttention({{"one"}, {"two"}}, runs);
  const auto device = attention.open({.mode = Mode::IfThere, .saved = &saved, .load = load});
  EXPECT_EQ(device->attention().choices(), saved);
  EXPECT_EQ(device->attention().notes(), Notes());

  LibraryChoices generated = saved;
  generated.algorithms.begin()->second = LibraryChoices::generated;
  EXPECT_EQ(
      attention.chosen(*attention.open({.mode = Mode::IfThere, .saved = &generated, .load = load})),
      LibraryChoices::generated);

  LibraryChoices unknown = saved;
  unknown.algorithms.begin()->second = "three";
  const auto other = attention.open({.mode = Mode::IfThere, .saved = &unknown, .load = load});
  EXPECT_EQ(attention.chosen(*other), "one");
  EXPECT_EQ(other->attention().notes(),
            Notes{"cudnn 9.19.0 does not take the saved plan of 'attention forward': another one "
                  "is chosen, and the bits may differ"});
}

TEST(CardAttention, PlansAnewElsewhere) {
  FakeRuns runs;
  const AttentionProgram attention;
  const LibraryChoices saved =
      attention.open({.mode = Mode::IfThere, .load = fakeAttention({{"two"}}, runs, "9.12.0")})
          ->attention()
          .choices();
  const auto device = attention.open({.mode = Mode::IfThere,
                                      .saved = &saved,
                                      .savedStep = 40,
                                      .load = fakeAttention({{"one"}, {"two"}}, runs)});
  EXPECT_EQ(attention.chosen(*device), "one");
  EXPECT_EQ(device->attention().notes(),
            (Notes{"the run's attention was planned for cudnn 9.12.0 on Titan fake card, sm_120, "
                   "and here is cudnn 9.19.0 on Titan fake card, sm_120: it is planned anew, and "
                   "the bits may differ from step 41 on"}));
}

} // namespace
} // namespace titan::cuda
