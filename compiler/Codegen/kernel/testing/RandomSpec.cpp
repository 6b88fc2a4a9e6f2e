#include "compiler/Codegen/kernel/testing/RandomSpec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace titan::codegen::testing {
namespace {

using Dims = std::vector<int64_t>;
using DimMask = unsigned; ///< a bit for each dimension of the space

constexpr int64_t mostPoints = 70'000;

/// A value of the body.
struct Value {
  std::string name;
  DimMask dims = 0; ///< that it varies with
  /// Is it the same in any precision? Only then may a comparison decide something by it.
  bool isExact = false;
};

class Drawing {
public:
  explicit Drawing(unsigned seed) : generator_(seed) {}

  RandomSpec draw() {
    drawSpace();
    addIns();
    compute(2 + below(4));
    for (unsigned i = hasRows_ ? 1 + below(2) : 0; i > 0; --i)
      reduce(inner_);
    compute(1 + below(3));
    addFirstOut();
    addOuts(below(3), ~0U);
    if (hasColumns_) {
      reduceColumns();
      compute(below(2));
      addOuts(1 + below(2), ~rows_);
    }
    finish();
    return {spec_, hasNarrowOut_ ? 4.1e-3 : 1e-4};
  }

private:
  //===--------------------------------------------------------------------===//
  // The space
  //===--------------------------------------------------------------------===//

  void drawSpace() {
    hasRows_ = chance(2);
    hasColumns_ = chance(2);
    type_ = chance(8) ? "f64" : "f32";
    Dims& space = spec_.space;
    addExtents(below(3), 40);
    const size_t firstRow = space.size();
    if (hasColumns_)
      addExtents(1 + below(2), 24);
    const size_t firstInner = space.size();
    addExtents(1 + below(2), mostPoints);
    rows_ = between(firstRow, firstInner);
    inner_ = between(firstInner, space.size());
    spec_.kernelClass = hasColumns_ ? "column" : hasRows_ ? "row" : "flat";
  }

  /// `count` extents whose product is at most `most`, small ones as likely as large ones.
  void addExtents(unsigned count, int64_t most) {
    int64_t volume = 1;
    for (unsigned i = 0; i < count; ++i) {
      const int64_t left = std::min(most / volume, mostPoints / points());
      const double size = std::uniform_real_distribution<double>(0, 1)(generator_);
      spec_.space.push_back(
          std::max<int64_t>(1, std::llround(std::pow(std::max<double>(1, double(left)), size))));
      volume *= spec_.space.back();
    }
  }

  int64_t points(DimMask dims = ~0U) const {
    int64_t product = 1;
    for (size_t i = 0; i < spec_.space.size(); ++i)
      product *= dims >> i & 1 ? spec_.space[i] : 1;
    return product;
  }
  DimMask between(size_t first, size_t end) const { return (1U << end) - (1U << first); }
  DimMask all() const { return between(0, spec_.space.size()); }
  Dims listOf(DimMask dims) const {
    Dims list;
    for (size_t i = 0; i < spec_.space.size(); ++i)
      if (dims >> i & 1)
        list.push_back(static_cast<int64_t>(i));
    return list;
  }

  //===--------------------------------------------------------------------===//
  // Operands
  //===--------------------------------------------------------------------===//

  /// An operand that holds `dims` and is addressed by a map that walks no element twice.
  OperandSpec operand(const std::string& element, DimMask dims, bool isDense) {
    OperandSpec operand{element, "", {}, widthOf(element) * int64_t{below(9)}};
    Dims order = listOf(dims);
    if (chance(4))
      std::shuffle(order.begin(), order.end(), generator_);
    std::vector<std::string> names, results;
    for (size_t i = 0; i < spec_.space.size(); ++i)
      names.push_back(fmt::format("d{}", i));
    for (size_t i = 0; i < order.size(); ++i) {
      std::string result = names[order[i]];
      int64_t extent = spec_.space[order[i]];
      if (i + 1 < order.size() && chance(6)) { // two dimensions as one
        const int64_t next = spec_.space[order[++i]];
        result = fmt::format("{} * {} + {}", result, next, names[order[i]]);
        extent *= next;
      } else if (!isDense && extent < 100 && chance(8)) { // every other one
        result = fmt::format("{} * 2 + 1", result);
        extent *= 2;
      } else if (!isDense && i + 1 == order.size() && chance(4)) { // rows that are padded
        extent += 1 + below(16);
      }
      results.push_back(result);
      operand.shape.push_back(extent);
    }
    if (!isDense && chance(10)) { // one row of several
      results.insert(results.begin(), "1");
      operand.shape.insert(operand.shape.begin(), 2);
    }
    operand.map = fmt::format("({}) -> ({})", fmt::join(names, ", "), fmt::join(results, ", "));
    return operand;
  }

