// Rows of a table by index, and the sums of their gradients.
#include "compiler/Codegen/cpu/testing/KernelCase.h"
#include "compiler/Codegen/kernel/testing/LookupRows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace titan::codegen::testing {
namespace {

struct Case {
  int64_t rows, entries, width;
  std::string element = "f32", index = "i64";
  int64_t outer = 1, inner = 1;
};

Elements randomIndices(const Case& c, bool withOutliers) {
  std::mt19937 generator(3);
  Elements indices(allRows(c));
  for (double& index : indices)
    index = static_cast<double>(generator() % c.entries);
  if (withOutliers) {
    indices.front() = -3;
    indices.back() = static_cast<double>(c.entries + 5);
  }
  return indices;
}

Elements randomValues(const std::string& element, int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  Elements values(count);
  for (double& value : values)
    value = static_cast<double>(static_cast<int>(generator() % 256) - 128) / 16; // exact in bf16
  return values;
}

struct Buffers {
  std::vector<std::string> bytes;
  std::vector<char*> operands() {
    std::vector<char*> pointers;
    for (std::string& buffer : bytes)
      pointers.push_back(buffer.data());
    return pointers;
  }
};

void checkForward(const Case& c) {
  std::string table = fmt::format("memref<{}x{}x{}>", tableRows(c), c.width, c.element),
              indices = fmt::format("memref<{}x{}>", allRows(c), c.index),
              result = fmt::format("memref<{}x{}x{}>", allRows(c), c.width, c.element);
  auto runner =
      compile(fmt::format("func.func @f(%t: {0}, %i: {1}, %r: {2}) {{\n"
                          "kernel.call #kernel.embedding<rows = {3}, entries = {4}, "
                          "width = {5}, outer = {6}, inner = {7}> ins(%t, %i : {0}, "
                          "{1}) outs(%r : {2})\nreturn\n}}\n",
                          table, indices, result, c.rows, c.entries, c.width, c.outer, c.inner));
  ASSERT_TRUE(runner);
  Elements values =
      decode(c.element, encode(c.element, randomValues(c.element, tableRows(c) * c.width, 1)));
  Elements index = randomIndices(c, true);
  for (int64_t step : {0, 1, 3}) {
    Buffers buffers{{encode(c.element, values), encode(c.index, index),
                     encode(c.element, Elements(allRows(c) * c.width, -1))}};
    runner->run(0, buffers.operands(), {}, step);
    Elements found = decode(c.element, buffers.bytes[2]);
    for (int64_t i = 0; i < allRows(c); ++i)
      for (int64_t j = 0; j < c.width; ++j)
        ASSERT_EQ(found[i * c.width + j], values[rowOf(c, index[i], i) * c.width + j])
            << "row " << i << ", column " << j;
  }
}

void checkGradient(const Case& c, bool accumulate, int64_t padding = -1, bool sorted = false) {
  std::string rows = fmt::format("memref<{}x{}x{}>", allRows(c), c.width, c.element),
              indices = fmt::format("memref<{}x{}>", allRows(c), c.index),
              result = fmt::format("memref<{}x{}xf32>", tableRows(c), c.width);
  const int64_t orderElements = 2 * allRows(c) + 256, sumElements = 2 * c.width;
  std::string outs = "%r : " + result;
  if (sorted)
    outs = fmt::format("%r, %o, %s : {}, memref<{}xi32>, memref<{}xf32>", result, orderElements,
                       sumElements);
  auto runner = compile(fmt::format(
      "func.func @f(%t: {0}, %i: {1}, %r: {2}, %o: memref<{10}xi32>, %s: memref<{11}xf32>) {{\n"
      "kernel.call #kernel.embedding_grad<rows = {3}, entries = {4}, width = {5}, accumulate = "
      "{6}, columns = {7}, padding = {8}, sorted = {9}, outer = {13}, inner = {14}> ins(%t, %i : "
      "{0}, {1}) outs({12})\n"
      "return\n}}\n",
      rows, indices, result, c.rows, c.entries, c.width, accumulate, std::min<int64_t>(c.width, 64),
      padding, sorted, orderElements, sumElements, outs, c.outer, c.inner));
  ASSERT_TRUE(runner);
  Elements values = randomValues(c.element, allRows(c) * c.width, 1),
           index = randomIndices(c, true), start = randomValues("f32", tableRows(c) * c.width, 2);
  // All terms are multiples of 1/16 below 2^20: the sums are exact.
  Elements expected = accumulate ? start : Elements(start.size(), 0);
  for (int64_t i = 0; i < allRows(c); ++i)
    for (int64_t j = 0; j < c.width && rowOf(c, index[i], i) != padding; ++j)
      expected[rowOf(c, index[i], i) * c.width + j] += values[i * c.width + j];
  for (int64_t step : {0, 1, 3}) {
    Buffers buffers{{encode(c.element, values), encode(c.index, index), encode("f32", start),
                     encode("i32", Elements(orderElements, -1)),
                     encode("f32", Elements(sumElements, -1))}};
    runner->run(0, buffers.operands(), {}, step);
    ASSERT_EQ(decode("f32", buffers.bytes[2]), expected);
  }
}

TEST(EmbeddingKernel, CopiesRows) {
  for (int64_t width : {1, 3, 64, 100})
    checkForward({.rows = 9, .entries = 7, .width = width});
  checkForward({.rows = 5, .entries = 3, .width = 33, .element = "bf16"});
  checkForward({.rows = 5, .entries = 3, .width = 33, .element = "i64", .index = "i32"});
}

TEST(EmbeddingKernel, SumsGradientsInOrder) {
  for (bool accumulate : {false, true})
    for (int64_t width : {1, 3, 64, 65, 130, 192}) {
      checkGradient({.rows = 40, .entries = 7, .width = width}, accumulate);
      checkGradient({.rows = 20, .entries = 5, .width = width, .element = "bf16", .index = "i32"},
                    accumulate);
    }
}

// As titan.gather reads along any dimension.
TEST(EmbeddingKernel, TablesWithDimensionsAround) {
  for (auto [outer, inner] : {std::pair<int64_t, int64_t>{3, 1}, {1, 4}, {3, 5}})
    for (int64_t width : {1, 7}) {
      checkForward({.rows = 9, .entries = 7, .width = width, .outer = outer, .inner = inner});
      checkGradient({.rows = 9, .entries = 7, .width = width, .outer = outer, .inner = inner},
                    true);
    }
  checkForward({.rows = 6, .entries = 9, .width = 1, .element = "i1", .outer = 2, .inner = 3});
}

TEST(EmbeddingKernel, KeepsTheOrderOfRowsBesideWorkspace) {
  checkGradient({.rows = 40, .entries = 7, .width = 65}, false, 3, /*sorted=*/true);
  checkGradient({.rows = 40, .entries = 7, .width = 65}, true, -1, /*sorted=*/true);
}

TEST(EmbeddingKernel, AddsNothingToTheRowOfPadding) {
  for (bool accumulate : {false, true})
    for (int64_t padding : {0, 3, 6}) // the first and last also by indices that are not there
      for (int64_t width : {3, 65})
        checkGradient({.rows = 40, .entries = 7, .width = width}, accumulate, padding);
}

} // namespace
} // namespace titan::codegen::testing
