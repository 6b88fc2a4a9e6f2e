// `compare` on the hand-made linear program: what a card computes beside the host's kernels, and
// which command is named when the card's code is wrong.
#include "runtime/device/cuda/testing/FakeCard.h"
#include "runtime/device/cuda/testing/LinearPtx.h"
#include "runtime/job/testing/JobTestFixture.h"

namespace titan::testing {
namespace {

/// Bounds of kernel 3, the bias gradient: a tenth for each element.
void biasBounds(char* const* operands, const int64_t*, int64_t, int64_t) {
  std::fill_n(reinterpret_cast<float*>(operands[2]), LinearShape::outputs, 0.1f);
}

class JobCompareTest : public JobTest {
protected:
  static constexpr size_t product = 0, biasGradient = 3, update = 5;

  void SetUp() override {
    JobTest::SetUp();
    forCard = linearCudaProgram();
    forCard.recipe = program.recipe;
    payload = linearCudaPayload();
    code.assign(kernels.begin(), kernels.end());
    forCard.comparisons.resize(forCard.kernels.size());
    for (const Function& function : forCard.functions)
      for (const Command& command : function.commands)
        if (const std::optional<uint32_t> kernel = kernelOf(command))
          describe(command, forCard.comparisons[*kernel]);
    Comparison& bias = forCard.comparisons[biasGradient];
    bias.operands[1].tolerance = Tolerance::Bounded;
    bias.boundUnits = 1;
    code.push_back(biasBounds);
    ComparedOperand& prediction = forCard.comparisons[product].operands[2];
    prediction.tolerance = Tolerance::Magnitude;
    prediction.factor = 0x1p-23 * LinearShape::features;
  }

  std::optional<uint32_t> kernelOf(const Command& command) const {
    if (command.kind == CommandKind::Kernel)
      return command.target;
    if (command.kind == CommandKind::Library)
      return forCard.libraryCalls[command.target].fallback;
    return {};
  }
  static void describe(const Command& command, Comparison& comparison) {
    comparison.operands.clear();
    for (const Operand& operand : command.operands) {
      const DType dtype = operand.bytes == 8 ? DType::I64 : DType::F32;
      comparison.operands.push_back(
          {dtype, {operand.bytes / byteSize(dtype)}, Tolerance::Equal, 0});
    }
  }

  /// Replaces the first `text` of a kernel's code, and the image's digest with it.
  void breakKernel(size_t kernel, const std::string& text, const std::string& wrong) {
    Image& image = forCard.images[0];
    std::string ptx = payload.substr(static_cast<size_t>(image.offset));
    const size_t at = ptx.find(text, ptx.find(fmt::format(".entry titan_kernel_{}", kernel)));
    ASSERT_NE(at, ptx.npos);
    ptx.replace(at, text.size(), wrong);
    payload.resize(static_cast<size_t>(image.offset));
    payload += ptx;
    image = ptxImage(ptx, image.offset);
  }

  Outcome compare(std::vector<std::string> more = {}) {
    cardBytes = serialize(forCard);
    more.insert(more.begin(), {"compare", "--device=cuda", "--threads", "1"});
    return run(more, {{{cardBytes, code}}, payload, path("job")});
  }