  static int64_t widthOf(const std::string& element) {
    return element == "i1" ? 1 : element == "bf16" ? 2 : element.ends_with("64") ? 8 : 4;
  }

  std::string argument(const std::string& element, DimMask dims, bool isDense = false) {
    spec_.ins.push_back(operand(element, dims, isDense));
    arguments_.push_back(fmt::format("%a{}: {}", arguments_.size(), element));
    return fmt::format("%a{}", arguments_.size() - 1);
  }

  void addIns() {
    addFloat(type_ == "f32" && chance(3) ? "bf16" : type_, all(), /*isDense=*/true);
    for (unsigned i = below(4); i > 0; --i) {
      const DimMask dims = generator_() & all();
      switch (below(8)) {
      case 0:
        addWhole(chance(2) ? "i64" : "i32", dims);
        break;
      case 1:
        truths_.push_back({argument("i1", dims), dims});
        break;
      case 2:
        addFloat(type_ == "f32" ? "bf16" : type_, dims);
        break;
      default:
        addFloat(type_, dims);
      }
    }
    if (chance(3))
      addDropout();
  }

  void addFloat(const std::string& element, DimMask dims, bool isDense = false) {
    std::string name = argument(element, dims, isDense);
    if (element != type_)
      name = define(fmt::format("arith.extf {} : {} to {}", name, element, type_));
    values_.push_back({name, dims, true});
  }

  /// A number that is compared with an index, or becomes a float.
  void addWhole(const std::string& element, DimMask dims) {
    const std::string name = argument(element, dims);
    const auto dim = below(spec_.space.size());
    if (chance(2)) {
      values_.push_back(
          {define(fmt::format("arith.sitofp {} : {} to {}", name, element, type_)), dims, true});
      return;
    }
    const std::string index = define(fmt::format("kernel.index {}", dim)),
                      own = define(fmt::format("arith.index_cast {} : {} to index", name, element));
    truths_.push_back(
        {define(fmt::format("arith.cmpi {}, {}, {} : index", chance(2) ? "eq" : "slt", index, own)),
         dims | 1U << dim});
  }

  /// Random bits of the elements of the space, of the microbatch that a scalar counts.
  void addDropout() {
    const std::string seed = argument("i64", 0), step = argument("i64", 0);
    spec_.scalars = 1;
    std::string element = "%microbatch";
    const int64_t shift = chance(2) ? 0 : 3;
    for (size_t i = 0; i < spec_.space.size(); ++i) {
      const std::string extent = constant("index", std::to_string(spec_.space[i])),
                        index = define(fmt::format("kernel.index {}", i));
      const std::string row = define(fmt::format("arith.muli {}, {} : index", element, extent));
      element = define(fmt::format("arith.addi {}, {} : index", row, index));
    }
    element = define(fmt::format("arith.addi {}, {} : index", element,
                                 constant("index", std::to_string(shift))));
    const std::string half =
        define(fmt::format("kernel.random_half stream {} seed {} step {} element {}", below(1000),
                           seed, step, element));
    truths_.push_back(
        {define(fmt::format("arith.cmpi ult, {}, {} : i32", half, constant("i32", "45875"))),
         all()});
  }

  /// The first out has the place of the first in.
  void addFirstOut() {
    const OperandSpec place = spec_.ins.front();
    yield(place, values_.back().name);
  }

  /// Outs of values that vary with no more than `dims`.
  void addOuts(unsigned count, DimMask dims) {
    std::vector<Value> values, truths;
    auto fits = [&](const Value& value) { return (value.dims & ~dims) == 0; };
    std::copy_if(values_.begin(), values_.end(), std::back_inserter(values), fits);
    std::copy_if(truths_.begin(), truths_.end(), std::back_inserter(truths), fits);
    for (; count > 0 && !values.empty(); --count) {
      if (!truths.empty() && chance(6)) {
        const Value& truth = truths[below(truths.size())];
        yield(operand("i1", truth.dims, false), truth.name);
        continue;
      }
      const Value& value = values[below(values.size())];
      const DimMask more = chance(4) ? generator_() & all() & dims : 0;
      const std::string element = type_ == "f32" && chance(3) ? "bf16" : type_;
      yield(operand(element, value.dims | more, false), value.name);
    }
  }

  void yield(const OperandSpec& out, std::string value) {
    if (out.element == "bf16") {
      value = define(fmt::format("arith.truncf {} : {} to bf16", value, type_));
      hasNarrowOut_ = true;
    }
    spec_.outs.push_back(out);
    yielded_.push_back(value);
    yieldedTypes_.push_back(out.element);
  }

  //===--------------------------------------------------------------------===//
  // The body
  //===--------------------------------------------------------------------===//

