// Look-ups, and the sums of their gradients in the order that the routine says: bit for bit, in any
// order of blocks and warps.
#include "compiler/Codegen/cuda/testing/CudaRunner.h"
#include "compiler/Codegen/kernel/testing/KernelSpec.h"
#include "compiler/Codegen/kernel/testing/LookupRows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace titan::codegen::cuda::testing {
namespace {

using codegen::testing::allRows;
using codegen::testing::decode;
using codegen::testing::Elements;
using codegen::testing::encode;
using codegen::testing::rowOf;
using codegen::testing::tableRows;

struct Case {
  int64_t rows, entries, width;
  std::string element = "f32", index = "i64", to = "f32";
  bool accumulate = false;
  int64_t padding = -1;
  int64_t offset = 0; ///< bytes of the operands' places
  int64_t outer = 1, inner = 1;
};

std::string describe(const Case& c) {
  return fmt::format("{} x {} x {} rows of {} x {} {} to {}, indices {}, {}, padding {}, at {}",
                     c.outer, c.rows, c.inner, c.entries, c.width, c.element, c.to, c.index,
                     c.accumulate ? "accumulated" : "from zero", c.padding, c.offset);
}

/// Which rows look up what.
enum class Indices { Equal, Different, Rare, Random, Outside };

Elements indicesOf(const Case& c, Indices kind) {
  std::mt19937 generator(3);
  Elements indices(allRows(c));
  for (int64_t i = 0; i < allRows(c); ++i) {
    const double uniform = (generator() % 65536 + 1) / 65537.0;
    switch (kind) {
    case Indices::Equal:
      indices[i] = static_cast<double>(c.entries / 2);
      break;
    case Indices::Different:
      indices[i] = static_cast<double>(c.entries - 1 - i % c.entries);
      break;
    case Indices::Rare: // as words of a text: some often, most rarely
      indices[i] = std::floor(std::pow(static_cast<double>(c.entries), uniform)) - 1;
      break;
    case Indices::Random:
      indices[i] = static_cast<double>(generator() % c.entries);
      break;
    case Indices::Outside: // also beyond both ends
      indices[i] =
          static_cast<double>(static_cast<int64_t>(generator() % (3 * c.entries)) - c.entries);
      break;
    }
  }
  return indices;
}

Elements randomValues(const std::string& element, int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  Elements values(count);
  for (double& value : values)
    value = static_cast<double>(static_cast<int>(generator() % 65536) - 32768) / 30000;
  return decode(element, encode(element, values));
}

uint64_t place(ptx::Memory& memory, int64_t bytes, int64_t offset, const std::string* content) {
  Result<uint64_t> base = memory.allocate(bytes + offset);
  EXPECT_TRUE(base.ok());
  const uint64_t address = *base + static_cast<uint64_t>(offset);
  if (content) {
    std::memcpy(memory.bytes(address, bytes).data(), content->data(), content->size());
    memory.markWritten(address, bytes);
  }
  return address;
}

std::unique_ptr<CudaRunner> compile(const std::string& text) {
  Result<std::unique_ptr<CudaRunner>> runner = CudaRunner::compile(text);
  if (runner.ok())
    return runner.take();
  ADD_FAILURE() << runner.error().message() << "\n" << text;
  return nullptr;
}

std::string argument(const std::string& name, const std::string& type, int64_t offset) {
  return fmt::format("{}: {} {{kernel.offset = {} : i64}}", name, type, offset);
}

//===----------------------------------------------------------------------===//
// Look-ups
//===----------------------------------------------------------------------===//

void checkForward(const Case& c, Indices kind, ptx::Counters* moved = nullptr) {
  SCOPED_TRACE(describe(c));
  const std::string table = fmt::format("memref<{}x{}x{}>", tableRows(c), c.width, c.element),
                    indices = fmt::format("memref<{}x{}>", allRows(c), c.index),
                    result = fmt::format("memref<{}x{}x{}>", allRows(c), c.width, c.element);
  auto runner = compile(fmt::format(
      "func.func @f({0}, {1}, {2}) {{\nkernel.call #kernel.embedding<rows = {3}, entries = {4}, "
      "width = {5}, outer = {9}, inner = {10}> ins(%t, %i : {6}, {7}) outs(%r : {8})\nreturn\n}}\n",
      argument("%t", table, c.offset), argument("%i", indices, 0), argument("%r", result, c.offset),
      c.rows, c.entries, c.width, table, indices, result, c.outer, c.inner));
  ASSERT_TRUE(runner);
  Elements values = randomValues(c.element, tableRows(c) * c.width, 1), index = indicesOf(c, kind);
  if (c.element.front() == 'i')
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<double>(i);
  const std::string tableBytes = encode(c.element, values), indexBytes = encode(c.index, index);
  for (ptx::Order order : {ptx::Order::Ascending, ptx::Order::Descending, ptx::Order::Random}) {
    ptx::Memory memory;
    std::string found = encode(c.element, Elements(allRows(c) * c.width, 0));
    const auto size = static_cast<int64_t>(found.size());
    std::vector<uint64_t> operands = {
        place(memory, static_cast<int64_t>(tableBytes.size()), c.offset, &tableBytes),
        place(memory, static_cast<int64_t>(indexBytes.size()), 0, &indexBytes),
        place(memory, size, c.offset, nullptr)};
    Result<std::vector<ptx::Counters>> counters = runner->run(0, operands, {}, order, memory);
    ASSERT_TRUE(counters.ok()) << counters.error().message() << "\n" << runner->ptx();
    ASSERT_FALSE(memory.firstUnwritten(operands[2], size));
    std::memcpy(found.data(), memory.bytes(operands[2], size).data(), size);
    const int64_t rowBytes = size / allRows(c);
    for (int64_t i = 0; i < allRows(c); ++i)
      ASSERT_EQ(found.substr(i * rowBytes, rowBytes),
                tableBytes.substr(rowOf(c, index[i], i) * rowBytes, rowBytes))
          << "row " << i;
    if (c.offset == 0 && rowBytes % 16 == 0)
      EXPECT_EQ(counters->back().globalStores.byWidth[4], counters->back().globalStores.requests);
    if (moved)
      *moved = counters->back();
  }
  expectAssembles(runner->ptx());
}

TEST(CudaEmbeddingKernel, CopiesRows) {
  for (int64_t width : {1, 7, 64, 769})
    checkForward({.rows = 37, .entries = 11, .width = width}, Indices::Outside);
  checkForward({.rows = 300, .entries = 50257, .width = 2}, Indices::Random);
  checkForward({.rows = 1, .entries = 1, .width = 48}, Indices::Equal);
  checkForward({.rows = 9, .entries = 5, .width = 33, .element = "bf16", .index = "i32"},
               Indices::Random);
  checkForward({.rows = 9, .entries = 5, .width = 24, .element = "bf16"}, Indices::Random);
  checkForward({.rows = 9, .entries = 5, .width = 3, .element = "i64"}, Indices::Random);
  checkForward({.rows = 9, .entries = 5, .width = 8, .offset = 4}, Indices::Random);
}

//===----------------------------------------------------------------------===//
// Gradients
//===----------------------------------------------------------------------===//

/// The definition: rows sorted by entry, those of an entry in each tile in order, then the tiles.
template <typename T>
void addSorted(const Case& c, const Elements& terms, const Elements& index, Elements& table) {
  std::vector<std::pair<int64_t, int64_t>> sorted; // entry, row
  const int64_t rows = allRows(c);
  for (int64_t row = 0; row < rows; ++row)
    sorted.emplace_back(rowOf(c, index[row], row), row);
  std::sort(sorted.begin(), sorted.end());
  auto entryAt = [&](int64_t i) { return sorted[i].first; };
  for (int64_t begin = 0, end = 0; begin < rows; begin = end) {
    for (end = begin; end < rows && entryAt(end) == entryAt(begin);)
      ++end;
    for (int64_t column = 0; column < c.width && entryAt(begin) != c.padding; ++column) {
      T total = 0, part = 0;
      bool hasTotal = false;
      for (int64_t i = begin; i < end; ++i) {
        const T term = static_cast<T>(terms[sorted[i].second * c.width + column]);
        part = i == begin || i % 256 == 0 ? term : part + term;
        if (i + 1 < end && (i + 1) % 256 != 0)
          continue;
        total = hasTotal ? total + part : part;
        hasTotal = true;
      }
      double& sum = table[entryAt(begin) * c.width + column];
      sum = c.accumulate ? static_cast<T>(sum) + total : total;
    }
  }
}

/// In f64 and in the order of rows.
void addInOrder(const Case& c, const Elements& terms, const Elements& index, Elements& table) {
  for (int64_t i = 0; i < allRows(c); ++i)
    for (int64_t j = 0; j < c.width && rowOf(c, index[i], i) != c.padding; ++j)
      table[rowOf(c, index[i], i) * c.width + j] += terms[i * c.width + j];
}

constexpr int64_t assembledRows = 700;

std::string gradientText(const Case& c, bool sorted = true) {
  const int64_t tiles = (allRows(c) + 255) / 256, blocks = (allRows(c) + 2047) / 2048;
  const std::string rows = fmt::format("memref<{}x{}x{}>", allRows(c), c.width, c.element),
                    indices = fmt::format("memref<{}x{}>", allRows(c), c.index),
                    table = fmt::format("memref<{}x{}x{}>", tableRows(c), c.width, c.to),
                    order = fmt::format("memref<{}xi32>", 2 * allRows(c) + blocks * 256),
                    sums = fmt::format("memref<{}x{}>", 2 * tiles * c.width, c.to);
  return fmt::format(
      "func.func @f({}, {}, {}, {}, {}) {{\nkernel.call #kernel.embedding_grad<rows = {}, entries "
      "= "
      "{}, width = {}, accumulate = {}, columns = 1, padding = {}, sorted = {}, outer = {}, inner "
      "= "
      "{}> ins(%g, %i : {}, "
      "{}) outs({})\nreturn\n}}\n",
      argument("%g", rows, c.offset), argument("%i", indices, 0), argument("%t", table, c.offset),
      argument("%o", order, 0), argument("%s", sums, c.offset), c.rows, c.entries, c.width,
      c.accumulate, c.padding, sorted, c.outer, c.inner, rows, indices,
      sorted ? fmt::format("%t, %o, %s : {}, {}, {}", table, order, sums) : "%t : " + table);
}

struct Outcome {
  std::string table;
  std::vector<ptx::Counters> launches;
};

/// After `calls` calls, of which each finds the workspace as nobody wrote it.
Outcome runGradient(const Case& c, const CudaRunner& runner, const Elements& terms,
                    const Elements& index, const Elements& start, int calls, ptx::Order order) {
  Outcome outcome{encode(c.to, start), {}};
  std::string& table = outcome.table;
  const auto size = static_cast<int64_t>(table.size());
  const int64_t tiles = (allRows(c) + 255) / 256, blocks = (allRows(c) + 2047) / 2048;
  const std::string termBytes = encode(c.element, terms), indexBytes = encode(c.index, index);
  for (int call = 0; call < calls; ++call) {
    ptx::Memory memory;
    std::vector<uint64_t> operands = {
        place(memory, static_cast<int64_t>(termBytes.size()), c.offset, &termBytes),
        place(memory, static_cast<int64_t>(indexBytes.size()), 0, &indexBytes),
        place(memory, size, c.offset, c.accumulate ? &table : nullptr),
        place(memory, (2 * allRows(c) + blocks * 256) * 4, 0, nullptr),
        place(memory, 2 * tiles * c.width * (c.to == "f64" ? 8 : 4), c.offset, nullptr)};
    Result<std::vector<ptx::Counters>> counters = runner.run(0, operands, {}, order, memory);
    EXPECT_TRUE(counters.ok()) << counters.error().message() << "\n" << runner.ptx();
    if (!counters.ok())
      return {};
    EXPECT_FALSE(memory.firstUnwritten(operands[2], size));
    std::memcpy(table.data(), memory.bytes(operands[2], size).data(), size);
    outcome.launches = counters.take();
  }
  return outcome;
}

/// Returns what the launches did.
std::vector<ptx::Counters> checkGradient(const Case& c, Indices kind, int calls = 1) {
  SCOPED_TRACE(fmt::format("{}, kind {}", describe(c), static_cast<int>(kind)));
  auto runner = compile(gradientText(c));
  if (!runner)
    return {};
  const Elements terms = randomValues(c.element, allRows(c) * c.width, 1),
                 index = indicesOf(c, kind), start = randomValues(c.to, tableRows(c) * c.width, 2);
  Outcome outcome = runGradient(c, *runner, terms, index, start, calls, ptx::Order::Ascending);
  const std::string& found = outcome.table;
  if (found.empty())
    return {};
  Elements expected = c.accumulate ? start : Elements(start.size(), 0), exact = expected;
  for (int call = 0; call < calls; ++call)
    c.to == "f64" ? addSorted<double>(c, terms, index, expected)
                  : addSorted<float>(c, terms, index, expected);
  for (int call = 0; call < (c.accumulate ? calls : 1); ++call)
    addInOrder(c, terms, index, exact);
  const Elements values = decode(c.to, found);
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i], expected[i]) << "row " << i / c.width << ", column " << i % c.width;
    EXPECT_NEAR(values[i], exact[i], 1e-4 * (1 + std::abs(exact[i])));
  }
  for (ptx::Order order : {ptx::Order::Descending, ptx::Order::Random})
    EXPECT_TRUE(runGradient(c, *runner, terms, index, start, calls, order).table == found);
  // The number of rows is in the code as a few constants: it assembles alike.
  if (c.rows == assembledRows)
    expectAssembles(runner->ptx());
  return outcome.launches;
}

