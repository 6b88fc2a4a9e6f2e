// Kernels on operands beyond 2^31 elements: blocks at both ends of the grid give the bits
// that a small kernel gives on the same slices. The operands are memory that is mostly untouched.
#include "compiler/Codegen/cuda/testing/CudaAttention.h"
#include "compiler/Codegen/kernel/testing/GemmCase.h"
#include "compiler/Codegen/kernel/testing/KernelSpec.h"
#include "compiler/Codegen/kernel/testing/RecurrenceCase.h"
#include "compiler/Codegen/kernel/testing/ScatterCase.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

namespace titan::codegen::cuda::testing {
namespace {

using codegen::testing::AttentionProblem;
using codegen::testing::encode;
using codegen::testing::GemmCase;
using codegen::testing::KernelSpec;
using codegen::testing::randomElements;
using codegen::testing::RecurrenceCase;
using codegen::testing::RecurrenceRoutine;
using codegen::testing::ScatterCase;
using codegen::testing::SortCase;

constexpr int64_t fewSlices = 2;
/// Of an operand, at each of its ends, hold values: at least a slice.
constexpr int64_t knownBytes = 1 << 20;

/// A kernel whose operands are `slices` equal parts along the outermost dimension, or are shared
/// by all of them; what it computes of a slice depends on that slice and on shared operands.
struct Sliced {
  std::function<std::string(int64_t slices)> text;
  int64_t slices;    ///< enough for operands beyond 2^31 elements
  size_t kernel = 0; ///< of the text
  int64_t ends = 1;  ///< blocks that run at each end of the grid
  /// What integers of a slice hold; none: the first and the last slice.
  std::vector<double> integers = {};
  size_t workspaces = 0; ///< outs, the last ones, that are not compared
};

int64_t bytesOf(mlir::MemRefType type) {
  return type.getNumElements() * type.getElementTypeBitWidth() / 8;
}

/// A kernel for a number of slices, and its operands.
class Case {
public:
  Case(const Sliced& sliced, int64_t slices) : sliced_(sliced), slices_(slices) {
    const std::string text = sliced.text(slices);
    Result<std::unique_ptr<CudaRunner>> runner = CudaRunner::compile(text);
    if (!runner.ok()) {
      ADD_FAILURE() << runner.error().message() << "\n" << text;
      return;
    }
    runner_ = runner.take();
    mlir::Operation* op = runner_->kernels()[sliced.kernel];
    for (mlir::Value operand : op->getOperands())
      types_.push_back(llvm::cast<mlir::MemRefType>(operand.getType()));
    const size_t outs = llvm::isa<kernel::FusedOp>(op)
                            ? llvm::cast<kernel::FusedOp>(op).getOuts().size()
                            : llvm::cast<kernel::CallOp>(op).getOuts().size();
    firstOut_ = types_.size() - outs;
    endOfResults_ = types_.size() - sliced.workspaces;
  }

  bool ok() const { return runner_ != nullptr; }

  /// An operand is shared where `other`, for another number of slices, has the same. False: the
  /// system gives no memory of this size, touched or not.
  bool allocate(const Case& other) {
    for (size_t i = 0; i < types_.size(); ++i) {
      isShared_.push_back(bytesOf(types_[i]) == bytesOf(other.types_[i]));
      Result<uint64_t> address = memory_.allocate(bytesOf(types_[i]));
      if (!address.ok())
        return false;
      addresses_.push_back(*address);
    }
    return true;
  }

  /// Runs `ends` blocks at each end of the grid; 0: all.
  void run(int64_t ends) {
    for (size_t i = 0; i < firstOut_; ++i)
      fill(i);
    Result<std::vector<ptx::Counters>> counters =
        runner_->run(sliced_.kernel, addresses_, {}, ptx::Order::Ascending, memory_, ends);
    EXPECT_TRUE(counters.ok()) << counters.error().message();
  }

  /// All that was written at the ends of the outs is what `few` has in its first and last slice.
  void expectSlicesOf(Case& few) {
    for (size_t i = firstOut_; i < endOfResults_; ++i) {
      SCOPED_TRACE("out " + std::to_string(i - firstOut_));
      for (int64_t first : knownStarts(i)) {
        const int64_t slice = sliceOf(i), known = knownOf(i),
                      like = first == 0 ? 0 : bytesOf(few.types_[i]) - slice;
        std::span<char> expected = few.memory_.bytes(few.addresses_[i] + like, slice),
                        found = memory_.bytes(addresses_[i] + first, known);
        const uint8_t* written = memory_.find(addresses_[i])->written.get() + first;
        for (int64_t at = 0; at < known; ++at)
          if (written[at] && found[at] != expected[at % slice])
            FAIL() << "byte " << first + at;
        EXPECT_TRUE(written[first == 0 ? 0 : known - 1]);
      }
    }
  }

private:
  int64_t sliceOf(size_t i) const { return bytesOf(types_[i]) / (isShared_[i] ? 1 : slices_); }
  int64_t knownOf(size_t i) const {
    return std::min(bytesOf(types_[i]), std::max(knownBytes / sliceOf(i), int64_t(1)) * sliceOf(i));
  }
  std::array<int64_t, 2> knownStarts(size_t i) const {
    return {0, bytesOf(types_[i]) - knownOf(i)};
  }