  std::string define(const std::string& text) {
    body_ += fmt::format("%v{} = {}\n", next_, text);
    return fmt::format("%v{}", next_++);
  }
  std::string constant(const std::string& type, const std::string& value) {
    return define(fmt::format("arith.constant {} : {}", value, type));
  }
  const Value& any() { return values_[below(values_.size())]; }

  /// Each result is halved, so that sizes stay.
  void compute(unsigned count) {
    for (; count > 0; --count) {
      const Value a = any(), b = any();
      std::string result;
      DimMask dims = a.dims | b.dims;
      auto of = [&](std::string_view op, const std::string& left, const std::string& right) {
        return define(fmt::format("arith.{} {}, {} : {}", op, left, right, type_));
      };
      switch (below(8)) {
      case 0:
        if (type_ == "f32") {
          constexpr const char* functions[] = {"exp", "erf", "sin", "cos"};
          result = define(fmt::format("math.tanh {} : f32", a.name));
          result = define(fmt::format("math.{} {} : f32", functions[below(4)], result));
          dims = a.dims;
          break;
        }
        [[fallthrough]];
      case 1: { // a / sqrt(b * b + 1)
        const std::string square = of("mulf", b.name, b.name),
                          sum = of("addf", square, constant(type_, "1.0"));
        result = of("divf", a.name, define(fmt::format("math.sqrt {} : {}", sum, type_)));
        break;
      }
      case 2:
        if (!truths_.empty()) {
          const Value& truth = truths_[below(truths_.size())];
          result = define(
              fmt::format("arith.select {}, {}, {} : {}", truth.name, a.name, b.name, type_));
          dims |= truth.dims;
          break;
        }
        [[fallthrough]];
      case 3:
        if (a.isExact && b.isExact)
          truths_.push_back(
              {define(fmt::format("arith.cmpf ogt, {}, {} : {}", a.name, b.name, type_)), dims});
        result = of("maximumf", a.name, b.name);
        break;
      case 4:
        result = of("mulf", a.name, b.name);
        break;
      case 5:
        result = of("subf", a.name, b.name);
        break;
      default:
        result = of("addf", a.name, b.name);
      }
      values_.push_back({of("mulf", result, constant(type_, "0.5")), dims});
    }
  }

  /// A mean or an extreme over `dims`.
  Value reduced(const Value& value, DimMask dims) {
    constexpr const char* kinds[] = {"max", "min"};
    const bool isMean = !chance(3);
    std::string result =
        define(fmt::format("kernel.reduce {} {} over [{}] : {}", isMean ? "add" : kinds[below(2)],
                           value.name, fmt::join(listOf(dims), ", "), type_));
    if (isMean)
      result =
          define(fmt::format("arith.divf {}, {} : {}", result,
                             constant(type_, fmt::format("{:.1f}", double(points(dims)))), type_));
    return {result, value.dims & ~dims};
  }

  /// The newest value, or another, without what it is on average.
  void reduce(DimMask dims) {
    const Value value = chance(2) ? values_.back() : any(), mean = reduced(value, dims);
    values_.push_back(mean);
    values_.push_back(
        {define(fmt::format("arith.subf {}, {} : {}", value.name, mean.name, type_)), value.dims});
  }

  /// What comes of sums over rows meets nothing that varies along them.
  void reduceColumns() {
    std::vector<Value> sums;
    for (unsigned i = 1 + below(3); i > 0; --i)
      sums.push_back(reduced(any(), rows_));
    auto varies = [&](const Value& value) { return (value.dims & rows_) != 0; };
    std::erase_if(values_, varies);
    std::erase_if(truths_, varies);
    values_.insert(values_.end(), sums.begin(), sums.end());
  }

  void finish() {
    if (spec_.scalars > 0)
      arguments_.push_back("%microbatch: index");
    spec_.body = fmt::format("\n^bb0({}):\n{}kernel.yield {} : {}\n", fmt::join(arguments_, ", "),
                             body_, fmt::join(yielded_, ", "), fmt::join(yieldedTypes_, ", "));
  }

  unsigned below(size_t limit) { return static_cast<unsigned>(generator_() % limit); }
  bool chance(unsigned of) { return below(of) == 0; }

  std::mt19937 generator_;
  KernelSpec spec_;
  std::string type_; ///< of what is computed
  bool hasRows_ = false, hasColumns_ = false, hasNarrowOut_ = false;
  DimMask rows_ = 0, inner_ = 0;
  std::vector<Value> values_, truths_;
  std::vector<std::string> arguments_, yielded_, yieldedTypes_;
  std::string body_;
  unsigned next_ = 0;
};

} // namespace

RandomSpec drawKernel(unsigned seed) { return Drawing(seed).draw(); }

} // namespace titan::codegen::testing
