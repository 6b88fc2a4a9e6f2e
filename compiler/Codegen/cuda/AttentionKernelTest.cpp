// Attention and its gradient against their definition in f64, over shapes around every block's
// edge.
#include "compiler/Codegen/cuda/testing/CudaAttention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace titan::codegen::cuda::testing {
namespace {

using Mask = AttentionSpec::Mask;
constexpr double ofBf16 = 1e-2;

void check(const AttentionSpec& spec, double tolerance = 4e-6) {
  CudaAttention(spec).check(tolerance);
}

TEST(CudaAttentionKernel, SequencesAroundTheBlocks) {
  for (int64_t queries : {1, 64, 130})
    for (bool causal : {false, true})
      check({.batch = 1, .queries = queries, .heads = 2, .width = 16, .causal = causal});
}

TEST(CudaAttentionKernel, KeysDifferFromQueries) {
  for (auto [queries, keys] : {std::pair(1, 70), {129, 64}})
    for (bool causal : {false, true})
      check({.queries = queries, .keys = keys, .heads = 1, .width = 20, .causal = causal});
}

// Up to 128 each, one launch has the sums of key and value; wider ones have more.
TEST(CudaAttentionKernel, Widths) {
  for (auto [width, valueWidth] :
       {std::pair(40, 40), {3, 5}, {64, 64}, {80, 72}, {128, 64}, {96, 130}, {256, 256}})
    check({.batch = 1,
           .queries = 20,
           .keys = 24,
           .heads = 1,
           .width = width,
           .valueWidth = valueWidth,
           .causal = true});
}

TEST(CudaAttentionKernel, WidthsOfSeveralLaunches) {
  CudaAttention attention({.queries = 5, .keys = 9, .heads = 1, .width = 320, .valueWidth = 300});
  attention.check();
  // Forward two; of keys two for the value and two; of queries two.
  EXPECT_EQ(attention.runner().launchCount(), 8);
}

TEST(CudaAttentionKernel, GroupedQueries) {
  check({.batch = 2, .queries = 70, .heads = 6, .keyHeads = 2, .width = 16, .causal = true});
  check({.queries = 33, .keys = 50, .heads = 4, .keyHeads = 1, .width = 20});
}

TEST(CudaAttentionKernel, PartsOfOneProjection) {
  AttentionSpec spec = {.batch = 2, .queries = 37, .heads = 4, .width = 16, .causal = true};
  CudaAttention apart(spec);
  spec.isPacked = true;
  CudaAttention packed(spec);
  packed.check();
  EXPECT_EQ(packed.forward(), apart.forward());
  EXPECT_EQ(packed.backward(), apart.backward());
  spec.keyHeads = 2;
  spec.width = 10;
  check(spec);
}

TEST(CudaAttentionKernel, Masks) {
  for (Mask mask : {Mask::Boolean, Mask::Additive})
    for (int broadcast : {0, 3, 4})
      check({.batch = 2,
             .queries = 21,
             .keys = 70,
             .heads = 2,
             .width = 16,
             .causal = broadcast == 4,
             .mask = mask,
             .maskBatch = !(broadcast & 1),
             .maskHeads = !(broadcast & 2),
             .maskRows = !(broadcast & 4)});
}

TEST(CudaAttentionKernel, ScaleWhoseSignTurnsTheMaximum) {
  for (double scale : {-0.5, 3.0})
    check({.queries = 24, .heads = 1, .width = 16, .scale = scale}, 2e-5);
}

TEST(CudaAttentionKernel, QueriesThatAttendToNothing) {
  for (Mask mask : {Mask::Boolean, Mask::Additive}) {
    CudaAttention attention({.queries = 20, .keys = 70, .heads = 2, .width = 16, .mask = mask});
    const double nothing = mask == Mask::Boolean ? 0 : -std::numeric_limits<double>::infinity();
    for (int64_t row : {0, 7, 20, 39})
      std::fill_n(attention.inputs["mask"].begin() + row * 70, 70, nothing);
    // Masked in the first block of keys only.
    std::fill_n(attention.inputs["mask"].begin() + 9 * 70, 64, nothing);
    attention.check();
    AttentionTensors found = attention.forward();
    EXPECT_EQ(found["logSumExp"][0], -std::numeric_limits<double>::infinity());
    EXPECT_EQ(found["result"][3], 0);
  }
}

// A number is added, or written over the score; beside -1e4 a score keeps three digits.
TEST(CudaAttentionKernel, QueriesWithoutAKey) {
  const auto lowest = static_cast<double>(std::numeric_limits<float>::lowest());
  for (double low : {lowest, -1e4})
    for (const char* element : {"f32", "bf16"})
      for (bool isWritten : {false, true}) {
        SCOPED_TRACE(::testing::Message() << low << (isWritten ? " written" : " added"));
        CudaAttention attention({.queries = 37,
                                 .heads = 2,
                                 .width = 16,
                                 .element = element,
                                 .mask = isWritten ? Mask::Boolean : Mask::Additive,
                                 .fill = isWritten ? low : 0,
                                 .maskHeads = false});
        std::vector<double>& mask = attention.inputs["mask"];
        for (size_t i = 0; i < mask.size(); ++i) {
          const size_t key = i % 37, query = i / 37;
          const bool forbidden = query < 5 || query == 12 || key % 3 == 1;
          mask[i] = forbidden ? (isWritten ? 0 : low) : (isWritten ? 1 : 0);
        }
        const bool isBf16 = std::string_view(element) == "bf16";
        attention.check(isBf16 ? ofBf16 : !isWritten && low == -1e4 ? 1e-3 : 4e-6);
      }
}

TEST(CudaAttentionKernel, NonFiniteValuesShow) {
  CudaAttention attention({.queries = 20, .heads = 1, .width = 16, .causal = true});
  attention.inputs["key"][10 * 16] = NAN;
  AttentionTensors found = attention.forward();
  EXPECT_TRUE(std::isfinite(found["result"][9 * 16]));
  EXPECT_TRUE(std::isnan(found["result"][10 * 16]));
  EXPECT_TRUE(std::isnan(found["logSumExp"][19]));
}

// One wrong bit is a probability that is there or not. Rows of 45 begin anywhere in a Philox block.
TEST(CudaAttentionKernel, Dropout) {
  check({.batch = 2, .queries = 72, .heads = 1, .width = 16, .causal = true, .p = 0.25});
  check({.batch = 2, .queries = 37, .keys = 45, .heads = 2, .width = 16, .p = 0.5});
  for (int64_t window : {0, 1, 2, 3})
    check({.batch = 2,
           .queries = 24,
           .heads = 2,
           .width = 16,
           .p = 0.5,
           .window = window,
           .microbatch = 1});
  check(
      {.queries = 24, .keys = 12, .heads = 2, .width = 16, .p = 0.5, .window = 3, .microbatch = 1});
}

TEST(CudaAttentionKernel, Bf16) {
  for (bool causal : {false, true})
    for (auto [queries, width] : {std::pair(64, 64), {70, 7}})
      check({.batch = 1,
             .queries = queries,
             .heads = 2,
             .width = width,
             .element = "bf16",
             .causal = causal},
            ofBf16);
  check({.queries = 37,
         .keys = 51,
         .heads = 4,
         .keyHeads = 2,
         .width = 32,
         .element = "bf16",
         .mask = Mask::Boolean,
         .p = 0.25},
        ofBf16);
}

// Steps of up to 64 terms; operands and rows that let copies be 16, 8, 4 or 2 bytes wide.
TEST(CudaAttentionKernel, Bf16OnTensorCores) {
  struct Case {
    int64_t width, valueWidth;
    std::optional<int64_t> offset;
  };
  for (const Case& c : {Case{16, 16, 0}, {40, 72, 16}, {64, 128, 8}, {20, 6, 4}, {130, 65, {}}})
    check({.batch = 2,
           .queries = 66,
           .keys = 70,
           .heads = 1,
           .width = c.width,
           .valueWidth = c.valueWidth,
           .element = "bf16",
           .causal = true,
           .offset = c.offset},
          ofBf16);
  for (auto [queries, keys] : {std::pair(1, 1), {5, 130}, {129, 17}})
    check(
        {.queries = queries, .keys = keys, .heads = 1, .width = 48, .element = "bf16", .offset = 0},
        ofBf16);
  AttentionSpec packed = {.batch = 2,
                          .queries = 37,
                          .heads = 4,
                          .keyHeads = 2,
                          .width = 24,
                          .element = "bf16",
                          .causal = true,
                          .isPacked = true,
                          .offset = 0};
  check(packed, ofBf16);
  EXPECT_NE(CudaAttention(packed).runner().ptx().find("mma.sync"), std::string::npos);
}

// Launches with as many sums as there are registers for.
TEST(CudaAttentionKernel, Bf16OfWideHeads) {
  check({.queries = 70,
         .heads = 1,
         .width = 128,
         .element = "bf16",
         .causal = true,
         .mask = Mask::Boolean,
         .p = 0.25,
         .offset = 0},
        ofBf16);
  check({.queries = 65, .heads = 1, .width = 256, .element = "bf16", .offset = 0}, ofBf16);
}

// Of 128 queries and keys: what two blocks of 64 copy of each matrix, and no bank passed over
// twice.
TEST(CudaAttentionKernel, Bf16CopiesWideAndWithoutBankConflicts) {
  const AttentionSpec spec = {
      .batch = 1, .queries = 128, .heads = 1, .width = 64, .element = "bf16", .offset = 0};
  constexpr int64_t tile = 64 * 64 * 2; // bytes
  CudaAttention attention(spec);
  attention.forward();
  const ptx::Counters& counters = attention.counters()[0];
  EXPECT_EQ(counters.sharedLoads.bankConflicts, 0);
  EXPECT_EQ(counters.sharedStores.bankConflicts, 0);
  EXPECT_EQ(counters.globalLoads.byWidth[4], counters.globalLoads.requests);
  // Query, key and value for each of four pairs of blocks.
  EXPECT_EQ(counters.globalLoads.bytes, 4 * 3 * tile);
  EXPECT_EQ(counters.matrix, 4 * 2 * (64 * 64 * 64) / (16 * 8 * 16) * 32);
  attention.backward();
  for (const ptx::Counters& launch : attention.counters()) {
    EXPECT_EQ(launch.sharedLoads.bankConflicts, 0);
    EXPECT_EQ(launch.sharedStores.bankConflicts, 0);
  }
}

// Tiles of queries, keys and values come in accesses of 16 bytes; rows of dO * O in such of 8, with
// which half a warp reads 64 columns. Narrower ones are statistics.
TEST(CudaAttentionKernel, Bf16MovesWholeSectorsOfAnyLength) {
  const int64_t length = 1000, width = 64, pairs = 16 * 17 / 2; // of blocks, causal
  CudaAttention attention({.batch = 1,
                           .queries = length,
                           .heads = 1,
                           .width = width,
                           .element = "bf16",
                           .causal = true,
                           .offset = 0});
  int64_t written = 0;
  auto check = [&] {
    for (const ptx::Counters& launch : attention.counters()) {
      for (const ptx::Traffic& traffic : {launch.globalLoads, launch.globalStores}) {
        EXPECT_LE(traffic.tripSectors * 32, traffic.bytes * 11 / 10);
        EXPECT_EQ(traffic.byWidth[0] + traffic.byWidth[1], 0);
      }
      written += launch.globalStores.bytes;
    }
  };
  attention.forward();
  check();
  EXPECT_EQ(written, length * (width * 2 + 4));
  const ptx::Traffic& loads = attention.counters()[0].globalLoads;
  EXPECT_EQ(loads.byWidth[4], loads.requests);
  EXPECT_LE(loads.bytes, pairs * 3 * 64 * width * 2);
  written = 0;
  attention.backward();
  check();
  EXPECT_EQ(written, 3 * length * width * 2);
  // A thread reads the statistic of each of its queries, and of both factors a run of the row.
  const ptx::Traffic& ofKeys = attention.counters()[0].globalLoads;
  EXPECT_EQ(ofKeys.byWidth[3], 2 * ofKeys.byWidth[2]);
}

TEST(CudaAttentionKernel, Bf16SumsOfSmallWholeNumbersAreExact) {
  CudaAttention attention(
      {.queries = 80, .keys = 70, .heads = 1, .width = 24, .element = "bf16", .offset = 0});
  attention.inputs["key"].assign(attention.inputs["key"].size(), 0);
  // Scores of 0: a row of the result is the mean of the values.
  std::vector<double>& value = attention.inputs["value"];
  for (size_t i = 0; i < value.size(); ++i)
    value[i] = static_cast<double>(i / 24 % 2) * static_cast<double>(i % 24);
  AttentionTensors found = attention.forward();
  for (size_t i = 0; i < found["result"].size(); ++i)
    EXPECT_EQ(found["result"][i], static_cast<double>(i % 24) / 2) << i;
}

TEST(CudaAttentionKernel, OtherTypesAndBlocksAreRefused) {
  auto messageOf = [](std::string text) {
    Result<std::unique_ptr<CudaRunner>> runner = CudaRunner::compile(text);
    return runner.ok() ? std::string("compiled") : runner.error().message();
  };
  EXPECT_NE(messageOf(codegen::testing::AttentionProblem({.element = "f64"}).moduleText())
                .find("attention of 'f64' has no kernel on cuda"),
            std::string::npos);
  EXPECT_NE(messageOf(codegen::testing::AttentionProblem({.rows = 32, .blockKeys = 8}).moduleText())
                .find("has blocks of 32 queries and 8 keys, padded to 16; on this target they are "
                      "of 64 and 64 without padding"),
            std::string::npos);
}

} // namespace
} // namespace titan::codegen::cuda::testing