TEST(CudaEmbeddingKernel, SumsInSortedOrder) {
  for (int64_t width : {1, 7, 64})
    for (Indices kind : {Indices::Equal, Indices::Rare, Indices::Outside})
      checkGradient({.rows = assembledRows, .entries = 90, .width = width}, kind);
  checkGradient({.rows = 300, .entries = 300, .width = 5}, Indices::Different);
  // Several blocks of columns.
  checkGradient({.rows = 600, .entries = 7, .width = 769}, Indices::Rare);
  checkGradient({.rows = 600, .entries = 7, .width = 768, .element = "bf16"}, Indices::Rare);
  checkGradient({.rows = assembledRows, .entries = 65537, .width = 1}, Indices::Random);
  checkGradient({.rows = assembledRows, .entries = 7, .width = 4, .accumulate = true},
                Indices::Rare);
  checkGradient({.rows = assembledRows, .entries = 7, .width = 4, .padding = 3}, Indices::Rare);
}

// As titan.gather and sums of titan.scatter have them.
TEST(CudaEmbeddingKernel, TablesWithDimensionsAround) {
  for (auto [outer, inner] : {std::pair<int64_t, int64_t>{3, 1}, {1, 4}, {3, 5}})
    for (int64_t width : {1, 8}) {
      const Case c{.rows = 37,
                   .entries = 11,
                   .width = width,
                   .accumulate = true,
                   .outer = outer,
                   .inner = inner};
      checkForward(c, Indices::Outside);
      checkGradient(c, Indices::Rare);
    }
}

