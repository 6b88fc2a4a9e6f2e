// Sums: their order against a slow model of SumOrder.h, bit for bit, and kernels with reductions
// against their definition.
#include "compiler/Codegen/cuda/SumOrder.h"
#include "compiler/Codegen/cuda/testing/CudaCase.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <cstring>
#include <random>
#include <set>

namespace titan::codegen::cuda::testing {
namespace {

using codegen::testing::decode;
using codegen::testing::encode;
using codegen::testing::randomElements;

/// The first of values that meet by xor of their numbers, from the widest distance.
float byXor(std::vector<float> values) {
  for (size_t distance = values.size() / 2; distance >= 1; distance /= 2) {
    const std::vector<float> before = values;
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = before[i] + before[i ^ distance];
  }
  return values[0];
}

/// A row's sum in the order of SumOrder.h, of the reduced extents.
float sumOfRow(const float* terms, std::vector<int64_t> extents) {
  const int64_t inner = extents.back();
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < extents.size(); ++i)
    rows *= extents[i];
  const int64_t slots = slotsOf(chunksOf(extents));
  std::vector<std::array<float, 8>> partials(slots);
  int64_t chunk = 0;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t from = 0; from < inner; from += 8, ++chunk)
      for (int64_t x = from; x < std::min(inner, from + 8); ++x)
        partials[chunk % slots][x - from] += terms[row * inner + x];
  std::vector<float> lanes;
  for (std::array<float, 8>& p : partials) {
    for (int64_t half = 4; half >= 1; half /= 2)
      for (int64_t i = 0; i < half; ++i)
        p[i] += p[i + half];
    lanes.push_back(p[0]);
  }
  std::vector<float> warps;
  for (int64_t warp = 0; warp < slots; warp += 32)
    warps.push_back(byXor({lanes.begin() + warp, lanes.begin() + std::min(warp + 32, slots)}));
  warps.resize(std::bit_ceil(warps.size()), 0.0F);
  return byXor(warps);
}

/// Sums of rows, of one operand of f32 and one of bf16.
KernelSpec rowSums(int64_t m, int64_t n) {
  return {.space = {m, n},
          .ins = {{"f32", "(r, c) -> (r, c)", {m, n}}, {"bf16", "(r, c) -> (r, c)", {m, n}}},
          .outs = {{"f32", "(r, c) -> (r)", {m}}, {"f32", "(r, c) -> (r)", {m}}},
          .kernelClass = "row",
          .body = R"(
    ^bb0(%a: f32, %b: bf16):
      %s = kernel.reduce add %a over [1] : f32
      %v = arith.extf %b : bf16 to f32
      %t = kernel.reduce add %v over [1] : f32
      kernel.yield %s, %t : f32, f32
)"};
}

