// What cuDNN offers on a card that is not here: it plans by properties that it recorded of one
// (testing/h200.json, by the stage `probe` of scripts/gpu-suite). Needs the library and a
// libcuda.so.1 with all symbols, for which the toolkit's stub does; nothing is built or run.
#include "runtime/device/cuda/AttentionLibrary.h"
#include "runtime/device/cuda/VendorLibrary.h"
#include "runtime/program/AttentionNeeds.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace titan::cuda {
namespace {

Attention attention(int64_t batch, int64_t heads, int64_t keyHeads, int64_t queries, int64_t keys,
                    int64_t width, int64_t valueWidth, bool causal) {
  Attention a;
  a.batch = batch, a.heads = heads, a.keyHeads = keyHeads;
  a.queries = queries, a.keys = keys, a.width = width, a.valueWidth = valueWidth;
  a.causal = causal;
  a.scale = 0.125;
  a.operands = 5, a.logSumExp = 4;
  const auto view = [](uint32_t operand, int64_t rows, int64_t heads, int64_t width) {
    return AttentionView{operand, 0, rows * heads * width, heads * width, width};
  };
  a.query = view(0, queries, heads, width);
  a.key = view(1, keys, keyHeads, width);
  a.value = view(2, keys, keyHeads, valueWidth);
  a.result = view(3, queries, heads, valueWidth);
  return a;
}

Attention gradientOf(Attention a) {
  a.backward = true;
  a.operands = 9;
  a.dresult = a.result, a.dquery = a.query, a.dkey = a.key, a.dvalue = a.value;
  a.dresult.operand = 5, a.dquery.operand = 6, a.dkey.operand = 7, a.dvalue.operand = 8;
  return a;
}

/// In a process of its own: the library is opened once.
[[noreturn]] void findIn(const char* folder) {
  setenv(librariesVariable, folder, 1);
  const Result<std::string> version = findCudnn();
  std::fprintf(stderr, "%s\n", version.ok() ? "found" : version.error().message().c_str());
  std::exit(version.ok() ? 0 : version.error().exitCode());
}

// Suites of this name run first.
TEST(CudnnDeathTest, SaysWhatIsMissing) {
  EXPECT_EXIT(findIn(TITAN_EMPTY_CUDA), ::testing::ExitedWithCode(3),
              "cuDNN \\('" TITAN_EMPTY_CUDA "/libcudnn.so.9'\\) has version 9.1.0, and a job takes "
              "9.10.0 or later: update it, or name another folder in TITAN_CUDA_LIBRARIES");
  EXPECT_EXIT(findIn(TITAN_NO_CUDNN), ::testing::ExitedWithCode(3),
              "cannot load cuDNN: " TITAN_NO_CUDNN
              "/libcudnn.so.9: .*: install cuDNN 9 for CUDA 13, "
              "or the wheel nvidia-cudnn-cu13, and name its folder in TITAN_CUDA_LIBRARIES");
}

class CudnnTest : public ::testing::Test {
protected:
  void SetUp() override {
    const Result<std::string> version = findCudnn();
    if (!version.ok())
      GTEST_SKIP() << version.error().message();
    Card card;
    card.capability = {9, 0};
    std::ifstream file(TITAN_RECORDED_CARD);
    const std::string properties{std::istreambuf_iterator<char>(file), {}};
    Result<std::unique_ptr<AttentionLibrary>> loaded = loadCudnnWithoutCard(card, properties);
    ASSERT_TRUE(loaded.ok()) << loaded.error().message();
    library_ = loaded.take();
    EXPECT_EQ(library_->version(), *version);
  }

  std::unique_ptr<AttentionLibrary> library_;
};

TEST_F(CudnnTest, NeedsNoMoreThanIsPlanned) {
  const Attention calls[] = {attention(64, 12, 12, 1024, 1024, 64, 64, true), // GPT-2 124M
                             attention(16, 32, 8, 2048, 2048, 64, 64, true),  // Llama 1B
                             attention(2, 8, 2, 128, 128, 128, 128, false),
                             attention(3, 6, 2, 257, 129, 24, 64, true),
                             attention(1, 4, 4, 200, 70, 40, 40, false)};
  for (const Attention& forward : calls)
    for (const Attention& call : {forward, gradientOf(forward)}) {
      SCOPED_TRACE(fmt::format(
          "{} [{}, {} / {}, {}, {}, {} / {}]", call.backward ? "backward" : "forward", call.batch,
          call.heads, call.keyHeads, call.queries, call.keys, call.width, call.valueWidth));
      const int64_t planned = plannedAttentionWorkspace(call);
      const Result<std::vector<AttentionOffer>> offers = library_->offers(call, planned);
      ASSERT_TRUE(offers.ok()) << offers.error().message();
      for (const AttentionOffer& offer : *offers)
        EXPECT_LE(offer.workspace, planned) << offer.name;
    }
}

TEST_F(CudnnTest, ABatchIsCutWhereTheWorkspaceIsSmall) {
  const Attention call = gradientOf(attention(8, 4, 4, 256, 256, 64, 64, true));
  const int64_t half = attentionWorkspace(call, 4);
  const Result<std::vector<AttentionOffer>> offers = library_->offers(call, half);
  ASSERT_TRUE(offers.ok()) << offers.error().message();
  EXPECT_EQ(offers->front().name.find("2 x eng"), 0u) << offers->front().name;
  EXPECT_LE(offers->front().workspace, half);
}

TEST_F(CudnnTest, SaysWhyItOffersNothing) {
  const Result<std::vector<AttentionOffer>> none =
      library_->offers(gradientOf(attention(1, 1, 1, 1, 1, 64, 64, false)), 1 << 20);
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message(), "s_q = s_kv = 1 is not supported.");
}

TEST_F(CudnnTest, CannotBuildWithoutTheCard) {
  const Attention call = attention(1, 4, 4, 128, 128, 64, 64, true);
  const Result<std::vector<AttentionOffer>> offers = library_->offers(call, 1 << 20);
  ASSERT_TRUE(offers.ok()) << offers.error().message();
  EXPECT_FALSE(offers->front().build().ok());
}

} // namespace
} // namespace titan::cuda