// Rows around the tiles of the sums, and blocks and warps of the sort.
TEST(CudaEmbeddingKernel, AnyNumberOfRows) {
  for (int64_t rows : {1, 2, 31, 33, 255, 256, 257, 512, 2047, 2048, 2049, 5000})
    checkGradient({.rows = rows, .entries = 40, .width = 2}, Indices::Rare);
  // One index in so many tiles that the last launch takes several turns.
  for (int64_t rows : {2303, 2304, 2305, 5000})
    checkGradient({.rows = rows, .entries = 3, .width = 2}, Indices::Equal);
}

// One, two and three digits.
TEST(CudaEmbeddingKernel, AnyNumberOfEntries) {
  for (int64_t entries : {1, 2, 255, 256, 257, 50257, 65536, 65537})
    for (Indices kind : {Indices::Random, Indices::Different})
      checkGradient({.rows = 600, .entries = entries, .width = 1}, kind);
}

TEST(CudaEmbeddingKernel, AddsToWhatIsThere) {
  for (Indices kind : {Indices::Equal, Indices::Rare})
    checkGradient({.rows = 600, .entries = 50, .width = 12, .accumulate = true}, kind, 3);
}

TEST(CudaEmbeddingKernel, AddsNothingToTheRowOfPadding) {
  for (bool accumulate : {false, true})
    for (int64_t padding : {0, 3, 6}) // the first and last also by indices that are not there
      checkGradient(
          {.rows = 600, .entries = 7, .width = 4, .accumulate = accumulate, .padding = padding},
          Indices::Outside);
  checkGradient({.rows = 600, .entries = 7, .width = 4, .padding = 3}, Indices::Equal);
}

