// Updates by index and sorted rows: drawn cases against loops, for any split into units.
#include "compiler/Codegen/cpu/testing/KernelCase.h"
#include "compiler/Codegen/kernel/testing/ScatterCase.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace titan::codegen::testing {
namespace {

/// What `units` at a time make of the operands' bytes.
std::vector<std::string> runIn(KernelRunner& runner, std::vector<std::string> bytes,
                               int64_t units) {
  std::vector<char*> operands;
  for (std::string& buffer : bytes)
    operands.push_back(buffer.data());
  runner.run(0, operands, {}, units);
  return bytes;
}

void checkScatter(const ScatterCase& c, std::mt19937& generator) {
  SCOPED_TRACE(moduleText(c));
  auto runner = compile(moduleText(c));
  ASSERT_TRUE(runner);
  const ScatterData data = drawScatter(c, generator);
  const std::string whole = runIn(*runner, data.operands, 0)[2];
  const Elements found = decode(c.element, whole);
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_TRUE(isSame(found[i], data.expected[i]))
        << "element " << i << ": " << found[i] << ", not " << data.expected[i];
  for (int64_t units : {1, 3})
    ASSERT_EQ(runIn(*runner, data.operands, units)[2], whole) << units << " units at a time";
}

TEST(ScatterKernel, AgreesWithLoops) {
  std::mt19937 generator(7);
  for (std::string kind : {"none", "add", "mul", "max", "min"})
    for (std::string element : {"f32", "f64", "i64", "i32"})
      for (int round = 0; round < 2; ++round) {
        const int64_t width = std::array{1, 3, 65}[below(generator, 3)];
        checkScatter({kind, element, std::array{"i64", "i32"}[below(generator, 2)],
                      1 + below(generator, 3), 1 + below(generator, 7), 1 + below(generator, 3),
                      1 + below(generator, 4), width, std::min<int64_t>(width, 64)},
                     generator);
      }
}

TEST(ScatterKernel, ReplacesElementsOfAnyType) {
  std::mt19937 generator(8);
  for (std::string element : {"bf16", "i8"})
    checkScatter({"none", element, "i64", 2, 5, 2, 9, 33, 16}, generator);
  checkScatter({"none", "f32", "ui8", 2, 5, 2, 9, 33, 16}, generator);
}

TEST(ScatterKernel, ComparesWithoutSigns) {
  auto runner = compile(moduleText(ScatterCase{"max", "ui8", "i64", 1, 2, 1, 2, 1, 1}));
  ASSERT_TRUE(runner);
  auto bytes = runIn(*runner, {encode("i64", {0, 1}), "\xff\x01", "\x01\xff"}, 0);
  EXPECT_EQ(bytes[2], "\xff\xff");
}

void checkSort(const SortCase& c, std::mt19937& generator) {
  SCOPED_TRACE(moduleText(c));
  auto runner = compile(moduleText(c));
  ASSERT_TRUE(runner);
  const SortData data = drawSort(c, generator);
  auto whole = runIn(*runner, data.operands, 0);
  ASSERT_EQ(decode("i64", whole[2]), data.indices);
  const Elements found = decode(c.element, whole[1]);
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_TRUE(isSame(found[i], data.values[i]));
  for (int64_t units : {1, 3})
    ASSERT_EQ(runIn(*runner, data.operands, units), whole) << units << " units at a time";
}

TEST(TopKKernel, KeepsTheOrderOfEqualElements) {
  std::mt19937 generator(9);
  for (std::string element : {"f32", "f64", "bf16", "i64", "i32", "i8"})
    for (int64_t length : {1, 2, 3, 8, 17, 100, 1025})
      for (bool smallest : {false, true})
        checkSort(
            {element, 1 + below(generator, 5), length, 1 + below(generator, length), smallest},
            generator);
}

TEST(TopKKernel, ComparesWithoutSigns) {
  auto runner = compile(moduleText(SortCase{"ui8", 1, 3, 3, false}));
  ASSERT_TRUE(runner);
  auto bytes = runIn(*runner, {"\x01\xff\x7f", "\x01\x01\x01", encode("i64", {0, 0, 0})}, 0);
  EXPECT_EQ(bytes[1], "\xff\x7f\x01");
  EXPECT_EQ(decode("i64", bytes[2]), (Elements{1, 2, 0}));
}

} // namespace
} // namespace titan::codegen::testing
