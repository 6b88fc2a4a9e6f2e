// Random kernels of every schedule: on the interpreter against their definition, in three orders,
// and in place.
#include "compiler/Codegen/cuda/testing/CudaCase.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

namespace titan::codegen::cuda::testing {
namespace {

/// A kernel.fused: spaces [outer..., rows..., inner...] with means over inner, over rows, or both.
class Drawing {
public:
  explicit Drawing(unsigned seed) : generator_(seed) {}

  KernelSpec draw() {
    const bool hasRows = chance(2), hasColumns = chance(2);
    outer_ = extents(below(3), 40);
    rows_ = hasColumns ? extents(1, 24) : Dims();
    inner_ = extents(1 + below(2), 70000);
    const Dims space = concat(concat(outer_, rows_), inner_);
    spec_ = KernelSpec();
    spec_.space = space;
    spec_.kernelClass = hasColumns ? "column" : hasRows ? "row" : "flat";
    arguments_.clear();
    addIn(~0U);
    for (unsigned i = below(4); i > 0; --i)
      addIn(generator_());
    body_.clear();
    values_ = arguments_;
    compute(2 + below(4));
    if (hasRows)
      mean(outer_.size() + rows_.size(), inner_.size());
    compute(2);
    const std::string atPoint = values_.back();
    addOut(~0U, atPoint);
    spec_.outs[0].offset = spec_.ins[0].offset; // it is put in its place, too
    if (hasRows)
      addOut((1U << (outer_.size() + rows_.size())) - 1, rowMean_);
    if (hasColumns) {
      mean(outer_.size(), rows_.size());
      unsigned columns = ~0U;
      for (size_t i = 0; i < rows_.size(); ++i)
        columns &= ~(1U << (outer_.size() + i));
      addOut(columns, values_.back());
    }
    std::string list;
    for (size_t i = 0; i < arguments_.size(); ++i)
      list += (i ? ", " : "") + arguments_[i] + ": f32";
    spec_.body = fmt::format("\n^bb0({}):\n%half = arith.constant 0.5 : f32\n{}kernel.yield {} : "
                             "{}\n",
                             list, body_, fmt::join(yielded_, ", "),
                             fmt::join(std::vector<std::string>(yielded_.size(), "f32"), ", "));
    yielded_.clear();
    return spec_;
  }

private:
  using Dims = std::vector<int64_t>;

  unsigned below(unsigned limit) { return generator_() % limit; }
  bool chance(unsigned of) { return below(of) == 0; }
  static Dims concat(Dims a, const Dims& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  /// `count` extents whose product is at most `limit`, small ones as likely as large ones.
  Dims extents(unsigned count, int64_t limit) {
    Dims dims;
    for (unsigned i = 0; i < count; ++i) {
      const double size = std::uniform_real_distribution<double>(0, 1)(generator_);
      const int64_t points = volume(concat(concat(outer_, rows_), dims));
      const int64_t most = std::max<int64_t>(1, std::min(limit / volume(dims), 70000 / points));
      dims.push_back(std::max<int64_t>(1, std::llround(std::pow(double(most), size))));
    }
    return dims;
  }
  static int64_t volume(const Dims& dims) {
    int64_t points = 1;
    for (int64_t extent : dims)
      points *= extent;
    return points;
  }

  /// An operand that holds the dimensions of `chosen`, one bit each.
  OperandSpec operand(unsigned chosen) {
    OperandSpec operand{"f32", "", {}, int64_t{4} * below(5)};
    std::vector<std::string> all, held;
    for (size_t i = 0; i < spec_.space.size(); ++i) {
      all.push_back(fmt::format("d{}", i));
      if (chosen >> i & 1) {
        held.push_back(all.back());
        operand.shape.push_back(spec_.space[i]);
      }
    }
    operand.map = fmt::format("({}) -> ({})", fmt::join(all, ", "), fmt::join(held, ", "));
    return operand;
  }
  void addIn(unsigned chosen) {
    spec_.ins.push_back(operand(chosen));
    arguments_.push_back(fmt::format("%a{}", arguments_.size()));
  }
  void addOut(unsigned chosen, const std::string& value) {
    spec_.outs.push_back(operand(chosen));
    yielded_.push_back(value);
  }

  std::string name() { return fmt::format("%v{}", next_++); }
  const std::string& any() { return values_[below(values_.size())]; }
  void add(const std::string& text) {
    values_.push_back(name());
    body_ += fmt::format("{} = {} : f32\n", values_.back(), text);
  }
  void compute(unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      const std::string a = any(), b = any();
      constexpr const char* binary[] = {"addf", "subf", "mulf", "maximumf"};
      if (chance(4)) {
        add(fmt::format("math.tanh {}", a));
        add(fmt::format("math.exp {}", values_.back()));
      } else {
        add(fmt::format("arith.{} {}, {}", binary[below(4)], a, b));
      }
      add(fmt::format("arith.mulf {}, %half", values_.back()));
    }
  }
  /// The mean, and a value that it has changed.
  void mean(size_t first, size_t count) {
    std::vector<std::string> dims;
    int64_t terms = 1;
    for (size_t i = first; i < first + count; ++i) {
      dims.push_back(std::to_string(i));
      terms *= spec_.space[i];
    }
    const std::string value = values_.back();
    add(fmt::format("kernel.reduce add {} over [{}]", value, fmt::join(dims, ", ")));
    const std::string sum = values_.back(), terms32 = name();
    body_ += fmt::format("{} = arith.constant {:.1f} : f32\n", terms32, double(terms));
    add(fmt::format("arith.divf {}, {}", sum, terms32));
    rowMean_ = values_.back();
    // A column's mean stands alone: nothing that varies along the rows may need it.
    if (first == outer_.size() && !rows_.empty())
      return;
    add(fmt::format("arith.subf {}, {}", value, rowMean_));
  }

  std::mt19937 generator_;
  Dims outer_, rows_, inner_;
  KernelSpec spec_;
  std::vector<std::string> arguments_, values_, yielded_;
  std::string body_, rowMean_;
  unsigned next_ = 0;
};

TEST(CudaRandomKernels, MeanWhatTheySay) {
  const char* chosen = std::getenv("TITAN_TEST_SEED");
  const unsigned first = chosen ? static_cast<unsigned>(std::atoi(chosen)) : 1;
  fmt::print("seeds from {} on (TITAN_TEST_SEED)\n", first);
  for (unsigned seed = first; seed < first + 60; ++seed) {
    SCOPED_TRACE(fmt::format("TITAN_TEST_SEED={}", seed));
    CudaCase test(Drawing(seed).draw());
    ASSERT_TRUE(test.ok());
    // Sums of many columns beside a wide row may want more registers than 1024 threads have.
    test.check(1e-4, /*spills=*/true);
    test.checkInPlace(0, 0);
    if (HasFatalFailure())
      return;
  }
}

} // namespace
} // namespace titan::codegen::cuda::testing
