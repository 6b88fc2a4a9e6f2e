// Updates by index and sorted rows: drawn cases against loops, for any split into units.
#include "compiler/Codegen/cpu/testing/KernelCase.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <random>

namespace titan::codegen::testing {
namespace {

int64_t below(std::mt19937& generator, int64_t count) {
  return static_cast<int64_t>(generator() % static_cast<uint64_t>(count));
}

/// Whole numbers of half a unit, which all types hold.
Elements drawValues(std::mt19937& generator, int64_t count, bool isInteger) {
  Elements values(count);
  for (double& value : values)
    value = static_cast<double>(below(generator, 33) - 16) / (isInteger ? 1 : 2);
  return values;
}

/// What `units` at a time make of the operands' bytes.
std::vector<std::string> runIn(KernelRunner& runner, std::vector<std::string> bytes,
                               int64_t units) {
  std::vector<char*> operands;
  for (std::string& buffer : bytes)
    operands.push_back(buffer.data());
  runner.run(0, operands, {}, units);
  return bytes;
}

struct ScatterCase {
  std::string kind, element, index;
  int64_t outer, entries, inner, rows, width, columns;

  int64_t places() const { return outer * rows * inner; }
};

double combine(const std::string& kind, double x, double update) {
  if (kind == "add")
    return x + update;
  if (kind == "mul")
    return x * update;
  if (kind == "max")
    return std::isnan(x) || x > update ? x : update;
  if (kind == "min")
    return std::isnan(x) || x < update ? x : update;
  return update;
}

void checkScatter(const ScatterCase& c, std::mt19937& generator) {
  const int64_t updates = c.places() * c.width, elements = c.outer * c.entries * c.inner * c.width;
  std::string index = fmt::format("memref<{}x{}>", c.places(), c.index),
              from = fmt::format("memref<{}x{}>", updates, c.element),
              to = fmt::format("memref<{}x{}>", elements, c.element);
  std::string text = fmt::format(
      "func.func @f(%i: {0}, %u: {1}, %r: {2}) {{\n"
      "kernel.call #kernel.scatter<kind = {3}, outer = {4}, entries = {5}, inner = {6}, "
      "rows = {7}, width = {8}, columns = {9}> ins(%i, %u : {0}, {1}) outs(%r : {2})\n"
      "return\n}}\n",
      index, from, to, c.kind, c.outer, c.entries, c.inner, c.rows, c.width, c.columns);
  SCOPED_TRACE(text);
  auto runner = compile(text);
  ASSERT_TRUE(runner);
  const bool isInteger = c.element[0] != 'f' && c.element[0] != 'b';
  Elements places(c.places());
  for (double& place : places) // some are outside
    place = static_cast<double>(below(generator, c.entries + 4) - (c.index == "ui8" ? 0 : 2));
  Elements changes = drawValues(generator, updates, isInteger),
           start = drawValues(generator, elements, isInteger), expected = start;
  if (!isInteger)
    changes[below(generator, updates)] = std::numeric_limits<double>::quiet_NaN();
  for (int64_t o = 0, place = 0; o < c.outer; ++o)
    for (int64_t row = 0; row < c.rows; ++row)
      for (int64_t i = 0; i < c.inner; ++i, ++place)
        for (int64_t column = 0; column < c.width; ++column) {
          auto entry = std::clamp<int64_t>(static_cast<int64_t>(places[place]), 0, c.entries - 1);
          double& x = expected[((o * c.entries + entry) * c.inner + i) * c.width + column];
          x = combine(c.kind, x, changes[place * c.width + column]);
          if (c.element == "f32")
            x = static_cast<float>(x);
        }
  std::vector<std::string> operands = {encode(c.index, places), encode(c.element, changes),
                                       encode(c.element, start)};
  const std::string whole = runIn(*runner, operands, 0)[2];
  Elements found = decode(c.element, whole);
  for (int64_t i = 0; i < elements; ++i)
    ASSERT_TRUE(found[i] == expected[i] || (std::isnan(found[i]) && std::isnan(expected[i])))
        << "element " << i << ": " << found[i] << ", not " << expected[i];
  for (int64_t units : {1, 3})
    ASSERT_EQ(runIn(*runner, operands, units)[2], whole) << units << " units at a time";
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
  auto runner = compile("func.func @f(%i: memref<2xi64>, %u: memref<2xui8>, %r: memref<2xui8>) {\n"
                        "kernel.call #kernel.scatter<kind = max, outer = 1, entries = 2, inner = "
                        "1, rows = 2, width = 1, columns = 1> ins(%i, %u : memref<2xi64>, "
                        "memref<2xui8>) outs(%r : memref<2xui8>)\nreturn\n}\n");
  ASSERT_TRUE(runner);
  auto bytes = runIn(*runner, {encode("i64", {0, 1}), "\xff\x01", "\x01\xff"}, 0);
  EXPECT_EQ(bytes[2], "\xff\xff");
}

struct SortCase {
  std::string element;
  int64_t rows, length, count;
  bool smallest;
};

void checkSort(const SortCase& c, std::mt19937& generator) {
  std::string x = fmt::format("memref<{}x{}x{}>", c.rows, c.length, c.element),
              values = fmt::format("memref<{}x{}x{}>", c.rows, c.count, c.element),
              indices = fmt::format("memref<{}x{}xi64>", c.rows, c.count);
  std::string text = fmt::format(
      "func.func @f(%x: {0}, %v: {1}, %i: {2}) {{\n"
      "kernel.call #kernel.top_k<rows = {3}, length = {4}, count = {5}, smallest = {6}> "
      "ins(%x : {0}) outs(%v, %i : {1}, {2})\nreturn\n}}\n",
      x, values, indices, c.rows, c.length, c.count, c.smallest);
  SCOPED_TRACE(text);
  auto runner = compile(text);
  ASSERT_TRUE(runner);
  const bool isInteger = c.element[0] != 'f' && c.element[0] != 'b';
  Elements elements = drawValues(generator, c.rows * c.length, isInteger);
  if (!isInteger)
    for (double special : std::array<double, 7>{NAN, -NAN, INFINITY, -INFINITY, -0.0, 0, NAN})
      elements[below(generator, c.rows * c.length)] = special;
  Elements chosen, places;
  for (int64_t row = 0; row < c.rows; ++row) {
    const double* from = &elements[row * c.length];
    auto isLess = [&](int64_t a, int64_t b) {
      return std::isnan(from[b]) ? !std::isnan(from[a]) : from[a] < from[b];
    };
    std::vector<int64_t> order(c.length);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, [&](int64_t a, int64_t b) {
      const auto [low, high] = c.smallest ? std::pair(a, b) : std::pair(b, a);
      return isLess(low, high) || (a < b && !isLess(high, low));
    });
    for (int64_t i = 0; i < c.count; ++i) {
      places.push_back(static_cast<double>(order[i]));
      chosen.push_back(from[order[i]]);
    }
  }
  std::vector<std::string> operands = {encode(c.element, elements),
                                       encode(c.element, Elements(c.rows * c.count, 1)),
                                       encode("i64", Elements(c.rows * c.count, -1))};
  auto whole = runIn(*runner, operands, 0);
  ASSERT_EQ(decode("i64", whole[2]), places);
  Elements found = decode(c.element, whole[1]);
  for (size_t i = 0; i < found.size(); ++i)
    ASSERT_TRUE(found[i] == chosen[i] || (std::isnan(found[i]) && std::isnan(chosen[i])));
  for (int64_t units : {1, 3})
    ASSERT_EQ(runIn(*runner, operands, units), whole) << units << " units at a time";
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
  auto runner =
      compile("func.func @f(%x: memref<1x3xui8>, %v: memref<1x3xui8>, %i: memref<1x3xi64>) "
              "{\nkernel.call #kernel.top_k<rows = 1, length = 3, count = 3, smallest = "
              "false> ins(%x : memref<1x3xui8>) outs(%v, %i : memref<1x3xui8>, "
              "memref<1x3xi64>)\nreturn\n}\n");
  ASSERT_TRUE(runner);
  auto bytes = runIn(*runner, {"\x01\xff\x7f", "\x01\x01\x01", encode("i64", {0, 0, 0})}, 0);
  EXPECT_EQ(bytes[1], "\xff\x7f\x01");
  EXPECT_EQ(decode("i64", bytes[2]), (Elements{1, 2, 0}));
}

} // namespace
} // namespace titan::codegen::testing
