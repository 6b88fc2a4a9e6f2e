// Updates by index and sorted rows: drawn cases against loops, in three orders of blocks and warps.
#include "compiler/Codegen/cuda/testing/CudaRunner.h"
#include "compiler/Codegen/kernel/testing/ScatterCase.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace titan::codegen::cuda::testing {
namespace {

using codegen::testing::below;
using codegen::testing::decode;
using codegen::testing::drawScatter;
using codegen::testing::drawSort;
using codegen::testing::Elements;
using codegen::testing::encode;
using codegen::testing::isSame;
using codegen::testing::ScatterCase;
using codegen::testing::ScatterData;
using codegen::testing::SortCase;
using codegen::testing::SortData;

std::unique_ptr<CudaRunner> compile(const std::string& text) {
  Result<std::unique_ptr<CudaRunner>> runner = CudaRunner::compile(text);
  if (runner.ok())
    return runner.take();
  ADD_FAILURE() << runner.error().message() << "\n" << text;
  return nullptr;
}

void checkScatter(const ScatterCase& c, std::mt19937& generator, bool assembles = false) {
  SCOPED_TRACE(moduleText(c));
  auto runner = compile(moduleText(c));
  ASSERT_TRUE(runner);
  const ScatterData data = drawScatter(c, generator);
  const auto bytes = runInAllOrders(*runner, data.operands, 3);
  ASSERT_EQ(bytes.size(), 3);
  const Elements found = decode(c.element, bytes[2]);
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_TRUE(isSame(found[i], data.expected[i]))
        << "element " << i << ": " << found[i] << ", not " << data.expected[i];
  if (assembles)
    expectAssembles(runner->ptx());
}

TEST(CudaScatterKernel, AgreesWithLoops) {
  std::mt19937 generator(7);
  for (std::string kind : {"none", "add", "mul", "max", "min"})
    for (std::string element : {"f32", "f64", "i64", "i32"})
      for (int64_t width : {1, 3, 64, 65})
        checkScatter({kind, element, std::array{"i64", "i32"}[below(generator, 2)],
                      1 + below(generator, 3), 1 + below(generator, 7), 1 + below(generator, 3),
                      1 + below(generator, 9), width, std::min<int64_t>(width, 64)},
                     generator, width == 64);
}

TEST(CudaScatterKernel, ReplacesElementsOfAnyType) {
  std::mt19937 generator(8);
  for (std::string element : {"bf16", "i8"})
    for (int64_t width : {1, 2, 33, 48})
      checkScatter({"none", element, "i64", 2, 5, 2, 9, width, 16}, generator, true);
  checkScatter({"none", "f32", "ui8", 2, 5, 2, 9, 33, 16}, generator);
}

// Several blocks, and a row of updates that many meet.
TEST(CudaScatterKernel, WalksManyRowsInOrder) {
  std::mt19937 generator(10);
  for (const char* kind : {"none", "mul", "max"})
    checkScatter({kind, "f32", "i64", 3, 4, 1, 300, 700, 64}, generator);
}

TEST(CudaScatterKernel, MovesAsMuchAsFits) {
  std::mt19937 generator(11);
  for (const auto& [element, width, log] : {std::tuple<const char*, int64_t, size_t>{"f32", 64, 4},
                                            {"bf16", 8, 4},
                                            {"f32", 6, 3},
                                            {"i8", 6, 1}}) {
    const ScatterCase c{"none", element, "i64", 1, 5, 1, 4, width, width};
    std::string text = moduleText(c);
    for (const char* operand : {"%u: ", "%r: "}) { // aligned
      const size_t end = text.find('>', text.find(operand)) + 1;
      text.insert(end, " {kernel.offset = 0 : i64}");
    }
    auto runner = compile(text);
    ASSERT_TRUE(runner);
    ptx::Counters counters;
    runOnBytes(*runner, drawScatter(c, generator).operands, 3, ptx::Order::Ascending, &counters);
    EXPECT_EQ(counters.globalStores.byWidth[log], counters.globalStores.requests) << element;
  }
}

TEST(CudaScatterKernel, ComparesWithoutSigns) {
  auto runner = compile(moduleText(ScatterCase{"max", "ui8", "i64", 1, 2, 1, 2, 1, 1}));
  ASSERT_TRUE(runner);
  EXPECT_EQ(runInAllOrders(*runner, {encode("i64", {0, 1}), "\xff\x01", "\x01\xff"}, 3)[2],
            "\xff\xff");
}

void checkSort(const SortCase& c, std::mt19937& generator, bool assembles = false) {
  SCOPED_TRACE(moduleText(c));
  auto runner = compile(moduleText(c));
  ASSERT_TRUE(runner);
  const SortData data = drawSort(c, generator);
  const auto bytes = runInAllOrders(*runner, data.operands, 1);
  ASSERT_EQ(bytes.size(), 3);
  ASSERT_EQ(decode("i64", bytes[2]), data.indices);
  const Elements found = decode(c.element, bytes[1]);
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_TRUE(isSame(found[i], data.values[i]));
  if (assembles)
    expectAssembles(runner->ptx());
}

TEST(CudaTopKKernel, KeepsTheOrderOfEqualElements) {
  std::mt19937 generator(9);
  for (std::string element : {"f32", "f64", "bf16", "i64", "i32", "i8"})
    for (int64_t length : {1, 2, 3, 8, 17, 100, 1025})
      for (bool smallest : {false, true})
        checkSort(
            {element, 1 + below(generator, 5), length, 1 + below(generator, length), smallest},
            generator, length == 17);
}

// As a router of experts has them: many short rows, in several blocks.
TEST(CudaTopKKernel, ManyRows) {
  std::mt19937 generator(12);
  checkSort({"f32", 700, 8, 2, false}, generator);
}

TEST(CudaTopKKernel, ComparesWithoutSigns) {
  auto runner = compile(moduleText(SortCase{"ui8", 1, 3, 3, false}));
  ASSERT_TRUE(runner);
  const auto bytes =
      runInAllOrders(*runner, {"\x01\xff\x7f", "\x01\x01\x01", encode("i64", {0, 0, 0})}, 1);
  EXPECT_EQ(bytes[1], "\xff\x7f\x01");
  EXPECT_EQ(decode("i64", bytes[2]), (Elements{1, 2, 0}));
}

TEST(CudaTopKKernel, OtherTypesAreRefused) {
  Result<std::unique_ptr<CudaRunner>> half =
      CudaRunner::compile(moduleText(SortCase{"f16", 2, 3, 1, false}));
  ASSERT_FALSE(half.ok());
  EXPECT_NE(half.error().message().find("the order of 'f16' has no kernel on cuda"),
            std::string::npos)
      << half.error().message();
}

} // namespace
} // namespace titan::codegen::cuda::testing