/// Widths whose rows begin at wide addresses: no schedule was made for 1000.
std::vector<Case> wideRows() {
  std::vector<Case> cases;
  for (int64_t width : {256, 768, 1000})
    for (const char* element : {"f32", "bf16"})
      cases.push_back({.rows = 1000, .entries = 300, .width = width, .element = element});
  return cases;
}

int64_t rowBytesOf(const Case& c) { return c.width * (c.element == "bf16" ? 2 : 4); }

TEST(CudaEmbeddingKernel, CopiesWholeSectors) {
  for (Case c : wideRows()) {
    c.to = c.element;
    SCOPED_TRACE(describe(c));
    ptx::Counters moved;
    checkForward(c, Indices::Rare, &moved);
    const int64_t bytes = c.rows * (2 * rowBytesOf(c) + 8);
    EXPECT_LE((moved.globalLoads.tripSectors + moved.globalStores.tripSectors) * 32,
              bytes * 11 / 10);
  }
}

// The last but one launch sums tiles, the last what they cut.
TEST(CudaEmbeddingKernel, ReadsEachRowOnceAndWidely) {
  for (const Case& c : wideRows()) {
    SCOPED_TRACE(describe(c));
    const std::vector<ptx::Counters> launches = checkGradient(c, Indices::Rare);
    ASSERT_GE(launches.size(), 2);
    const ptx::Traffic &loads = launches[launches.size() - 2].globalLoads,
                       &stores = launches[launches.size() - 2].globalStores;
    const int64_t bytes = c.rows * rowBytesOf(c);
    // Besides rows, each tile's order and entries.
    EXPECT_NEAR(static_cast<double>(loads.bytes), static_cast<double>(bytes), bytes / 20.0);
    EXPECT_LE(loads.tripSectors * 32, bytes * 11 / 10);
    EXPECT_GE(loads.byWidth[4] * 32 * 16, bytes);
    EXPECT_EQ(stores.byWidth[4], stores.requests);
    EXPECT_LE(stores.tripSectors * 32, stores.bytes * 11 / 10);
  }
}