std::vector<float> floatsOf(const std::string& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(CudaSumOrder, SlotsOfARow) {
  for (auto [n, slots] : {std::pair<int64_t, int64_t>{1, 1},
                          {8, 1},
                          {9, 2},
                          {36, 8},
                          {256, 32},
                          {257, 64},
                          {768, 96},
                          {2048, 256},
                          {4096, 512},
                          {8192, 512},
                          {50257, 512}})
    EXPECT_EQ(slotsOf(chunksOf({n})), slots) << n;
  EXPECT_EQ(chunksOf({36, 10}), 72);
}

/// Sums of `m` rows of each length, whose kernels are compiled together.
void checkSumsOfRows(int64_t m, llvm::ArrayRef<int64_t> lengths) {
  std::string text;
  for (int64_t n : lengths) {
    std::string function = moduleText(rowSums(m, n));
    text += function.insert(function.find("@f") + 2, std::to_string(n)) + "\n";
  }
  Result<std::unique_ptr<CudaRunner>> runner = CudaRunner::compile(text);
  ASSERT_TRUE(runner.ok()) << runner.error().message();
  for (auto [kernel, n] : llvm::enumerate(lengths)) {
    const KernelSpec spec = rowSums(m, n);
    std::vector<std::string> bytes;
    for (const OperandSpec& in : spec.ins)
      bytes.push_back(encode(in.element, randomElements(in, static_cast<unsigned>(n))));
    for (const OperandSpec& out : spec.outs)
      bytes.push_back(encode(out.element, Elements(m, 0)));
    const std::vector<std::string> found =
        runOnBytes(**runner, bytes, 2, ptx::Order::Ascending, nullptr, kernel);
    ASSERT_EQ(found.size(), 4);
    for (size_t i : {0, 1}) {
      const Elements values = decode(spec.ins[i].element, bytes[i]);
      const std::vector<float> terms(values.begin(), values.end()), sums = floatsOf(found[2 + i]);
      for (int64_t row = 0; row < m; ++row)
        EXPECT_EQ(sums[row], sumOfRow(terms.data() + row * n, {n}))
            << n << " of " << spec.ins[i].element;
    }
  }
}

// Up to 4096 elements a thread has one chunk, so a kernel follows from three things: how many slots
// a row has, whether their chunks fill them, and how long the last chunk is. So these are all
// lengths of the last chunk, with the fewest and the most chunks that so many slots have: both
// sides of each boundary. Others are drawn, or all up to 2100: TITAN_TEST_EVERY_LENGTH=1, half a
// minute.
TEST(CudaSumOrder, RowsBitForBit) {
  constexpr int64_t most = 2100;
  std::set<int64_t> lengths;
  const auto addChunks = [&](int64_t chunks) {
    for (int64_t last = 1; last <= chunkLength; ++last)
      lengths.insert((chunks - 1) * chunkLength + last);
  };
  const bool isEvery = std::getenv("TITAN_TEST_EVERY_LENGTH") != nullptr;
  for (int64_t chunks = 1; (chunks - 1) * chunkLength < most; ++chunks)
    if (isEvery || slotsOf(chunks) != slotsOf(chunks - 1) || slotsOf(chunks) != slotsOf(chunks + 1))
      addChunks(chunks);
  const char* chosen = std::getenv("TITAN_TEST_SEED");
  std::mt19937 generator(chosen ? std::atoi(chosen) : 1);
  for (int i = 0; i < 20; ++i)
    lengths.insert(1 + static_cast<int64_t>(generator() % most));
  const std::vector<int64_t> all(lengths.begin(), lengths.end());
  constexpr size_t together = 100;
  for (size_t first = 0; first < all.size(); first += together)
    checkSumsOfRows(3, llvm::ArrayRef(all).drop_front(first).take_front(together));
  checkSumsOfRows(1, {4095, 4096, 4097, 4104, 8192, 50257, 65537});
}

TEST(CudaSumOrder, SeveralDimensionsBitForBit) {
  for (auto [a, b] : {std::pair<int64_t, int64_t>{36, 256}, {36, 10}, {5, 1000}, {700, 3}}) {
    CudaCase test({.space = {a, b},
                   .ins = {{"f32", "(r, c) -> (r, c)", {a, b}}},
                   .outs = {{"f32", "(r, c) -> ()", {}}},
                   .kernelClass = "row",
                   .body = R"(
    ^bb0(%v: f32):
      %s = kernel.reduce add %v over [0, 1] : f32
      kernel.yield %s : f32
)"});
    ASSERT_TRUE(test.ok());
    Elements values = randomElements({"f32", "", {a, b}}, 12);
    test.setIn(0, values);
    std::vector<float> terms(values.begin(), values.end());
    EXPECT_EQ(floatsOf(test.run()[0])[0], sumOfRow(terms.data(), {a, b})) << a << " x " << b;
  }
}

/// Sums of the columns of [m, n] in the order of SumOrder.h.
std::vector<float> sumsOfColumns(const std::vector<float>& terms, int64_t m, int64_t n) {
  const int64_t slots = m < tallColumn ? 1 : columnSlots;
  std::vector<float> sums(n);
  for (int64_t column = 0; column < n; ++column) {
    std::vector<float> partials(slots);
    for (int64_t row = 0; row < m; ++row)
      partials[row % slots] += terms[row * n + column];
    sums[column] = partials[0];
    for (int64_t slot = 1; slot < slots; ++slot)
      sums[column] += partials[slot];
  }
  return sums;
}

TEST(CudaSumOrder, ColumnsBitForBit) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{255, 9},
                      {256, 9},
                      {257, 64},
                      {300, 70},
                      {1024, 768},
                      {1030, 131}}) {
    CudaCase test({.space = {m, n},
                   .ins = {{"f32", "(r, c) -> (r, c)", {m, n}}},
                   .outs = {{"f32", "(r, c) -> (c)", {n}}},
                   .kernelClass = "column",
                   .body = R"(
    ^bb0(%v: f32):
      %s = kernel.reduce add %v over [0] : f32
      kernel.yield %s : f32
)"});
    ASSERT_TRUE(test.ok());
    Elements values = randomElements({"f32", "", {m, n}}, 13);
    test.setIn(0, values);
    EXPECT_EQ(floatsOf(test.run()[0]),
              sumsOfColumns(std::vector<float>(values.begin(), values.end()), m, n))
        << m << " x " << n;
  }
}