  Program forCard;
  std::vector<KernelFunction> code;
  std::string cardBytes;
};

TEST_F(JobCompareTest, SoundKernelsPass) {
  const Outcome outcome = compare({"--steps", "3"});
  ASSERT_EQ(outcome.exitCode, 0) << outcome.err;
  constexpr int64_t commands = 2 + 4 * LinearShape::microbatches + 3;
  EXPECT_NE(outcome.out.find(fmt::format("3 steps on card 0 (Titan fake card, sm_120), PTX for "
                                         "sm_80: {} commands with ",
                                         3 * commands)),
            std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.out.find("none differs"), std::string::npos) << outcome.out;
}

TEST_F(JobCompareTest, TakesOtherData) {
  const Outcome outcome = compare({"--data", path("none.npz")});
  EXPECT_EQ(outcome.exitCode, 1);
  EXPECT_NE(outcome.err.find("none.npz"), std::string::npos) << outcome.err;
}

TEST_F(JobCompareTest, ABrokenKernelIsNamed) {
  breakKernel(update, "sub.rn.f32", "add.rn.f32");
  const Outcome outcome = compare();
  EXPECT_EQ(outcome.exitCode, 4);
  const std::string label = forCard.kernels[update].label;
  EXPECT_NE(outcome.err.find(fmt::format("error: '{}' (command ", label)), std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("of step) on card 0 (Titan fake card, sm_120), PTX for sm_80: element "
                             "[0] of operand"),
            std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("its host code makes it"), std::string::npos) << outcome.err;

  const Json json = Json::parse(compare({"--json"}).out);
  EXPECT_EQ(json["difference"]["kernel"], label);
  EXPECT_EQ(json["difference"]["function"], "step");
  EXPECT_EQ(json["difference"]["element"], "[0]");
  EXPECT_NE(json["difference"]["device"], json["difference"]["reference"]);
  EXPECT_EQ(json["difference"]["bound"], 0);
}

TEST_F(JobCompareTest, AProductIsFartherOffThanItsRoundings) {
  breakKernel(product, "add.rn.f32", "sub.rn.f32");
  const Outcome outcome = compare();
  EXPECT_EQ(outcome.exitCode, 4);
  EXPECT_NE(outcome.err.find(forCard.kernels[product].label), std::string::npos) << outcome.err;
}

TEST_F(JobCompareTest, WithinItsBoundNothingIsWrong) {
  breakKernel(biasGradient, "add.rn.f32", "sub.rn.f32");
  const Outcome outside = compare();
  EXPECT_EQ(outside.exitCode, 4) << outside.out;
  code.back() = [](char* const* operands, const int64_t*, int64_t, int64_t) {
    std::fill_n(reinterpret_cast<float*>(operands[2]), LinearShape::outputs, 1e6f);
  };
  const Outcome inside = compare({"--json"});
  EXPECT_EQ(inside.exitCode, 0) << inside.err;
  const Json json = Json::parse(inside.out);
  EXPECT_GT(json["largest_share"], 0);
  EXPECT_LT(json["largest_share"], 1e-3);
  EXPECT_EQ(json["kernel"], forCard.kernels[biasGradient].label);
  EXPECT_TRUE(json["difference"].is_null());
}

TEST_F(JobCompareTest, NeedsReferenceKernels) {
  forCard.comparisons.clear();
  const Outcome outcome = compare();
  EXPECT_EQ(outcome.exitCode, 2);
  EXPECT_NE(outcome.err.find("error: compare runs each kernel on the host, too, and the job has no "
                             "code for that: compile it with --target=cuda --reference-kernels"),
            std::string::npos)
      << outcome.err;
}

TEST_F(JobCompareTest, CodeThatIsMissingIsOurBug) {
  code.pop_back();
  const Outcome outcome = compare();
  EXPECT_EQ(outcome.exitCode, 4);
  EXPECT_NE(outcome.err.find("functions to compare with, its table names"), std::string::npos)
      << outcome.err;
}

TEST_F(JobCompareTest, NeedsTheArenaInOnePiece) {
  setenv("TITAN_CUDA_SPLIT_ARENA", "1", 1);
  const Outcome outcome = compare();
  unsetenv("TITAN_CUDA_SPLIT_ARENA");
  EXPECT_EQ(outcome.exitCode, 2);
  EXPECT_NE(outcome.err.find("leave the variable out for --poison and compare"), std::string::npos)
      << outcome.err;
}

TEST_F(JobCompareTest, ALostCardEndsIt) {
  const FakeVariable fail("FAIL", "cuMemcpyDtoHAsync_v2:9:214");
  const Outcome outcome = compare();
  EXPECT_EQ(outcome.exitCode, 5) << outcome.err;
}

} // namespace
} // namespace titan::testing