  /// The same values in each slice.
  void fill(size_t i) {
    std::string element;
    llvm::raw_string_ostream(element) << types_[i].getElementType();
    const int64_t elements = types_[i].getNumElements() / (isShared_[i] ? 1 : slices_);
    std::vector<double> integers = sliced_.integers;
    if (integers.empty())
      integers = {0, static_cast<double>(slices_ - 1)};
    const std::string slice = types_[i].getElementType().isInteger()
                                  ? encode(element, integers)
                                  : encode(element, randomElements({element, "", {elements}},
                                                                   static_cast<unsigned>(i) + 1));
    for (int64_t first : knownStarts(i)) {
      for (int64_t at = first; at < first + knownOf(i); at += sliceOf(i))
        std::memcpy(memory_.bytes(addresses_[i] + at, sliceOf(i)).data(), slice.data(),
                    slice.size());
      memory_.markWritten(addresses_[i] + first, knownOf(i));
    }
  }

  Sliced sliced_;
  int64_t slices_;
  std::unique_ptr<CudaRunner> runner_;
  std::vector<mlir::MemRefType> types_;
  std::vector<bool> isShared_;
  std::vector<uint64_t> addresses_;
  size_t firstOut_ = 0, endOfResults_ = 0;
  ptx::Memory memory_;
};

void check(const Sliced& sliced) {
  Case few(sliced, fewSlices), many(sliced, sliced.slices);
  ASSERT_TRUE(few.ok() && many.ok());
  ASSERT_TRUE(few.allocate(many));
  if (!many.allocate(few))
    GTEST_SKIP() << "the system gives no memory of this size, touched or not";
  few.run(0);
  many.run(sliced.ends);
  many.expectSlicesOf(few);
}

/// A kernel.fused of [slices, ...extents]; operands are functions of the slices.
Sliced fused(int64_t slices, const std::function<KernelSpec(int64_t)>& spec) {
  return {.text = [spec](int64_t count) { return moduleText(spec(count)); }, .slices = slices};
}

TEST(CudaLargeOffsets, Flat) {
  for (int64_t columns : {50304, 50257})
    check(fused(65536, [columns](int64_t m) {
      return KernelSpec{
          .space = {m, columns},
          .ins = {{"bf16", "(r, c) -> (r, c)", {m, columns}}, {"f32", "(r, c) -> (c)", {columns}}},
          .outs = {{"bf16", "(r, c) -> (r, c)", {m, columns}}},
          .kernelClass = "flat",
          .body = R"(
    ^bb0(%x: bf16, %b: f32):
      %w = arith.extf %x : bf16 to f32
      %s = arith.addf %w, %b : f32
      %y = arith.truncf %s : f32 to bf16
      kernel.yield %y : bf16
)"};
    }));
}

TEST(CudaLargeOffsets, Rows) {
  for (int64_t columns : {50304, 50257})
    check(fused(65536, [columns](int64_t m) {
      return KernelSpec{
          .space = {m, columns},
          .ins = {{"bf16", "(r, c) -> (r, c)", {m, columns}}},
          .outs = {{"bf16", "(r, c) -> (r, c)", {m, columns}}, {"f32", "(r, c) -> (r)", {m}}},
          .kernelClass = "row",
          .body = R"(
    ^bb0(%x: bf16):
      %w = arith.extf %x : bf16 to f32
      %s = kernel.reduce add %w over [1] : f32
      %d = arith.subf %w, %s : f32
      %y = arith.truncf %d : f32 to bf16
      kernel.yield %y, %s : bf16, f32
)"};
    }));
}

TEST(CudaLargeOffsets, ShortRows) {
  check(fused(int64_t(1) << 25, [](int64_t m) {
    return KernelSpec{.space = {m, 72},
                      .ins = {{"bf16", "(r, c) -> (r, c)", {m, 72}}},
                      .outs = {{"f32", "(r, c) -> (r)", {m}}},
                      .kernelClass = "row",
                      .body = R"(
    ^bb0(%x: bf16):
      %w = arith.extf %x : bf16 to f32
      %s = kernel.reduce max %w over [1] : f32
      kernel.yield %s : f32
)"};
  }));
}

TEST(CudaLargeOffsets, Columns) {
  check(fused(8192, [](int64_t m) {
    return KernelSpec{.space = {m, 8, 33001},
                      .ins = {{"bf16", "(k, r, c) -> (k, r, c)", {m, 8, 33001}}},
                      .outs = {{"f32", "(k, r, c) -> (k, c)", {m, 33001}}},
                      .kernelClass = "column",
                      .body = R"(
    ^bb0(%x: bf16):
      %w = arith.extf %x : bf16 to f32
      %s = kernel.reduce add %w over [1] : f32
      kernel.yield %s : f32
)"};
  }));
}

TEST(CudaLargeOffsets, RowsAndColumns) {
  check(fused(8192, [](int64_t m) {
    return KernelSpec{.space = {m, 8, 33001},
                      .ins = {{"bf16", "(k, r, c) -> (k, r, c)", {m, 8, 33001}}},
                      .outs = {{"f32", "(k, r, c) -> (k, c)", {m, 33001}},
                               {"f32", "(k, r, c) -> (k, r)", {m, 8}}},
                      .kernelClass = "column",
                      .body = R"(
    ^bb0(%x: bf16):
      %w = arith.extf %x : bf16 to f32
      %s = kernel.reduce add %w over [2] : f32
      %d = arith.subf %w, %s : f32
      %t = kernel.reduce add %d over [1] : f32
      kernel.yield %t, %s : f32, f32
)"};
  }));
}

TEST(CudaLargeOffsets, Transposed) {
  check(fused(1 << 20, [](int64_t m) {
    return KernelSpec{.space = {m, 72, 40},
                      .ins = {{"f32", "(k, r, c) -> (k, c, r)", {m, 40, 72}}},
                      .outs = {{"f32", "(k, r, c) -> (k, r, c)", {m, 72, 40}}},
                      .kernelClass = "transpose",
                      .body = "\n^bb0(%x: f32):\n  kernel.yield %x : f32\n"};
  }));
}

TEST(CudaLargeOffsets, SortedRows) {
  for (auto [rows, length, count] :
       {std::tuple((int64_t{1} << 30) + 5, 8, 2), {(int64_t{1} << 31) + 5, 2, 1}})
    check({.text = [=](int64_t m) { return moduleText(SortCase{"bf16", m, length, count, false}); },
           .slices = rows});
}

TEST(CudaLargeOffsets, Products) {
  for (bool toBf16 : {false, true})
    check({.text =
               [toBf16](int64_t m) {
                 return moduleText(
                     GemmCase{.m = m, .n = 50304, .k = 8, .bf16 = toBf16, .toBf16 = toBf16});
               },
           .slices = 65536});
}

TEST(CudaLargeOffsets, LookUps) {
  check(
      {.text =
           [](int64_t entries) {
             return fmt::format(
                 "func.func @f(%t: memref<{0}x768xbf16>, %i: memref<2xi64>, %r: "
                 "memref<2x768xbf16>) "
                 "{{\nkernel.call #kernel.embedding<rows = 2, entries = {0}, width = 768> "
                 "ins(%t, %i : memref<{0}x768xbf16>, memref<2xi64>) outs(%r : memref<2x768xbf16>)\n"
                 "return\n}}\n",
                 entries);
           },
       .slices = int64_t(1) << 22});
}

// A row of the table is what a block of the first launch writes zeros to.
TEST(CudaLargeOffsets, GradientsOfLargeTables) {
  check({.text =
             [](int64_t entries) {
               return fmt::format(
                   "func.func @f(%g: memref<2x1024xf32>, %i: memref<2xi64>, %t: "
                   "memref<{0}x1024xf32>, %o: memref<260xi32>, %s: memref<2048xf32>) {{\n"
                   "kernel.call #kernel.embedding_grad<rows = 2, entries = {0}, width = 1024, "
                   "accumulate = false, columns = 1, padding = -1, sorted = true> ins(%g, %i : "
                   "memref<2x1024xf32>, memref<2xi64>) outs(%t, %o, %s : memref<{0}x1024xf32>, "
                   "memref<260xi32>, memref<2048xf32>)\nreturn\n}}\n",
                   entries);
             },
         .slices = (int64_t{1} << 21) + 5,
         .workspaces = 2});
}

// Rows beyond 2^31 elements, all of one entry: the sums of the first tile in its first columns, and
// of the last one in its last. All blocks of the sort run, of the sums as many at each end.
TEST(CudaLargeOffsets, GradientsOfManyRows) {
  constexpr int64_t tile = 256, tiles = 129, rows = tile * tiles, width = 65536, blocks = 17,
                    order = 2 * rows + blocks * 256, columns = blocks * 1024;
  Result<std::unique_ptr<CudaRunner>> runner = CudaRunner::compile(fmt::format(
      "func.func @f(%g: memref<{0}x{1}xbf16>, %i: memref<{0}xi32>, %t: memref<2x{1}xf32>, %o: "
      "memref<{2}xi32>, %s: memref<{3}xf32>) {{\n"
      "kernel.call #kernel.embedding_grad<rows = {0}, entries = 2, width = {1}, accumulate = "
      "false, "
      "columns = 1, padding = -1, sorted = true> ins(%g, %i : memref<{0}x{1}xbf16>, "
      "memref<{0}xi32>) outs(%t, %o, %s : memref<2x{1}xf32>, memref<{2}xi32>, memref<{3}xf32>)\n"
      "return\n}}\n",
      rows, width, order, 2 * tiles * width));
  ASSERT_TRUE(runner.ok()) << runner.error().message();
  ptx::Memory memory;
  std::vector<uint64_t> operands;
  for (int64_t bytes :
       {rows * width * 2, rows * 4, 2 * width * 4, order * 4, 2 * tiles * width * 4}) {
    Result<uint64_t> address = memory.allocate(bytes);
    if (!address.ok())
      GTEST_SKIP() << "the system gives no memory of this size, touched or not";
    operands.push_back(*address);
  }
  for (int64_t i = 0; i < tile; ++i) {
    const std::string values = encode("bf16", std::vector<double>(columns, static_cast<double>(i)));
    for (int64_t element : {i * width, (rows - i) * width - columns}) {
      const uint64_t at = operands[0] + element * 2;
      std::memcpy(memory.bytes(at, columns * 2).data(), values.data(), values.size());
      memory.markWritten(at, columns * 2);
    }
  }
  memory.markWritten(operands[1], rows * 4);
  memory.markWritten(operands[4], 2 * tiles * width * 4); // of the tiles that do not run
  Result<std::vector<ptx::Counters>> counters =
      (*runner)->run(0, operands, {}, ptx::Order::Ascending, memory, blocks);
  ASSERT_TRUE(counters.ok()) << counters.error().message();
  auto sumAt = [&](int64_t ofTile, int64_t number, int64_t column) {
    float sum = 0;
    const uint64_t at = operands[4] + ((2 * ofTile + number) * width + column) * 4;
    std::memcpy(&sum, memory.bytes(at, 4).data(), 4);
    return sum;
  };
  constexpr float expected = tile * (tile - 1) / 2;
  EXPECT_EQ(sumAt(0, 1, 0), expected);
  EXPECT_EQ(sumAt(0, 1, columns - 1), expected);
  EXPECT_EQ(sumAt(tiles - 1, 0, width - 1), expected);
  EXPECT_EQ(sumAt(tiles - 1, 0, width - columns), expected);
}

TEST(CudaLargeOffsets, UpdatesByIndex) {
  // Of an entry of a large table.
  check({.text =
             [](int64_t entries) {
               return moduleText(ScatterCase{"none", "f32", "i64", 1, entries, 1, 2, 768, 1});
             },
         .slices = int64_t{1} << 22});
  // In one of many tables, by one of many updates.
  check({.text =
             [](int64_t outer) {
               return moduleText(ScatterCase{"none", "bf16", "i64", outer, 2, 1, 2, 768, 1});
             },
         .slices = (int64_t{1} << 21) + 5,
         .integers = {1, 0}});
}

TEST(CudaLargeOffsets, RecurrentLayers) {
  for (bool isGradient : {false, true})
    check({.text =
               [isGradient](int64_t batch) {
                 return RecurrenceRoutine({.steps = 1, .batch = batch, .width = 64}, isGradient)
                     .text();
               },
           .slices = (int64_t{1} << 23) + 8});
}

TEST(CudaLargeOffsets, F64) {
  for (bool isRow : {false, true})
    check(fused(65536, [isRow](int64_t m) {
      return KernelSpec{.space = {m, 33001},
                        .ins = {{"f64", "(r, c) -> (r, c)", {m, 33001}}},
                        .outs = {{"f64", "(r, c) -> (r, c)", {m, 33001}}},
                        .kernelClass = isRow ? "row" : "flat",
                        .body = fmt::format(R"(
    ^bb0(%x: f64):
      {}
      %y = arith.addf %x, %s : f64
      kernel.yield %y : f64
)",
                                            isRow ? "%s = kernel.reduce add %x over [1] : f64"
                                                  : "%s = arith.mulf %x, %x : f64")};
    }));
}

TEST(CudaLargeOffsets, Attention) {
  for (size_t isBackward : {0, 1})
    check({.text =
               [](int64_t batch) {
                 const AttentionSpec spec = {.batch = batch, .width = 64, .element = "bf16"};
                 return AttentionProblem(withBlocksOfCards(spec), false).moduleText();
               },
           .slices = (int64_t(1) << 21) + 5,
           .kernel = isBackward,
           .ends = 4});
}

} // namespace
} // namespace titan::codegen::cuda::testing