TEST(CudaReduction, RowsOfEveryLength) {
  auto softmax = [](int64_t m, int64_t n) {
    return KernelSpec{.space = {m, n},
                      .ins = {{"f32", "(r, c) -> (r, c)", {m, n}}},
                      .outs = {{"f32", "(r, c) -> (r, c)", {m, n}}, {"f32", "(r, c) -> (r)", {m}}},
                      .kernelClass = "row",
                      .body = R"(
    ^bb0(%v: f32):
      %max = kernel.reduce max %v over [1] : f32
      %d = arith.subf %v, %max : f32
      %e = math.exp %d : f32
      %sum = kernel.reduce add %e over [1] : f32
      %p = arith.divf %e, %sum : f32
      kernel.yield %p, %sum : f32, f32
)"};
  };
  for (int64_t n : {1, 2, 7, 8, 9, 36, 64, 100, 256, 257, 512, 768, 1000, 4097, 9001}) {
    CudaCase test(softmax(n < 300 ? 5 : 2, n));
    test.check(3e-6);
    test.checkInPlace(0, 0);
  }
  CudaCase(softmax(67, 64)).check(3e-6); // teams without a row
}

TEST(CudaReduction, ColumnsOfEveryLength) {
  for (auto [m, n] : {std::pair<int64_t, int64_t>{7, 1},
                      {7, 5},
                      {7, 8},
                      {7, 33},
                      {64, 128},
                      {65, 64},
                      {130, 70},
                      {1, 20},
                      {1000, 3}})
    CudaCase({.space = {m, n},
              .ins = {{"f32", "(r, c) -> (r, c)", {m, n}}, {"f32", "(r, c) -> (r)", {m}}},
              .outs = {{"f32", "(r, c) -> (c)", {n}},
                       {"f32", "(r, c) -> (c)", {n}},
                       {"f32", "(r, c) -> (r, c)", {m, n}}},
              .kernelClass = "column",
              .body = R"(
    ^bb0(%v: f32, %w: f32):
      %p = arith.mulf %v, %w : f32
      %sum = kernel.reduce add %p over [0] : f32
      %max = kernel.reduce max %v over [0] : f32
      %q = arith.addf %sum, %max : f32
      kernel.yield %sum, %q, %p : f32, f32, f32
)"})
        .check(1e-5);
}

TEST(CudaReduction, ColumnsAddToWhatIsThere) {
  for (int64_t n : {5, 64, 300}) {
    CudaCase test({.space = {20, n},
                   .ins = {{"f32", "(r, c) -> (r, c)", {20, n}}, {"f32", "(r, c) -> (c)", {n}}},
                   .outs = {{"f32", "(r, c) -> (c)", {n}}},
                   .kernelClass = "column",
                   .body = R"(
    ^bb0(%v: f32, %before: f32):
      %sum = kernel.reduce add %v over [0] : f32
      %q = arith.addf %sum, %before : f32
      kernel.yield %q : f32
)"});
    test.check(1e-5);
    test.checkInPlace(1, 0);
  }
}

// Several sums of one pass, one of which does not vary along the columns, one of another type;
// rows that two dimensions count.
TEST(CudaReduction, TallColumns) {
  for (auto [a, b, n] :
       {std::tuple<int64_t, int64_t, int64_t>{20, 13, 8}, {3, 100, 70}, {16, 64, 33}}) {
    CudaCase test({.space = {a, n, b},
                   .ins = {{"f32", "(a, c, b) -> (a, b, c)", {a, b, n}},
                           {"f32", "(a, c, b) -> (a, b)", {a, b}},
                           {"f32", "(a, c, b) -> (c)", {n}}},
                   .outs = {{"f32", "(a, c, b) -> (c)", {n}},
                            {"i64", "(a, c, b) -> (c)", {n}},
                            {"f32", "(a, c, b) -> (c)", {n}}},
                   .kernelClass = "column",
                   .body = R"(
    ^bb0(%v: f32, %w: f32, %before: f32):
      %p = arith.mulf %v, %w : f32
      %sum = kernel.reduce add %p over [0, 2] : f32
      %weights = kernel.reduce max %w over [0, 2] : f32
      %zero = arith.constant 0.0 : f32
      %hit = arith.cmpf ogt, %v, %zero : f32
      %one = arith.extui %hit : i1 to i64
      %count = kernel.reduce add %one over [0, 2] : i64
      %q = arith.addf %sum, %before : f32
      kernel.yield %q, %count, %weights : f32, i64, f32
)"});
    test.check(1e-5);
    test.checkInPlace(2, 0);
  }
}

// The gradient of a classifier: rows, chunks of rows and sums of columns, with the logits replaced.
const std::string lossBody = R"(
    ^bb0(%v: f32, %label: i64):
      %max = kernel.reduce max %v over [2] : f32
      %d = arith.subf %v, %max : f32
      %e = math.exp %d : f32
      %sum = kernel.reduce add %e over [2] : f32
      %c = kernel.index 2
      %i = arith.index_cast %c : index to i64
      %hit = arith.cmpi eq, %i, %label : i64
      %one = arith.constant 1.0 : f32
      %zero = arith.constant 0.0 : f32
      %own = arith.select %hit, %one, %zero : f32
      %p = arith.divf %e, %sum : f32
      %g = arith.subf %p, %own : f32
      %columns = kernel.reduce add %g over [1] : f32
      kernel.yield %columns, %g, %sum : f32, f32, f32
)";

TEST(CudaReduction, RowsAndColumns) {
  for (auto [outer, m, n] : {std::tuple<int64_t, int64_t, int64_t>{4, 16, 36},
                             {3, 5, 8},
                             {1, 4, 64},
                             {4, 16, 256},
                             {5, 3, 100},
                             {2, 3, 1000},
                             {1, 2, 9000},
                             {7, 2, 16},
                             {2, 9, 1}}) {
    const std::string row = "(o, r, c) -> (o * " + std::to_string(m) + " + r";
    CudaCase test({.space = {outer, m, n},
                   .ins = {{"f32", row + ", c)", {outer * m, n}}, {"i64", row + ")", {outer * m}}},
                   .outs = {{"f32", "(o, r, c) -> (o, c)", {outer, n}},
                            {"f32", row + ", c)", {outer * m, n}},
                            {"f32", row + ")", {outer * m}}},
                   .kernelClass = "column",
                   .body = lossBody});
    test.check(1e-5);
    test.checkInPlace(0, 1);
  }
}

// The gradient of a norm of each row, of rows that no thread has in registers; with those of its
// parameters as far as lowering puts them together.
TEST(CudaReduction, NormsOfLongRows) {
  for (const std::string type : {"f32", "bf16"})
    for (int64_t n : {4096, 4104, 8192, 15000, 50257}) {
      SCOPED_TRACE(type + " " + std::to_string(n));
      const bool hasColumns = n <= 8192, isWide = type == "f32";
      std::string body = "    ^bb0(%a: " + type + ", %b: " + type + ", %gamma: f32, %rest: f32):\n";
      for (auto [to, from] : {std::pair<std::string, std::string>{"x", "a"}, {"dy", "b"}})
        body += isWide ? "      %" + to + " = arith.addf %" + from + ", %rest : f32\n"
                       : "      %" + to + " = arith.extf %" + from + " : bf16 to f32\n";
      body += "      %n = arith.constant " + std::to_string(n) + ".0 : f32\n" + R"(
      %sum = kernel.reduce add %x over [1] : f32
      %mean = arith.divf %sum, %n : f32
      %d = arith.subf %x, %mean : f32
      %dd = arith.mulf %d, %d : f32
      %squares = kernel.reduce add %dd over [1] : f32
      %variance = arith.divf %squares, %n : f32
      %one = arith.constant 1.0 : f32
      %shifted = arith.addf %variance, %one : f32
      %root = math.sqrt %shifted : f32
      %h = arith.divf %d, %root : f32
      %g = arith.mulf %dy, %gamma : f32
      %gh = arith.mulf %g, %h : f32
      %s1 = kernel.reduce add %g over [1] : f32
      %s2 = kernel.reduce add %gh over [1] : f32
      %m1 = arith.divf %s1, %n : f32
      %m2 = arith.divf %s2, %n : f32
      %hm = arith.mulf %h, %m2 : f32
      %g1 = arith.subf %g, %m1 : f32
      %g2 = arith.subf %g1, %hm : f32
      %g3 = arith.divf %g2, %root : f32
      %dx = arith.addf %g3, %rest : f32
)";
      body += hasColumns ? R"(
      %p = arith.mulf %dy, %h : f32
      %dgamma = kernel.reduce add %p over [0] : f32
      %dbeta = kernel.reduce add %dy over [0] : f32
      kernel.yield %dx, %dgamma, %dbeta : f32, f32, f32
)"
                         : "      kernel.yield %dx : f32\n";
      KernelSpec spec{.space = {2, n},
                      .ins = {{type, "(r, c) -> (r, c)", {2, n}},
                              {type, "(r, c) -> (r, c)", {2, n}},
                              {"f32", "(r, c) -> (c)", {n}},
                              {"f32", "(r, c) -> (r, c)", {2, n}}},
                      .outs = {{"f32", "(r, c) -> (r, c)", {2, n}}},
                      .kernelClass = hasColumns ? "column" : "row",
                      .body = body};
      if (hasColumns)
        spec.outs.insert(spec.outs.end(), 2, {"f32", "(r, c) -> (c)", {n}});
      CudaCase test(spec);
      ASSERT_TRUE(test.ok());
      test.check(1e-4);
    }
}

