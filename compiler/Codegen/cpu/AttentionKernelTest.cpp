// The attention routine against its definition in f64, over shapes around every block's edge.
#include "compiler/Codegen/cpu/testing/AttentionCase.h"
#include "compiler/Codegen/cpu/testing/EmulatedTiles.h"

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>
#include <limits>

namespace titan::codegen::testing {
namespace {

using Mask = AttentionSpec::Mask;

/// Values, and equal bits however the units are divided.
void check(const AttentionCase& attention, double tolerance = 4e-6) {
  const AttentionSpec& s = attention.spec();
  SCOPED_TRACE(fmt::format("B {} H {} G {} T {} S {} D {} E {} {}{}", s.batch, s.heads, s.keyHeads,
                           s.queries, s.keys, s.width, s.valueWidth, s.element,
                           s.causal ? " causal" : ""));
  AttentionTensors expected = attention.reference();
  AttentionTensors forward = attention.forward(), backward = attention.backward();
  expectClose(forward, expected, tolerance);
  expectClose(backward, expected, tolerance);
  for (int64_t step : {1, 3}) {
    EXPECT_EQ(attention.forward(step), forward) << "in calls of " << step << " units";
    EXPECT_EQ(attention.backward(step), backward) << "in calls of " << step << " units";
  }
}

void check(const AttentionSpec& spec, double tolerance = 4e-6) {
  check(AttentionCase(spec), tolerance);
}

TEST(AttentionKernel, SequencesAroundTheBlocks) {
  for (int64_t queries : {1, 5, 16, 17, 63, 64, 65, 130})
    for (bool causal : {false, true})
      check({.batch = 2, .queries = queries, .heads = 2, .width = 16, .causal = causal});
}

TEST(AttentionKernel, KeysDifferFromQueries) {
  for (auto [queries, keys] : {std::pair(1, 70), {40, 7}, {70, 129}, {129, 64}, {100, 20}})
    for (bool causal : {false, true})
      check({.queries = queries, .keys = keys, .heads = 2, .width = 32, .causal = causal});
}

TEST(AttentionKernel, Widths) {
  for (auto [width, valueWidth] :
       {std::pair(64, 64), {8, 24}, {80, 80}, {3, 5}, {128, 64}, {96, 130}, {256, 256}})
    check({.queries = 70, .heads = 2, .width = width, .valueWidth = valueWidth, .causal = true});
}

TEST(AttentionKernel, GroupedQueries) {
  check({.batch = 2, .queries = 70, .heads = 6, .keyHeads = 2, .width = 32, .causal = true});
  check({.batch = 2, .queries = 33, .keys = 50, .heads = 4, .keyHeads = 1, .width = 20});
}

TEST(AttentionKernel, PartsOfOneProjection) {
  AttentionSpec spec = {.batch = 2, .queries = 70, .heads = 4, .width = 32, .causal = true};
  AttentionCase apart(spec);
  spec.isPacked = true;
  AttentionCase packed(spec);
  check(packed);
  EXPECT_EQ(packed.forward(), apart.forward());
  EXPECT_EQ(packed.backward(), apart.backward());
  spec.keyHeads = 2;
  spec.width = 20;
  check(spec);
}

TEST(AttentionKernel, Masks) {
  for (Mask mask : {Mask::Boolean, Mask::Additive})
    for (int broadcast : {0, 1, 2, 4, 7})
      check({.batch = 2,
             .queries = 37,
             .keys = 70,
             .heads = 3,
             .width = 16,
             .causal = broadcast == 4,
             .mask = mask,
             .maskBatch = !(broadcast & 1),
             .maskHeads = !(broadcast & 2),
             .maskRows = !(broadcast & 4)});
}

// What *lower* chooses from a machine model: other blocks give the same values.
TEST(AttentionKernel, BlocksOfOtherExtents) {
  for (auto [rows, keys, padding] :
       {std::tuple(16, 8, 16), {48, 16, 16}, {128, 32, 16}, {128, 128, 64}, {64, 64, 32}})
    for (const char* element : {"f32", "bf16", "f64"})
      for (auto [queries, width] : {std::pair(150, 16), {70, 40}})
        check({.queries = queries,
               .heads = 2,
               .keyHeads = 1,
               .width = width,
               .element = element,
               .causal = true,
               .mask = width == 40 ? Mask::Boolean : Mask::None,
               .p = 0.25,
               .rows = rows,
               .blockKeys = keys,
               .padding = padding},
              std::string_view(element) == "bf16" ? 1e-2 : 4e-6);
  check({.queries = 70, .heads = 1, .width = 320, .causal = true, .rowsOfWide = 16});
}

TEST(AttentionKernel, TakesMemoryForSumsThatATargetHasInRegisters) {
  for (int64_t width : {32, 20}) {
    AttentionSpec spec = {.batch = 2, .queries = 130, .heads = 4, .keyHeads = 2, .width = width};
    spec.causal = true;
    AttentionCase inMemory(spec);
    spec.padding = 0;
    AttentionCase inRegisters(spec);
    check(inRegisters);
    EXPECT_EQ(inRegisters.backward(), inMemory.backward());
  }
}

TEST(AttentionKernel, SumsHaveTheSameBitsInAWorkspace) {
  AttentionSpec spec = {.queries = 130, .heads = 4, .keyHeads = 2, .width = 32, .causal = true};
  AttentionCase inOuts(spec);
  spec.hasWorkspace = true;
  AttentionCase inWorkspace(spec);
  check(inWorkspace);
  EXPECT_EQ(inWorkspace.backward(), inOuts.backward());
}

TEST(AttentionKernel, ScaleWhoseSignTurnsTheMaximum) {
  for (double scale : {-0.5, 3.0, 1e-3})
    check({.queries = 40, .heads = 2, .width = 16, .scale = scale}, 2e-5);
}

TEST(AttentionKernel, QueriesThatAttendToNothing) {
  for (Mask mask : {Mask::Boolean, Mask::Additive}) {
    AttentionCase attention({.queries = 20, .keys = 70, .heads = 2, .width = 16, .mask = mask});
    double nothing = mask == Mask::Boolean ? 0 : -std::numeric_limits<double>::infinity();
    for (int64_t row : {0, 7, 20, 39})
      std::fill_n(attention.inputs["mask"].begin() + row * 70, 70, nothing);
    // Masked in the first block of keys only.
    std::fill_n(attention.inputs["mask"].begin() + 9 * 70, 64, nothing);
    check(attention);
    AttentionTensors found = attention.forward();
    EXPECT_EQ(found["logSumExp"][0], -std::numeric_limits<double>::infinity());
    EXPECT_EQ(found["result"][3], 0);
  }
}

/// Masks as exporters write them, where queries have no key left: the first ones, as of a sample
/// that is padded at its beginning, and one in the middle. Others attend to every third key.
void maskByNumber(AttentionCase& attention, double allowed, double forbidden) {
  const AttentionSpec& s = attention.spec();
  std::vector<double>& mask = attention.inputs["mask"];
  for (size_t i = 0; i < mask.size(); ++i) {
    auto key = static_cast<int64_t>(i) % s.keys, query = static_cast<int64_t>(i) / s.keys;
    bool hasNone = query % s.queries < 5 || query % (2 * s.queries) == s.queries + 7;
    mask[i] = hasNone || key % 3 == 1 ? forbidden : allowed;
  }
}

const double lowNumbers[] = {static_cast<double>(std::numeric_limits<float>::lowest()), -1e31,
                             -1e30, -1e9, -1e4};

// The number is added, or written over the score; on vectors and, where there are bf16 tiles, on
// them. Beside -1e4 a score keeps three digits, and products in another order other ones.
TEST(AttentionKernel, QueriesWithoutAKey) {
  for (double low : lowNumbers)
    for (const char* element : {"f32", "bf16"})
      for (bool isWritten : {false, true})
        for (int64_t extent : {37, 96}) {
          SCOPED_TRACE(fmt::format("{} {}", low, isWritten ? "written" : "added"));
          AttentionSpec spec = {.batch = 2,
                                .queries = extent,
                                .heads = 2,
                                .width = 32,
                                .element = element,
                                .mask = isWritten ? Mask::Boolean : Mask::Additive,
                                .fill = isWritten ? low : 0,
                                .maskHeads = false};
          AttentionCase attention(spec);
          maskByNumber(attention, isWritten ? 1 : 0, isWritten ? 0 : low);
          bool isBf16 = std::string_view(element) == "bf16";
          check(attention, isBf16 ? 1e-2 : !isWritten && low == -1e4 ? 1e-3 : 4e-6);
        }
}

TEST(AttentionKernel, QueriesWithoutAKeyOnTilesOfBf16) {
  const char* reason = whyNoTiles();
  for (bool isWritten : {false, true}) {
    AttentionSpec spec = {.queries = 96,
                          .heads = 2,
                          .width = 64,
                          .element = "bf16",
                          .mask = isWritten ? Mask::Boolean : Mask::Additive,
                          .fill = isWritten ? -1e9 : 0,
                          .p = 0.25};
    AttentionCase emulated(spec, "native", MatrixUnitKind::Emulated);
    maskByNumber(emulated, isWritten ? 1 : 0, isWritten ? 0 : -1e9);
    check(emulated, 1e-2);
    if (reason)
      continue;
    AttentionCase onAmx(spec, "native", MatrixUnitKind::Amx);
    onAmx.inputs = emulated.inputs;
    EXPECT_EQ(onAmx.forward(), emulated.forward());
    EXPECT_EQ(onAmx.backward(), emulated.backward());
  }
}

// Attending to all keys alike in closed form, and what a fill keeps from queries and keys.
TEST(AttentionKernel, AQueryWithoutAKeyAttendsToAllAlike) {
  constexpr int64_t keys = 33, width = 16;
  for (double low : lowNumbers) {
    if (low == -1e4)
      continue;
    for (bool isWritten : {false, true}) {
      AttentionCase attention({.queries = 2,
                               .keys = keys,
                               .heads = 1,
                               .width = width,
                               .mask = isWritten ? Mask::Boolean : Mask::Additive,
                               .fill = isWritten ? low : 0});
      std::fill_n(attention.inputs["mask"].begin(), 2 * keys, isWritten ? 0 : low);
      // The first row attends to key 7 alone.
      attention.inputs["mask"][7] = isWritten ? 1 : 0;
      AttentionTensors found = attention.forward(), adjoints = attention.backward();
      const std::vector<double>&value = attention.inputs["value"],
            &dresult = attention.inputs["dresult"];
      for (int64_t e = 0; e < width; ++e) {
        double mean = 0;
        for (int64_t j = 0; j < keys; ++j)
          mean += value[j * width + e] / keys;
        EXPECT_NEAR(found["result"][e], value[7 * width + e], 1e-6);
        EXPECT_NEAR(found["result"][width + e], mean, 1e-6);
        for (int64_t j = 0; j < keys; ++j)
          EXPECT_NEAR(adjoints["dvalue"][j * width + e],
                      dresult[width + e] / keys + (j == 7 ? dresult[e] : 0), 1e-6);
        EXPECT_EQ(adjoints["dquery"][width + e] == 0, isWritten);
      }
      EXPECT_EQ(found["largest"][1], static_cast<double>(static_cast<float>(low)));
    }
  }
}

TEST(AttentionKernel, NonFiniteValuesShow) {
  AttentionCase attention({.queries = 20, .heads = 1, .width = 16, .causal = true});
  attention.inputs["key"][10 * 16] = NAN;
  AttentionTensors found = attention.forward();
  EXPECT_TRUE(std::isfinite(found["result"][9 * 16]));
  EXPECT_TRUE(std::isnan(found["result"][10 * 16]));
  EXPECT_TRUE(std::isnan(found["logSumExp"][19]));
}

TEST(AttentionKernel, Dropout) {
  check({.batch = 2, .queries = 72, .heads = 2, .width = 16, .causal = true, .p = 0.25});
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

TEST(AttentionKernel, Bf16) {
  for (bool causal : {false, true})
    for (auto [queries, width] : {std::pair(64, 64), {65, 80}, {131, 16}, {7, 6}, {70, 7}})
      check({.batch = 2,
             .queries = queries,
             .heads = 2,
             .width = width,
             .element = "bf16",
             .causal = causal},
            1e-2);
  check({.queries = 37,
         .keys = 51,
         .heads = 4,
         .keyHeads = 2,
         .width = 32,
         .element = "bf16",
         .mask = Mask::Boolean,
         .p = 0.25,
         .isPacked = false},
        1e-2);
}

// On AMX where this machine has it, and with emulated tiles on any: to the same bits.
TEST(AttentionKernel, TilesOfBf16) {
  const char* reason = whyNoTiles();
  if (reason)
    std::cout << "emulated tiles only: " << reason << "\n";
  for (bool causal : {false, true})
    for (AttentionSpec spec : {AttentionSpec{.batch = 2, .queries = 64, .heads = 2, .width = 64},
                               {.queries = 160, .heads = 2, .width = 32, .valueWidth = 96},
                               {.queries = 96, .keys = 160, .heads = 2, .width = 64},
                               {.queries = 160, .keys = 64, .heads = 1, .width = 32},
                               {.queries = 32, .heads = 4, .keyHeads = 2, .width = 32, .p = 0.25},
                               {.queries = 128, .heads = 2, .width = 160, .isPacked = true}}) {
      spec.element = "bf16";
      spec.causal = causal;
      if (spec.keys != 0 && !causal)
        spec.mask = Mask::Boolean;
      if (spec.queries == 160)
        spec.rows = 96, spec.blockKeys = 32;
      AttentionCase emulated(spec, "native", MatrixUnitKind::Emulated);
      const int64_t before = emulatedProducts();
      check(emulated, 1e-2);
      EXPECT_GT(emulatedProducts(), before);
      if (reason)
        continue;
      AttentionCase onAmx(spec, "native", MatrixUnitKind::Amx);
      EXPECT_EQ(onAmx.forward(), emulated.forward());
      EXPECT_EQ(onAmx.backward(), emulated.backward());
    }
}

TEST(AttentionKernel, F64) {
  check({.queries = 70, .heads = 2, .width = 12, .element = "f64", .causal = true, .p = 0.5},
        1e-13);
  check({.queries = 20,
         .keys = 33,
         .heads = 2,
         .width = 16,
         .element = "f64",
         .mask = Mask::Additive},
        1e-13);
}

TEST(AttentionKernel, OtherTargets) {
  for (const char* arch : {"x86-64-v3", "x86-64"})
    for (const char* element : {"f32", "bf16"})
      check(AttentionCase({.queries = 70,
                           .heads = 2,
                           .keyHeads = 1,
                           .width = 20,
                           .element = element,
                           .causal = true,
                           .mask = Mask::Boolean,
                           .p = 0.25},
                          arch),
            std::string(element) == "f32" ? 4e-6 : 1e-2);
}

} // namespace
} // namespace titan::codegen::testing