TEST(CudaEmbeddingKernel, TypesAndPlaces) {
  checkGradient(
      {.rows = assembledRows, .entries = 20, .width = 24, .element = "bf16", .index = "i32"},
      Indices::Random);
  checkGradient({.rows = assembledRows, .entries = 20, .width = 5, .element = "f64", .to = "f64"},
                Indices::Rare);
  checkGradient({.rows = assembledRows, .entries = 20, .width = 6, .element = "f64", .to = "f64"},
                Indices::Rare);
  checkGradient({.rows = assembledRows, .entries = 20, .width = 8, .to = "f64"}, Indices::Rare);
  checkGradient({.rows = assembledRows, .entries = 20, .width = 8, .element = "bf16", .to = "f64"},
                Indices::Rare);
  checkGradient({.rows = assembledRows, .entries = 20, .width = 8, .offset = 4}, Indices::Rare);
}

TEST(CudaEmbeddingKernel, TheOrderOfRowsAndOtherTypesAreRefused) {
  const Case c{.rows = 4, .entries = 3, .width = 2};
  Result<std::unique_ptr<CudaRunner>> inOrder = CudaRunner::compile(gradientText(c, false));
  ASSERT_FALSE(inOrder.ok());
  EXPECT_NE(inOrder.error().message().find(
                "the gradient of a table in the order of rows has no kernel on cuda: use "
                "machine.embedding_grad_sorted_rows = 1"),
            std::string::npos)
      << inOrder.error().message();
  Result<std::unique_ptr<CudaRunner>> half =
      CudaRunner::compile(gradientText({.rows = 4, .entries = 3, .width = 2, .element = "f16"}));
  ASSERT_FALSE(half.ok());
  EXPECT_NE(half.error().message().find("the gradient of a table from 'f16' has no kernel on cuda"),
            std::string::npos)
      << half.error().message();
}

} // namespace
} // namespace titan::codegen::cuda::testing