// Of a row of each length what stands at its label, its largest one, and it without 1 at the label.
// Labels lie in the first and the last chunk, outside, and 2^32 beyond an element.
TEST(CudaReduction, LabelsOfRows) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const std::string type : {"f32", "bf16"})
    for (int64_t n : {5, 16, 50, 1001, 4104, 50257}) {
      SCOPED_TRACE(type + " " + std::to_string(n));
      const std::vector<int64_t> labels = {0, 3, n - 1, n, -100, (int64_t{1} << 32) + 3, n / 2};
      const auto m = static_cast<int64_t>(labels.size());
      CudaCase test({.space = {m, n},
                     .ins = {{type, "(r, c) -> (r, c)", {m, n}}, {"i64", "(r, c) -> (r)", {m}}},
                     .outs = {{"f32", "(r, c) -> (r)", {m}},
                              {"f32", "(r, c) -> (r)", {m}},
                              {"f32", "(r, c) -> (r, c)", {m, n}}},
                     .kernelClass = "row",
                     .body = "    ^bb0(%a: " + type + ", %label: i64):\n" +
                             (type == "f32" ? "      %zero = arith.constant 0.0 : f32\n"
                                              "      %x = arith.subf %a, %zero : f32\n"
                                            : "      %zero = arith.constant 0.0 : f32\n"
                                              "      %x = arith.extf %a : bf16 to f32\n") +
                             R"(
      %c = kernel.index 1
      %number = arith.index_cast %c : index to i64
      %hit = arith.cmpi eq, %number, %label : i64
      %one = arith.constant 1.0 : f32
      %term = arith.select %hit, %x, %zero : f32
      %picked = kernel.reduce add %term over [1] : f32
      %largest = kernel.reduce max %x over [1] : f32
      %hot = arith.select %hit, %one, %zero : f32
      %rest = arith.subf %x, %hot : f32
      kernel.yield %picked, %largest, %rest : f32, f32, f32
)"});
      ASSERT_TRUE(test.ok());
      Elements x = randomElements({type, "", {m, n}}, 17);
      x[1] = -0.0, x[3 * n + 1] = -infinity, x[n + 3] = -0.0;
      test.setIn(0, x);
      test.setIn(1, Elements(labels.begin(), labels.end()));
      const std::vector<std::string> found = test.run();
      const std::vector<float> picked = floatsOf(found[0]), largest = floatsOf(found[1]),
                               rest = floatsOf(found[2]);
      for (int64_t row = 0; row < m; ++row) {
        const auto begin = x.begin() + row * n;
        const int64_t label = labels[row];
        const bool isIn = label >= 0 && label < n;
        const auto expected = static_cast<float>(isIn ? begin[label] + 0.0 : 0);
        EXPECT_EQ(std::bit_cast<uint32_t>(picked[row]), std::bit_cast<uint32_t>(expected)) << label;
        EXPECT_EQ(largest[row], static_cast<float>(*std::max_element(begin, begin + n))) << label;
        for (int64_t i = 0; i < n; ++i) {
          const auto value = static_cast<float>(begin[i]) - (i == label ? 1.0F : 0.0F);
          EXPECT_EQ(std::bit_cast<uint32_t>(rest[row * n + i]), std::bit_cast<uint32_t>(value))
              << label << " at " << i;
        }
      }
    }
}

TEST(CudaReduction, RowsOfOnePointAreThePoint) {
  for (const char* over : {"[2]", "[]"})
    CudaCase({.space = {4, 51, 1},
              .ins = {{"f32", "(n, c, o) -> (n, c, o)", {4, 51, 1}}},
              .outs = {{"f32", "(n, c, o) -> (c)", {51}}},
              .kernelClass = "column",
              .body = fmt::format(R"(
    ^bb0(%v: f32):
      %p = kernel.reduce add %v over {} : f32
      %s = kernel.reduce add %p over [0] : f32
      kernel.yield %s : f32
)",
                                  over)})
        .check(1e-6);
}

TEST(CudaReduction, CountsInI64) {
  for (int64_t n : {3, 64, 900})
    CudaCase({.space = {n},
              .ins = {{"i64", "(i) -> (0, i)", {1, n}}, {"i64", "(i) -> ()", {}}},
              .outs = {{"i1", "(i) -> ()", {}}, {"f32", "(i) -> ()", {}}, {"i64", "(i) -> ()", {}}},
              .kernelClass = "row",
              .body = R"(
    ^bb0(%v: i64, %before: i64):
      %four = arith.constant 4 : i64
      %hit = arith.cmpi slt, %v, %four : i64
      %one = arith.extui %hit : i1 to i64
      %count = kernel.reduce add %one over [0] : i64
      %f = arith.sitofp %count : i64 to f32
      %some = arith.cmpi slt, %four, %count : i64
      %sum = arith.addi %count, %before : i64
      kernel.yield %some, %f, %sum : i1, f32, i64
)"})
        .check(0);
}

// Of a product and its rows' norms: the same sum in a kernel of its own, and beside others.
TEST(CudaReduction, FusionDoesNotChangeBits) {
  for (int64_t n : {36, 256, 1000}) {
    const int64_t m = 6;
    CudaCase fused({.space = {m, n},
                    .ins = {{"f32", "(r, c) -> (r, c)", {m, n}}},
                    .outs = {{"f32", "(r, c) -> (r)", {m}}, {"f32", "(r, c) -> (c)", {n}}},
                    .kernelClass = "column",
                    .body = R"(
    ^bb0(%v: f32):
      %e = math.exp %v : f32
      %s = kernel.reduce add %e over [1] : f32
      %p = arith.divf %e, %s : f32
      %c = kernel.reduce add %p over [0] : f32
      kernel.yield %s, %c : f32, f32
)"});
    CudaCase rows({.space = {m, n},
                   .ins = {{"f32", "(r, c) -> (r, c)", {m, n}}},
                   .outs = {{"f32", "(r, c) -> (r)", {m}}, {"f32", "(r, c) -> (r, c)", {m, n}}},
                   .kernelClass = "row",
                   .body = R"(
    ^bb0(%v: f32):
      %e = math.exp %v : f32
      %s = kernel.reduce add %e over [1] : f32
      %p = arith.divf %e, %s : f32
      kernel.yield %s, %p : f32, f32
)"});
    CudaCase columns({.space = {m, n},
                      .ins = {{"f32", "(r, c) -> (r, c)", {m, n}}},
                      .outs = {{"f32", "(r, c) -> (c)", {n}}},
                      .kernelClass = "column",
                      .body = R"(
    ^bb0(%p: f32):
      %c = kernel.reduce add %p over [0] : f32
      kernel.yield %c : f32
)"});
    ASSERT_TRUE(fused.ok() && rows.ok() && columns.ok());
    std::vector<std::string> together = fused.run(), apart = rows.run();
    EXPECT_EQ(together[0], apart[0]);
    columns.setIn(0, decode("f32", apart[1]));
    EXPECT_EQ(together[1], columns.run()[0]);
  }
}

} // namespace
} // namespace titan::codegen::cuda::testing
